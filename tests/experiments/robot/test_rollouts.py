"""Rollouts of the robot: labels confirmed by replay, rows that follow from seeds, and a clearance
that can be trusted."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.shield.cars import labelled

from experiments.robot import IndoorNavigation, brake
from pacbound.shield import Task, check_label, run_shielded

pytestmark = pytest.mark.long

HORIZON = 100
collect = partial(labelled, IndoorNavigation, horizon=HORIZON, backup_steps=60)


def rush(observation: Any) -> Any:
    """Full speed towards the goal, whatever is in between."""
    return np.array([1.0, np.clip(2 * observation["goal"][2], -1, 1)], np.float32)


def danger(observation: Any) -> float:
    return 1 - float(observation["depth"][:, 20:44].min())


TASK = Task(IndoorNavigation, rush, brake, danger, horizon=HORIZON, backup_steps=60)


def test_labels_of_the_robot_are_confirmed_by_replay() -> None:
    rollouts = collect(rush, brake, danger, seeds=range(12))
    labelled = np.flatnonzero(rollouts.first_unrecoverable >= 0)
    assert len(labelled) > 6
    for row in labelled:
        first = int(rollouts.first_unrecoverable[row])
        found = check_label(TASK, seed=int(row), first_unrecoverable=first)
        assert (found.safe_at, found.safe_after) == (True, False)


def test_where_the_clearance_is_enough_simulating_the_backup_anyway_changes_no_label() -> None:
    trusting = collect(rush, brake, danger, seeds=range(100, 112))
    wary = collect(rush, brake, danger, seeds=range(100, 112), trust_clearance=False)
    assert trusting.simulated.sum() < 0.5 * wary.simulated.sum()
    for name in set(trusting.columns) - {"simulated", "checked"}:
        assert trusting.columns[name].tobytes() == wary.columns[name].tobytes()


def test_the_same_seeds_give_the_same_rollouts_to_the_bit_in_one_process_and_in_two() -> None:
    once = collect(rush, brake, danger, seeds=range(8))
    again = collect(rush, brake, danger, seeds=range(8), n_jobs=2, chunk=3)
    for name, column in once.columns.items():
        assert column.tobytes() == again.columns[name].tobytes()


def test_a_shield_that_fires_early_enough_is_safe_where_the_plain_rollout_was_caught() -> None:
    plain = collect(rush, brake, danger, seeds=range(12))
    shielded = run_shielded(TASK, 0.8, seeds=range(12))
    missed = plain.unsafe & (plain.score < 0.8)
    assert not (shielded.unsafe & ~missed).any()

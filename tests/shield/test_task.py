"""What rollouts are made of is said by a task, and by nothing else."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

from tests.shield.cars import Car, brake, danger, rash

from pacbound.errors import InvalidTypeError
from pacbound.shield import Task, check_label, collect_rollouts, run_shielded

TASK = Task(Car, rash, brake, danger, horizon=40, environment_options={"slip": 0.1})


def test_parts_are_not_taken_in_place_of_a_task() -> None:
    not_a_task: Any = Car
    for verb in (
        partial(collect_rollouts, seeds=range(5)),
        partial(run_shielded, certificate_or_thresholds=0.5, seeds=range(5)),
        partial(check_label, seed=0, first_unrecoverable=0),
    ):
        with pytest.raises(InvalidTypeError, match=r"task is of type .*: expected a Task: Task\("):
            verb(not_a_task)


def test_a_shield_needs_a_danger_model() -> None:
    with pytest.raises(InvalidTypeError, match="a shield needs a danger model"):
        run_shielded(replace(TASK, danger=None), certificate_or_thresholds=0.5, seeds=range(5))

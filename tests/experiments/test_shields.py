"""The comparison of forks with labels, and the drives, run small; each task where its simulator is
installed."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

import gymnasium
from experiments.shield import drives, forks, pendulum

from pacbound.shield import Task, collect_rollouts

RESULTS = Path("experiments/results")


def test_without_wind_the_pendulum_is_that_of_gymnasium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pendulum.Windy, "strength", 0.0)
    ours, theirs = pendulum.Windy(), gymnasium.make(pendulum.NAME)
    seen = [env.reset(seed=3)[0] for env in (ours, theirs)]
    for force in np.random.default_rng(0).uniform(-0.5, 0.5, size=(30, 1)):
        np.testing.assert_array_equal(*seen)
        seen = [env.step(force)[0] for env in (ours, theirs)]


def test_a_pendulum_pushed_at_random_is_collected_as_forks_and_as_labels() -> None:
    """The task without its learned policy, which needs stable-baselines3."""
    gains, value = pendulum.lqr()
    task = Task(
        pendulum.Windy,
        partial(pendulum.acted, [(0.5 * gains, np.zeros(1))]),
        partial(pendulum.steered, gains),
        partial(pendulum.strain, value),
        horizon=15,
        backup_steps=10,
        success=lambda _env, _info: True,
    )
    forked = collect_rollouts(task, seeds=range(3))
    labels = collect_rollouts(task, seeds=range(3), outcome="labels")
    assert forks.dominated(forked, labels)


def test_the_records_keep_what_they_claim() -> None:
    walked = json.loads((RESULTS / "shield_drives.json").read_text())
    for record in walked.values():
        passed = [one for one in record["drives"] if one["verdict"] == "passed"]
        assert record["threshold"] == passed[-1]["threshold"]
        assert record["fresh"]["rollouts"] == 1000
        assert record["chance_of_so_many_unsafe_if_the_rate_were_xi"] > 0.01
    assert set(walked) == set(drives.WALKS)
    compared = json.loads((RESULTS / "shield_forks.json").read_text())
    # Of the robot it is promised that forks do no worse than labels.
    for task, at_least in {"pendulum": 0.58, "highway": 0.35, "robot": 0.0}.items():
        record = compared[task]
        assert record["misses_at_most_those_of_labels_at_every_threshold"]
        forked, labelled = (
            record[way].get("never_fired_and_successful", 0.0) for way in ("forks", "labels")
        )
        assert forked >= max(labelled, at_least)
        assert record["simulator_steps"]["forks"] < record["simulator_steps"]["labels"]


def test_the_page_has_the_figures_of_the_record() -> None:
    page = Path("docs/shield.md").read_text(encoding="utf-8")
    names = {
        "pendulum": "pendulum in the wind",
        "highway": "highway-env",
        "robot": "the robot below",
    }
    for task, record in json.loads((RESULTS / "shield_forks.json").read_text()).items():
        ways = [record[way] for way in ("forks", "labels")]
        shares = [f"{100 * way['never_fired_and_successful']:.1f} %" for way in ways]
        steps = record["simulator_steps"]
        fewer = f"{100 * (1 - steps['forks'] / steps['labels']):.0f} %"
        rollouts = f"{names[task]}, {record['n']:,} rollouts, `xi={record['xi']}`"
        assert f"| {' | '.join([rollouts, *shares, fewer])} |" in page


def test_the_page_on_drives_has_the_figures_of_the_record() -> None:
    page = Path("docs/drives.md").read_text(encoding="utf-8")
    for record in json.loads((RESULTS / "shield_drives.json").read_text()).values():
        alone, fresh = record["policy_alone"], record["fresh"]
        for said in (
            f"unsafe in {alone['unsafe']} of {alone['rollouts']}",
            f"at {record['threshold']} for `xi={record['xi']}` ({fresh['unsafe']} ",
        ):
            assert said in page

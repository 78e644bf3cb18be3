"""The comparison of forks with labels, and the drives, run small; each task where its simulator is
installed."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

import gymnasium
from experiments.shield import drives, forks, pendulum

from pacbound.shield import Task, collect_rollouts, run_shielded

RESULTS = Path("experiments/results")


def car() -> Task:
    cars = pytest.importorskip("tests.shield.cars")
    return Task(cars.slippery, cars.rash, cars.brake, cars.danger, horizon=40)


def test_without_wind_the_pendulum_is_that_of_gymnasium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pendulum.Windy, "strength", 0.0)
    ours, theirs = pendulum.Windy(), gymnasium.make(pendulum.NAME)
    seen = [env.reset(seed=3)[0] for env in (ours, theirs)]
    for force in np.random.default_rng(0).uniform(-0.5, 0.5, size=(30, 1)):
        np.testing.assert_array_equal(*seen)
        seen = [env.step(force)[0] for env in (ours, theirs)]


def test_the_wind_is_drawn_from_the_seed_and_restored_with_the_state() -> None:
    env, other = pendulum.Windy(), pendulum.Windy()
    push = np.array([0.1])
    for one in (env, other):
        one.reset(seed=5)
    assert all((env.step(push)[0] == other.step(push)[0]).all() for _ in range(10))
    state, noise = env.save_state(), env.np_random.bit_generator.state
    after = [env.step(push)[0] for _ in range(20)]
    env.restore_state(state)
    env.np_random.bit_generator.state = noise
    np.testing.assert_array_equal(after, [env.step(push)[0] for _ in range(20)])


def test_the_lqr_holds_the_pole_and_its_cost_is_a_danger() -> None:
    gains, value = pendulum.lqr()
    env = pendulum.Windy()
    seen, _ = env.reset(seed=1)
    for _ in range(100):
        seen = env.step(pendulum.steered(gains, seen))[0]
        assert not env.is_unsafe()
        assert 0 <= pendulum.strain(value, seen) < 0.8
    assert pendulum.strain(value, np.array([0.0, 0.5, 0.0, 5.0])) == 1.0


def test_a_pole_that_leans_and_a_cart_at_the_end_of_its_rail_are_unsafe() -> None:
    env: Any = pendulum.Windy()
    for place, lean, unsafe in ((0.9, 0.1, False), (0.0, -0.21, True), (-0.96, 0.0, True)):
        env.reset(seed=0)
        env.set_state(np.array([place, lean]), np.zeros(2))
        assert env.is_unsafe() is unsafe


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


def test_the_learned_pendulum_is_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    monkeypatch.setattr(pendulum, "TRAINING", 1024)
    made = pendulum.pendulum(tmp_path / "ppo.zip")
    assert (tmp_path / "ppo.zip").exists()
    assert abs(made.policy(np.zeros(4))[0]) <= pendulum.MOST_FORCE
    driven = run_shielded(
        replace(made, horizon=5), certificate_or_thresholds=[0.1, np.inf], seeds=range(2)
    )
    assert (driven.at(np.inf).fired_at < 0).all()


def test_steps_of_forks_and_labels_are_counted_and_compared() -> None:
    task = forks.counting(car())
    forks.Counted.steps = 0
    forked = collect_rollouts(task, seeds=range(100))
    counted = forks.Counted.steps
    labels = collect_rollouts(task, seeds=range(100), outcome="labels")
    assert 0 < forked.of_rollouts("steps").sum() < counted < forks.Counted.steps
    assert forks.dominated(forked, labels)
    always_safe = replace(labels, unsafe=np.zeros(100, dtype=bool))
    assert not forks.dominated(forked, always_safe)
    driven = run_shielded(car(), certificate_or_thresholds=[0.5, np.inf], seeds=range(100, 150))
    seen = forks.found(driven, forked.certify(xi=0.0001, delta=0.01).threshold)
    assert seen == {"certified": False}


def test_a_walk_ends_at_its_first_drive_that_fails() -> None:
    walk = drives.Walk(car, "numpy", 0.2, (0.3, 0.5, 0.7, 0.9), rollouts=60, fresh=40, alone=20)
    record = drives.measured(walk)
    verdicts = [drive["verdict"] for drive in record["drives"]]
    assert verdicts[:-1] == ["passed"] * (len(verdicts) - 1)
    assert verdicts[-1] == "failed"
    assert record["threshold"] == record["drives"][-2]["threshold"]
    assert record["fresh"]["rollouts"] == 40
    assert record["policy_alone"]["unsafe"] > record["fresh"]["unsafe"]
    json.dumps(record)


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


def test_a_car_of_highway_env_is_near_the_one_ahead() -> None:
    pytest.importorskip("highway_env", reason="highway-env is not installed")
    highway = pytest.importorskip("experiments.shield.highway")
    made = replace(highway.highway(), horizon=3)
    forked = collect_rollouts(made, seeds=[1, 2])
    assert len(forked) == 2
    seen = np.array([[1, 0, 4, 25, 0], [1, 15.0, 0, -5, 0], [0, 0, 0, 0, 0]])
    assert highway.hurried(seen) == highway.SLOWER
    assert highway.closing_in(seen) == pytest.approx(0.5)
    assert highway.hurried(seen[[0, 2]]) == highway.FASTER
    assert highway.closing_in(seen[[0, 2]]) == 0.0


def test_the_car_pulls_over_where_it_sees_room_and_brakes_elsewhere() -> None:
    pytest.importorskip("highway_env", reason="highway-env is not installed")
    highway = pytest.importorskip("experiments.shield.highway")

    def asked(lane: int, *cars: list[float]) -> int:
        acted: int = highway.pull_over(np.array([[1.0, 0, 4 * lane, 25, 0], *cars]))
        return acted

    nobody, beside, far = [0.0] * 5, [1.0, -20, 4, 0, 0], [1.0, 30, 4, 0, 0]
    assert asked(1, nobody) == asked(0, far) == highway.RIGHT
    assert asked(2, nobody) == asked(1, beside) == asked(1, far, beside) == highway.SLOWER


def test_the_car_sees_what_highway_env_shows_to_the_bit() -> None:
    pytest.importorskip("highway_env", reason="highway-env is not installed")
    highway = pytest.importorskip("experiments.shield.highway")
    theirs = gymnasium.make("highway-fast-v0", config=highway.CONFIG, max_episode_steps=-1)
    ours = highway.crowded()
    seen = [env.reset(seed=3)[0] for env in (ours, theirs)]
    for _ in range(4):
        np.testing.assert_array_equal(*seen, strict=True)
        seen = [env.step(highway.hurried(seen[0]))[0] for env in (ours, theirs)]

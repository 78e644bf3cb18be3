"""Rollouts that fork wherever their danger rises: what becomes of them at every threshold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

from tests.shield.cars import Car, CarWithClearance, brake, danger, labelled, rash, slippery

from pacbound import Tally
from pacbound.cli import main
from pacbound.errors import InvalidValueError
from pacbound.shield import ForkedRollouts, Rollouts, Shield, Task, collect_rollouts, run_shielded
from pacbound.shield.rollouts.world import World

TASK = Task(slippery, rash, brake, danger, horizon=40, identity="slippery")
EIGHTHS = [*(number / 8 for number in range(9)), np.inf]


@pytest.fixture(scope="module")
def forked() -> ForkedRollouts:
    return collect_rollouts(TASK, seeds=range(400))


def test_a_fork_that_copies_the_generator_is_the_shielded_rollout_of_that_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(World, "set_noise", lambda *_: None)
    forks = collect_rollouts(TASK, seeds=range(400))
    shielded = run_shielded(TASK, certificate_or_thresholds=EIGHTHS, seeds=range(400))
    for threshold in EIGHTHS:
        at = shielded.at(threshold)
        np.testing.assert_array_equal(forks.unsafe_at(threshold), at.unsafe)
        np.testing.assert_array_equal(forks.fired_at(threshold), at.fired_at >= 0)
        np.testing.assert_equal(forks.needless(threshold), shielded.needless(threshold))
    assert 0 < forks.needless(0.25) < 1
    assert np.isnan(forks.needless(np.inf))
    assert 0 < shielded.unsafe.sum() < len(shielded)


def test_forks_count_at_most_the_misses_of_labels_from_the_same_simulations(
    forked: ForkedRollouts,
) -> None:
    labels = labelled(TASK, seeds=range(400))
    fewer = 0
    for threshold in EIGHTHS:
        missed = labels.unsafe & ~(labels.score >= threshold)
        unsafe = forked.unsafe_at(threshold)
        assert not (unsafe & ~missed).any()
        fewer += int(missed.sum() - unsafe.sum())
    assert fewer > 0
    assert forked.of_rollouts("simulated").sum() < 0.7 * labels.simulated.sum()


def test_every_threshold_of_a_rollout_is_in_one_fork(forked: ForkedRollouts) -> None:
    assert len(forked) == 400
    assert forked.seed.tolist() == list(range(400))
    first = forked.lowest == 0
    np.testing.assert_array_equal(forked.lowest[~first], forked.highest[:-1][~first[1:]] + 1)
    np.testing.assert_array_equal(forked.highest[np.append(first[1:], True)], 65537)


def test_claims_about_the_unsafe_rollouts_are_refused_with_the_reason(
    forked: ForkedRollouts,
) -> None:
    with pytest.raises(InvalidValueError, match="un-recoverable state, which forks do not look"):
        forked.certify(xi=0.2, delta=0.05, rate="among-unsafe")


def test_a_saved_table_is_loaded_and_certified_by_the_command(
    forked: ForkedRollouts,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = tmp_path / "forks.npz"
    forked.save(table)
    again = ForkedRollouts.load(table)
    for column, values in forked.columns.items():
        np.testing.assert_array_equal(again.columns[column], values)
    named = (f"--{role}={role}" for role in ("rollout", "lowest", "highest", "unsafe"))
    options = (*named, "--xi=0.2", "--delta=0.05")
    monkeypatch.setattr("sys.argv", ["pacbound", "forks", str(table), *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"{forked.certify(xi=0.2, delta=0.05).threshold}" in said
    assert "of at most 40 steps" in said


def test_a_killed_collection_goes_on_and_does_not_mix_with_labels(tmp_path: Path) -> None:
    options: dict[str, Any] = {"seeds": range(40), "chunk": 10, "folder": tmp_path / "kept"}
    whole = collect_rollouts(TASK, **options)
    kept = sorted((tmp_path / "kept").glob("part-*.npz"))
    kept[1].unlink()
    with pytest.raises(InvalidValueError, match="1 of 4 parts are missing"):
        ForkedRollouts.load(tmp_path / "kept")
    times = [path.stat().st_mtime_ns for path in kept if path.exists()]
    again = collect_rollouts(TASK, **options)
    for column, values in whole.columns.items():
        np.testing.assert_array_equal(again.columns[column], values)
    assert [path.stat().st_mtime_ns for path in kept if path != kept[1]] == times
    with pytest.raises(InvalidValueError, match='kind was "forked rollouts" and is "rollouts"'):
        labelled(TASK, **options)
    with pytest.raises(InvalidValueError, match="holds forked rollouts: expected rollouts"):
        Rollouts.load(tmp_path / "kept")


class Scripted(Car):
    """Forks fail as they are told; the rollout of seed 3 raises at the step `crash`."""

    def __init__(self, forks: tuple[bool, ...], crash: int = -1, end: int = 99) -> None:
        super().__init__()
        self.forks, self.crash, self.end, self.at = forks, crash, end, 0
        self.is_third = False

    def reset(self, **options: Any) -> Any:
        super().reset(**options)
        self.is_third = options["seed"] == 3
        self.at, self.unsafe, self.speed = 0, False, 1
        return np.array([0.0]), {}

    def step(self, action: Any) -> Any:
        if action < 0:
            self.unsafe, self.speed = self.forks[self.at], 0
            return np.array([float(self.at)]), 0.0, False, False, {}
        self.at += 1
        if self.at == self.crash and self.is_third:
            raise RuntimeError("the simulator has crashed")
        return np.array([float(self.at)]), 0.0, self.at == self.end, False, {"success": True}

    def save_state(self) -> Any:
        return self.at, self.speed, self.unsafe

    def restore_state(self, state: Any) -> None:
        self.at, self.speed, self.unsafe = state


def _scripted(dangers: list[float], *forks: bool, **options: int) -> list[tuple[int, int, bool]]:
    task = Task(
        *(lambda: Scripted(forks, **options), lambda at: 1, brake),
        lambda at: dangers[int(at[0])],
        horizon=len(dangers),
    )
    found = collect_rollouts(task, seeds=[2, 3])
    columns = (getattr(found, name) for name in ("lowest", "highest", "unsafe"))
    return list(zip(*(column[found.rollout == 3].tolist() for column in columns), strict=True))


def test_forks_hold_between_two_maxima_of_the_danger() -> None:
    found = _scripted([0.2, 0.3, 0.6], True, False, True, False)
    assert found == [
        (0, 13107, True),
        (13108, 19660, False),
        (19661, 39321, True),
        (39322, 65537, False),
    ]


def test_a_failed_reading_fires_at_every_threshold() -> None:
    assert _scripted([0.5, np.nan, 0.7], False, True, False, False) == [
        (0, 32768, False),
        (32769, 65537, True),
    ]


def test_a_danger_of_one_leaves_the_rollout_alone_to_the_threshold_above_all() -> None:
    assert _scripted([1.0], False, True) == [(0, 65536, False), (65537, 65537, True)]


def test_a_lost_rollout_is_unsafe_above_what_it_had_reached() -> None:
    assert _scripted([0.25, 0.1, 0.5, 0.75], *(False,) * 5, crash=2) == [
        (0, 16384, False),
        (16385, 65537, True),
    ]


def test_a_tally_adds_up_and_is_the_same_in_any_order(forked: ForkedRollouts) -> None:
    columns = {name: getattr(forked, name) for name in ("rollout", "lowest", "highest", "unsafe")}
    mixed = np.random.default_rng(0).permutation(len(forked.rollout))
    shuffled = {name: column[mixed] for name, column in columns.items()}
    assert Tally.count("forks", **shuffled) == forked.tally()
    half = forked.rollout < 200
    parts = [
        Tally.count("forks", **{name: column[some] for name, column in columns.items()})
        for some in (half, ~half)
    ]
    assert parts[0] + parts[1] == forked.tally()


def test_clearance_saves_simulations_and_changes_no_fork() -> None:
    task = Task(CarWithClearance, rash, brake, danger, horizon=40)
    trusting = collect_rollouts(task, seeds=range(100))
    thorough = collect_rollouts(task, seeds=range(100), trust_clearance=False)
    np.testing.assert_array_equal(trusting.unsafe, thorough.unsafe)
    np.testing.assert_array_equal(trusting.lowest, thorough.lowest)
    assert trusting.of_rollouts("simulated").sum() < thorough.of_rollouts("simulated").sum()
    assert trusting.of_rollouts("checked").sum() > 0


class Crossing(gymnasium.Env[Any, Any]):
    """A road to a wall at 13, with a crossing from 1 to 9 in which nobody may stop."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.stopped = 0, False
        return self.place, {}

    def step(self, action: int) -> Any:
        self.place, self.stopped = self.place + action, action == 0
        return self.place, 0.0, False, False, {}

    def save_state(self) -> Any:
        return self.place, self.stopped

    def restore_state(self, state: Any) -> None:
        self.place, self.stopped = state

    def is_unsafe(self) -> bool:
        return (self.stopped and 1 <= self.place <= 9) or self.place >= 13


def test_a_late_reading_stops_on_a_crossing_where_no_fork_has_begun() -> None:
    """The figure of docs/real-robots.md: the danger rises only where it is safe to stop, so every
    fork is safe, and a shield that one reading in five makes stop is unsafe in 69 %."""

    def near(place: int) -> float:
        return 0.9 if place >= 11 else 0.1

    task = Task(Crossing, lambda _: 1, lambda _: 0, near, horizon=20, backup_steps=2)
    certificate = collect_rollouts(task, seeds=range(60)).certify(xi=0.1, delta=0.01)
    assert certificate.threshold >= 0.8999

    def is_unsafe_if_late_at(step: int) -> bool:
        readings = iter(range(100))

        def late(place: int) -> float:
            if next(readings) == step:
                raise TimeoutError
            return near(place)

        world, shield = Crossing(), Shield(lambda _: 1, lambda _: 0, late, certificate)
        place, _ = world.reset(seed=0)
        unsafe = False
        for _ in range(20):
            place = world.step(shield(place))[0]
            unsafe |= world.is_unsafe()
        return unsafe

    chance = sum(0.2 * 0.8**step * is_unsafe_if_late_at(step) for step in range(20))
    assert round(chance, 2) == 0.69

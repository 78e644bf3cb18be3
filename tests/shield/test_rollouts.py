"""Rollouts say when it was too late: labels against the closed form of a car before a wall, and by
replay."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

from tests.shield.cars import (
    Car,
    CarWithClearance,
    brake,
    brakes_safely,
    danger,
    is_recoverable,
    labelled,
    of_parts,
    rash,
    slippery,
)

from pacbound.shield import PerRollout, Rollouts, Task, check_label
from pacbound.shield.rollouts.task import Role, stream

HORIZON = 40
collect = partial(labelled, horizon=HORIZON)


def same(one: Rollouts, other: Rollouts, *, but: tuple[str, ...] = ()) -> bool:
    return all(
        column.tobytes() == other.columns[name].tobytes()
        for name, column in one.columns.items()
        if name not in but
    )


def by_hand(seed: int) -> dict[str, Any]:
    """The rollout of a seed on a dry road, from the formulas alone."""
    car = Car()
    car.reset(seed=seed)
    gap, speed, score = car.gap, car.speed, -np.inf
    if not brakes_safely(gap, speed):
        return {
            "lost": True,
            "unsafe": True,
            "score": -np.inf,
            "first_unrecoverable": -1,
            "final_score": -np.inf,
            "steps": 0,
        }
    for step in range(HORIZON):
        score = max(score, danger((gap, speed)))
        action = rash((gap, speed))
        if not is_recoverable(gap, speed, action):
            found = {
                "first_unrecoverable": step,
                "final_score": danger((gap, speed)),
                "steps": step + 1,
            }
            return {"lost": False, "unsafe": True, "score": score, **found}
        speed = int(np.clip(speed + action, 0, 6))
        gap -= speed
        if speed == 0 and gap <= 2:
            break
    return {
        "lost": False,
        "unsafe": False,
        "score": score,
        "first_unrecoverable": -1,
        "final_score": np.nan,
        "steps": step + 1,
    }


def test_labels_and_scores_are_those_of_the_closed_form() -> None:
    rollouts = collect(Car, rash, brake, danger, seeds=range(600))
    expected = [by_hand(seed) for seed in range(600)]
    for name in expected[0]:
        np.testing.assert_array_equal(
            rollouts.columns[name], [row[name] for row in expected], err_msg=name
        )
    assert rollouts.seed.tolist() == list(range(600))
    assert 0 < rollouts.lost.sum() < rollouts.unsafe.sum() < 600
    np.testing.assert_array_equal(rollouts.success, ~rollouts.unsafe)


@pytest.mark.parametrize("environment", [Car, slippery])
def test_replay_confirms_every_label_and_refutes_its_neighbours(environment: Any) -> None:
    rollouts = collect(environment, rash, brake, danger, seeds=range(150))
    replay = partial(of_parts, check_label, environment, rash, brake, horizon=HORIZON)
    labelled = [
        (int(seed), int(first))
        for seed, first in zip(rollouts.seed, rollouts.first_unrecoverable, strict=True)
    ]
    labelled = [(seed, first) for seed, first in labelled if first >= 0]
    assert len(labelled) > 50
    for seed, first in labelled:
        found = replay(seed=seed, first_unrecoverable=first)
        assert (found.safe_at, found.safe_after, found.ok) == (True, False, True)
        assert not replay(seed=seed, first_unrecoverable=first + 1).safe_at
        if first > 0:
            assert not replay(seed=seed, first_unrecoverable=first - 1)


def test_where_the_clearance_is_enough_nothing_is_simulated_and_nothing_changes() -> None:
    plain = collect(Car, rash, brake, danger, seeds=range(400))
    trusting = collect(CarWithClearance, rash, brake, danger, seeds=range(400))
    wary = collect(CarWithClearance, rash, brake, danger, seeds=range(400), trust_clearance=False)
    assert same(plain, trusting, but=("simulated", "checked"))
    assert same(plain, wary)
    assert plain.checked.sum() == wary.checked.sum() == 0
    assert trusting.simulated.sum() < 0.8 * plain.simulated.sum()


def test_a_simulated_backup_has_noise_of_its_own_and_leaves_no_trace_on_the_rollout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A clearance that is always trusted, which a rehearsal would find out: no backup is simulated,
    # the road is as slippery.
    class Blind(Car):
        def surely_recoverable(self) -> bool:
            return True

    plain = collect(slippery, rash, brake, danger, seeds=range(200), follow_through=True)
    monkeypatch.setattr("pacbound.shield.rollouts.collected.rehearse", lambda *_, **__: None)
    blind = collect(
        partial(Blind, 0.1),
        rash,
        brake,
        danger,
        seeds=range(200),
        follow_through=True,
        check_clearance=0,
    )
    assert blind.simulated.sum() == 0
    started = ~plain.lost
    for name in ("steps", "collided", "success"):
        np.testing.assert_array_equal(plain.columns[name][started], blind.columns[name][started])


def test_streams_differ_by_role_and_step_and_from_that_of_the_reset() -> None:
    keys = [(role, step) for role in Role for step in range(3)]
    drawn = [np.random.default_rng(stream(0, role, step)).random() for role, step in keys]
    drawn += [
        np.random.default_rng(np.random.SeedSequence(0)).random(),
        np.random.default_rng(stream(1, Role.POLICY)).random(),
    ]
    assert len(set(drawn)) == len(drawn)


class Straight(Car):
    """A car that starts at speed 3 with a gap that its seed decides."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.gap, self.speed = int(seed or 0), 3
        return self._look(), {}


def coast(observation: Any) -> int:
    return 0


def test_a_backup_that_collides_past_the_horizon_makes_the_last_state_unrecoverable() -> None:
    # After one step at speed 3 the gap is 5, 4 or 3 less than at the start, and braking takes 3
    # more.
    rollouts = labelled(Straight, coast, brake, danger, seeds=[5, 6, 7], horizon=1)
    assert rollouts.unsafe.tolist() == [True, False, False]
    assert rollouts.first_unrecoverable.tolist() == [0, -1, -1]
    assert rollouts.steps.tolist() == [1, 1, 1]


def test_a_start_from_which_the_backup_fails_is_lost_and_one_that_fails_a_step_later_is_not() -> (
    None
):
    rollouts = labelled(Straight, coast, brake, danger, seeds=[2, 3], horizon=5)
    assert rollouts.lost.tolist() == [True, False]
    assert rollouts.unsafe.tolist() == [True, True]
    assert rollouts.score.tolist() == [-np.inf, danger((3, 3))]


class Finishing(Straight):
    """A car whose rollout terminates at a line, three before the wall."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, _, truncated, _ = super().step(action)
        return observation, reward, self.gap <= 3, truncated, {"success": self.gap <= 3}


@pytest.mark.parametrize(("rests", "unsafe"), [(False, True), (True, False)])
def test_the_backup_goes_on_past_termination_unless_a_terminated_environment_is_at_rest(
    rests: bool, unsafe: bool
) -> None:
    task = Task(Finishing, coast, brake, danger, horizon=5, rests_when_terminated=rests)
    rollouts = labelled(task, seeds=[5])
    assert rollouts.unsafe[0] == unsafe
    replayed = check_label(task, seed=5, first_unrecoverable=0)
    assert bool(replayed) == unsafe


@pytest.mark.slow
@pytest.mark.parametrize("value", [np.nan, None, "0.9", 1.5, -0.1, [0.2, 0.3]])
def test_a_reading_that_is_no_danger_has_not_fired(value: Any) -> None:
    def doubtful(observation: Any) -> Any:
        return value if observation[1] >= 4 else danger(observation)

    rollouts = collect(Car, rash, brake, doubtful, seeds=range(200))
    plain = collect(Car, rash, brake, danger, seeds=range(200))
    fast = rollouts.failures > 0
    assert fast.any()
    assert not fast.all()
    assert (rollouts.score <= plain.score).all()
    assert same(plain, rollouts, but=("score", "final_score", "failures"))
    np.testing.assert_array_equal(plain.score[~fast], rollouts.score[~fast])
    assert (rollouts.final_score[rollouts.unsafe] <= rollouts.score[rollouts.unsafe]).all()


def test_a_reading_that_failed_is_a_false_alarm_of_a_safe_rollout_alone() -> None:
    def doubtful(observation: Any) -> Any:
        return np.nan if observation[1] >= 4 else danger(observation)

    rollouts = collect(Car, rash, brake, doubtful, seeds=range(200))
    failed = rollouts.failures > 0
    assert (failed & ~rollouts.unsafe).any()
    assert (rollouts.alarm_score[failed & ~rollouts.unsafe] == 1.0).all()
    others = ~failed | rollouts.unsafe
    np.testing.assert_array_equal(rollouts.alarm_score[others], rollouts.score[others])


def test_a_danger_that_raises_has_not_fired_and_no_threshold_saves_a_rollout_without_readings() -> (
    None
):
    def blind(observation: Any) -> float:
        if observation[0] < 25:
            raise OSError("no camera")
        return 0.5

    rollouts = collect(Car, rash, brake, blind, seeds=range(300))
    unread = rollouts.failures == rollouts.steps
    assert (rollouts.score[unread & rollouts.unsafe] == -np.inf).all()
    assert (rollouts.score[unread & ~rollouts.unsafe] == 0.0).all()
    assert (unread & rollouts.unsafe & ~rollouts.lost).any()
    assert rollouts.tally().rows == 300


class Forgetful:
    """A policy with a memory: it acts by what it saw one step before. It predicts as
    stable-baselines3 does."""

    def predict(self, observation: Any, state: Any = None) -> tuple[int, Any]:
        return rash(observation if state is None else state), np.array(observation)


def test_recurrent_policies_keep_their_memory_while_backups_are_simulated() -> None:
    def remembering(_: np.random.Generator) -> Any:
        memory: list[Any] = []

        def act(observation: Any) -> int:
            memory.append(np.array(observation))
            return rash(memory[max(0, len(memory) - 2)])

        return act

    predicting = collect(Car, Forgetful(), brake, danger, seeds=range(150))
    assert same(predicting, collect(Car, PerRollout(remembering), brake, danger, seeds=range(150)))
    assert not same(predicting, collect(Car, rash, brake, danger, seeds=range(150)))


def make_noisy(rng: np.random.Generator) -> Any:
    return lambda observation: int(rng.integers(-1, 2))


def test_random_policies_backups_and_dangers_follow_from_the_seed() -> None:
    def make_danger(rng: np.random.Generator) -> Any:
        return lambda observation: rng.random()

    def make_backup(rng: np.random.Generator) -> Any:
        return lambda observation: -1 if rng.random() < 0.9 else 0

    parts = PerRollout(make_noisy), PerRollout(make_backup), PerRollout(make_danger)
    task = Task(slippery, *parts, horizon=HORIZON)
    whole = labelled(task, seeds=range(100))
    backwards = labelled(task, seeds=range(99, -1, -1), chunk=7)
    for name, column in whole.columns.items():
        np.testing.assert_array_equal(column, backwards.columns[name][::-1])
    rows = np.flatnonzero(whole.first_unrecoverable >= 0)
    assert len(rows) > 20
    for row in rows:
        first = int(whole.first_unrecoverable[row])
        assert check_label(task, seed=int(row), first_unrecoverable=first)

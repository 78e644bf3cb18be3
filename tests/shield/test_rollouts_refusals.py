"""What would make wrong rollouts is refused before the first one: states that do not come back,
seeds that decide nothing."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

from tests.shield.cars import (
    FARTHEST,
    Car,
    CarWithClearance,
    brake,
    danger,
    labelled,
    of_parts,
    rash,
)

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.shield import Rollouts, collect_rollouts

collect = partial(labelled, seeds=range(10), horizon=40)


@pytest.mark.parametrize("missing", ["save_state", "restore_state", "is_unsafe"])
def test_a_missing_method_is_named(missing: str) -> None:
    broken = type("Broken", (Car,), {missing: None})
    remedy = "pass unsafe=" if missing == "is_unsafe" else 'pass restore="deepcopy"'
    with pytest.raises(InvalidTypeError, match=rf"has no {missing}\(\)\. .*{remedy}"):
        collect(broken, rash, brake, danger)


class Worn(Car):
    """A car whose brakes wear off, which it forgets to save."""

    worn = 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.worn += 1
        return super().step(0 if self.worn > 3 else action)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.worn = 0
        super().reset(seed=seed)
        self.gap, self.speed = 30, 1
        return self._look(), {}


class Stacked(gymnasium.ObservationWrapper[Any, Any, Any]):
    """A wrapper that remembers the last three observations, and that nobody restores."""

    def __init__(self) -> None:
        super().__init__(Car())
        self.last: deque[Any] = deque([np.zeros(2)] * 3, maxlen=3)

    def observation(self, observation: Any) -> Any:
        self.last.append(np.array(observation))
        return np.concatenate(self.last)


def latest(answer: Any) -> Any:
    return lambda observation: answer(observation[-2:])


def test_a_state_that_is_not_fully_restored_is_found_out() -> None:
    with pytest.raises(
        InvalidValueError,
        match=r"After restore_state\(\) the rollout of seed 0 goes on differently",
    ):
        collect(Worn, rash, brake, danger)
    with pytest.raises(InvalidValueError, match="a wrapper may remember something"):
        collect(Stacked, latest(rash), brake, latest(danger))


class Ready(Car):
    """A car that starts far away and at rest."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.gap, self.speed = FARTHEST, 0
        return self._look(), {}


class ReadyWithClearance(Ready, CarWithClearance):
    """The same, and it knows where braking is safe."""


def test_a_clearance_that_does_not_hold_for_the_backup_is_found_out() -> None:
    def creeps(observation: Any) -> int:
        return 1 if observation[1] == 0 else 0

    with pytest.raises(
        InvalidValueError, match=r"surely_recoverable\(\) is true, and the simulated backup"
    ):
        collect(ReadyWithClearance, lambda observation: 0, creeps, danger)
    assert collect(
        ReadyWithClearance, lambda observation: 0, creeps, danger, trust_clearance=False
    ).lost.all()


class Overconfident(CarWithClearance):
    """A car whose clearance forgets that it takes longer to stop when it is fast."""

    def surely_recoverable(self) -> bool:
        return self.gap >= 6


QUIET = [seed for seed in range(300) if Car().reset(seed=seed)[0][0] < 6]
"""Seeds whose rollouts begin where this clearance says nothing, so that a rehearsal is content."""


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_clearance_that_is_wrong_now_and_then_ends_the_whole_collection(n_jobs: int) -> None:
    seeds = [QUIET[0], *(seed for seed in range(250) if seed != QUIET[0])]
    parts = (Overconfident, rash, brake, danger)
    unchecked = collect(*parts, seeds=seeds, check_clearance=0, n_jobs=n_jobs)
    right = collect(*parts, seeds=seeds, trust_clearance=False, n_jobs=n_jobs)
    assert (unchecked.first_unrecoverable != right.first_unrecoverable).sum() > 5, "unsound"
    with pytest.raises(
        InvalidValueError,
        match=r"At step \d+ of seed \d+ surely_recoverable\(\) is true, and the simulated backup "
        r"is unsafe.*No label of these rollouts can be relied on",
    ):
        collect(*parts, seeds=seeds, n_jobs=n_jobs)


def test_a_sound_clearance_is_checked_in_a_share_of_its_states_and_changes_nothing() -> None:
    def collected(share: float) -> Rollouts:
        return collect(
            CarWithClearance, rash, brake, danger, seeds=range(400), check_clearance=share
        )

    none, some, every = collected(0.0), collected(0.3), collected(1.0)
    trusted = every.checked
    assert none.checked.sum() == 0
    assert ((some.checked >= (trusted > 0)) & (some.checked <= trusted)).all()
    # All but the last of a rollout are drawn, with probability 0.3 each, and so is the last.
    assert 0.3 * trusted.sum() < some.checked.sum() < 0.75 * trusted.sum()
    for name, column in none.columns.items():
        if name != "checked":
            assert column.tobytes() == some.columns[name].tobytes() == every.columns[name].tobytes()


def test_a_danger_with_memory_or_that_changes_what_it_sees_is_found_out() -> None:
    seen: list[float] = []

    def remembers(observation: Any) -> float:
        seen.append(float(observation[0]))
        return min(1.0, len(seen) / 1000)

    def changes(observation: Any) -> float:
        observation *= 0
        return 0.5

    with pytest.raises(
        InvalidValueError, match=r"randomness or memory of its own. Pass it as PerRollout\(make\)"
    ):
        collect(Car, rash, brake, remembers)
    with pytest.raises(InvalidValueError, match="let it work on a copy"):
        collect(Car, rash, brake, changes)


def test_a_policy_with_randomness_that_does_not_follow_from_the_seed_is_found_out() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidValueError, match=r"pass it as PerRollout\(make\)"):
        collect(Car, lambda observation: int(rng.integers(-1, 2)), brake, danger)


def test_a_reset_that_does_not_follow_from_the_seed_is_found_out() -> None:
    class Moody(Car):
        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[Any, dict[str, Any]]:
            result = super().reset(seed=seed)
            self.gap, self.speed = Moody.gaps.pop(), 0
            return self._look(), result[1]

        gaps = list(range(100))  # noqa: RUF012

    with pytest.raises(InvalidValueError, match="Two rollouts of seed 0 differ"):
        collect(Moody, rash, brake, danger)


def test_a_danger_model_that_never_gives_a_danger_is_an_error() -> None:
    with pytest.raises(
        InvalidValueError,
        match=r"no valid danger for any of the first \d+ observations.*Is it a logit",
    ):
        collect(Car, rash, brake, lambda observation: 3.0 + observation[0])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"seeds": 100}, InvalidTypeError, r"such as range\(2000\)"),
        ({"seeds": []}, InvalidValueError, "There are no seeds"),
        ({"seeds": [1, 2, 1]}, InvalidValueError, "holds 1 more than once"),
        ({"seeds": [-1]}, InvalidValueError, "seeds holds -1"),
        ({"seeds": [0.5]}, InvalidValueError, "seeds holds 0.5"),
        ({"seeds": ["a"]}, InvalidTypeError, "seeds has dtype"),
        ({"seeds": [True]}, InvalidTypeError, "seeds has dtype bool"),
        ({"horizon": 0}, InvalidValueError, "horizon"),
        ({"horizon": 2.5}, InvalidValueError, "horizon"),
        ({"backup_steps": 0}, InvalidValueError, "backup_steps"),
        ({"chunk": 0}, InvalidValueError, "chunk"),
        ({"success": 3}, InvalidTypeError, "success is of type int"),
        ({"progress": 3}, InvalidTypeError, "progress is of type int"),
        ({"keep_frames": True}, InvalidTypeError, "needs a folder"),
        ({"keep_frames": 1.5, "folder": "x"}, InvalidValueError, "keep_frames=1.5"),
        ({"check_clearance": -0.1}, InvalidValueError, "check_clearance=-0.1 is not a share"),
        ({"check_clearance": "all"}, InvalidTypeError, "check_clearance"),
        ({"folder": "x"}, InvalidTypeError, "identity is missing"),
        ({"identity": {"danger": "a"}}, InvalidTypeError, "identity is of type dict"),
        ({"environment": 3}, InvalidTypeError, "environment is a int"),
        ({"policy": 3}, InvalidTypeError, "policy is of type int"),
        ({"backup": None}, InvalidTypeError, "backup is of type NoneType"),
        ({"danger": 0.5}, InvalidTypeError, "danger is a float"),
    ],
)
def test_what_is_no_collection_is_refused(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    given = {"environment": Car, "policy": rash, "backup": brake, "danger": danger, **changes}
    with pytest.raises(error, match=message):
        collect(
            given.pop("environment"),
            given.pop("policy"),
            given.pop("backup"),
            given.pop("danger"),
            **given,
        )


class Filter:
    """A memory that counts what it is told."""

    def __init__(self) -> None:
        self.seen = 0

    def reset(self) -> None:
        self.seen = 0

    def __call__(self, observation: Any) -> float:
        self.seen += 1
        return min(1.0, self.seen / 50)


class Braking:
    """A backup that tells a memory what it sees."""

    def __init__(self, memory: Filter) -> None:
        self.memory = memory

    def reset(self) -> None:
        self.memory.reset()

    def __call__(self, observation: Any) -> int:
        self.memory(observation)
        return brake(observation)


@pytest.mark.parametrize("outcome", ["labels", "forks"])
def test_a_danger_model_that_shares_its_memory_with_the_backup_is_found_out(outcome: Any) -> None:
    asked: Any = {"seeds": range(10), "horizon": 40, "outcome": outcome}
    shared = Filter()
    with pytest.raises(InvalidValueError, match=r"is 0\.04 instead of 0\.06, at step 2"):
        of_parts(collect_rollouts, Ready, rash, Braking(shared), shared, **asked)
    apart = of_parts(collect_rollouts, Ready, rash, Braking(Filter()), Filter(), **asked)
    assert len(apart) == 10

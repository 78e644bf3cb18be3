"""What would make wrong rollouts is refused before the first one: states that do not come back, seeds that decide nothing."""

from __future__ import annotations

import sys
from collections import deque
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

from tests.shield.cars import Car, CarWithClearance, brake, danger, rash

from pacbound.errors import InvalidTypeError, InvalidValueError, MissingDependencyError
from pacbound.shield import PerRollout, Rollouts, check_label, collect_rollouts
from pacbound.shield.protocol import Clear, Restorable, Stoppable

collect = partial(collect_rollouts, seeds=range(10), horizon=40)


def test_the_protocol_is_that_of_the_methods() -> None:
    assert isinstance(Car(), Restorable)
    assert isinstance(Car(), Stoppable)
    assert not isinstance(Car(), Clear)
    assert isinstance(CarWithClearance(), Clear)
    assert not isinstance(gymnasium.make("CartPole-v1").unwrapped, Restorable)


@pytest.mark.parametrize("missing", ["save_state", "restore_state", "is_unsafe"])
def test_a_missing_method_is_named(missing: str) -> None:
    broken = type("Broken", (Car,), {missing: None})
    with pytest.raises(InvalidTypeError, match=rf"has no {missing}\(\): expected save_state"):
        collect(broken, rash, brake, danger)


class Worn(Car):
    """A car whose brakes wear off, which it forgets to save."""

    worn = 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.worn += 1
        return super().step(0 if self.worn > 3 else action)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
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
    with pytest.raises(InvalidValueError, match=r"After restore_state\(\) the rollout of seed 0 goes on differently"):
        collect(Worn, rash, brake, danger)
    with pytest.raises(InvalidValueError, match="a wrapper may remember something"):
        collect(Stacked, latest(rash), brake, latest(danger))


def test_a_policy_with_randomness_that_does_not_follow_from_the_seed_is_found_out() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidValueError, match=r"pass it as PerRollout\(make\)"):
        collect(Car, lambda observation: int(rng.integers(-1, 2)), brake, danger)


def test_a_reset_that_does_not_follow_from_the_seed_is_found_out() -> None:
    class Moody(Car):
        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
            result = super().reset(seed=seed)
            self.gap, self.speed = Moody.gaps.pop(), 0
            return self._look(), result[1]

        gaps = list(range(100))  # noqa: RUF012

    with pytest.raises(InvalidValueError, match="Two rollouts of seed 0 differ"):
        collect(Moody, rash, brake, danger)


def test_a_danger_model_that_never_gives_a_danger_is_an_error() -> None:
    with pytest.raises(InvalidValueError, match=r"no danger for any of the first \d+ observations.*Is it a logit"):
        collect(Car, rash, brake, lambda observation: 3.0 + observation[0])


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        (partial(gymnasium.wrappers.TimeLimit, max_episode_steps=10), "pass the limit as horizon"),
        (gymnasium.wrappers.Autoreset, "would begin a new rollout within one"),
    ],
)
def test_wrappers_that_count_or_reset_are_refused(wrapper: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        collect(lambda: wrapper(Car()), rash, brake, danger)


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
        ({"success": 3}, InvalidTypeError, "success is a int"),
        ({"progress": 3}, InvalidTypeError, "progress is a int"),
        ({"keep_frames": True}, InvalidTypeError, "needs a folder"),
        ({"keep_frames": 1.5, "folder": "x"}, InvalidValueError, "keep_frames=1.5"),
        ({"environment": 3}, InvalidTypeError, "environment is a int"),
        ({"policy": 3}, InvalidTypeError, "policy is a int"),
        ({"backup": None}, InvalidTypeError, "backup is a NoneType"),
        ({"danger": 0.5}, InvalidTypeError, "danger is a float"),
    ],
)
def test_what_is_no_collection_is_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"environment": Car, "policy": rash, "backup": brake, "danger": danger, **changes}
    with pytest.raises(error, match=message):
        collect(given.pop("environment"), given.pop("policy"), given.pop("backup"), given.pop("danger"), **given)


def test_what_makes_nothing_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match="make is a int"):
        PerRollout(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="first_unrecoverable holds -1"):
        check_label(Car, rash, brake, seed=0, first_unrecoverable=-1, horizon=40)


@pytest.mark.parametrize("package", ["joblib", "gymnasium"])
def test_without_a_package_the_command_that_installs_it_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import pacbound.shield

    for name in [*sys.modules]:
        if name.startswith("pacbound.shield."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(vars(pacbound.shield), "run_shielded", raising=False)
    with pytest.raises(MissingDependencyError, match=rf"needs {package}.*pip install 'pacbound\[shield\]'"):
        _ = pacbound.shield.run_shielded


def test_names_that_are_not_there_are_attribute_errors_and_all_others_are_listed() -> None:
    import pacbound.shield

    assert set(pacbound.shield.__all__) <= set(dir(pacbound.shield))
    assert pacbound.shield.__all__ == sorted(pacbound.shield.__all__)
    assert pacbound.shield.Rollouts is Rollouts
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = pacbound.shield.no_such_name

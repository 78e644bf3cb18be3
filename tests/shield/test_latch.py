"""The latch only ever rises until reset: whatever threads, interrupts, copies and assignments do to
it.

Threads meet at events, so that each race here happens in every run.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="the wrappers need the extra `shield`")

import gymnasium

from pacbound import Shield
from pacbound.shield import VectorShield
from pacbound.shield.gym import ShieldWrapper, VectorShieldWrapper
from pacbound.shield.latch import Latch

PATIENCE = 30.0
"""Seconds after which a test that hangs fails; none of them waits for it."""


class Slow:
    """A danger model that holds some readings back: those of observations it is told to hold end
    when they are let go."""

    holding: bool = False
    dangers: Any = None

    def __init__(self) -> None:
        self.begun, self.may_end = Event(), Event()

    def __call__(self, observation: Any) -> Any:
        held, danger = observation
        if held:
            self.begun.set()
            assert self.may_end.wait(PATIENCE)
        if isinstance(danger, BaseException):
            raise danger
        return danger


def while_held(slow: Slow, late: Callable[[], Any], meanwhile: Callable[[], Any]) -> Any:
    """What `late` gives, which is held in the danger model while `meanwhile` runs."""
    given: list[Any] = []
    thread = Thread(target=lambda: given.append(late()))
    thread.start()
    assert slow.begun.wait(PATIENCE)
    try:
        meanwhile()
    finally:
        slow.may_end.set()
        thread.join(PATIENCE)
    return given[0]


def test_a_slower_low_reading_does_not_release_the_latch() -> None:
    slow = Slow()
    latch = Latch(slow, 0.5)
    late = while_held(slow, lambda: latch.look((True, 0.1)), lambda: latch.look((False, 0.9)))
    assert late is True, "the latch had fired by then"
    assert latch.fired
    assert latch.score == 0.9, "the danger that fired it"
    assert latch.look((False, 0.1))


def test_a_slower_low_reading_does_not_release_a_shield() -> None:
    slow = Slow()
    shield = Shield(lambda _: "drive", lambda _: "brake", slow, 0.5)
    late = while_held(slow, lambda: shield((True, 0.1)), lambda: shield((False, 0.9)))
    assert late == "brake"
    assert shield.fired
    assert shield((False, 0.0)) == "brake"


def test_a_slower_low_reading_does_not_release_the_latches_of_parallel_environments() -> None:
    slow = Slow()
    latches = Latch(slow, 0.5, num_envs=3)
    late = while_held(
        slow,
        lambda: latches.look((True, [0.1, 0.1, 0.9])),
        lambda: latches.look((False, [0.9, 0.1, 0.1])),
    )
    assert late.tolist() == [True, False, True]
    assert latches.fired.tolist() == [True, False, True]
    assert latches.score.tolist() == [0.9, 0.1, 0.9]
    assert latches.look((False, [0.0] * 3)).tolist() == [True, False, True]


def test_a_slower_low_reading_does_not_release_a_vector_shield() -> None:
    slow = Slow()
    shield = VectorShield(lambda _: np.ones(2), lambda _: np.zeros(2), slow, 0.5, num_envs=2)
    late = while_held(slow, lambda: shield((True, [0.1, 0.1])), lambda: shield((False, [0.9, 0.1])))
    assert late.tolist() == [0, 1]
    assert shield.fired.tolist() == [True, False]


@pytest.mark.parametrize("danger", [0.9, float("nan"), ValueError("no camera")])
def test_a_high_or_failed_reading_that_outlasts_a_reset_fires_the_new_rollout_too(
    danger: Any,
) -> None:
    slow = Slow()
    latch = Latch(slow, 0.5)
    assert while_held(slow, lambda: latch.look((True, danger)), latch.reset) is True
    assert latch.fired
    slow = Slow()
    vector = Latch(slow, 0.5, num_envs=2)
    both = danger if isinstance(danger, Exception) else [danger, danger]
    late = while_held(slow, lambda: vector.look((True, both)), lambda: vector.reset([True, False]))
    assert late.tolist() == [True, True]
    assert vector.fired.all()


def test_a_low_reading_that_outlasts_a_reset_is_forgotten() -> None:
    slow = Slow()
    latch = Latch(slow, 0.5)
    assert while_held(slow, lambda: latch.look((True, 0.1)), latch.reset) is False
    assert (latch.fired, np.isnan(latch.score)) == (False, True)
    slow = Slow()
    vector = Latch(slow, 0.5, num_envs=2)
    while_held(slow, lambda: vector.look((True, [0.1, 0.2])), lambda: vector.reset([True, False]))
    np.testing.assert_array_equal(vector.score, [np.nan, 0.2])


def test_a_reset_and_a_firing_within_one_slow_low_reading_leave_the_latch_fired() -> None:
    slow = Slow()
    latch = Latch(slow, 0.5)

    def reset_and_fire() -> None:
        latch.reset()
        latch.look((False, 0.9))

    assert while_held(slow, lambda: latch.look((True, 0.1)), reset_and_fire) is True
    assert latch.fired


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit()])
def test_an_interrupt_in_the_danger_model_is_raised_and_leaves_the_shield_fired(
    error: BaseException,
) -> None:
    def interrupted(_: Any) -> float:
        raise error

    shield = Shield(lambda _: "drive", lambda _: "brake", interrupted, 0.5)
    with pytest.raises(type(error)):
        shield(None)
    assert shield.fired
    assert (shield.failures, shield.last_error) == (1, error)
    assert shield(None) == "brake"
    vector = VectorShield(
        lambda _: np.ones(2), lambda _: np.zeros(2), interrupted, np.inf, num_envs=2
    )
    with pytest.raises(type(error)):
        vector(None)
    assert vector.fired.all()
    assert vector.failures.tolist() == [1, 1]


def test_a_danger_model_may_use_its_own_shield() -> None:
    shields: list[Shield] = []

    def nested(observation: float) -> float:
        if observation == 0.2:
            assert shields[0](0.9) == "brake"
        return observation

    shields.append(Shield(lambda _: "drive", lambda _: "brake", nested, 0.5))
    assert shields[0](0.2) == "brake", "the inner reading fired it"
    shields[0].reset()
    assert shields[0](0.1) == "drive"


@pytest.mark.parametrize("name", ["fired", "threshold", "score", "failures", "last_error"])
def test_nothing_of_a_latch_can_be_assigned(name: str) -> None:
    latch = Latch(lambda x: x, 0.5)
    latch.look(0.9)
    with pytest.raises(AttributeError):
        setattr(latch, name, False)
    assert latch.fired


@pytest.mark.parametrize("name", ["fired", "threshold", "score", "failures", "last_error"])
def test_nothing_of_parallel_latches_can_be_assigned_nor_written_into(name: str) -> None:
    latches = Latch(lambda x: x, 0.5, num_envs=2)
    latches.look([0.9, np.nan])
    with pytest.raises(AttributeError):
        setattr(latches, name, False)
    for array in (latches.fired, latches.score, latches.failures):
        array[:] = 0
    latches.look([0.1, 0.1])[:] = False
    assert latches.fired.all()
    assert latches.failures.tolist() == [0, 1]


def identity(observation: Any) -> Any:
    return observation


def drive(observation: Any) -> Any:
    return np.ones(np.shape(observation))


def brake(observation: Any) -> Any:
    return np.zeros(np.shape(observation))


@pytest.mark.parametrize("copied", [deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_shield_that_has_fired_has_fired_and_is_a_shield_of_its_own(
    copied: Callable[[Any], Any],
) -> None:
    shield = Shield(drive, brake, identity, 0.5)
    shield(0.9)
    copy = copied(shield)
    assert copy.fired
    assert copy(0.1) == 0
    copy.reset()
    assert copy(0.1) == 1
    assert shield.fired
    vector = VectorShield(drive, brake, identity, 0.5, num_envs=2)
    vector(np.array([0.9, 0.1]))
    copy = copied(vector)
    assert copy.fired.tolist() == [True, False]
    copy.reset()
    assert vector.fired.tolist() == [True, False]


class Held(gymnasium.Env[Any, Any]):
    """Environments whose observation is what they are told to show."""

    observation_space = gymnasium.spaces.Box(0, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    shown: Any = (False, 0.1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.shown, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.shown, 0.0, False, False, {"taken": action}


def test_a_slower_low_reading_does_not_release_the_gym_wrapper() -> None:
    slow, env = Slow(), Held()
    env.shown = (True, 0.1)
    shielded = ShieldWrapper(env, lambda _: 0, slow, 0.5)
    shielded.reset()
    taken = while_held(slow, lambda: shielded.step(1)[4], lambda: shielded.latch.look((False, 0.9)))
    assert (taken["taken"], taken["shield_fired"]) == (0, True)
    assert shielded.latch.fired
    assert shielded.step(1)[4]["taken"] == 0


def test_a_slower_low_reading_does_not_release_the_vector_wrapper() -> None:
    slow = Slow()
    env = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    shielded = VectorShieldWrapper(
        env, lambda x: np.zeros(2, dtype=int), lambda x: slow((slow.holding, slow.dangers)), 0.5
    )
    shielded.reset(seed=0)
    slow.holding, slow.dangers = True, [0.1, 0.1]

    def fire() -> None:
        slow.holding, slow.dangers = False, [0.9, 0.1]
        shielded.latch.look(None)

    told = while_held(slow, lambda: shielded.step(np.array([1, 1]))[4], fire)
    assert told["shield_fired"].tolist() == [True, False]
    assert shielded.latch.fired.tolist() == [True, False]
    shielded.close()

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


from pacbound import Shield
from pacbound.shield import VectorShield
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

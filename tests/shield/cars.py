"""A car that drives at a wall, in whole numbers, so that everything about it is known: which states
are too late, and how likely.

The gap to the wall is an integer, and so is the speed. An action of -1, 0 or 1 changes the speed,
then the car moves by it; it is unsafe to pass the wall. Braking from gap g and speed v takes
v(v-1)/2. On a slippery road a brake fails to grip now and then, and the chance that all ends well
is a sum over a small grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any

import gymnasium
import numpy as np

from pacbound.shield import Rollouts, Task, collect_rollouts

FASTEST, FARTHEST = 6, 30


def of_parts(function: Any, *parts: Any, **options: Any) -> Any:
    """What a function gives for a task made of its parts, with the options that are left."""
    if not isinstance(parts[0], Task):
        own = {each.name for each in fields(Task)} & options.keys()
        task = Task(*parts[:4], **{name: options.pop(name) for name in own})
        parts = (task, *parts[4:])
    return function(*parts, **options)


def labelled(*task: Any, **options: Any) -> Rollouts:
    """Rollouts with labels of what is un-recoverable."""
    found: Rollouts = of_parts(collect_rollouts, *task, **options, outcome="labels")
    return found


class Car(gymnasium.Env[Any, Any]):
    """The observation is one array that is written over at every step, as simulators do it."""

    action_space = gymnasium.spaces.Discrete(3, start=-1)
    observation_space = gymnasium.spaces.Box(0, FARTHEST, (2,), np.float32)

    def __init__(self, slip: float = 0.0) -> None:
        self.slip = slip
        self.gap = self.speed = 0
        self.unsafe = False
        self._seen = np.zeros(2, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.gap = int(self.np_random.integers(FARTHEST + 1))
        self.speed = int(self.np_random.integers(4))
        self.unsafe = False
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        grips = action >= 0 or self.np_random.random() >= self.slip
        self.speed = int(np.clip(self.speed + (action if grips else 0), 0, FASTEST))
        self.gap -= self.speed
        self.unsafe = self.gap < 0
        arrived = self.speed == 0 and self.gap <= 2
        return (
            self._look(),
            0.0,
            self.unsafe or arrived,
            False,
            {"success": arrived and not self.unsafe},
        )

    def save_state(self) -> Any:
        return self.gap, self.speed, self.unsafe

    def restore_state(self, state: Any) -> None:
        self.gap, self.speed, self.unsafe = state

    def is_unsafe(self) -> bool:
        return self.unsafe

    def is_stopped(self) -> bool:
        return self.speed == 0

    def _look(self) -> Any:
        self._seen[:] = self.gap, self.speed
        return self._seen


class CarWithClearance(Car):
    """A car that knows where braking is certainly safe."""

    def surely_recoverable(self) -> bool:
        return self.slip == 0 and self.gap > (self.speed + 1) + self.speed * (self.speed + 1) // 2


def slippery() -> Car:
    return Car(slip=0.1)


def rash(observation: Any) -> int:
    """A policy that drives up to the wall with some care; in its blind spots it speeds up."""
    gap, speed = (int(value) for value in observation)
    stopping = speed * (speed + 1) // 2
    if gap % 7 == 3 or gap > stopping + 2 * speed + 3 or (speed == 0 and gap > 2):
        return 1
    return 0 if gap > stopping else -1


def brake(observation: Any) -> int:
    return -1


def danger(observation: Any) -> float:
    """High where speeding up is too much for the gap, in eighths; every fifth gap looks more
    harmless than it is."""
    gap, speed = (int(value) for value in observation)
    margin = gap - (speed + 1) * (speed + 2) // 2
    return min(8, max(0, 6 - margin - 4 * (gap % 5 == 0))) / 8


def brakes_safely(gap: int, speed: int) -> bool:
    return gap >= speed * (speed - 1) // 2


def is_recoverable(gap: int, speed: int, action: int) -> bool:
    """Whether the action, and braking after it, stays safe on a dry road."""
    after = int(np.clip(speed + action, 0, FASTEST))
    return gap - after >= 0 and brakes_safely(gap - after, after)


@cache
def chance_to_brake_unsafely(gap: int, speed: int, slip: float) -> float:
    """The chance that braking from here passes the wall."""
    if gap < 0:
        return 1.0
    if speed == 0:
        return 0.0
    grips = chance_to_brake_unsafely(gap - speed + 1, speed - 1, slip)
    return (1 - slip) * grips + slip * chance_to_brake_unsafely(gap - speed, speed, slip)


@cache
def chance_to_be_unsafe(threshold: float, slip: float, horizon: int) -> float:
    """The chance that a rollout of `rash` under a shield with this threshold passes the wall, over
    all starts."""

    @cache
    def unsafe(gap: int, speed: int, steps: int) -> float:
        if danger((gap, speed)) >= threshold:
            return chance_to_brake_unsafely(gap, speed, slip)
        return sum(
            chance * (float(after < 0) if over or after < 0 else unsafe(after, faster, steps - 1))
            for after, faster, over, chance in _moves(gap, speed, slip, last=steps == 1)
        )

    return _over_all_starts(lambda gap, speed: unsafe(gap, speed, horizon))


@cache
def chance_to_be_missed(threshold: float, slip: float, horizon: int) -> float:
    """The chance that a rollout of `rash` is unsafe by its label, with a running maximum below the
    threshold."""

    @cache
    def missed(gap: int, speed: int, steps: int) -> float:
        if danger((gap, speed)) >= threshold:
            return 0.0
        total = 0.0
        for after, faster, over, chance in _moves(gap, speed, slip, last=steps == 1):
            bad = chance_to_brake_unsafely(after, faster, slip)
            total += chance * (
                bad + (0.0 if over or bad == 1.0 else (1 - bad) * missed(after, faster, steps - 1))
            )
        return total

    def from_start(gap: int, speed: int) -> float:
        bad = chance_to_brake_unsafely(gap, speed, slip)
        return bad + (1 - bad) * missed(gap, speed, horizon)

    return _over_all_starts(from_start)


def _moves(gap: int, speed: int, slip: float, *, last: bool) -> list[tuple[int, int, bool, float]]:
    """Where the policy's step may lead: gap, speed, whether the rollout ends there, the chance."""
    action = rash((gap, speed))
    taken = [(action, 1 - slip), (0, slip)] if action < 0 else [(action, 1.0)]
    moves = [(int(np.clip(speed + change, 0, FASTEST)), chance) for change, chance in taken]
    return [
        (gap - faster, faster, last or (faster == 0 and gap - faster <= 2), chance)
        for faster, chance in moves
    ]


def _over_all_starts(chance: Callable[[int, int], float]) -> float:
    starts = [(gap, speed) for gap in range(FARTHEST + 1) for speed in range(4)]
    return sum(chance(gap, speed) for gap, speed in starts) / len(starts)

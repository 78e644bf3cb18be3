"""A few steps before a collection starts, so that what is wrong with all rollouts is an error and
not a table of wrong rows.

It finds an environment whose `restore_state` does not bring everything back, or whose
`reset(seed=...)` does not decide everything; a `surely_recoverable` that does not hold for this
backup; a policy or a danger model that answers the same observations differently each time; a
danger model that changes what it looks at, or never gives a valid danger.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from pacbound.errors import InvalidValueError, PacboundError
from pacbound.shield.latch import Latch
from pacbound.shield.rollouts.observations import same
from pacbound.shield.rollouts.rollout import UnsoundClearanceError, unsound_clearance
from pacbound.shield.rollouts.streams import START
from pacbound.shield.rollouts.task import Task
from pacbound.shield.rollouts.world import World, comes_to_rest

_SEEDS = 3
_STEPS = 30
_BACKUP_STEPS = 50
"""Enough to disturb what is not restored; a backup that never stands still may be simulated for
very long."""


@dataclass(frozen=True)
class _Moment:
    """What is seen of a rollout at one step."""

    observation: Any
    terminated: bool = False
    truncated: bool = False
    unsafe: bool = False

    @property
    def is_last(self) -> bool:
        return self.terminated or self.truncated or self.unsafe


def rehearse(task: Task, seeds: Iterable[int], *, trust_clearance: bool) -> None:
    """Try the first seeds until one goes well; if all raise it is not chance, and the last error
    is raised.
    """
    failure: Exception | None = None
    for seed in list(seeds)[:_SEEDS]:
        with closing(task.world()) as world:
            try:
                _rehearse_one(world, task, int(seed), trust_clearance=trust_clearance)
            except PacboundError:
                raise
            except (
                Exception
            ) as error:  # one seed may be unlucky: its rollout will be counted as lost
                failure = error
            else:
                return
    if failure is not None:
        raise failure


def _rehearse_one(world: World, task: Task, seed: int, *, trust_clearance: bool) -> None:
    plain = _trail(world, task, seed)
    if not _equal(plain, _trail(world, task, seed)):
        raise InvalidValueError(
            f"Two rollouts of seed {seed} differ: expected reset(seed=...) to decide all (a "
            "wrapper may remember something). Draw from self.np_random only. If the policy has "
            "randomness or memory of its own, pass it as PerRollout(make). A stable-baselines3 "
            "model samples unless it predicts with deterministic=True."
        )
    if not _equal(plain, _trail(world, task, seed, with_excursions=True)):
        raise InvalidValueError(
            f"After restore_state() the rollout of seed {seed} goes on differently: the state that "
            "save_state() gives is not all that step() depends on (a wrapper may remember "
            "something, or the environment may count its steps). Save that too."
        )
    if trust_clearance:
        _require_sound_clearance(world, task, seed)
    if task.danger is not None:
        _require_dangers(task, seed, [moment.observation for moment in plain])


def _trail(world: World, task: Task, seed: int, *, with_excursions: bool = False) -> list[_Moment]:
    """The policy's first steps from the reset; with excursions, the backup is tried out before each
    of them, as for a label.
    """
    policy, trail = (
        task.policy_of(seed),
        [_Moment(deepcopy(world.reset(seed)), unsafe=world.is_unsafe())],
    )
    for step in range(min(_STEPS, task.horizon)):
        if trail[-1].is_last:
            break
        if with_excursions:
            _try_the_backup(world, task, seed, START + step, trail[-1].observation)
        outcome = world.step(policy.act(deepcopy(trail[-1].observation)))
        trail.append(
            _Moment(
                deepcopy(outcome.observation),
                outcome.terminated,
                outcome.truncated,
                world.is_unsafe(),
            )
        )
    return trail


def _try_the_backup(world: World, task: Task, seed: int, step: int, observation: Any) -> None:
    with world.excursion():
        comes_to_rest(
            world,
            task.backup_of(seed, step),
            deepcopy(observation),
            steps=min(task.backup_steps, _BACKUP_STEPS),
            rests_when_terminated=task.rests_when_terminated,
        )


def _require_sound_clearance(world: World, task: Task, seed: int) -> None:
    """Refuse a `surely_recoverable` that a simulated backup contradicts."""
    policy, observation = task.policy_of(seed), deepcopy(world.reset(seed))
    for step in range(min(_STEPS, task.horizon)):
        if not world.is_unsafe() and world.surely_recoverable():
            with world.excursion():
                if not task.brakes_safely(world, deepcopy(observation), seed, START + step):
                    raise UnsoundClearanceError(unsound_clearance(seed, step))
        outcome = world.step(policy.act(deepcopy(observation)))
        observation = deepcopy(outcome.observation)
        if outcome.terminated or outcome.truncated or world.is_unsafe():
            break


def _require_dangers(task: Task, seed: int, observations: list[Any]) -> None:
    first, error = _readings(task, seed, observations)
    if np.isnan(first).all():
        raise InvalidValueError(
            f"The danger model gives no valid danger for any of the first {len(observations)} "
            f"observations: {error}"
        ) from error
    again, _ = _readings(task, seed, observations)
    if not np.array_equal(first, again, equal_nan=True):
        raise InvalidValueError(
            "The danger model answers the same observations differently: it has randomness or "
            "memory of its own. Pass it as PerRollout(make), so that every rollout begins with a "
            "new one."
        )


def _readings(task: Task, seed: int, observations: list[Any]) -> tuple[Any, BaseException | None]:
    """What the danger model of the seed says of each observation, NaN where it fails, and what was
    wrong the last time.
    """
    latch, dangers = Latch(task.danger_of(seed), np.inf), []
    for observation in observations:
        latch.reset()
        shown = deepcopy(observation)
        latch.look(shown)
        dangers.append(latch.score)
        if not same(shown, observation):
            raise InvalidValueError(
                "The danger model changes the observation, which the policy acts on: let it work "
                "on a copy."
            )
    return np.array(dangers), latch.last_error


def _equal(one: list[_Moment], other: list[_Moment]) -> bool:
    return len(one) == len(other) and all(map(_alike, one, other))


def _alike(one: _Moment, other: _Moment) -> bool:
    flags = (one.terminated, one.truncated, one.unsafe) == (
        other.terminated,
        other.truncated,
        other.unsafe,
    )
    return flags and same(one.observation, other.observation)

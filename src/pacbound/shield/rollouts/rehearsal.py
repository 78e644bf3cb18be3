"""A few steps before a collection starts, so that what is wrong with all rollouts is an error and not ten thousand lost rows.

It finds an environment whose `restore_state` does not bring everything back, or whose `reset(seed=...)` does not decide
everything; a policy that answers the same observations differently each time; a danger model that never gives a danger.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from copy import deepcopy
from typing import Any

import numpy as np

from pacbound.errors import InvalidValueError, PacboundError
from pacbound.shield.rollouts.observations import same
from pacbound.shield.rollouts.streams import START
from pacbound.shield.rollouts.task import Task
from pacbound.shield.rollouts.world import World
from pacbound.shield.watch import Watch

_SEEDS = 3
_STEPS = 10


def rehearse(task: Task, seeds: Iterable[int]) -> None:
    """Try the first seeds until one goes well; if all raise it is no accident, and the last error is raised."""
    failure: Exception | None = None
    for seed in list(seeds)[:_SEEDS]:
        with closing(task.world()) as world:
            try:
                _rehearse_one(world, task, int(seed))
            except PacboundError:
                raise
            except Exception as error:  # one seed may be unlucky: its rollout will be counted as lost
                failure = error
            else:
                return
    if failure is not None:
        raise failure


def _rehearse_one(world: World, task: Task, seed: int) -> None:
    first = _trail(world, task, seed, deepcopy(world.reset(seed)))
    again = _trail(world, task, seed, first[0])
    if not _equal(first, again):
        raise InvalidValueError(
            f"After restore_state() the rollout of seed {seed} goes on differently. Either the state that save_state() gives is "
            "not all that step() depends on (a wrapper may remember something), or the policy has randomness or memory of its "
            "own: pass it as PerRollout(make). A stable-baselines3 model samples unless it predicts with deterministic=True."
        )
    if not _equal(first, _trail(world, task, seed, deepcopy(world.reset(seed)))):
        raise InvalidValueError(
            f"Two rollouts of seed {seed} differ: expected reset(seed=...) to decide everything. Draw from self.np_random only."
        )
    with world.excursion():
        task.brakes_safely(world, deepcopy(first[0]), seed, START)
    if task.danger is not None:
        _require_dangers(task, seed, first)


def _trail(world: World, task: Task, seed: int, observation: Any) -> list[Any]:
    """The observations of the policy's first steps from where the world is, which is left there."""
    policy, trail = task.policy_of(seed), [observation]
    with world.excursion():
        for _ in range(min(_STEPS, task.horizon)):
            outcome = world.step(policy.act(deepcopy(trail[-1])))
            trail.append(deepcopy(outcome.observation))
            if outcome.terminated or outcome.truncated:
                break
    return trail


def _equal(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(same, one, other))


def _require_dangers(task: Task, seed: int, observations: list[Any]) -> None:
    watch = Watch(task.danger_of(seed), np.inf)
    for observation in observations:
        watch.reset()
        watch.look(deepcopy(observation))
    if watch.failures == len(observations):
        raise InvalidValueError(
            f"The danger model gives no danger for any of the first {len(observations)} observations: {watch.last_error}"
        ) from watch.last_error

"""Checks of what labels rest on: a rehearsal before a collection starts, and labels replayed after
it.

The rehearsal takes a few steps, so that what is wrong with all rollouts is an error and not a table
of wrong rows. It finds an environment whose `restore_state` does not bring everything back, or
whose `reset(seed=...)` does not decide everything; a `surely_recoverable` that does not hold for
this backup; a policy or a danger model that answers the same observations differently each time; a
danger model that changes what it looks at, or never gives a valid danger.

A label is replayed without anything being saved or restored: from the first un-recoverable state
braking is still safe, one step of the policy later it is not. Each question is answered by a
rollout of its own from the reset on, so a label that came about by a state that was not fully
restored does not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from pacbound.errors import InvalidValueError, PacboundError
from pacbound.shield.rollouts.task import START, Task, TaskOptions, read_danger, task_of
from pacbound.shield.rollouts.world import Environment, UnsoundClearanceError, World, same
from pacbound.stats.arguments import whole_number

_SEEDS = 3
_STEPS = 30
# Enough to disturb what is not restored; a backup that never stands still may be simulated for very
# long.
_BACKUP_STEPS = 50

# What is seen of a rollout at one step: the observation, and whether it is terminated, truncated,
# unsafe.
_Moment = tuple[Any, tuple[bool, bool, bool]]


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
            except Exception as error:  # one seed may be unlucky: its rollout counts as lost
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
    if not _equal(plain, _trail(world, task, seed, _try_the_backup)):
        raise InvalidValueError(
            f"After restore_state() the rollout of seed {seed} goes on differently: the state that "
            "save_state() gives is not all that step() depends on (a wrapper may remember "
            "something, or the environment may count its steps). Save that too."
        )
    if trust_clearance:
        _trail(world, task, seed, _require_sound_clearance)
    if task.danger is not None:
        _require_dangers(task, seed, [observation for observation, _ in plain])


def _trail(
    world: World,
    task: Task,
    seed: int,
    before: Callable[[World, Task, int, int, Any], None] | None = None,
) -> list[_Moment]:
    """The policy's first steps from the reset; `before` each of them something may be tried out."""
    policy = task.policy_of(seed)
    trail = [(deepcopy(world.reset(seed)), (False, False, world.is_unsafe()))]
    for step in range(min(_STEPS, task.horizon)):
        observation, is_over = trail[-1]
        if any(is_over):
            break
        if before is not None:
            with world.excursion():
                before(world, task, seed, step, deepcopy(observation))
        outcome = world.step(policy.act(deepcopy(observation)))
        is_over = outcome.terminated, outcome.truncated, world.is_unsafe()
        trail.append((deepcopy(outcome.observation), is_over))
    return trail


def _try_the_backup(world: World, task: Task, seed: int, step: int, observation: Any) -> None:
    """Simulate the backup, as for a label."""
    task.brakes_safely(world, observation, seed, START + step, most=_BACKUP_STEPS)


def _require_sound_clearance(
    world: World, task: Task, seed: int, step: int, observation: Any
) -> None:
    """Refuse a `surely_recoverable` that a simulated backup contradicts."""
    if not world.surely_recoverable():
        return
    if not task.brakes_safely(world, observation, seed, START + step):
        raise UnsoundClearanceError.at(seed, step)


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
    readings, dangers = task.readings_of(seed), []
    for observation in observations:
        shown = deepcopy(observation)
        dangers.append(read_danger(readings, shown))
        if not same(shown, observation):
            raise InvalidValueError(
                "The danger model changes the observation, which the policy acts on: let it work "
                "on a copy."
            )
    return np.array(dangers), None if readings is None else readings.last_error


def _equal(one: list[_Moment], other: list[_Moment]) -> bool:
    return len(one) == len(other) and all(
        is_over == was_over and same(seen, before)
        for (seen, is_over), (before, was_over) in zip(one, other, strict=True)
    )


@dataclass(frozen=True)
class LabelCheck:
    """What a replay found. `ok`, and its truth value, say whether the label is right.

    Attributes
    ----------
    seed, first_unrecoverable
        The label that was checked.
    safe_at
        Whether braking at the first un-recoverable state is safe.
    safe_after
        Whether the policy's next step, and braking after it, is safe.

    Examples
    --------
    Braking a step later would still have been safe, so step 17 was not the last moment:

    >>> bool(LabelCheck(seed=4, first_unrecoverable=17, safe_at=True, safe_after=True))
    False
    """

    seed: int
    first_unrecoverable: int
    safe_at: bool
    safe_after: bool

    @property
    def ok(self) -> bool:
        """Whether it was the last moment to brake."""
        return self.safe_at and not self.safe_after

    def __bool__(self) -> bool:
        return self.ok


def check_label(
    environment: Task | Environment,
    policy: Any = None,
    backup: Any = None,
    *,
    seed: int,
    first_unrecoverable: int,
    **task: Unpack[TaskOptions],
) -> LabelCheck:
    """Replay the rollout of a seed and brake at its first un-recoverable state, and once more a
    step of the policy later.

    The label is right if braking there is safe and braking a step later is not, the step itself
    included. Noise is that of the collection, so the answer is exact.

    Parameters
    ----------
    environment
        The `Task` that the rollout was collected with; or its environment, with `policy`, `backup`
        and the keywords of `Task` beside it. The danger model is not asked.
    policy, backup
        As in `Task`.
    seed, first_unrecoverable
        The entries of the rollout in these columns of `Rollouts`.
    **task
        Where no `Task` is passed, its keywords, as in `collect_rollouts`.

    Returns
    -------
    LabelCheck
        What was found; true if the label is right.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is not what it should be.

    Examples
    --------
    In the rollout of seed 4 of the pole of `collect_rollouts`, step 17 is the last moment to take
    over:

    >>> import gymnasium
    >>> class Pole(gymnasium.Wrapper):
    ...     def save_state(self):
    ...         return self.unwrapped.state
    ...     def restore_state(self, state):
    ...         self.unwrapped.state = state
    ...     def is_unsafe(self):
    ...         return bool(abs(self.unwrapped.state[2]) > 0.2)
    >>> def make():
    ...     return Pole(gymnasium.make("CartPole-v1", max_episode_steps=-1))
    >>> policy, backup = lambda x: int(x[2] > 0), lambda x: int(x[2] + x[3] > 0)
    >>> task = Task(make, policy, backup, horizon=25, backup_steps=20)
    >>> check_label(task, seed=4, first_unrecoverable=17)
    LabelCheck(seed=4, first_unrecoverable=17, safe_at=True, safe_after=False)
    """
    whole = task_of(environment, policy, backup, None, task)
    number = whole_number(seed, "seed")
    step = whole_number(first_unrecoverable, "first_unrecoverable")
    at, after = (_safe_after(whole, number, taken) for taken in (step, step + 1))
    return LabelCheck(number, step, at, after)


def _safe_after(task: Task, seed: int, steps: int) -> bool:
    """Whether so many steps of the policy, and braking after them, are safe."""
    with closing(task.world()) as world:
        observation, policy, terminated = world.reset(seed), task.policy_of(seed), False
        for _ in range(steps):
            if world.is_unsafe():
                return False
            outcome = world.step(policy.act(deepcopy(observation)))
            observation, terminated = outcome.observation, outcome.terminated
        if world.is_unsafe():
            return False
        if terminated and task.rests_when_terminated:
            return True
        return task.brakes_safely(world, observation, seed, START + steps)

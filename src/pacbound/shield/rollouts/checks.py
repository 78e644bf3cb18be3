"""Checks of what labels rest on: a rehearsal before a collection starts, and labels replayed after
it.

The rehearsal takes a few steps, so that what is wrong with all rollouts is an error and not a table
of wrong rows. It finds an environment that does not come back to where it was, and says in which
part of the observation, or whose `reset(seed=...)` does not decide everything; a
`surely_recoverable` that does not hold for this backup; a policy or a danger model that answers the
same observations differently each time; a danger model that changes what it looks at, never gives
a valid danger, or is disturbed by a simulated backup.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError, PacboundError
from pacbound.shield.rollouts.task import START, Task, read_danger, require_task
from pacbound.shield.rollouts.world import (
    Difference,
    UnsoundClearanceError,
    World,
    difference,
)
from pacbound.stats.arguments import whole_number

_SEEDS = 3
_STEPS = 30
# Enough to disturb what is not restored; a backup that never stands still may be simulated for very
# long.
_BACKUP_STEPS = 50

# What is seen of a rollout at one step: the observation, and whether it is terminated, truncated,
# unsafe.
_Moment = tuple[Any, tuple[bool, bool, bool]]
_FLAGS = ("terminated", "truncated", "unsafe")


def rehearse(
    task: Task, seeds: Iterable[int], *, trust_clearance: bool, restores: bool = True
) -> None:
    """Try the first seeds until one goes well; if all raise it is not chance, and the last error
    is raised. Rollouts that restore no state need not show that they can.
    """
    failure: Exception | None = None
    for seed in list(seeds)[:_SEEDS]:
        with closing(task.world()) as world:
            try:
                plain = _rehearse_seed(world, task, int(seed))
                if restores:
                    _require_restoring(world, task, int(seed), plain)
                if trust_clearance:
                    _trail(world, task, int(seed), _require_sound_clearance)
                if task.danger is not None:
                    _require_dangers(world, task, int(seed), restores=restores)
            except PacboundError:
                raise
            except Exception as error:  # one seed may be unlucky: its rollout counts as lost
                failure = error
            else:
                return
    if failure is not None and task.restore == "deepcopy":
        raise InvalidValueError(
            f"Rollouts raise {type(failure).__name__}: {failure} If copies of the environment "
            'share what it holds, such as a physics server, pass restore="replay" in a new process.'
        ) from failure
    if failure is not None:
        raise failure


def _rehearse_seed(world: World, task: Task, seed: int) -> list[_Moment]:
    """The first steps of a seed, which must be the same twice."""
    plain = _trail(world, task, seed)
    found = _difference(plain, _trail(world, task, seed))
    if found:
        raise InvalidValueError(
            f"Two rollouts of seed {seed} differ: {found} Expected reset(seed=...) to decide all "
            "(a wrapper may remember something). Draw from self.np_random only. If the policy has "
            "randomness or memory of its own, pass it as PerRollout(make). A stable-baselines3 "
            "model samples unless it predicts with deterministic=True."
        )
    return plain


def _require_restoring(world: World, task: Task, seed: int, plain: list[_Moment]) -> None:
    """Refuse a rollout that does not go on as before once a backup was simulated."""
    found = _difference(plain, _trail(world, task, seed, _try_the_backup))
    if found:
        raise InvalidValueError(
            f"{_CULPRITS[task.restore][0]} the rollout of seed {seed} goes on differently: {found} "
            f"{_CULPRITS[task.restore][1]}"
        )


_SHARED = "(A policy that shares its memory with the backup is disturbed in the same way.)"
_CULPRITS = {
    "own": (
        "After restore_state()",
        "The state that save_state() gives is not all that step() depends on (a wrapper may "
        "remember something, or the environment may count its steps). Save that too, or pass "
        f'restore="deepcopy" or restore="replay", which do not ask it. {_SHARED}',
    ),
    "deepcopy": (
        "After a simulation in a copy",
        "The copy shares something with the environment, such as a physics server, or leaves "
        f'something out. Pass restore="replay". {_SHARED}',
    ),
    "replay": (
        "After a replay",
        "Something survives reset(seed=...): write save_state() and restore_state(state) for it. "
        f"{_SHARED}",
    ),
}


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
            before(world, task, seed, step, deepcopy(observation))
        outcome = world.step(policy.act(deepcopy(observation)))
        is_over = outcome.terminated, outcome.truncated, world.is_unsafe()
        trail.append((deepcopy(outcome.observation), is_over))
    return trail


def _try_the_backup(world: World, task: Task, seed: int, step: int, observation: Any) -> None:
    """Simulate the backup, as for a label."""
    with world.excursion():
        task.brakes_safely(world, observation, seed, START + step, most=_BACKUP_STEPS)


def _require_sound_clearance(
    world: World, task: Task, seed: int, step: int, observation: Any
) -> None:
    """Refuse a `surely_recoverable` that a simulated backup contradicts."""
    if not world.surely_recoverable():
        return
    with world.excursion():
        if not task.brakes_safely(world, observation, seed, START + step):
            raise UnsoundClearanceError.at(seed, step)


def _require_dangers(world: World, task: Task, seed: int, *, restores: bool) -> None:
    """Refuse a danger model without a valid danger, that answers differently the second time, or
    that goes on differently once a backup was simulated.
    """
    first, error = _dangers(world, task, seed)
    if first.size and np.isnan(first).all():
        raise InvalidValueError(
            f"The danger model gives no valid danger for any of the first {first.size} "
            f"observations: {error}"
        ) from error
    again, _ = _dangers(world, task, seed)
    if not np.array_equal(first, again, equal_nan=True):
        raise InvalidValueError(
            "The danger model answers the same observations differently: it has randomness or "
            "memory of its own. Pass it as PerRollout(make), so that every rollout begins with a "
            "new one."
        )
    tried, _ = _dangers(world, task, seed, backup=True) if restores else (first, None)
    for step, (was, now) in enumerate(zip(first, tried, strict=False)):
        if not np.array_equal(was, now, equal_nan=True):
            raise InvalidValueError(
                f"After a simulated backup the danger in the rollout of seed {seed} is {now:.6g} "
                f"instead of {was:.6g}, at step {step}: the danger model shares its memory with "
                "the backup. Give each a memory of its own; PerRollout(make) makes one for each "
                "rollout."
            )


def _dangers(
    world: World, task: Task, seed: int, *, backup: bool = False
) -> tuple[NDArray[np.float64], BaseException | None]:
    """The dangers of the first steps, each read as in a rollout, NaN where the model fails, and
    what was wrong the last time; after each the backup may be simulated.
    """
    readings, dangers = task.readings_of(seed), list[float]()

    def read(world: World, task: Task, seed: int, step: int, observation: Any) -> None:
        shown = deepcopy(observation)
        dangers.append(read_danger(readings, shown))
        if difference(shown, observation) is not None:
            raise InvalidValueError(
                "The danger model changes the observation, which the policy acts on: let it work "
                "on a copy."
            )
        if backup:
            _try_the_backup(world, task, seed, step, observation)

    _trail(world, task, seed, read)
    return np.array(dangers), None if readings is None else readings.last_error


def _difference(one: list[_Moment], other: list[_Moment]) -> str:
    """Where the second trail first differs from the first, and where it differs most; empty if
    they are the same.
    """
    found = [
        (step, gap)
        for step, (before, after) in enumerate(zip(one, other, strict=False))
        if (gap := _gap(before, after)) is not None
    ]
    if not found:
        return ""
    (first, gap), numbers = found[0], [each for each in found if np.isfinite(each[1].by)]
    later, most = max(numbers, key=lambda each: each[1].by, default=found[0])
    more = f", and by the most at step {later}, where {most}" if most.by > gap.by else ""
    return f"first at step {first}, where {gap}{more}."


def _gap(before: _Moment, after: _Moment) -> Difference | None:
    for name, was, now in zip(_FLAGS, before[1], after[1], strict=True):
        if was != now:
            return Difference(np.inf, f"{name} is {now} instead of {was}")
    return difference(before[0], after[0])


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


def check_label(task: Task, *, seed: int, first_unrecoverable: int) -> LabelCheck:
    """Replay the rollout of a seed and brake at its first un-recoverable state, and once more a
    step of the policy later.

    The label is right if braking there is safe and braking a step later is not, the step itself
    included. Noise is that of the collection, so the answer is exact.

    Parameters
    ----------
    task
        What the rollout was collected with. The danger model is not asked.
    seed, first_unrecoverable
        The entries of the rollout in these columns of `Rollouts`.

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
    require_task(task)
    number = whole_number(seed, "seed")
    step = whole_number(first_unrecoverable, "first_unrecoverable")
    at, after = (_safe_after(task, number, taken) for taken in (step, step + 1))
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

"""Labels, checked by replay: from the first un-recoverable state braking is still safe, one step of
the policy later it is not.

Nothing is saved or restored here. Each question is answered by a rollout of its own from the reset
on, so a label that came about by a state that was not fully restored does not pass.
"""

from __future__ import annotations

from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Unpack

from pacbound.shield.rollouts.streams import START
from pacbound.shield.rollouts.task import Task, TaskOptions, task_of
from pacbound.shield.rollouts.world import Environment
from pacbound.stats.arguments import whole_number


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
    number, step = (
        whole_number(seed, "seed"),
        whole_number(first_unrecoverable, "first_unrecoverable"),
    )
    return LabelCheck(
        number, step, _safe_after(whole, number, step), _safe_after(whole, number, step + 1)
    )


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

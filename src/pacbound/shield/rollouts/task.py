"""What rollouts are made of: an environment, who acts in it, for how long, and seeds. Fixed for a
whole collection.

Randomness comes in streams that follow from the seed of a rollout. A stream is named by its role
and a step, so that what one part of a rollout draws never depends on how much another part drew:
whether a backup was simulated, or passed over, leaves the rest of the rollout as it is, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import Json
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.shield.actor import Actor, begin_anew
from pacbound.shield.latch import Latch
from pacbound.shield.rollouts.world import (
    RESTORES,
    Asked,
    Environment,
    World,
    made,
)
from pacbound.stats.arguments import whole_number, whole_numbers

# The step of the backup that is simulated from the start; the one that labels state t has step t +
# 1.
START = 0


class Role(IntEnum):
    """What a stream is for. The numbers are part of what a seed means, so they never change."""

    BACKUP_NOISE = 1
    BACKUP = 2
    POLICY = 3
    DANGER = 4
    FRAMES = 5
    CLEARANCE = 6


@dataclass(frozen=True)
class PerRollout:
    """A policy, backup or danger model that has randomness or memory of its own: one is made for
    each rollout.

    The same seed then gives the same rollout, in whichever process and order. A backup is made for
    each of its simulations. What is made may share a model with the others: only what is drawn or
    remembered must be its own.

    Parameters
    ----------
    make
        A function of a `numpy.random.Generator` that follows from the seed of the rollout; it gives
        the policy (or backup, or danger) of that rollout.

    Raises
    ------
    InvalidTypeError
        If `make` cannot be called.

    Examples
    --------
    A policy that turns the wheel at random:

    >>> def make(rng):
    ...     return lambda observation: rng.normal()
    >>> policy = PerRollout(make)
    >>> policy.make(np.random.default_rng(3))(None) == policy.make(np.random.default_rng(3))(None)
    True
    """

    make: Callable[[np.random.Generator], Any]

    def __post_init__(self) -> None:
        if not callable(self.make):
            raise InvalidTypeError.of(
                "make", self.make, "a function of a numpy Generator that gives a policy"
            )


def stream(seed: int, role: Role, step: int = 0) -> np.random.SeedSequence:
    """The stream of a rollout for one role and step, independent of all others and of
    `reset(seed=seed)`.
    """
    return np.random.SeedSequence(seed, spawn_key=(int(role), step))


def of_rollout(thing: Any, seed: int, role: Role, step: int = 0) -> Any:
    """`thing`, or what it makes for this rollout."""
    if not isinstance(thing, PerRollout):
        return thing
    return thing.make(np.random.default_rng(stream(seed, role, step)))


@dataclass(frozen=True)
class Task:
    """What rollouts are made of; everything else about one follows from its seed.

    `collect_rollouts`, `run_shielded` and `check_label` take a task, so that the three are certain
    to speak of the same thing.

    Parameters
    ----------
    environment
        The name of a registered Gymnasium environment, or a function that makes one, called in each
        worker. It follows `pacbound.shield.protocol.Restorable`, or `unsafe` and `restore` say what
        it does not.
    policy, backup, danger
        As in `Shield`: the state of a recurrent model is kept within a rollout, and simulated
        backups leave it as it is. `PerRollout` where they have randomness of their own, or memory
        without a method `reset()`. `danger` may be None while there is no danger model yet.
    horizon
        The most steps that the policy takes.
    backup_steps
        The most steps that a backup takes. A robot that still moves then is unsafe. Where the
        environment has no `is_stopped()`, the backup must stay safe for all of them.
    success
        The key of `info` that says that the goal is reached, or a function of the environment and
        `info`.
    unsafe
        The same for what must not happen: `"crashed"`, or `lambda env, info: info["crashed"]`. It
        is asked after every step, and after the reset, where `info` may be silent. Without it the
        environment's `is_unsafe()` is asked.
    restore
        How the environment goes back to where it was after a backup was simulated. `"own"`: by its
        methods `save_state` and `restore_state`. `"deepcopy"`: each simulation begins with a deep
        copy of the environment and all its wrappers, which suits those written in Python and those
        of MuJoCo in gymnasium. `"replay"`: by `reset(seed=...)` and all actions again, which suits
        any environment that its seed decides, and costs as many steps again as the rollout has so
        far: over a whole rollout they grow with the square of the horizon. The rehearsal tries
        the way that is chosen, and says where the environment goes on differently.
    rests_when_terminated
        Whether a terminated environment is at rest, as a game that is over: the backup is then not
        simulated any further.
    environment_options
        What the environment is made with.
    identity
        Your name for this task, such as "model of 3 May, road of 4 May"; needed with `folder=`. A
        folder is resumed, and rollouts of several files are counted together, under one name only:
        give another whenever the environment, the policy, the backup or the danger model changes.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a part cannot be what it should be: a policy that cannot be called, a horizon below 1.

    Examples
    --------
    A pole that must not lean by more than a fifth. The policy looks at the angle alone; the backup
    also at how fast it turns:

    >>> import gymnasium
    >>> class Pole(gymnasium.Wrapper):
    ...     def save_state(self):
    ...         return self.unwrapped.state
    ...     def restore_state(self, state):
    ...         self.unwrapped.state = state
    ...     def is_unsafe(self):
    ...         return bool(abs(self.unwrapped.state[2]) > 0.2)
    >>> task = Task(
    ...     lambda: Pole(gymnasium.make("CartPole-v1", max_episode_steps=-1)),
    ...     policy=lambda x: int(x[2] > 0),
    ...     backup=lambda x: int(x[2] + x[3] > 0),
    ...     danger=lambda x: min(1.0, 2 * abs(x[2] + 0.2 * x[3])),
    ...     horizon=25,
    ...     backup_steps=20,
    ... )
    >>> from pacbound.shield import check_label, collect_rollouts, run_shielded
    >>> rollouts = collect_rollouts(task, seeds=range(60), outcome="labels")
    >>> rollouts
    Rollouts(60: 14 unsafe, 0 of them lost)
    >>> rollouts.first_unrecoverable[:5].tolist()
    [-1, -1, -1, -1, 17]
    >>> check_label(task, seed=4, first_unrecoverable=17).ok
    True
    >>> run_shielded(task, certificate_or_thresholds=0.69, seeds=range(1000, 1060))
    ShieldedRollouts(60: 0 unsafe, 42 fired)
    """

    environment: Environment
    policy: Any
    backup: Any
    danger: Any = None
    horizon: int = field(kw_only=True)
    backup_steps: int = field(default=1000, kw_only=True)
    success: Asked = field(default="success", kw_only=True)
    unsafe: Asked | None = field(default=None, kw_only=True)
    restore: str = field(default="own", kw_only=True)
    rests_when_terminated: bool = field(default=False, kw_only=True)
    environment_options: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    identity: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        whole_number(self.horizon, "horizon", least=1)
        whole_number(self.backup_steps, "backup_steps", least=1)
        for name in ("success", "unsafe"):
            asked = getattr(self, name)
            if name == "unsafe" and asked is None:  # the environment decides
                continue
            if not isinstance(asked, str) and not callable(asked):
                raise InvalidTypeError.of(
                    name, asked, "a key of info, or a function of the environment and info"
                )
        if self.restore not in RESTORES:
            raise InvalidValueError(
                f"restore={self.restore!r}: expected {', '.join(map(repr, RESTORES))}."
            )
        for role in ("policy", "backup"):
            if not isinstance(getattr(self, role), PerRollout):
                Actor(getattr(self, role), role)
        if self.danger is not None and not isinstance(self.danger, PerRollout):
            Latch(self.danger, np.inf)
        if not isinstance(self.identity, str):
            raise InvalidTypeError.of("identity", self.identity, "a text")

    def world(self) -> World:
        """A new environment."""
        environment = made(self.environment, self.environment_options)
        return World(environment, restore=self.restore, unsafe=self.unsafe)

    def policy_of(self, seed: int) -> Actor:
        """The policy of one rollout."""
        policy = Actor(of_rollout(self.policy, seed, Role.POLICY), "policy")
        policy.reset()
        return policy

    def danger_of(self, seed: int) -> Any:
        """The danger model of one rollout."""
        danger = of_rollout(self.danger, seed, Role.DANGER)
        begin_anew(danger)
        return danger

    def readings_of(self, seed: int) -> Latch | None:
        """A latch that reads the dangers of one rollout as a shield does, and fires only if a
        reading fails; None if there is no danger model.
        """
        return None if self.danger is None else Latch(self.danger_of(seed), np.inf)

    def brakes_safely(
        self, world: World, observation: Any, seed: int, step: int, *, most: int | None = None
    ) -> bool:
        """Whether the backup, from where the world is, stays safe until standstill, which is asked
        about once it has acted; the world moves on with it.

        What still moves after `backup_steps`, or `most` if that is less, counts as unsafe. An
        environment that cannot say when it stands still must stay safe for all of them. The noise
        is that of `step`, so that the same question gets the same answer.
        """
        world.set_noise(stream(seed, Role.BACKUP_NOISE, step))
        backup = Actor(of_rollout(self.backup, seed, Role.BACKUP, step), "backup")
        backup.reset()
        for _ in range(self.backup_steps if most is None else min(most, self.backup_steps)):
            outcome = world.step(backup.act(observation))
            if world.is_unsafe():
                return False
            if world.is_stopped() or (outcome.terminated and self.rests_when_terminated):
                return True
            observation = outcome.observation
        return not world.knows_standstill

    def succeeded(self, world: World, info: Mapping[str, Any]) -> bool:
        """Whether the goal has been reached with the step that `info` is about."""
        if isinstance(self.success, str):
            return bool(info.get(self.success, False))
        return bool(self.success(world.env, info))

    def plan(self, folder: Any) -> dict[str, Json]:
        """What tells this task from others, for a file in a `folder`, or for a certificate."""
        if folder is not None and not self.identity:
            raise InvalidTypeError(
                "identity is missing: a folder is resumed by a name of yours for the task. Pass "
                'identity="policy of 3 May", and another name whenever a part of the task changes.'
            )
        parts = ("environment", "policy", "backup", "danger", "success", "unsafe")
        options = [f"{key}={_name_of(value)}" for key, value in self.environment_options.items()]
        return {
            **{part: _name_of(getattr(self, part)) for part in parts},
            "environment_options": ", ".join(options),
            "horizon": int(self.horizon),
            "backup_steps": int(self.backup_steps),
            "rests_when_terminated": bool(self.rests_when_terminated),
            "restore": self.restore,
            "identity": self.identity,
        }


def _name_of(thing: Any) -> str:
    """What a part of a task is called, for people."""
    if thing is None or isinstance(thing, str):
        return thing or ""
    if isinstance(thing, PerRollout):
        return f"PerRollout({_name_of(thing.make)})"
    if isinstance(thing, partial):
        named = [f"{key}={_name_of(value)}" for key, value in thing.keywords.items()]
        return f"partial({', '.join([*map(_name_of, (thing.func, *thing.args)), *named])})"
    if isinstance(thing, (int, float, np.number, np.bool_)):
        return repr(thing)
    if isinstance(thing, MethodType):
        return f"{type(thing.__self__).__qualname__}.{thing.__name__}"
    return str(getattr(thing, "__qualname__", type(thing).__qualname__))


def read_danger(readings: Latch | None, observation: Any) -> float:
    """The danger of an observation, read as a shield reads it; NaN where the model fails, or where
    there is none yet.
    """
    if readings is None:
        return np.nan
    readings.reset()
    readings.look(observation)
    return float(readings.score)


def fixed_seeds(seeds: Any) -> NDArray[np.int64]:
    """`seeds` as integers, one for each rollout, no two the same."""
    values = np.asarray(list(seeds)) if isinstance(seeds, range) else np.asarray(seeds)
    if values.ndim != 1:
        raise InvalidTypeError(
            f"seeds={seeds!r} is not a list of seeds: expected one for each rollout, such as "
            "range(2000)."
        )
    if values.size == 0:
        raise InvalidValueError(
            "There are no seeds: pass one for each rollout, such as range(2000)."
        )
    checked = whole_numbers(values, "seeds")
    unique, counts = np.unique(checked, return_counts=True)
    if len(unique) < len(checked):
        raise InvalidValueError(
            f"seeds holds {unique[counts > 1][0]} more than once: the same rollout would be "
            "counted twice. Pass distinct seeds."
        )
    return checked


def require_task(task: Any) -> Task:
    """`task`, if it is one."""
    if not isinstance(task, Task):
        raise InvalidTypeError.of(
            "task", task, "a Task: Task(environment, policy, backup, danger, horizon=...)"
        )
    return task

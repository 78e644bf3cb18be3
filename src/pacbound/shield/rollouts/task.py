"""What a rollout is made of: an environment, who acts in it, and for how long. Fixed for a whole
collection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from pacbound.documents import Json
from pacbound.errors import InvalidTypeError, MissingDependencyError
from pacbound.shield.actor import Actor
from pacbound.shield.latch import Latch
from pacbound.shield.rollouts.streams import PerRollout, Role, of_rollout, stream
from pacbound.shield.rollouts.world import Environment, World, comes_to_rest, make_world
from pacbound.stats.arguments import whole_number

try:
    import joblib
except ImportError:
    raise MissingDependencyError.for_extra("joblib", "shield", "Making rollouts") from None

Success = str | Callable[[Any, Mapping[str, Any]], Any]
"""The key of `info` that says whether the goal was reached, or a function of the environment and
`info`."""


@dataclass(frozen=True)
class Task:
    """An environment, a policy with its backup, and a danger model, or None. Everything else
    follows from a seed.
    """

    environment: Environment
    policy: Any
    backup: Any
    danger: Any
    horizon: int
    backup_steps: int
    success: Success = "success"
    rests_when_terminated: bool = False
    environment_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole_number(self.horizon, "horizon", least=1)
        whole_number(self.backup_steps, "backup_steps", least=1)
        if not isinstance(self.success, str) and not callable(self.success):
            raise InvalidTypeError(
                f"success is a {type(self.success).__name__}: expected a key of info, or a "
                "function of the environment and info."
            )
        for role in ("policy", "backup"):
            if not isinstance(getattr(self, role), PerRollout):
                Actor(getattr(self, role), role)
        if self.danger is not None and not isinstance(self.danger, PerRollout):
            Latch(self.danger, np.inf)

    def world(self) -> World:
        """A new environment."""
        return make_world(self.environment, self.environment_options)

    def policy_of(self, seed: int) -> Actor:
        """The policy of one rollout."""
        return Actor(of_rollout(self.policy, seed, Role.POLICY), "policy")

    def danger_of(self, seed: int) -> Any:
        """The danger model of one rollout."""
        return of_rollout(self.danger, seed, Role.DANGER)

    def backup_of(self, seed: int, step: int) -> Actor:
        """The backup of one simulation."""
        return Actor(of_rollout(self.backup, seed, Role.BACKUP, step), "backup")

    def brakes_safely(self, world: World, observation: Any, seed: int, step: int) -> bool:
        """Whether the backup, from where the world is, comes to rest without anything unsafe; the
        world moves on with it.

        The noise is that of `step`, so that the same question gets the same answer.
        """
        world.set_noise(stream(seed, Role.BACKUP_NOISE, step))
        backup = self.backup_of(seed, step)
        return comes_to_rest(
            world,
            backup,
            observation,
            steps=self.backup_steps,
            rests_when_terminated=self.rests_when_terminated,
        )

    def succeeded(self, world: World, info: Mapping[str, Any]) -> bool:
        """Whether the goal has been reached with the step that `info` is about."""
        return (
            bool(info.get(self.success, False))
            if isinstance(self.success, str)
            else bool(self.success(world.env, info))
        )

    def plan(self) -> dict[str, Json]:
        """What can be written down of it, to tell one collection from another."""
        return {
            "environment": _described(self.environment),
            "environment_options": repr(sorted(self.environment_options.items())),
            "policy": _described(self.policy),
            "backup": _described(self.backup),
            "danger": _described(self.danger),
            "horizon": int(self.horizon),
            "backup_steps": int(self.backup_steps),
            "success": _described(self.success),
            "rests_when_terminated": bool(self.rests_when_terminated),
        }


def _described(thing: Any) -> str:
    """What is the same in every run, and another one for other weights: no address in memory, no
    module called __main__ today.
    """
    if isinstance(thing, str):
        return thing
    if isinstance(thing, PerRollout):
        return f"PerRollout({_described(thing.make)})"
    if isinstance(thing, partial):
        named = [f"{key}={_described(value)}" for key, value in sorted(thing.keywords.items())]
        return (
            f"partial({', '.join([_described(thing.func), *map(_described, thing.args), *named])})"
        )
    if isinstance(thing, (int, float, np.number, np.bool_)) or thing is None:
        return repr(thing)
    if hasattr(thing, "__qualname__"):
        return str(thing.__qualname__)
    return f"{type(thing).__qualname__}{_contents(thing)}"


def _contents(thing: Any) -> str:
    """A digest of what an object holds, such as a network's weights; nothing if it cannot be
    pickled, or never the same way.
    """
    try:
        digest: str = joblib.hash(thing)
        return f" {digest}" if joblib.hash(deepcopy(thing)) == digest else ""
    except Exception:  # whatever objects do when they are pickled or copied
        return ""

"""What an environment must offer so that its rollouts can be labelled: it can be saved, restored,
and asked about safety.

The methods may be on the environment itself or on any wrapper around it; the outermost that has
them is asked. What is optional counts only if it comes from the layer that saves the state, or from
one around it. They are plain Python, so an environment needs nothing from pacbound to follow the
protocol. An environment that others wrote need not: `Task` says what is unsafe in it, and how it is
restored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from pacbound.errors import InvalidTypeError


@runtime_checkable
class Restorable(Protocol):
    """An environment that can be saved and restored, and that knows what is unsafe.

    The generator `np_random` of the environment is not part of the state: whoever simulates takes
    care of it. Two more methods are optional:

    - `is_stopped()`: whether it stands still after a step of the backup, so that it stays safe for
      as long as the backup acts. Without it a backup is simulated for all of its steps.
    - `surely_recoverable()`: whether the backup is certainly safe from here, as where the clearance
      exceeds a step and the stopping distance. It spares most simulations, and must be sound: where
      it errs, a label is wrong. It is about one backup: with another one, or under a wrapper that
      changes actions, it must not be there, or not be trusted.
    """

    def save_state(self) -> Any:
        """All that `step` depends on, `np_random` excepted. What comes later does not change it."""

    def restore_state(self, state: Any) -> None:
        """Go back to a state that was saved, any number of times."""

    def is_unsafe(self) -> bool:
        """Whether anything unsafe happened in the last step, the moments within it included, or
        holds right after `reset`.
        """


def owner(env: Any, *methods: str, down_to: Any = None) -> Any:
    """The outermost of `env` and what it wraps that has all `methods` of its own; None if there is
    none, down to a layer.

    `gymnasium.Wrapper` does not pass on what it does not know, so a method that is found is the
    layer's own.
    """
    for layer in layers(env):
        if all(callable(getattr(layer, name, None)) for name in methods):
            return layer
        if layer is down_to:
            break
    return None


def layers(env: Any) -> Iterator[Any]:
    """The environment and all that it wraps, from the outside in."""
    while env is not None:
        yield env
        env = getattr(env, "env", None)


def required_owner(env: Any, *methods: str) -> Any:
    """The layer with `methods`; if there is none, an error that names what is missing."""
    found = owner(env, *methods)
    if found is None:
        missing = [name for name in methods if owner(env, name) is None] or list(methods)
        named = " and ".join(f"{name}()" for name in missing)
        raise InvalidTypeError(f"{env} has no {named}. {_REMEDIES[methods[0]]}")
    return found


_REMEDIES = {
    "is_unsafe": (
        'Say what is unsafe: pass unsafe="crashed" (a key of info), unsafe=lambda env, info: ... '
        "(true where something unsafe happened), or write is_unsafe() on the environment or on a "
        "wrapper around it."
    ),
    "save_state": (
        'Choose how it is restored: pass restore="deepcopy" (fast; for environments in Python, and '
        'those of MuJoCo in gymnasium), or restore="replay" (the same actions again from '
        "reset(seed=...); for any environment that its seed decides, but its steps grow with the "
        "square of the horizon), or write save_state() and restore_state(state) on the "
        "environment or on a wrapper around it. For MuJoCo, pacbound.shield.gym.RestorableMujoco "
        "is such a wrapper, faster than a copy."
    ),
}

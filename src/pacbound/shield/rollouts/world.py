"""An environment that can be saved and restored: stepped, tried out with noise of its own, and put
back; and its observations as named arrays.

The one place that touches a Gymnasium environment when rollouts are made. What it promises: after
an excursion the environment goes on as if there had been none, its generator included, as far as
`save_state` keeps its word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError, MissingDependencyError
from pacbound.shield.protocol import owner, required_owner

try:
    import gymnasium
    from gymnasium.envs.registration import load_env_creator
    from gymnasium.wrappers import Autoreset, TimeLimit
except ImportError:
    raise MissingDependencyError.for_extra("gymnasium", "shield", "Making rollouts") from None

# The name of a registered environment, or a function without arguments that makes one.
Environment = str | Callable[[], Any]


@dataclass(frozen=True)
class StepResult:
    """What one step led to."""

    observation: Any
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]


class UnsoundClearanceError(InvalidValueError):
    """`surely_recoverable` was true where the backup is unsafe: labels cannot be relied on, not
    even those of other rollouts.
    """

    @classmethod
    def at(cls, seed: int, step: int) -> UnsoundClearanceError:
        """The error for a state that a simulated backup contradicts."""
        return cls(
            f"At step {step} of seed {seed} surely_recoverable() is true, and the simulated backup "
            "is unsafe. It must never be wrong, and holds for one backup only. No label of these "
            "rollouts can be relied on: mend surely_recoverable(), or pass trust_clearance=False, "
            "and collect all rollouts again."
        )


class World:
    """One environment that follows `pacbound.shield.protocol.Restorable`."""

    def __init__(self, env: Any) -> None:
        _refuse_wrappers(env)
        self._env = env
        self._states = required_owner(env, "save_state", "restore_state")
        self._safety = required_owner(env, "is_unsafe")
        # What a layer beneath says may not hold for a wrapper that has a state of its own, such as
        # one that delays actions.
        self._motion = owner(env, "is_stopped", down_to=self._states)
        self._clearance = owner(env, "surely_recoverable", down_to=self._states)

    @property
    def env(self) -> Any:
        """The environment, with its wrappers."""
        return self._env

    def reset(self, seed: int) -> Any:
        """Begin the rollout of a seed; the first observation."""
        observation, _ = self._env.reset(seed=int(seed))
        return observation

    def step(self, action: Any) -> StepResult:
        """Take an action."""
        observation, _, terminated, truncated, info = self._env.step(action)
        return StepResult(observation, bool(terminated), bool(truncated), info)

    def is_unsafe(self) -> bool:
        """Whether anything unsafe happened in the last step, or holds right after the reset."""
        return bool(self._safety.is_unsafe())

    @property
    def knows_standstill(self) -> bool:
        """Whether the environment can say that it stands still."""
        return self._motion is not None

    def is_stopped(self) -> bool:
        """Whether it stands still; False if it cannot say."""
        return self._motion is not None and bool(self._motion.is_stopped())

    def surely_recoverable(self) -> bool:
        """Whether the backup is certainly safe from here; False if it cannot say."""
        return self._clearance is not None and bool(self._clearance.surely_recoverable())

    def set_noise(self, noise: np.random.SeedSequence) -> None:
        """Let the environment draw from another stream from now on."""
        bits = self._env.unwrapped.np_random.bit_generator
        # In place: parts of the environment may hold the same generator.
        bits.state = type(bits)(noise).state

    def save(self) -> Any:
        """The state, for an excursion that begins there."""
        return self._states.save_state()

    @contextmanager
    def excursion(self, start: Any = None) -> Iterator[None]:
        """Whatever is done within is undone in the end; it begins here, or in a state that was
        saved.
        """
        bits = self._env.unwrapped.np_random.bit_generator
        state, noise = self._states.save_state(), bits.state
        try:
            if start is not None:
                self._states.restore_state(start)
            yield
        finally:
            self._states.restore_state(state)
            bits.state = noise

    def close(self) -> None:
        """Free what the environment holds."""
        self._env.close()


def make_world(environment: Environment, options: Mapping[str, Any]) -> World:
    """The world of an environment that is named, or made by a function."""
    if isinstance(environment, str):
        # Without a time limit, which would count the steps of simulated backups too: the horizon is
        # that of the rollouts.
        return World(
            gymnasium.make(environment, max_episode_steps=-1, disable_env_checker=True, **options)
        )
    if not callable(environment):
        raise InvalidTypeError(
            f"environment is a {type(environment).__name__}: expected the name of a registered "
            "environment, or a function without arguments that makes one, so that each worker "
            "has its own."
        )
    return World(environment(**options))


def registered(name: str) -> tuple[Any, ...]:
    """What a name of a registered environment stands for."""
    module, _, registered_name = name.rpartition(":")
    if module:
        import_module(module)
    spec = gymnasium.spec(registered_name)
    made_by = spec.entry_point
    maker = load_env_creator(made_by) if isinstance(made_by, str) else made_by
    return registered_name, maker, spec.kwargs, spec.additional_wrappers


def _refuse_wrappers(env: Any) -> None:
    layer = env
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, Autoreset):
            raise InvalidValueError("Autoreset would begin a new rollout within one: leave it out.")
        if isinstance(layer, TimeLimit):
            raise InvalidValueError(
                "TimeLimit would count the steps of simulated backups too: make the environment "
                "with max_episode_steps=-1, and pass the limit as horizon."
            )
        layer = layer.env


# The name of an observation that is one array.
WHOLE = ""


def flattened(observation: Any, name: str = WHOLE) -> dict[str, NDArray[Any]]:
    """A copy of each array within, by its path: {"camera": …}, {"arm/joints": …}, {"0": …} in a
    tuple.

    >>> flattened({"arm": {"joints": [0.5, 1.0]}, "battery": 3})
    {'arm/joints': array([0.5, 1. ]), 'battery': array(3)}
    """
    if isinstance(observation, Mapping):
        parts = [(str(key), value) for key, value in observation.items()]
    elif isinstance(observation, tuple):
        parts = [(str(place), value) for place, value in enumerate(observation)]
    else:
        return {name: np.array(observation)}
    flat: dict[str, NDArray[Any]] = {}
    for key, value in parts:
        flat |= flattened(value, f"{name}/{key}" if name else key)
    return flat


def same(one: Any, other: Any) -> bool:
    """Whether two observations are equal to the bit, NaN included."""
    left, right = flattened(one), flattened(other)
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype and left[name].tobytes() == right[name].tobytes()
        for name in left
    )

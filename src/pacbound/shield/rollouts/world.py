"""An environment that can be saved and restored: stepped, tried out with noise of its own, and put
back; and its observations as named arrays.

The one place that touches a Gymnasium environment when rollouts are made. What it promises: after
an excursion the environment goes on as if there had been none, its generator included, as far as
the way of restoring keeps its word, which the rehearsal in `checks` tries. The ways, by name:

    own         the environment's own `save_state` and `restore_state`
    deepcopy    a copy of the environment with all its wrappers
    replay      `reset(seed=...)` and all actions again; the observation must then be the same
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError, MissingDependencyError
from pacbound.shield.protocol import layers, owner, required_owner

try:
    import gymnasium
    from gymnasium.utils import EzPickle
    from gymnasium.wrappers import Autoreset, OrderEnforcing, PassiveEnvChecker, TimeLimit
except ImportError:
    raise MissingDependencyError.for_extra("gymnasium", "shield", "Making rollouts") from None

# The name of a registered environment, or a function without arguments that makes one.
Environment = str | Callable[[], Any]
# A key of `info`, or a function of the environment and `info`.
Asked = str | Callable[[Any, Mapping[str, Any]], Any]


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


class Copied(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose state is a deep copy of it, with all its wrappers."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._original = env

    def save_state(self) -> Any:
        """A copy of the environment as it is."""
        try:
            return _copy_of(self.env)
        except Exception as error:
            raise InvalidTypeError(
                f"{self._original} cannot be copied ({type(error).__name__}: {error}). Pass "
                'restore="replay", which repeats the actions from the reset on, in a new process: '
                "half a copy may have closed what it shares with the environment."
            ) from error

    def restore_state(self, state: Any) -> None:
        """Go on with a copy of what was saved, so that it can be restored again."""
        self.env = _copy_of(state)

    def close(self) -> None:
        """Close the environment that was passed: its copies may share what it holds."""
        self._original.close()


def _copy_of(env: Any) -> Any:
    """A deep copy, of layers that are `EzPickle` too: those would be made anew, not copied."""
    pickled = [layer for layer in layers(env) if isinstance(layer, EzPickle)]
    copies: dict[int, Any] = {id(layer): type(layer).__new__(type(layer)) for layer in pickled}
    for layer in pickled:
        vars(copies[id(layer)]).update(deepcopy(vars(layer), copies))
    return deepcopy(env, copies)


class Replayed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose state is its seed and all actions since: to restore it, they are
    repeated, and must lead to the same observation.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._seed: int | None = None
        # What to do, and with what: to step with an action, or to draw from another stream.
        self._moves: list[tuple[Callable[[Any], Any], Any]] = []
        self._seen: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin a rollout, with nothing to repeat yet."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._seed, self._moves, self._seen = seed, [], deepcopy(observation)
        return observation, info

    def step(self, action: Any) -> Any:
        """Take an action, and remember it."""
        self._moves.append((self._step, deepcopy(action)))
        return self._step(action)

    def draw_from(self, noise: Any) -> None:
        """Let the environment draw from another stream, and remember it."""
        self._moves.append((self._draw_from, noise))
        self._draw_from(noise)

    def save_state(self) -> Any:
        """The seed, all that was done since, and the observation that it led to."""
        return self._seed, tuple(self._moves), self._seen

    def restore_state(self, state: Any) -> None:
        """Do all of it again."""
        seed, moves, seen = state
        self.reset(seed=seed)
        for move, value in moves:
            move(deepcopy(value))
        self._moves = list(moves)
        found = difference(seen, self._seen)
        if found is not None:
            raise InvalidValueError(
                f"The same {len(moves)} actions from reset(seed={seed}) do not lead to the same "
                f"observation: {found}. So this environment cannot be restored by replay: its seed "
                "does not decide everything, or something survives its reset."
            )

    def _step(self, action: Any) -> Any:
        result = self.env.step(action)
        self._seen = deepcopy(result[0])
        return result

    def _draw_from(self, noise: Any) -> None:
        self.env.unwrapped.np_random.bit_generator.state = noise


RESTORES: dict[str, Callable[[Any], Any]] = {
    "own": lambda env: env,
    "deepcopy": Copied,
    "replay": Replayed,
}


_OPTIONAL = ("is_stopped", "surely_recoverable")


class World:
    """One environment that says what is unsafe, and is restored in the way that is named."""

    def __init__(self, env: Any, *, restore: str = "own", unsafe: Asked | None = None) -> None:
        _refuse_autoreset(env)
        self._restorable = RESTORES[restore](env)
        self._is_own = self._restorable is env
        self._unsafe = unsafe
        self._info: Mapping[str, Any] = {}
        self._has_stepped = False
        self._asked: Any = None
        self._found: dict[str, Any] = {}
        if unsafe is None:
            required_owner(env, "is_unsafe")

    @property
    def env(self) -> Any:
        """The environment, with its wrappers."""
        return self._restorable if self._is_own else self._restorable.env

    def reset(self, seed: int) -> Any:
        """Begin the rollout of a seed; the first observation."""
        observation, self._info = self._restorable.reset(seed=int(seed))
        self._has_stepped = False
        return observation

    def step(self, action: Any) -> StepResult:
        """Take an action."""
        observation, _, terminated, truncated, self._info = self._restorable.step(action)
        self._has_stepped = True
        return StepResult(observation, bool(terminated), bool(truncated), self._info)

    def is_unsafe(self) -> bool:
        """Whether anything unsafe happened in the last step, or holds right after the reset."""
        if self._unsafe is None:
            return bool(self._layer("is_unsafe").is_unsafe())
        answer = self._answer(self._unsafe)
        # Many environments say nothing about the reset; after a step, silence is not safety.
        if answer is None and self._has_stepped:
            raise InvalidValueError(
                f"unsafe gives no answer after a step: expected true or false. info has the keys "
                f"{', '.join(map(repr, self._info)) or '(none)'}. Pass one of them, or a function "
                "of the environment and info."
            )
        return bool(answer)

    def _answer(self, unsafe: Asked) -> Any:
        if isinstance(unsafe, str):
            return self._info.get(unsafe)
        try:
            return unsafe(self.env, self._info)
        except KeyError:
            return None

    @property
    def knows_standstill(self) -> bool:
        """Whether the environment can say that it stands still."""
        return self._layer("is_stopped") is not None

    def is_stopped(self) -> bool:
        """Whether it stands still; False if it cannot say."""
        motion = self._layer("is_stopped")
        return motion is not None and bool(motion.is_stopped())

    def surely_recoverable(self) -> bool:
        """Whether the backup is certainly safe from here; False if it cannot say."""
        clearance = self._layer("surely_recoverable")
        return clearance is not None and bool(clearance.surely_recoverable())

    def _layer(self, method: str) -> Any:
        """The layer that has a method. An optional one is used only if no wrapper around it keeps a
        state of its own, such as delayed actions, that could make its answer wrong.
        """
        env = self.env
        if env is not self._asked:  # a copy has layers of its own
            inner = (x for x in layers(env) if not isinstance(x, _HARMLESS))
            inmost = owner(env, "save_state", "restore_state") if self._is_own else next(inner)
            found = {name: owner(env, name, down_to=inmost) for name in _OPTIONAL}
            self._asked, self._found = env, {**found, "is_unsafe": owner(env, "is_unsafe")}
        return self._found[method]

    def set_noise(self, noise: np.random.SeedSequence) -> None:
        """Let the environment draw from another stream from now on."""
        bits = self._bits
        state = type(bits)(noise).state
        if isinstance(self._restorable, Replayed):
            self._restorable.draw_from(state)
        # In place: parts of the environment may hold the same generator.
        bits.state = state

    @property
    def _bits(self) -> Any:
        return self._restorable.unwrapped.np_random.bit_generator

    def save(self) -> Any:
        """All that the rollout goes on from, for an excursion that begins there."""
        state = self._states().save_state()
        return state, self._bits.state, dict(self._info), self._has_stepped

    def _restore_to(self, saved: Any) -> None:
        state, noise, self._info, self._has_stepped = saved
        self._states().restore_state(state)
        self._bits.state = noise

    def _states(self) -> Any:
        if self._is_own:
            _refuse_time_limit(self._restorable)
        return required_owner(self._restorable, "save_state", "restore_state")

    @contextmanager
    def excursion(self, start: Any = None) -> Iterator[None]:
        """Whatever is done within is undone in the end; it begins here, or in a state that was
        saved.
        """
        here = self.save()
        try:
            if start is not None:
                self._restore_to(start)
            yield
        finally:
            self._restore_to(here)

    def close(self) -> None:
        """Free what the environment holds."""
        self._restorable.close()


def made(environment: Environment, options: Mapping[str, Any]) -> Any:
    """An environment that is named, or made by a function."""
    if isinstance(environment, str):
        # Without a time limit, which would count the steps of simulated backups too: the horizon is
        # that of the rollouts.
        return gymnasium.make(
            environment, max_episode_steps=-1, disable_env_checker=True, **options
        )
    if not callable(environment):
        raise InvalidTypeError(
            f"environment is a {type(environment).__name__}: expected the name of a registered "
            "environment, or a function without arguments that makes one, so that each worker "
            "has its own."
        )
    return environment(**options)


# What `gymnasium.make` puts around every environment; it changes no action.
_HARMLESS = (OrderEnforcing, PassiveEnvChecker, TimeLimit)


def _refuse_autoreset(env: Any) -> None:
    if any(isinstance(layer, Autoreset) for layer in layers(env)):
        raise InvalidValueError("Autoreset would begin a new rollout within one: leave it out.")


def _refuse_time_limit(env: Any) -> None:
    if any(isinstance(layer, TimeLimit) for layer in layers(env)):
        raise InvalidValueError(
            "TimeLimit would count the steps of simulated backups too: make the environment with "
            "max_episode_steps=-1, and pass the limit as horizon."
        )


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


@dataclass(frozen=True, order=True)
class Difference:
    """By how much two observations differ, infinity if it is not a number, and in which part."""

    by: float
    text: str

    def __str__(self) -> str:
        return self.text


def difference(one: Any, other: Any) -> Difference | None:
    """Where the second of two observations differs most from the first; None if they are equal to
    the bit, NaN included.

    >>> print(difference({"joints": [0.5, 1.0]}, {"joints": [0.5, 1.25]}))
    joints[1] is 1.25 instead of 1 (0.25 apart)
    """
    left, right = flattened(one), flattened(other)
    if left.keys() != right.keys():
        return Difference(np.inf, f"it has the parts {list(right)} instead of {list(left)}")
    found = (_apart(name or "observation", left[name], right[name]) for name in left)
    return max((each for each in found if each is not None), default=None)


def _apart(name: str, one: NDArray[Any], other: NDArray[Any]) -> Difference | None:
    kinds = [f"{array.dtype} of shape {array.shape}" for array in (one, other)]
    if kinds[0] != kinds[1]:
        return Difference(np.inf, f"{name} is {kinds[1]} instead of {kinds[0]}")
    if one.tobytes() == other.tobytes():
        return None
    if one.dtype.kind not in "biufc":
        return Difference(np.inf, f"{name} is {other!r} instead of {one!r}")
    exact = [array.astype(np.complex128) for array in (one, other)]
    are_same = (one == other) | (np.isnan(exact[0]) & np.isnan(exact[1]))
    gaps = np.where(are_same, 0.0, np.nan_to_num(abs(exact[1] - exact[0]), nan=np.inf))
    place = np.unravel_index(int(gaps.argmax()), gaps.shape)
    index = f"[{', '.join(map(str, place))}]" if place else ""
    text = f"{name}{index} is {other[place].item():.6g} instead of {one[place].item():.6g}"
    return Difference(float(gaps[place]), f"{text} ({gaps[place]:.2g} apart)")

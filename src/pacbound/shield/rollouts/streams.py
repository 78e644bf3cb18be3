"""Random streams that follow from the seed of a rollout, and things that are made anew for each
rollout from such a stream.

A stream is named by its role and a step, so that what one part of a rollout draws never depends on
how much another part drew: whether a backup was simulated, or passed over, leaves the rest of the
rollout as it is, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import whole_numbers

START = 0
"""The step of the backup that is simulated from the start; the one that labels state t has step t +
1."""


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
            raise InvalidTypeError(
                f"make is a {type(self.make).__name__}: expected a function of a numpy Generator "
                "that gives a policy."
            )


def stream(seed: int, role: Role, step: int = 0) -> np.random.SeedSequence:
    """The stream of a rollout for one role and step, independent of all others and of
    `reset(seed=seed)`.
    """
    return np.random.SeedSequence(seed, spawn_key=(int(role), step))


def of_rollout(thing: Any, seed: int, role: Role, step: int = 0) -> Any:
    """`thing`, or what it makes for this rollout."""
    return (
        thing.make(np.random.default_rng(stream(seed, role, step)))
        if isinstance(thing, PerRollout)
        else thing
    )


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

"""Thresholds for a cascade of more than two models: seven walks along paths declared in advance.

A path is a fixed list of threshold vectors that falls from "never exit" to "always exit"; the paths
differ in how much earlier or later exits are favoured. Each is walked at delta / 7 with the loss of
the whole cascade, up to its first failure, and the cheapest of the seven ends is kept. Valid
because each walk is a fixed sequence and their failures are added up.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pacbound.errors import InvalidValueError
from pacbound.procedures.cascade import (
    CascadeDecision,
    CascadeRefusal,
    refusal_at_top,
)
from pacbound.procedures.joint_walk import TOP, JointWalk, along_each
from pacbound.stats.arguments import real_numbers
from pacbound.stats.binomial import bonferroni_level, fixed_sequence
from pacbound.stats.paired import PairedBound, mcnemar_test, paired_test

Integers = NDArray[np.int64]
Passes = NDArray[np.bool_]

NAME = "cascade/seven-paths/1"
TILTS = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
STEPS = 1024
# What 2^53 rows of this cost add up to is still a float.
LARGEST_COST = 1e290

# The steps of each path that are tried for xi = 0, where a walk from the top can never start.
WITHOUT_LOSS = tuple(range(24, STEPS + 1, 50))


@lru_cache(maxsize=32)
def declared_path(tilt: float, exits: int) -> Integers:
    """The threshold cells of a path, (exits, 1025): ceil(2^10 expit(t + kappa)) for falling t, then
    zeros.

    A positive tilt asks more of later exits, a negative one more of the first.
    """
    kappa = tilt * np.arange(exits) / (exits - 1)
    grid = np.ceil(TOP * expit(np.linspace(8.0, -8.0, STEPS) + kappa[:, None])).astype(np.int64)
    path = np.concatenate([grid, np.zeros((exits, 1), dtype=np.int64)], axis=1)
    path.setflags(write=False)
    return path


def walks_from_counts(cells: Integers, counts: Integers) -> tuple[JointWalk, ...]:
    """All seven paths, from the occupied joint cells and the counts of their joint outcomes."""
    walks = along_each((declared_path(tilt, cells.shape[1]) for tilt in TILTS), cells, counts)
    return tuple(walk.as_judged() for walk in walks)


def decide(
    walks: tuple[JointWalk, ...],
    n: int,
    *,
    xi: float,
    delta: float,
    costs: tuple[float, ...],
    bound: PairedBound = "exact",
) -> CascadeDecision:
    """Walk each path to its first failure and keep the cheapest end.

    With probability at least 1 - `delta` the cascade at the thresholds found loses at most `xi`
    accuracy against its last model. `costs` are what a row costs that is answered at each exit and
    by the slow model; they choose among valid ends only.
    """
    level = bonferroni_level(delta, len(TILTS))
    if xi == 0:
        return _decide_without_loss(walks, n, delta, costs)
    ends = [last_to_pass(walk, step_test(n, xi, level, bound)) for walk in walks]
    for walk, end, tilt in zip(walks, ends, TILTS, strict=True):
        require_followed(walk, end, declared_path(tilt, len(walk.cells)))
    seen = tuple(walk.take(steps_to_tell(walk, end)) for walk, end in zip(walks, ends, strict=True))
    passed = [place for place, end in enumerate(ends) if end >= 0]
    if not passed:
        # All walks begin at, or next to, the top of the grid; the least loss there is the one to
        # speak of.
        best = min(
            range(len(walks)),
            key=lambda place: int(walks[place].losses[0] - walks[place].gains[0]),
        )
        refusal = refusal_at_top(walks[best], n, xi=xi, delta=level, bound=bound)
        return CascadeDecision(None, best, seen, refusal)
    chosen = min(passed, key=lambda place: total_cost(walks[place].exits[:, ends[place]], n, costs))
    return CascadeDecision(tuple(walks[chosen].cells[:, ends[chosen]].tolist()), chosen, seen, None)


def checked_costs(costs: Any, models: int) -> tuple[float, ...]:
    """`costs` as numbers that rise, one for each model."""
    values = real_numbers(costs, "costs", "a cost")
    if len(values) != models:
        raise InvalidValueError(
            f"costs has {len(values)} values for {models} models: pass what a row costs that each "
            "answers."
        )
    if not (np.isfinite(values).all() and values[0] > 0 and (np.diff(values) > 0).all()):
        raise InvalidValueError(
            f"costs={values} do not rise: expected what a row costs in all that is answered by "
            "each model, those before it included."
        )
    if values[-1] > LARGEST_COST:
        raise InvalidValueError(
            f"costs={values} are too large to be added up: expected at most {LARGEST_COST}. Use "
            "another unit."
        )
    return values


def total_cost(exits: Integers, n: int, costs: tuple[float, ...]) -> float:
    """What n rows cost, of which `exits` were answered at each exit and the others by the slow
    model.
    """
    # Rounded once, so that walks of equal cost tie on every machine and the same one is chosen.
    answered = [*exits.tolist(), n - int(exits.sum())]
    return float(sum(rows * Fraction(cost) for rows, cost in zip(answered, costs, strict=True)))


def step_test(
    n: int, xi: float, delta: float, bound: PairedBound = "exact"
) -> Callable[[JointWalk], Passes]:
    """The test of every step of a walk, each at the full `delta`."""
    return lambda walk: np.asarray(
        paired_test(walk.losses, walk.gains, n, xi=xi, delta=delta, bound=bound)
    )


def last_to_pass(walk: JointWalk, test: Callable[[JointWalk], Passes]) -> int:
    """The last step before the first failure, -1 if the first step fails; a walk on which none
    fails goes on until every row exits.
    """
    changes = walk.changes()
    passed = fixed_sequence(test(walk.take(changes)))
    if passed < len(changes):
        return int(changes[passed]) - 1
    if walk.cells[0, -1]:
        raise InvalidValueError(
            f"A walk stops at the thresholds {walk.cells[:, -1].tolist()} (of {TOP}), and none of "
            "its steps fails: the step that ended it is missing."
        )
    return len(walk) - 1


def require_followed(walk: JointWalk, end: int, path: Integers) -> None:
    """Raise unless the step after `end`, which fails, is the next one on the `path`: else others
    were left out between them.
    """
    if not 0 <= end < len(walk) - 1:
        return
    fails = walk.cells[:, end + 1 : end + 2]
    place = int((path == fails).all(axis=0).argmax())
    if place == 0 or (path[:, place - 1] != walk.cells[:, end]).any():
        raise InvalidValueError(
            f"A walk ends at the thresholds {walk.cells[:, end].tolist()} (of {TOP}), and the step "
            f"that fails, {fails[:, 0].tolist()}, is not the next one on its path."
        )


def steps_to_tell(walk: JointWalk, end: int) -> Integers:
    """The steps that a certificate keeps: the changes up to the first failure, and the end."""
    changes = walk.changes()
    return np.unique([*changes[changes <= end + 1].tolist(), max(end, 0)])


def tried_without_loss(
    walks: tuple[JointWalk, ...], delta: float
) -> tuple[tuple[JointWalk, ...], tuple[Passes, ...]]:
    """For xi = 0: McNemar's test at declared steps of each path, at delta over their number."""
    # A certificate holds only the steps that were tried, and is decided again from those.
    tried = tuple(
        walk.take(list(WITHOUT_LOSS)) if len(walk) == STEPS + 1 else walk for walk in walks
    )
    declared = (declared_path(tilt, len(walks[0].cells))[:, WITHOUT_LOSS] for tilt in TILTS)
    if not all(
        np.array_equal(walk.cells, path) for walk, path in zip(tried, declared, strict=True)
    ):
        raise InvalidValueError(
            f"xi = 0 is tested at {len(WITHOUT_LOSS)} declared steps of each path, and these walks "
            "have others."
        )
    level = bonferroni_level(delta, len(walks) * len(WITHOUT_LOSS))
    return tried, tuple(
        np.asarray(mcnemar_test(walk.losses, walk.gains, delta=level)) for walk in tried
    )


def _decide_without_loss(
    walks: tuple[JointWalk, ...], n: int, delta: float, costs: tuple[float, ...]
) -> CascadeDecision:
    tried, passes = tried_without_loss(walks, delta)
    ends = [
        (total_cost(walk.exits[:, step], n, costs), place, int(step))
        for place, (walk, passed) in enumerate(zip(tried, passes, strict=True))
        for step in np.flatnonzero(passed)
    ]
    if ends:
        _, place, step = min(ends)
        return CascadeDecision(tuple(tried[place].cells[:, step].tolist()), place, tried, None)
    looks = len(walks) * len(WITHOUT_LOSS)
    return CascadeDecision(None, 0, tried, CascadeRefusal("no-loss", {"tried": looks, "n": n}))

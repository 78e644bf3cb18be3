"""The threshold at which a fast model may answer for a slow one, losing at most xi accuracy (two
models).

The loss is P[cascade wrong] - P[slow wrong] = P(D = 1) - P(D = -1), where D is +1 on a row that
exits early and is then wrong where the slow model is right, -1 the other way round, and 0 on all
others. The loss is not monotone in the threshold, so the paper's line search is not valid; a
fixed-sequence walk is: from "never exit" down a grid fixed in advance, each step tested at the full
delta, up to the first failure. A row on which the models differ and that has no label counts as a
loss; `pacbound.procedures.cascade_partial` says why that is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pacbound.procedures.joint_walk import JointWalk, answered_at_exits
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.stats.binomial import bonferroni_level, fixed_sequence
from pacbound.stats.paired import (
    PairedBound,
    labels_needed_by_walk,
    mcnemar_test,
    paired_test,
)
from pacbound.stats.planning import least_passing
from pacbound.tally.questions.cascade import TWO_MODELS as GRID

Integers = NDArray[np.int64]
Passes = NDArray[np.bool_]


NAME = "cascade/two-models/1"
# The highest cell of the question's grid; a procedure of another grid would need another name.
TOP = GRID.n_cells - 1

# The thresholds tried for xi = 0, where a walk from the top can never start: no rows, no evidence.
XI_ZERO_GRID = tuple(
    int(np.ceil(t * TOP))
    for t in (
        1,
        0.9995,
        0.999,
        0.9975,
        0.995,
        0.99,
        0.985,
        0.98,
        0.97,
        0.96,
        0.95,
        0.925,
        0.9,
        0.85,
        0.8,
        0.7,
        0.6,
        0.5,
        0.3,
        0,
    )
)


def walk_from_counts(cells: Integers, counts: Integers) -> JointWalk:
    """The walk from the top down to each occupied cell, from these in rising order and the counts
    of their outcomes.
    """
    falling, (answered,) = cells[::-1], answered_at_exits(counts, 1)
    running = np.cumsum(np.array(answered)[:, ::-1], axis=1)
    if not len(falling) or falling[0] != TOP:
        falling, running = np.append(TOP, falling), np.pad(running, ((0, 0), (1, 0)))
    return JointWalk(falling[None], *running[:, None])


@dataclass(frozen=True)
class CascadeRefusal:
    """Why no thresholds hold.

    Attributes
    ----------
    code : str
        Which of the reasons it is; `pacbound.claims.cascade.words` has a sentence for each.
    numbers : mapping of str to float
        What the sentence says in numbers.
    needed : int or None
        About how many rows it would take; None if no number of them would help.
    group : str or None
        The group that it is about, where the claim is about groups.
    others : tuple of str
        Other groups that cannot be certified either.

    Examples
    --------
    >>> CascadeRefusal("no-proof").needed is None
    True
    """

    code: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    needed: int | None = None
    group: str | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class CascadeDecision:
    """The thresholds in cells of the grid (None: refused), which walk they end, and all walks down
    to their first failure.
    """

    cells: tuple[int, ...] | None
    chosen: int
    walks: tuple[JointWalk, ...]
    refusal: CascadeRefusal | None


def decide(
    walk: JointWalk, n: int, *, xi: float, delta: float, bound: PairedBound = "exact"
) -> CascadeDecision:
    """Walk down the grid and keep the last threshold before the first failure.

    With probability at least 1 - `delta` the cascade at that threshold loses at most `xi` accuracy
    against the slow model.
    """
    if xi == 0:
        return _decide_without_loss(walk, n, delta)
    changes = walk.take(walk.changes())
    passed = _leading_passes(changes, lambda part: _passes(part, n, xi, delta, bound))
    seen = changes.cells[0, : passed + 1]
    if passed == 0:
        top = walk.at(seen)
        refusal = refusal_at_top(top, n, xi=xi, delta=delta, bound=bound)
        return CascadeDecision(None, 0, (top,), refusal)
    # Between two changes the verdict stays the same, so the last threshold to pass lies just above
    # the cell that fails.
    lowest = 0 if passed == len(changes) else int(seen[-1]) + 1
    return CascadeDecision((lowest,), 0, (walk.at(np.unique([*seen, lowest])[::-1]),), None)


def _leading_passes(walk: JointWalk, test: Callable[[JointWalk], Passes]) -> int:
    """Steps before the first failure; later ones are tested only in growing blocks, as long as all
    before them pass.
    """
    start, block = 0, 64
    while start < len(walk):
        passes = fixed_sequence(test(walk.take(slice(start, start + block))))
        if passes < min(block, len(walk) - start):
            return start + passes
        start, block = start + block, 4 * block
    return len(walk)


def _passes(walk: JointWalk, n: int, xi: float, delta: float, bound: PairedBound) -> Passes:
    """Whether each step passes, up to the first that does not.

    Between two rises of the losses only gains come in, and more of them never make a step fail. So
    the test is asked where losses rise, and its verdict holds until they rise again.
    """
    rises = np.flatnonzero(np.diff(walk.losses, prepend=walk.losses[0] - 1))
    gains = np.minimum.reduceat(walk.gains, rises)
    passes = paired_test(walk.losses[rises], gains, n, xi=xi, delta=delta, bound=bound)
    return np.repeat(passes, np.diff(rises, append=len(walk)))


def _decide_without_loss(walk: JointWalk, n: int, delta: float) -> CascadeDecision:
    tried, passed = tried_without_loss(walk, delta)
    passes = np.flatnonzero(passed)
    if passes.size:
        return CascadeDecision((XI_ZERO_GRID[passes[-1]],), 0, (tried,), None)
    refusal = CascadeRefusal("no-loss", {"tried": len(XI_ZERO_GRID), "n": n})
    return CascadeDecision(None, 0, (tried,), refusal)


def tried_without_loss(walk: JointWalk, delta: float) -> tuple[JointWalk, Passes]:
    """For xi = 0: McNemar's test at each threshold of a coarse grid fixed in advance, each at delta
    over their number.
    """
    level = bonferroni_level(delta, len(XI_ZERO_GRID))
    tried = walk.at(np.array(XI_ZERO_GRID))
    return tried, np.asarray(mcnemar_test(tried.losses, tried.gains, delta=level))


def refusal_at_top(
    walk: JointWalk, n: int, *, xi: float, delta: float, bound: PairedBound
) -> CascadeRefusal:
    """Why not even the highest threshold, the first step of `walk`, passes at the walk's own
    `delta`, and what would help.
    """
    losses, gains = int(walk.losses[0]), int(walk.gains[0])
    unlabelled = int(walk.unlabelled[:, 0].sum())
    hopeless = losses > 0 and losses - gains >= xi * n
    needed = None if hopeless else _rows_needed(losses, gains, max(n, 1), xi, delta, bound)
    if losses == 0:
        return CascadeRefusal("too-few", {"n": n, "xi": xi, "delta": delta}, needed)
    numbers = {"losses": losses, "gains": gains, "n": n, "xi": xi, "unlabelled": unlabelled}
    code = "saturated" if needed is None else "nearly-saturated"
    return CascadeRefusal(code + "-unlabelled" * bool(unlabelled), numbers, needed)


@lru_cache(maxsize=1024)
def _rows_needed(
    losses: int, gains: int, n: int, xi: float, delta: float, bound: PairedBound
) -> int | None:
    """About how many rows would pass if the rates stayed as they were seen in `n` rows; None if
    more than can be counted. Sessions ask the same again and again.
    """
    least = labels_needed_by_walk(xi=xi, delta=delta, bound=bound)
    if losses == gains == 0:
        return least if least <= LARGEST_COUNT else None

    # The pair stands in for the exact test here: it asks for a few more rows, but answers at once
    # for any number of them.
    def passes(rows: int) -> bool:
        lost, gained = -(-losses * rows // n), gains * rows // n
        enough = rows >= least
        return enough and bool(paired_test(lost, gained, rows, xi=xi, delta=delta, bound="pair"))

    return least_passing(passes)

"""The cell of a score as an expression that every dataframe engine evaluates to the same number.

The expression gives a *key*: the cell, or what is wrong with the score. Scores so close to an edge
that rounding may decide are their own key, of which there are a few for each edge; they are put
into cells where the arrays' are, so that there is one rule for ties. Nothing is divided: engines
may divide by multiplying with a rounded reciprocal.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Final

import narwhals as nw
import numpy as np

from pacbound.errors import InvalidValueError
from pacbound.tally.columns import ROUNDING, score_hint
from pacbound.tally.frames.counting import KeyCounts, extreme
from pacbound.tally.frames.opening import Frame
from pacbound.tally.grids import (
    AtomBins,
    Bins,
    DyadicGrid,
    EqualWidthBins,
    Floats,
    GivenBins,
    Integers,
)

MISSING: Final = -1.0
BELOW: Final = -2.0
ABOVE: Final = -3.0
"""The keys of what is not a score. A score in (0, 1] is its own key, and cell k has the key k + 3,
-1 included."""

LOST: Final = 2.0
"""The key of a rollout that was lost at its start, whose score is -inf."""

_FIRST: Final = 3.0
_MARGIN: Final = 2.0**-50
_MOST_EDGES: Final = 1025
"""Edges become a nested expression, which engines compile."""


def cell_key(score: nw.Expr, grid: Bins | DyadicGrid, *, lost: bool = False) -> nw.Expr:
    """The key of a float64 score; with `lost`, -inf is a score too."""
    within = (score >= 0.0) & (score <= 1.0)
    return (
        nw.when(within)
        .then(_key_within(score, grid))
        .otherwise(_key_beyond(score, grid, lost=lost))
    )


def cells_of(keys: Floats, grid: Bins | DyadicGrid) -> Integers:
    """The cells that keys of scores stand for."""
    cells = keys - _FIRST
    doubtful = (keys > 0) & (keys <= 1)
    cells[doubtful] = grid.cells(keys[doubtful])
    # The expression puts a score of 0 one below the first bin, which holds it.
    return (cells if isinstance(grid, DyadicGrid) else np.maximum(cells, 0)).astype(np.int64)


def _key_within(score: nw.Expr, grid: Bins | DyadicGrid) -> nw.Expr:
    if isinstance(grid, DyadicGrid):
        return (score * float(1 << grid.bits)).floor() + _FIRST
    if isinstance(grid, EqualWidthBins):
        return _equal_width_key(score, grid.n_bins)
    return _place(_conditions(score, grid), _FIRST)


def _equal_width_key(score: nw.Expr, n_bins: int) -> nw.Expr:
    # A score p of bin j has fl((j-1)/K) < p <= fl(j/K), each edge and each product within a factor
    # 1 ± 2^-53 of the real one. So least <= j <= most, and where they meet they are j; elsewhere p
    # is within 16 floats of an edge.
    least = (score * (n_bins * (1 - _MARGIN))).ceil()
    most = (score * (n_bins * (1 + _MARGIN))).ceil()
    return nw.when(least == most).then(least + (_FIRST - 1)).otherwise(score)


def _conditions(score: nw.Expr, grid: GivenBins | AtomBins) -> list[nw.Expr]:
    """What must hold for a score to be beyond each cell; whoever is beyond one is beyond those
    before it. An edge that is a cell of its own is entered at it, and left beyond it.
    """
    if isinstance(grid, AtomBins):
        _refuse_many(grid)
        return [beyond for edge in grid.limits for beyond in (score >= edge, score > edge)]
    return [score > edge for edge in _inner_edges(grid)]


def _inner_edges(grid: GivenBins) -> tuple[float, ...]:
    _refuse_many(grid)
    return grid.limits[1:-1]


def _refuse_many(grid: GivenBins | AtomBins) -> None:
    if len(grid.limits) > _MOST_EDGES:
        raise InvalidValueError(
            f"edges has {len(grid.limits)} values, too many to be compared inside an engine: "
            f"expected at most {_MOST_EDGES}. Use bins of equal width, or pass arrays."
        )


def _place(conditions: Sequence[nw.Expr], first: float) -> nw.Expr:
    """`first` plus the number of conditions that hold, by bisection."""
    if not conditions:
        return nw.lit(first)
    middle = len(conditions) // 2
    above = _place(conditions[middle + 1 :], first + middle + 1)
    return nw.when(conditions[middle]).then(above).otherwise(_place(conditions[:middle], first))


def _key_beyond(score: nw.Expr, grid: Bins | DyadicGrid, *, lost: bool) -> nw.Expr:
    # NaN is above all numbers for some engines and above none for others, and null is neither true
    # nor false: both end up last.
    below = (
        nw.when(score == -inf).then(nw.lit(LOST)).otherwise(nw.lit(BELOW))
        if lost
        else nw.lit(BELOW)
    )
    above = (
        nw.when((score > 1.0 + ROUNDING) & (score <= inf))
        .then(nw.lit(ABOVE))
        .otherwise(nw.lit(MISSING))
    )
    rounded = nw.when((score > 1.0) & (score <= 1.0 + ROUNDING)).then(
        nw.lit(_FIRST + int(grid.cells(np.ones(1))[0]))
    )
    return nw.when(score < 0.0).then(below).otherwise(rounded.otherwise(above))


def check_scores(
    counts: KeyCounts,
    key: str,
    frame: Frame,
    score: nw.Expr,
    name: str,
    *,
    lost: bool = False,
    shift: float = 0.0,
) -> None:
    """Refuse values that are not scores, saying how many there are of each kind; `shift` was added
    to their keys.
    """
    found = counts.numbers(key) - shift
    # Where a condition is null, an engine may leave the key null instead of going on to the next.
    missing = counts.rows_where((found == MISSING) | np.isnan(found))
    below, above = counts.rows_where(found == BELOW), counts.rows_where(found == ABOVE)
    if not missing + below + above:
        return
    parts = [f"{missing} missing (null or NaN)"] if missing else []
    if below:
        parts.append(
            f"{below} below 0 (the least {extreme(frame, score, score < 0.0, greatest=False)})"
        )
    if above:
        too_large = (score > 1.0 + ROUNDING) & (score <= inf)
        parts.append(
            f"{above} above 1 (the greatest {extreme(frame, score, too_large, greatest=True)})"
        )
    worst = inf if above else -inf if below else nan
    raise InvalidValueError(
        f"{name} holds {missing + below + above} values that are not scores: {', '.join(parts)}. "
        f"Expected scores from 0 to 1. {score_hint(worst, lost=lost)}"
    )

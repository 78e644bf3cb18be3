"""Which tallies a certificate may be made from: those of its kind, on the grid that its procedure
walks on, whose counts add up to their rows.

A procedure turns cells into thresholds, so a tally on another grid would give thresholds that mean
other scores than those that were counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.tally.grids import DyadicGrid
from pacbound.tally.questions import Kind, with_article
from pacbound.tally.questions.question import OVERLAPPING
from pacbound.tally.tally import Tally


def require_tally(tally: Tally, kind: Kind, grid: DyadicGrid, *, lowest: int, columns: str) -> None:
    """Raise unless `tally` counts rows of `kind` on `grid`, in cells from `lowest` up; `columns`
    are those to count, for the message.
    """
    require_is_tally(tally)
    if tally.kind != kind:
        raise InvalidValueError(
            f"{tally!r} is not a tally of {with_article(kind)}: count with {columns}."
        )
    if tally.grid != grid:
        raise InvalidValueError(
            f"{tally!r} was counted on the grid {tally.grid.to_dict()}, and this certificate is "
            f"decided on {grid.to_dict()}: cells would be taken for other scores. Count the rows "
            "again."
        )
    if tally.rows == 0:
        raise InvalidValueError(
            f"There are no rows to certify {with_article(kind)} on: pass at least one."
        )
    total = exact_sum(tally.counts)
    fits = total == tally.rows or tally.scope in OVERLAPPING
    if (tally.counts < 0).any() or not fits or total > LARGEST_COUNT:
        raise InvalidValueError(
            f"{tally!r} does not add up: its counts are of {total:,} rows. Count again."
        )
    if (tally.cells < lowest).any() or (tally.cells >= grid.n_cells).any():
        raise InvalidValueError(
            f"{tally!r} has cells that are not on its grid: expected {lowest} to "
            f"{grid.n_cells - 1}. Count again."
        )


def require_is_tally(tally: Any) -> None:
    """Raise unless it is a tally at all."""
    if not isinstance(tally, Tally):
        raise InvalidTypeError(
            f"tally is of type {type(tally).__name__}: expected a Tally, as Tally.count "
            "gives, or Tally.load."
        )


def exact_sum(counts: NDArray[np.int64]) -> int:
    """The sum of `counts`, however large: sums in int64 wrap around without a word."""
    high, low = counts >> 32, counts & 0xFFFFFFFF
    return (int(high.sum()) << 32) + int(low.sum())

"""The lowest confidence at which to answer, so that the mean quality of the answers is at most xi
below the best: every threshold whose evidence is enough.

Grades are on levels, from the worst to the best. `pacbound.stats.graded_bets` says why every
threshold may be claimed whose bets reach 1/delta: there is no walk and no start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pacbound.procedures.abstention import NothingPassed, Ranges, ranges_of
from pacbound.stats.graded_bets import threshold_evidence, thresholds_below
from pacbound.stats.planning import least_passing
from pacbound.tally.grids import FINE as GRID

Integers = NDArray[np.int64]

# So many thresholds are enough to say about how many rows it would take.
_MOST_STEPS = 256


def claimed(cells: Integers, grades: Integers, *, xi: float, delta: float) -> Ranges:
    """The thresholds that are claimed, as ranges (lowest, highest) of cells, the highest first, for
    rows in rising `cells` with so many on each level of the `grades`.

    With probability at least 1 - `delta` the mean quality of the rows that are answered is at most
    `xi` below the best at all of them.
    """
    if xi == 0:
        return ()
    above = _losses_above(grades)
    holds = thresholds_below(above, rows=int(grades.sum()), xi=xi, delta=delta)
    return ranges_of(cells[::-1], holds)


def refusal(cells: Integers, grades: Integers, *, xi: float, delta: float) -> NothingPassed:
    """Why `claimed` is empty for these rows, and about how many it would take."""
    above = _losses_above(grades)
    n = int(grades.sum())
    lost = above @ np.arange(above.shape[1]) / (above.shape[1] - 1)
    rows = above.sum(axis=1)
    if xi == 0:
        return NothingPassed("zero", None, n, float(lost[-1]))
    least = least_rows(xi=xi, delta=delta)
    if least is None or n < least:
        return NothingPassed("too-few", least, n, float(lost[-1]))
    best = int(threshold_evidence(above, rows=n, xi=xi, delta=delta).argmax())
    kept = np.unique(np.geomspace(1, len(rows), _MOST_STEPS).astype(np.int64)) - 1

    def passes(more: int) -> bool:
        scaled = np.rint(above[kept] * (more / n)).astype(np.int64)
        return more > n and bool(thresholds_below(scaled, rows=more, xi=xi, delta=delta).any())

    return NothingPassed(
        "no-pass",
        None if (lost >= xi * rows).all() else least_passing(passes),
        n,
        float(lost[-1]),
        GRID.threshold(int(cells[::-1][best])),
        int(rows[best]),
        float(lost[best]),
    )


def least_rows(*, xi: float, delta: float) -> int | None:
    """About the fewest rows, all with the best grade, that certify `xi`."""

    def passes(rows: int) -> bool:
        return bool(thresholds_below([rows, 0], rows=rows, xi=xi, delta=delta))

    return least_passing(passes)


def _losses_above(grades: Integers) -> Integers:
    """For each threshold from the highest down, the rows above it by their loss, least first."""
    return np.asarray(np.cumsum(grades[::-1, ::-1], axis=0))

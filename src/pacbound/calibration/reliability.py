"""The numbers behind reliability diagrams: what a classifier said and what came true, by bin.

Bins are closed on the right, exactly as in every tally, so that a value on an edge counts once.
Everything here describes the rows it was given; nothing is certified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.tally.columns import (
    Array,
    Floats,
    Integers,
    as_array,
    as_flags,
    as_score_column,
    blocks,
    checked_scores,
    numeric,
    same_length,
    same_rows,
)
from pacbound.tally.grids import EqualWidthBins

_ROWS = 16384


@dataclass(frozen=True, eq=False)
class ReliabilityBins:
    """How many rows each bin has, how many are right, and what was claimed for them.

    The claim is the interval from `lower` to `upper`. For plain confidences both are their mean;
    for intervals, the smallest lower end and the largest upper end (Conf_j in the paper). Empty
    bins hold NaN. Where rows may lack an estimate, an entry for those follows the last bin.

    Attributes
    ----------
    edges
        The edges of the bins, from 0 to 1.
    trials
        The number of rows in each bin.
    successes
        How many of them are right.
    lower, upper
        The ends of the claimed confidence.
    """

    edges: Floats
    trials: Integers
    successes: Integers
    lower: Floats
    upper: Floats

    @property
    def accuracy(self) -> Floats:
        """The share of right predictions in each bin; NaN in an empty one."""
        return share_or_nan(self.successes, self.trials)

    @property
    def nearest(self) -> Floats:
        """The distance from the accuracy to the closest point of the claim; 0 if it lies within."""
        return np.maximum(0.0, np.maximum(self.lower - self.accuracy, self.accuracy - self.upper))

    @property
    def farthest(self) -> Floats:
        """The distance from the accuracy to the farthest point of the claim."""
        return np.maximum(np.abs(self.lower - self.accuracy), np.abs(self.upper - self.accuracy))

    def averaged(self, distances: Floats) -> float:
        """The mean of a distance for each bin, weighted by the rows of the bins.

        Parameters
        ----------
        distances
            One number for each bin, such as `nearest` or `farthest`.

        Returns
        -------
        float
            The mean over all rows.
        """
        seen = self.trials > 0
        return float(self.trials[seen] @ distances[seen] / self.trials.sum())

    def __len__(self) -> int:
        return len(self.trials)


def reliability(confidence: Any, correct: Any, *, n_bins: int = 20) -> ReliabilityBins:
    """The rows, the right ones and the mean confidence of each bin. Descriptive: no guarantee.

    Bins are (edge, next edge], the first one closed on both sides, with edges k / n_bins.

    Parameters
    ----------
    confidence
        The confidence of each row, in [0, 1].
    correct
        Whether each prediction was right: bool, or 0 and 1.
    n_bins
        The number of bins of equal width.

    Returns
    -------
    ReliabilityBins
        One entry for each bin. `lower` and `upper` both hold the mean confidence.

    Raises
    ------
    InvalidTypeError
        If an argument does not hold numbers of the expected kind.
    InvalidValueError
        If there are no rows, lengths differ, or a confidence is not in [0, 1]; if `n_bins` is not
        at least 1.

    Examples
    --------
    >>> bins = reliability([0.5, 0.9, 1.0], [False, True, True], n_bins=2)
    >>> bins.trials.tolist(), bins.lower.tolist(), bins.accuracy.tolist()
    ([1, 2], [0.5, 0.95], [0.0, 1.0])
    """
    same_rows(confidence=confidence, correct=correct)
    grid, flags = EqualWidthBins(n_bins), as_flags(correct, "correct")
    scores = as_score_column(confidence, "confidence")
    some_rows(confidence=scores, correct=flags)
    counts, said = np.zeros((n_bins, 2), dtype=np.int64), np.zeros(n_bins)
    for part in blocks(len(scores), max(_ROWS, n_bins)):
        block = checked_scores(scores[part], "confidence", start=part.start)
        cells = grid.cells(block)
        counts += count_outcomes(cells, flags[part], n_bins)
        said += np.bincount(cells, weights=block, minlength=n_bins)
    trials = counts.sum(axis=1)
    mean = share_or_nan(said, trials)
    return ReliabilityBins(grid.edges, trials, counts[:, 1], mean, mean)


def induced_reliability(
    intervals: Any, estimates: Any, correct: Any, *, n_bins: int = 20
) -> ReliabilityBins:
    """The rows, the right ones and the claimed interval of each bin of the estimate.

    Descriptive: that an accuracy lies in its bin's interval is not certified here, for the bins are
    those of the estimate.

    Parameters
    ----------
    intervals
        (n, 2) lower and upper ends, as `certificate.interval(confidence)` gives.
    estimates
        (n,) estimates that sort the rows into bins, as `certificate.estimate(confidence)` gives;
        NaN where there is none.
    correct
        Whether each prediction was right: bool, or 0 and 1.
    n_bins
        The number of bins of equal width.

    Returns
    -------
    ReliabilityBins
        One entry for each bin, and after them one for the rows without an estimate.

    Raises
    ------
    InvalidTypeError
        If an argument does not hold numbers of the expected kind.
    InvalidValueError
        If there are no rows, lengths differ, or a number is not in [0, 1]; if a lower end is above
        its upper end; if `n_bins` is not at least 1.

    Examples
    --------
    >>> intervals, estimates = [[0.6, 0.9], [0.7, 1.0], [0.0, 1.0]], [0.8, 0.9, float("nan")]
    >>> bins = induced_reliability(intervals, estimates, [True, False, True], n_bins=2)
    >>> bins.trials.tolist(), bins.lower.tolist(), bins.upper.tolist()
    ([0, 2, 1], [nan, 0.6, 0.0], [nan, 1.0, 1.0])
    """
    same_rows(intervals=intervals, estimates=estimates, correct=correct)
    grid, flags = EqualWidthBins(n_bins), as_flags(correct, "correct")
    lower, upper = interval_ends(intervals)
    centres = as_score_column(estimates, "estimates")
    some_rows(intervals=lower, estimates=centres, correct=flags)
    counts = np.zeros((n_bins + 1, 2), dtype=np.int64)
    least, most = np.full(n_bins + 1, np.inf), np.full(n_bins + 1, -np.inf)
    for part in blocks(len(centres), max(_ROWS, n_bins)):
        unknown = np.isnan(centres[part])
        known = np.where(unknown, 0.0, centres[part])
        block = checked_scores(known, "estimates", start=part.start)
        cells = np.where(unknown, n_bins, grid.cells(block))
        counts += count_outcomes(cells, flags[part], n_bins + 1)
        np.minimum.at(least, cells, lower[part])
        np.maximum.at(most, cells, upper[part])
    trials = counts.sum(axis=1)
    ends = (np.where(trials > 0, end, np.nan) for end in (least, most))
    return ReliabilityBins(grid.edges, trials, counts[:, 1], *ends)


def interval_ends(intervals: Any) -> tuple[Floats, Floats]:
    """The lower and the upper ends of an (n, 2) array of intervals within [0, 1]."""
    table = numeric(as_array(intervals, "intervals"), "intervals")
    if table.ndim != 2 or table.shape[1] != 2:
        raise InvalidValueError(
            f"intervals has shape {table.shape}: expected (rows, 2), as certificate.interval gives."
        )
    lower, upper = (checked_scores(table[:, end], f"intervals[:, {end}]") for end in (0, 1))
    swapped = np.flatnonzero(lower > upper)
    if swapped.size:
        row = int(swapped[0])
        raise InvalidValueError(
            f"intervals[{row}] runs from {lower[row]} to {upper[row]}: expected the lower end "
            "first."
        )
    return lower, upper


def some_rows(**columns: Array) -> int:
    """The common number of rows of the columns, which must not be zero."""
    rows = same_length(**columns)
    if rows == 0:
        raise InvalidValueError(f"There are no rows in {', '.join(columns)}: pass at least one.")
    return rows


def count_outcomes(
    cells: NDArray[np.integer[Any]], flags: NDArray[np.bool_], n_cells: int
) -> Integers:
    """Wrong and right rows per cell, as an (n_cells, 2) table."""
    return np.bincount(2 * cells + flags, minlength=2 * n_cells).reshape(n_cells, 2)


def share_or_nan(part: NDArray[Any], whole: Integers) -> Floats:
    """`part` divided by `whole`; NaN where `whole` is 0."""
    empty = whole == 0
    return np.where(empty, np.nan, part / np.where(empty, 1, whole))

"""The numbers behind reliability diagrams and accuracy-confidence plots: what a classifier said and
what came true, by bin, and how accurate the answers above a threshold are.

Bins are closed on the right, exactly as in every tally, so that a value on an edge counts once.
Thresholds are compared with the scores in float64, and a score equal to a threshold passes it.
Everything here describes the rows it was given; nothing is certified, and a threshold chosen from
a curve has no guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.tally.columns import (
    Array,
    as_array,
    as_flags,
    as_score_column,
    checked_scores,
    numeric,
    same_length,
    same_rows,
)
from pacbound.tally.grids import EqualWidthBins

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROWS = 16384
_STEPS = 100


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
    grid, scores, flags = (
        EqualWidthBins(n_bins),
        as_score_column(confidence, "confidence"),
        as_flags(correct, "correct"),
    )
    some_rows(confidence=scores, correct=flags)
    counts, said = np.zeros((n_bins, 2), dtype=np.int64), np.zeros(n_bins)
    rows = max(_ROWS, n_bins)
    for start in range(0, len(scores), rows):
        block = checked_scores(scores[start : start + rows], "confidence", start=start)
        cells = grid.cells(block)
        counts += count_outcomes(cells, flags[start : start + rows], n_bins)
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
    rows = max(_ROWS, n_bins)
    for start in range(0, len(centres), rows):
        part = slice(start, start + rows)
        unknown = np.isnan(centres[part])
        block = checked_scores(np.where(unknown, 0.0, centres[part]), "estimates", start=start)
        cells = np.where(unknown, n_bins, grid.cells(block))
        counts += count_outcomes(cells, flags[part], n_bins + 1)
        np.minimum.at(least, cells, lower[part])
        np.maximum.at(most, cells, upper[part])
    trials = counts.sum(axis=1)
    ends = (np.where(trials > 0, end, np.nan) for end in (least, most))
    return ReliabilityBins(grid.edges, trials, counts[:, 1], *ends)


@dataclass(frozen=True, eq=False)
class AccuracyConfidenceCurve:
    """How many rows reach each threshold, and how many of these are right. Descriptive.

    Attributes
    ----------
    thresholds
        The thresholds, in the order they were given in.
    answered
        For each threshold, how many rows have a score of at least that.
    right
        How many of the answered rows are right.
    rows
        The number of all rows.

    Examples
    --------
    >>> curve = AccuracyConfidenceCurve(np.array([0.0, 0.9]), np.array([4, 2]), np.array([3, 2]), 4)
    >>> curve.accuracy.tolist(), curve.coverage.tolist()
    ([0.75, 1.0], [1.0, 0.5])
    """

    thresholds: Floats
    answered: Integers
    right: Integers
    rows: int

    @property
    def accuracy(self) -> Floats:
        """The share of right ones among the answered rows; NaN where none is answered."""
        return share_or_nan(self.right, self.answered)

    @property
    def coverage(self) -> Floats:
        """The share of rows answered."""
        return self.answered / self.rows

    def __len__(self) -> int:
        return len(self.thresholds)


@dataclass(frozen=True, eq=False)
class AccuracyConfidenceBand:
    """The curves for answering by the lower and by the upper end of each interval. Descriptive.

    Answering by the lower end is the stricter rule, so its accuracy is as a rule the upper border
    of the band.

    Attributes
    ----------
    by_lower
        The curve of the lower ends.
    by_upper
        The curve of the upper ends.

    Examples
    --------
    >>> band = accuracy_confidence_band([[0.4, 0.7]], [True], thresholds=[0.5])
    >>> band.by_lower.coverage.tolist(), band.by_upper.coverage.tolist()
    ([0.0], [1.0])
    """

    by_lower: AccuracyConfidenceCurve
    by_upper: AccuracyConfidenceCurve


def accuracy_confidence_curve(
    confidence: Any, correct: Any, *, thresholds: Any = None
) -> AccuracyConfidenceCurve:
    """The share of right predictions among those whose confidence reaches each threshold.

    The empirical P[correct | confidence >= t]. Descriptive: no guarantee.

    Parameters
    ----------
    confidence
        The confidence of each row, in [0, 1].
    correct
        Whether each prediction was right: bool, or 0 and 1.
    thresholds
        Where the curve is computed; by default at 0, 0.01, …, 1. Pass `np.unique(confidence)` for
        every step of the curve. Thresholds may come in any order, and may lie outside [0, 1].

    Returns
    -------
    AccuracyConfidenceCurve
        The counts at each threshold, and the accuracy and the coverage that follow from them.

    Raises
    ------
    InvalidTypeError
        If an argument does not hold numbers of the expected kind.
    InvalidValueError
        If there are no rows, lengths differ, or a confidence is not in [0, 1]; if `thresholds` is
        empty or holds NaN.

    Examples
    --------
    >>> confidence, correct = [0.6, 0.8, 0.8, 0.9], [False, True, False, True]
    >>> curve = accuracy_confidence_curve(confidence, correct, thresholds=[0.0, 0.8, 0.95])
    >>> curve.accuracy.round(3).tolist(), curve.coverage.tolist()
    ([0.5, 0.667, nan], [1.0, 0.75, 0.0])
    """
    same_rows(confidence=confidence, correct=correct)
    scores, flags = as_score_column(confidence, "confidence"), as_flags(correct, "correct")
    some_rows(confidence=scores, correct=flags)
    return _curve(scores, "confidence", flags, _as_thresholds(thresholds))


def accuracy_confidence_band(
    intervals: Any, correct: Any, *, thresholds: Any = None
) -> AccuracyConfidenceBand:
    """The two accuracy-confidence curves of intervals: the paper's band. Descriptive: no guarantee.

    The empirical P[correct | lower >= t] and P[correct | upper >= t].

    Parameters
    ----------
    intervals
        (n, 2) lower and upper ends, as `certificate.interval(confidence)` gives.
    correct
        Whether each prediction was right: bool, or 0 and 1.
    thresholds
        As for `accuracy_confidence_curve`.

    Returns
    -------
    AccuracyConfidenceBand
        The curve of the lower ends and the curve of the upper ends.

    Raises
    ------
    InvalidTypeError
        If an argument does not hold numbers of the expected kind.
    InvalidValueError
        If there are no rows, lengths differ, or an end is not in [0, 1]; if a lower end is above
        its upper end; if `thresholds` is empty or holds NaN.

    Examples
    --------
    >>> band = accuracy_confidence_band([[0.4, 0.7], [0.8, 1.0]], [False, True], thresholds=[0.5])
    >>> band.by_lower.accuracy.tolist(), band.by_upper.accuracy.tolist()
    ([1.0], [0.5])
    """
    same_rows(intervals=intervals, correct=correct)
    lower, upper = interval_ends(intervals)
    flags, steps = as_flags(correct, "correct"), _as_thresholds(thresholds)
    some_rows(intervals=lower, correct=flags)
    return AccuracyConfidenceBand(
        _curve(lower, "intervals[:, 0]", flags, steps),
        _curve(upper, "intervals[:, 1]", flags, steps),
    )


def _as_thresholds(thresholds: Any) -> Floats:
    if thresholds is None:
        return np.arange(_STEPS + 1) / _STEPS
    steps = as_score_column(thresholds, "thresholds").astype(np.float64)
    if not steps.size:
        raise InvalidValueError("thresholds is empty: pass at least one, or leave it out.")
    missing = np.flatnonzero(np.isnan(steps))
    if missing.size:
        raise InvalidValueError(
            f"thresholds[{missing[0]}] is nan: expected numbers to compare with."
        )
    return steps


def _curve(
    scores: Array, name: str, flags: NDArray[np.bool_], thresholds: Floats
) -> AccuracyConfidenceCurve:
    # Counting how many thresholds a score passes spares sorting the scores, and decides ties by one
    # comparison.
    ordered = np.sort(thresholds)
    table = np.zeros((len(ordered) + 1, 2), dtype=np.int64)
    rows = max(_ROWS, len(table))
    for start in range(0, len(scores), rows):
        block = checked_scores(scores[start : start + rows], name, start=start)
        passed = np.searchsorted(ordered, block, side="right")
        table += count_outcomes(passed, flags[start : start + rows], len(table))
    at_least = table[::-1].cumsum(axis=0)[::-1]
    reached = at_least[np.searchsorted(ordered, thresholds, side="left") + 1]
    return AccuracyConfidenceCurve(thresholds, reached.sum(axis=1), reached[:, 1], len(scores))


def interval_ends(intervals: Any) -> tuple[Floats, Floats]:
    """The lower and the upper ends of an (n, 2) array of intervals within [0, 1]."""
    table = numeric(as_array(intervals, "intervals"), "intervals")
    if table.ndim != 2 or table.shape[1] != 2:
        raise InvalidValueError(
            f"intervals has shape {table.shape}: expected (rows, 2), as certificate.interval gives."
        )
    lower, upper = (
        checked_scores(table[:, 0], "intervals[:, 0]"),
        checked_scores(table[:, 1], "intervals[:, 1]"),
    )
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

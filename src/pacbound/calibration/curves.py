"""The numbers behind accuracy-confidence plots: how accurate the answers above a threshold are.

Thresholds are compared with the scores in float64, and a score equal to a threshold passes it. The
curves describe the rows they were given. A threshold chosen from them has no guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.calibration.reliability import (
    Floats,
    Integers,
    count_outcomes,
    interval_ends,
    share_or_nan,
    some_rows,
)
from pacbound.errors import InvalidValueError
from pacbound.tally.columns import Array, as_flags, as_score_column, checked_scores, same_rows

_ROWS = 16384
_STEPS = 100


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

"""How accurate the answers are that pass a threshold of confidence: the accuracy-confidence plot,
in numbers.

Thresholds are compared with the scores in float64, and a score equal to a threshold passes it. The
curves describe the rows they were given: to choose a threshold with a guarantee, use
certify_abstention.
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
    some_rows,
)
from pacbound.errors import InvalidValueError
from pacbound.tally.columns import Array, as_flags, as_score_column, checked_scores

_ROWS = 16384
_STEPS = 100


@dataclass(frozen=True, eq=False)
class AccuracyConfidenceCurve:
    """For each threshold, how many of `rows` rows have a score of at least that (`answered`), and
    how many of these are right.
    """

    thresholds: Floats
    answered: Integers
    right: Integers
    rows: int

    @property
    def accuracy(self) -> Floats:
        """The share of right ones among the answered rows; NaN where none is answered."""
        none = self.answered == 0
        return np.where(none, np.nan, self.right / np.where(none, 1, self.answered))

    @property
    def coverage(self) -> Floats:
        """The share of rows answered."""
        return self.answered / self.rows

    def __len__(self) -> int:
        return len(self.thresholds)


@dataclass(frozen=True, eq=False)
class AccuracyConfidenceBand:
    """Two curves: one for answering by the lower end of each interval, one for answering by the
    upper end.

    Answering by the lower end is the stricter rule, so its accuracy is as a rule the upper border
    of the band.
    """

    by_lower: AccuracyConfidenceCurve
    by_upper: AccuracyConfidenceCurve


def accuracy_confidence_curve(
    confidence: Any, correct: Any, *, thresholds: Any = None
) -> AccuracyConfidenceCurve:
    """The share of right predictions among those with a confidence of at least each threshold.
    Descriptive: no guarantee.

    The empirical P[correct | confidence >= t]. Without `thresholds` these are 0, 0.01, …, 1; pass
    `np.unique(confidence)` for every step of the curve. They may come in any order, and may lie
    outside [0, 1].

    Examples
    --------
    >>> confidence, correct = [0.6, 0.8, 0.8, 0.9], [False, True, False, True]
    >>> curve = accuracy_confidence_curve(confidence, correct, thresholds=[0.0, 0.8, 0.95])
    >>> curve.accuracy.round(3).tolist(), curve.coverage.tolist()
    ([0.5, 0.667, nan], [1.0, 0.75, 0.0])
    """
    scores, flags = as_score_column(confidence, "confidence"), as_flags(correct, "correct")
    some_rows(confidence=scores, correct=flags)
    return _curve(scores, "confidence", flags, _as_thresholds(thresholds))


def accuracy_confidence_band(
    intervals: Any, correct: Any, *, thresholds: Any = None
) -> AccuracyConfidenceBand:
    """The two accuracy-confidence curves of intervals: the paper's band. Descriptive: no guarantee.

    The empirical P[correct | lower >= t] and P[correct | upper >= t], for (n, 2) `intervals` such
    as `certificate.interval(confidence)`. Thresholds are those of `accuracy_confidence_curve`.

    Examples
    --------
    >>> band = accuracy_confidence_band([[0.4, 0.7], [0.8, 1.0]], [False, True], thresholds=[0.5])
    >>> band.by_lower.accuracy.tolist(), band.by_upper.accuracy.tolist()
    ([1.0], [0.5])
    """
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

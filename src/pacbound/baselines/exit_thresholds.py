"""The usual ways to choose the threshold at which a fast model answers for a slow one. None has a
guarantee.

They are the baselines of Park et al. (2021), section 5.2, for two models: a row exits early if its
float64 confidence is at or above the threshold. For thresholds with a guarantee use
`certify_cascade`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.baselines.temperature import TemperatureScaling
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import real_number, tolerated_rate
from pacbound.tally.exits import EXIT_OUTCOMES, count_cascade
from pacbound.tally.tally import Tally

SLOW_ALONE: Final = math.inf
"""The threshold that no score reaches: the slow model answers every row, and the error does not
increase."""


def softmax_threshold(slow_error: float, *, xi: float) -> float:
    """The paper's (1 - xi')-softmax: the threshold 1 - (`xi` + `slow_error`) on the confidence as
    it is. No guarantee.

    `slow_error` is the slow model's share of wrong answers on held-out rows. No row is looked at:
    confidences are taken at their word. The fast model would be right often enough above the
    threshold if they were perfectly calibrated, which they are not: an over-confident model loses
    more than `xi`, an under-confident one exits less than it could. Never below 0.

    Examples
    --------
    A slow model that is wrong on 7 %, and 2 % that may be lost:

    >>> round(softmax_threshold(0.07, xi=0.02), 4)
    0.91
    """
    error = real_number(slow_error, "slow_error", "an error rate")
    if not 0.0 <= error <= 1.0:
        raise InvalidValueError(
            f"slow_error={slow_error} is not an error rate: expected 0 <= slow_error <= 1. For 7 % "
            "pass 0.07."
        )
    return max(0.0, 1.0 - (tolerated_rate(xi) + error))


@dataclass(frozen=True)
class TemperatureThreshold:
    """A threshold on the confidence that a fitted `scaling` gives, not on that of the softmax. No
    guarantee.
    """

    scaling: TemperatureScaling
    threshold: float

    def exits(self, logits: Any) -> NDArray[np.bool_]:
        """Which rows of the fast model's (rows, classes) `logits` it answers."""
        return np.asarray(self.scaling.predict_confidence(logits) >= self.threshold)


def temperature_threshold(
    logits: Any, labels: Any, slow_error: float, *, xi: float
) -> TemperatureThreshold:
    """The paper's (1 - xi')-temperature scaling: the softmax threshold, on confidences calibrated
    first. No guarantee.

    The temperature is fitted to the fast model's (rows, classes) `logits` and the column of each
    true class. The slow model's need none: it answers whatever is left. One temperature does not
    calibrate every confidence, and the threshold is not tested on any row.

    Examples
    --------
    Logits that claim 88 % where two of three are right. What they claim passes the threshold, what
    the fit makes of it does not:

    >>> chosen = temperature_threshold([[2.0, 0.0]] * 3, [0, 0, 1], 0.1, xi=0.05)
    >>> round(chosen.threshold, 4), chosen.exits([[2.0, 0.0], [9.0, 0.0]]).tolist()
    (0.85, [False, True])
    """
    threshold = softmax_threshold(slow_error, xi=xi)
    return TemperatureThreshold(TemperatureScaling().fit(logits, labels), threshold)


def histogram_threshold(
    confidence: Any, predictions: Any = None, labels: Any = None, *, xi: float
) -> float:
    """The paper's histogram binning: the lowest threshold at which the rows seen lose at most `xi`.
    No guarantee.

    Its search with means in place of bounds: e_1 - e'_1 estimated by counts is (b - c) / n, where
    of n rows b exit early and only the slow model is right, and c only the fast one. Of all
    thresholds j / 2^16 the lowest is taken whose estimate is at most `xi`, even where higher ones
    break it. On new rows the loss may well be above `xi`: nothing is kept in reserve for chance.
    `SLOW_ALONE` where even the highest threshold breaks it.

    `confidence` (n,), `predictions` (n, 2), the slow model's last, and `labels` (n,), or a `Tally`
    in place of all three, are as in `certify_cascade`.

    Examples
    --------
    Of 100 rows two would be lost below 0.6, which the rows seen allow; a certificate of xi = 0.02
    needs more of them:

    >>> predictions = [[1, 1]] * 98 + [[0, 1]] * 2
    >>> histogram_threshold([0.9] * 50 + [0.6] * 48 + [0.5] * 2, predictions, [1] * 100, xi=0.02)
    0.0
    >>> confidence = [0.9] * 50 + [0.6] * 48 + [0.5] * 2
    >>> round(histogram_threshold(confidence, predictions, [1] * 100, xi=0.01), 4)
    0.5
    """
    rate, tally = tolerated_rate(xi), _counted(confidence, predictions, labels)
    cells, counts = tally.cells[::-1, 0], tally.counts[::-1]
    only_slow, only_fast = (
        counts[:, EXIT_OUTCOMES.index(name)] for name in ("only_slow", "only_fast")
    )
    lost = np.concatenate(([0], np.cumsum(only_slow - only_fast)))
    # A quotient of integers is rounded once, as xi was when it was written: 29 of 100 are at most
    # 0.29.
    occupied = int(np.flatnonzero(lost / tally.rows <= rate)[-1])
    if occupied == len(cells):
        return 0.0
    # Between two occupied cells nothing changes, so the lowest threshold lies just above the first
    # cell that stays behind.
    lowest, top = int(cells[occupied]) + 1, tally.grid.n_cells - 1
    return lowest / top if lowest <= top else SLOW_ALONE


def _counted(confidence: Any, predictions: Any, labels: Any) -> Tally:
    if isinstance(confidence, Tally):
        if predictions is not None or labels is not None:
            raise InvalidTypeError("A tally already holds predictions and labels: leave both out.")
        tally = confidence
    elif predictions is None or labels is None:
        raise InvalidTypeError(
            "predictions or labels are missing: pass both, or a Tally in place of all three."
        )
    else:
        tally = count_cascade(confidence, predictions, labels)
    if tally.kind != "cascade" or tally.cells.shape[1] != 1:
        raise InvalidValueError(
            f"{tally!r} is no tally of two models: count one confidence, two predictions and a "
            "label per row."
        )
    if tally.rows == 0:
        raise InvalidValueError("There are no rows to choose a threshold from: pass at least one.")
    return tally

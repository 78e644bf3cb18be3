"""The usual ways to choose the confidence at which a classifier answers. None has a guarantee that
holds in every case.

For a threshold with one use `certify_abstention`.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import failure_probability, tolerated_rate
from pacbound.stats.binomial import binomial_upper
from pacbound.tally.columns import as_flags, as_scores, same_length, same_rows

NEVER_ANSWER: Final = math.inf
"""The threshold that no confidence reaches: the classifier always abstains."""


def observed_risk_threshold(confidence: Any, correct: Any, *, xi: float) -> float:
    """The lowest threshold at which at most `xi` of these answers were wrong. No guarantee.

    On new rows more of them are wrong about half of the time: nothing is kept in reserve for
    chance.

    Parameters
    ----------
    confidence
        One score in [0, 1] per row.
    correct
        Whether each prediction was right: booleans, or numbers that are 0 or 1.
    xi
        The share of the answers that may be wrong, 0 <= xi < 1.

    Returns
    -------
    float
        The threshold; `NEVER_ANSWER` where even the most confident answers are wrong too often.

    Raises
    ------
    InvalidValueError
        If there are no rows, a score is not in [0, 1], or `xi` is not in [0, 1).

    Examples
    --------
    >>> observed_risk_threshold([0.9, 0.8, 0.7, 0.6], [True, True, True, False], xi=0.1)
    0.7
    """
    rate = tolerated_rate(xi)
    scores, errors = _ranked(confidence, correct)
    # Rows with one score are answered together, so only the last of them is a threshold.
    last = np.append(scores[1:] != scores[:-1], True)
    kept = np.flatnonzero(last & (errors / np.arange(1, scores.size + 1) <= rate))
    return float(scores[kept[-1]]) if kept.size else NEVER_ANSWER


def selective_guaranteed_risk(confidence: Any, correct: Any, *, xi: float, delta: float) -> float:
    """Selection with guaranteed risk, SGR: a bisection of the ranks by binomial bounds.

    Geifman and El-Yaniv, *Selective Classification for Deep Neural Networks* (2017), Algorithm 1.
    It looks at log2(n) thresholds, each bounded at delta / log2(n), and keeps the lowest of them
    that passes. The thresholds that it looks at depend on the labels before, and are ranks of the
    same rows, so the union over log2(n) of them does not cover those that it could have looked at:
    its theorem holds for fixed thresholds only.

    Parameters
    ----------
    confidence
        One score in [0, 1] per row.
    correct
        Whether each prediction was right: booleans, or numbers that are 0 or 1.
    xi
        The share of the answers that may be wrong, 0 <= xi < 1.
    delta
        The chance that more are, as the method counts it.

    Returns
    -------
    float
        The threshold; `NEVER_ANSWER` where none that it looks at passes.

    Raises
    ------
    InvalidValueError
        If there are no rows, a score is not in [0, 1], `xi` is not in [0, 1), or `delta` is not
        between 0 and 1.

    Examples
    --------
    >>> confidence, correct = [0.9] * 300 + [0.5] * 100, [True] * 300 + [False] * 100
    >>> selective_guaranteed_risk(confidence, correct, xi=0.05, delta=0.01)
    0.9
    """
    rate, total = tolerated_rate(xi), failure_probability(delta)
    scores, _ = _ranked(confidence, correct)
    wrong = ~as_flags(correct, "correct")
    values = as_scores(confidence, "confidence")
    steps = max(1, math.ceil(math.log2(scores.size)))
    low, high, found = 1, scores.size, NEVER_ANSWER
    for _ in range(steps):
        rank = math.ceil((low + high) / 2)
        threshold = float(scores[rank - 1])
        answered = values >= threshold
        errors, trials = int(wrong[answered].sum()), int(answered.sum())
        if binomial_upper(errors, trials, delta=total / steps) <= rate:
            found, low = min(found, threshold), rank
        else:
            high = rank
    return found


def _ranked(confidence: Any, correct: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The scores from the highest down, and how many of so many are wrong."""
    same_rows(confidence=confidence, correct=correct)
    scores, right = as_scores(confidence, "confidence"), as_flags(correct, "correct")
    same_length(confidence=scores, correct=right)
    if not scores.size:
        raise InvalidValueError("There are no rows to choose a threshold from: pass at least one.")
    order = np.argsort(-scores, kind="stable")
    return scores[order], np.cumsum(~right[order])

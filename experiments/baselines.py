"""Thresholds without a guarantee, to compare with: those of the paper's sections 5.2 and 5.3, for
cascades and shields, and two for abstaining. A row exits if its confidence is at or above the
threshold, and a shield fires once the danger is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound import Tally, binomial_upper

Floats = NDArray[np.float64]

# The thresholds that no confidence and no danger reaches.
NEVER_ANSWER = SLOW_ALONE = POLICY_ALONE = math.inf

# The paper's naive threshold: brake where the state is more likely un-recoverable than not.
NAIVE_THRESHOLD = 0.5


def softmax(logits: Any) -> Floats:
    """The probabilities exp(logit) / sum of exp(logits) of each row, in float64."""
    block = np.array(np.asarray(logits).T, dtype=np.float64, order="C")
    weights = np.exp(block - block.max(axis=0))
    shares: Floats = (weights / weights.sum(axis=0)).T
    return shares


def observed_risk_threshold(confidence: Any, correct: Any, *, xi: float) -> float:
    """The lowest threshold at which at most `xi` of these answers were wrong. On new rows more of
    them are wrong about half of the time: nothing is kept in reserve for chance.
    """
    scores, errors = _ranked(confidence, correct)
    # Rows with one score are answered together, so only the last of them is a threshold.
    last = np.append(scores[1:] != scores[:-1], True)
    kept = np.flatnonzero(last & (errors / np.arange(1, scores.size + 1) <= xi))
    return float(scores[kept[-1]]) if kept.size else NEVER_ANSWER


def selective_guaranteed_risk(confidence: Any, correct: Any, *, xi: float, delta: float) -> float:
    """Selection with guaranteed risk, SGR: a bisection of the ranks by binomial bounds.

    Geifman and El-Yaniv, *Selective Classification for Deep Neural Networks* (2017), Algorithm 1.
    It looks at log2(n) thresholds, each bounded at delta / log2(n), and keeps the lowest of them
    that passes. The thresholds that it looks at depend on the labels before, and are ranks of the
    same rows, so the union over log2(n) of them does not cover those that it could have looked at:
    its theorem holds for fixed thresholds only.
    """
    scores, _ = _ranked(confidence, correct)
    wrong, values = ~np.asarray(correct, dtype=bool), np.asarray(confidence)
    steps = max(1, math.ceil(math.log2(scores.size)))
    low, high, found = 1, scores.size, NEVER_ANSWER
    for _ in range(steps):
        rank = math.ceil((low + high) / 2)
        threshold = float(scores[rank - 1])
        answered = values >= threshold
        errors, trials = int(wrong[answered].sum()), int(answered.sum())
        if binomial_upper(errors, trials, delta=delta / steps) <= xi:
            found, low = min(found, threshold), rank
        else:
            high = rank
    return found


def _ranked(confidence: Any, correct: Any) -> tuple[Floats, NDArray[np.int64]]:
    """The scores from the highest down, and how many of so many are wrong."""
    scores, right = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=bool)
    order = np.argsort(-scores, kind="stable")
    return scores[order], np.cumsum(~right[order])


def softmax_threshold(slow_error: float, *, xi: float) -> float:
    """The paper's (1 - xi')-softmax: 1 - (`xi` + `slow_error`). No row is looked at: confidences
    are believed as they are.
    """
    return max(0.0, 1.0 - (xi + slow_error))


def histogram_threshold(tally: Tally, *, xi: float) -> float:
    """The paper's histogram binning for cascades: the lowest threshold that lost at most `xi`.

    This is the paper's search with means in place of bounds: of n rows, b exit early where only the
    slow model is right, and c where only the fast one is. Of all thresholds j / 2^16 the lowest is
    taken with (b - c) / n at most `xi`, even where higher ones break it.
    """
    only_slow, only_fast = (tally.outcomes.index(name) for name in ("only_slow", "only_fast"))
    cells, counts = tally.cells[::-1, 0], tally.counts[::-1]
    lost = np.concatenate(([0], np.cumsum(counts[:, only_slow] - counts[:, only_fast])))
    # A quotient of integers is rounded once, as xi was when it was written: 29 of 100 are at most
    # 0.29.
    occupied = int(np.flatnonzero(lost / tally.rows <= xi)[-1])
    if occupied == len(cells):
        return 0.0
    # Between two occupied cells nothing changes, so the lowest threshold lies just above the first
    # cell that stays behind.
    lowest, top = int(cells[occupied]) + 1, tally.grid.n_cells - 1
    return lowest / top if lowest <= top else SLOW_ALONE


def observed_miss_threshold(tally: Tally, *, xi: float) -> float:
    """The paper's histogram binning for shields: the largest threshold j / 2^16 that missed at most
    a share `xi` of these rollouts. On new ones it misses more about half of the time.
    """
    bad = tally.counts[:, tally.outcomes.index("unsafe")]
    cells, misses = tally.cells[bad > 0, 0], np.cumsum(bad[bad > 0])
    over = np.flatnonzero(misses / tally.rows > xi)
    if not over.size:
        return POLICY_ALONE
    # Scores in the cell that breaks it are not below a threshold at its lower end.
    cell, top = int(cells[over[0]]), tally.grid.n_cells - 1
    return -math.inf if cell < 0 else cell / top

"""The usual ways to choose the threshold from which on a classifier answers, a fast model answers
for a slow one, or a policy must hand over to its backup. None has a guarantee that holds in every
case.

Those for cascades and shields are the baselines of Park et al. (2021), sections 5.2 and 5.3. A row
exits early if its float64 confidence is at or above the threshold, and a shield fires once the
danger is. For thresholds with a guarantee use `certify_abstention`, `certify_cascade` and
`certify_shield`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.baselines.confidences import TemperatureScaling
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import failure_probability, real_number, tolerated_rate
from pacbound.stats.binomial import binomial_upper
from pacbound.tally.columns import as_flags, as_scores, same_length, same_rows
from pacbound.tally.questions.cascade import CASCADE, ONLY_FAST, ONLY_SLOW, UNLABELLED
from pacbound.tally.questions.flagged_scores import ROLLOUTS
from pacbound.tally.tally import Tally

# The threshold that no confidence reaches: the classifier always abstains.
NEVER_ANSWER: Final = math.inf

# The threshold that no score reaches: the slow model answers every row.
SLOW_ALONE: Final = math.inf

# The paper's naive threshold: brake where the state is more likely un-recoverable than not.
NAIVE_THRESHOLD: Final = 0.5

# The threshold that every danger reaches, an invalid one included: the backup always acts.
ALWAYS_BRAKE: Final = -math.inf

# The threshold that no danger reaches: the backup never acts.
POLICY_ALONE: Final = math.inf


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


def softmax_threshold(slow_error: float, *, xi: float) -> float:
    """The paper's (1 - xi')-softmax: the threshold 1 - (`xi` + `slow_error`). No guarantee.

    No row is looked at: the fast model's confidences are believed as they are. Above the threshold
    it would be right often enough if they were perfectly calibrated, which they are not: an
    over-confident model loses more than `xi`, an under-confident one exits less than it could.

    Parameters
    ----------
    slow_error
        The slow model's share of wrong answers on held-out rows, from 0 to 1.
    xi
        The increase in error that is allowed, 0 <= xi < 1.

    Returns
    -------
    float
        The threshold on the fast model's confidence, never below 0.

    Raises
    ------
    InvalidTypeError
        If an argument is not one number.
    InvalidValueError
        If `slow_error` is not in [0, 1], or `xi` not in [0, 1).

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
    """A threshold on confidences after temperature scaling. No guarantee.

    Attributes
    ----------
    scaling
        The fitted temperature scaling, whose confidences are compared.
    threshold
        The threshold on these confidences, not on those of the softmax.

    Examples
    --------
    Logits that are three times too large, so that the softmax is over-confident:

    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    >>> labels = (rng.random((2000, 1)) > shares.cumsum(axis=1)).sum(axis=1)
    >>> chosen = temperature_threshold(3 * logits, labels, 0.07, xi=0.02)
    >>> round(chosen.scaling.temperature_, 1), round(chosen.threshold, 2)
    (3.0, 0.91)
    >>> print(f"{chosen.exits(3 * logits).mean():.1%} of the rows exit")
    1.4% of the rows exit
    """

    scaling: TemperatureScaling
    threshold: float

    def exits(self, logits: Any) -> NDArray[np.bool_]:
        """Which rows the fast model answers.

        Parameters
        ----------
        logits
            The fast model's (rows, classes) logits.

        Returns
        -------
        ndarray of bool
            True where the scaled confidence is at or above the threshold.

        Raises
        ------
        InvalidValueError
            If `logits` does not have the shape (rows, classes) or holds numbers that are not
            finite.
        """
        return np.asarray(self.scaling.predict_confidence(logits) >= self.threshold)


def temperature_threshold(
    logits: Any, label: Any, slow_error: float, *, xi: float
) -> TemperatureThreshold:
    """The paper's (1 - xi')-temperature: the softmax threshold after calibration. No guarantee.

    A temperature is fitted to the fast model's logits. The slow model needs none: it answers
    whatever is left. One temperature does not calibrate every confidence, and the threshold is not
    tested on any row.

    Parameters
    ----------
    logits
        The fast model's (rows, classes) logits on held-out rows.
    label
        The column of each row's true class.
    slow_error
        The slow model's share of wrong answers on held-out rows, from 0 to 1.
    xi
        The increase in error that is allowed, 0 <= xi < 1.

    Returns
    -------
    TemperatureThreshold
        The fitted scaling and the threshold on its confidences.

    Raises
    ------
    InvalidValueError
        As for `softmax_threshold` and `TemperatureScaling.fit`.

    Examples
    --------
    Logits that claim 88 % where two of three are right. What they claim passes the threshold, what
    the fit makes of it does not:

    >>> chosen = temperature_threshold([[2.0, 0.0]] * 3, [0, 0, 1], 0.1, xi=0.05)
    >>> round(chosen.threshold, 4), chosen.exits([[2.0, 0.0], [9.0, 0.0]]).tolist()
    (0.85, [False, True])
    """
    threshold = softmax_threshold(slow_error, xi=xi)
    return TemperatureThreshold(TemperatureScaling().fit(logits, label), threshold)


def histogram_threshold(
    confidence: Any, prediction: Any = None, label: Any = None, *, xi: float
) -> float:
    """The paper's histogram binning: the lowest threshold that lost at most `xi`. No guarantee.

    This is the paper's search with means in place of bounds. The increase in error e_1 - e'_1 is
    estimated by (b - c) / n: of n rows, b exit early where only the slow model is right, and c
    where only the fast one is. Of all thresholds j / 2^16 the lowest is taken whose estimate is at
    most `xi`, even where higher ones break it. On new rows the loss may well be above `xi`: nothing
    is kept in reserve for chance.

    Parameters
    ----------
    confidence
        The fast model's confidence for each row, or a cascade `Tally` of two models in place of all
        three arguments.
    prediction
        (n, 2) predicted classes, the slow model's last.
    label
        The true class of each row.
    xi
        The increase in error that is allowed, 0 <= xi < 1.

    Returns
    -------
    float
        The threshold; `SLOW_ALONE` where even the highest one loses more than `xi`.

    Raises
    ------
    InvalidTypeError
        If `prediction` or `label` is missing, or comes with a tally.
    InvalidValueError
        If there are no rows, if a label is missing where predictions differ, or the tally is not
        one of two models; if `xi` is not in [0, 1).

    Examples
    --------
    Two of 100 rows would be lost below 0.6. These rows allow that at xi = 0.02, where a certificate
    needs more rows:

    >>> confidence, label = [0.9] * 50 + [0.6] * 48 + [0.5] * 2, [1] * 100
    >>> prediction = [[1, 1]] * 98 + [[0, 1]] * 2
    >>> histogram_threshold(confidence, prediction, label, xi=0.02)
    0.0
    >>> round(histogram_threshold(confidence, prediction, label, xi=0.01), 4)
    0.5
    """
    rate, tally = tolerated_rate(xi), _cascade_tally(confidence, prediction, label)
    cells, counts = tally.cells[::-1, 0], tally.counts[::-1]
    only_slow, only_fast = counts[:, ONLY_SLOW], counts[:, ONLY_FAST]
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


def _cascade_tally(confidence: Any, prediction: Any, label: Any) -> Tally:
    columns = {"confidence": confidence, "prediction": prediction, "label": label}
    tally = _counted(CASCADE, columns, "rows", unseen_labels=1.0, unrelated_labels=True)
    if tally.kind != CASCADE.kind or tally.cells.shape[1] != 1:
        raise InvalidValueError(
            f"{tally!r} is not a tally of two models: count one confidence, two predictions and a "
            "label per row."
        )
    unlabelled = int(tally.counts[:, UNLABELLED:].sum())
    if unlabelled:
        raise InvalidValueError(
            f"{unlabelled} rows have no label although predictions differ: means need all of them. "
            "Label them, or certify: certify_cascade counts them as losses."
        )
    return tally


def _counted(question: Any, columns: Mapping[str, Any], unit: str, **options: Any) -> Tally:
    """The counts of the columns, or the tally that was passed in place of the first of them."""
    first, *others = columns
    absent = [name for name in others if columns[name] is None]
    if isinstance(columns[first], Tally):
        tally: Tally = columns[first]
        if len(absent) < len(others):
            raise InvalidTypeError(f"A tally already holds {' and '.join(others)}: pass it alone.")
    elif absent:
        raise InvalidTypeError(
            f"{absent[0]} is missing: pass it, or a Tally in place of {', '.join(columns)}."
        )
    else:
        tally = Tally.count(question, **columns, **options)
    if tally.rows == 0:
        raise InvalidValueError(
            f"There are no {unit} to choose a threshold from: pass at least one."
        )
    return tally


def xi_threshold(xi: float) -> float:
    """The paper's xi-naive: brake once the danger is at least `xi`. No guarantee.

    No row is looked at: dangers are believed as they are. If they were calibrated, which they are
    not, a state with danger below `xi` would be un-recoverable with probability below `xi`. But a
    rollout has many states, and one un-recoverable state makes it unsafe: even calibrated dangers
    may leave far more than `xi` of the rollouts unsafe.

    Parameters
    ----------
    xi
        The share of rollouts that may be unsafe, 0 <= xi < 1.

    Returns
    -------
    float
        The threshold: `xi` itself.

    Raises
    ------
    InvalidTypeError
        If `xi` is not one number.
    InvalidValueError
        If `xi` is not in [0, 1).

    Examples
    --------
    >>> xi_threshold(0.1)
    0.1
    """
    return tolerated_rate(xi)


def observed_miss_threshold(scores: Any, unsafe: Any = None, *, xi: float) -> float:
    """The paper's histogram binning: the largest threshold that missed at most `xi`. No guarantee.

    This is the search of `certify_shield` with means in place of bounds. A rollout is missed if it
    is unsafe and its score, the running maximum of the danger, is below the threshold. Of all
    thresholds j / 2^16 the largest is taken that misses at most a share `xi` of the rollouts seen.
    On new ones it misses more about half of the time: nothing is kept in reserve for chance.

    Parameters
    ----------
    scores
        The score of each rollout, as for `certify_shield`, or a shield `Tally` in place of both
        arguments.
    unsafe
        Whether each rollout was unsafe.
    xi
        The share of rollouts that may be missed, 0 <= xi < 1.

    Returns
    -------
    float
        The threshold; `POLICY_ALONE` where all may be missed, `ALWAYS_BRAKE` where too many
        rollouts are lost at the start already.

    Raises
    ------
    InvalidTypeError
        If `unsafe` is missing, or comes with a tally.
    InvalidValueError
        If there are no rollouts, or the tally is not one of rollouts; if `xi` is not in [0, 1).

    Examples
    --------
    Of 100 rollouts three are unsafe. Two may be missed, so the shield must fire at the third one's
    danger:

    >>> scores, unsafe = [0.25, 0.5, 0.75] + [0.125] * 97, [True] * 3 + [False] * 97
    >>> observed_miss_threshold(scores, unsafe, xi=0.02)
    0.75
    """
    rate, tally = tolerated_rate(xi), _rollout_tally(scores, unsafe)
    bad = tally.counts[:, tally.outcomes.index("unsafe")]
    cells, misses = tally.cells[bad > 0, 0], np.cumsum(bad[bad > 0])
    # A quotient of integers is rounded once, as xi was when it was written: 29 of 100 are at most
    # 0.29.
    over = np.flatnonzero(misses / tally.rows > rate)
    if not over.size:
        return POLICY_ALONE
    # Scores in the cell that breaks it are not below a threshold at its lower end.
    cell, top = int(cells[over[0]]), tally.grid.n_cells - 1
    return ALWAYS_BRAKE if cell < 0 else cell / top


def _rollout_tally(scores: Any, unsafe: Any) -> Tally:
    tally = _counted(ROLLOUTS, {"score": scores, "unsafe": unsafe}, "rollouts")
    if tally.kind != ROLLOUTS.kind:
        raise InvalidValueError(
            f"{tally!r} is not a tally of rollouts: count a running maximum and unsafe for each."
        )
    return tally

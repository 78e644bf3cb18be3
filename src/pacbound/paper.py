"""The algorithms of Park, Li, Bastani and Lee, "PAC Confidence Predictions for Deep Neural Network
Classifiers" (ICLR 2021), equation by equation, for comparison.

Numbers in, numbers out: nothing here makes a certificate. What certifies is in `pacbound` itself.
`calibrate` is the paper's Theorem 1; `certify_cascade` and `certify_shield` keep the promises of
its Theorems 2 and 4 by other tests, which let more rows exit, and stop fewer rollouts.

Two things are mended. The paper's bound on the loss of a cascade has a sign that is misprinted: as
printed it bounds what the cascade gains, and every row exits. And the paper takes the lowest
threshold that passes, which no proof covers, because the loss is not monotone in the threshold;
`greedy_thresholds` stops before the first failure. For two models that keeps the loss with
probability at least 1 - delta (`pacbound.procedures.cascade`). For more than two no proof is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.stats.binomial import binomial_interval, bonferroni_level

__all__ = [
    "coverage",
    "coverage_of_one_bin",
    "error_bound",
    "error_bound_as_printed",
    "greedy_thresholds",
    "lowest_threshold",
    "shield_threshold",
    "unsafe_bound",
]

Floats = NDArray[np.float64]
# Whether steps pass, from the rows that differ, are gained and are lost at each exit so far: arrays
# of shape (exits so far, steps).
Passes = Callable[[Any, Any, Any], Any]

# The grids of the cascades that `certify_cascade` makes: of two models, and of more.
_TWO, _MORE = 2**16, 2**10
# Covers the rounding of the sums and products of a bound.
_OUTWARD = 4 * np.finfo(float).eps


def coverage_of_one_bin(right: Any, rows: Any, *, delta: float) -> tuple[Any, Any]:
    """C_0 of section 2: the Clopper-Pearson interval of the accuracy, from so many `right` answers
    of `rows` independent ones. It holds the true accuracy with probability at least 1 - `delta`.

    Parameters
    ----------
    right, rows
        How many answers are right, of how many.
    delta
        The chance that the interval misses the accuracy.

    Returns
    -------
    tuple of float or ndarray
        The lower ends and the upper ends.

    Examples
    --------
    >>> low, high = coverage_of_one_bin(90, 100, delta=0.05)
    >>> print(f"{low:.4f} {high:.4f}")
    0.8238 0.9510
    """
    return binomial_interval(right, rows, delta=delta)


def coverage(right: Any, rows: Any, *, delta: float) -> tuple[Any, Any]:
    """C of Theorem 1: an interval for each of K bins, each at `delta` / K. All hold the true
    accuracies of their bins with probability at least 1 - `delta`.

    Parameters
    ----------
    right, rows
        How many answers of each bin are right, of how many.
    delta
        The chance that any interval misses.

    Returns
    -------
    tuple of ndarray
        The lower ends and the upper ends.

    Examples
    --------
    >>> low, high = coverage([40, 90], [50, 100], delta=0.05)
    >>> low.round(4), high.round(4)
    (array([0.6432, 0.8122]), array([0.91  , 0.9562]))
    """
    level = bonferroni_level(delta, np.size(rows))
    return binomial_interval(right, rows, delta=level)


def error_bound(
    differ: Any, gains: Any, losses: Any, n: int, *, delta: float, exits: int | None = None
) -> Any:
    """The left side of the cascade's constraint, its sign mended: the sum over exits of
    (1 - c_lo) r_up - (1 - c'_up) r_lo, where r is how often rows leave at an exit with another
    answer than the slow model's, and c and c' how often the exit and the slow model are then right.

    At thresholds that were fixed beforehand the cascade loses at most this much accuracy, with
    probability at least 1 - `delta`.

    Parameters
    ----------
    differ, gains, losses
        How many rows leave so at each of M - 1 exits, and on how many of these only the exit is
        right, or only the slow model; (exits, steps).
    n
        The number of all rows.
    delta
        The chance that the bound is wrong at one step.
    exits
        M - 1, where only the first exits are counted and later ones are not used.

    Returns
    -------
    ndarray of shape (steps,)
        The bounds.

    Examples
    --------
    >>> error_bound([[40]], [[10]], [[12]], 2000, delta=0.01).round(4)
    array([0.0228])
    """
    level = _share(delta, exits or len(differ))
    rate_low, rate_high = binomial_interval(differ, n, delta=level)
    fast_low, _ = binomial_interval(gains, differ, delta=level)
    _, slow_high = binomial_interval(losses, differ, delta=level)
    terms = (1 - fast_low) * rate_high - (1 - slow_high) * rate_low
    return np.sum(terms + _OUTWARD, axis=0)


def error_bound_as_printed(differ: Any, gains: Any, losses: Any, n: int, *, delta: float) -> Any:
    """The same with the printed sign, the sum of c_up r_up - c'_lo r_lo: a bound on the accuracy
    that the cascade gains, which says nothing about what it loses.

    Parameters
    ----------
    differ, gains, losses
        How many rows leave so at each of M - 1 exits, and on how many of these only the exit is
        right, or only the slow model; (exits, steps).
    n
        The number of all rows.
    delta
        The chance that the bound is wrong at one step.

    Returns
    -------
    ndarray of shape (steps,)
        The bounds.

    Examples
    --------
    >>> error_bound_as_printed([[40]], [[10]], [[12]], 2000, delta=0.01).round(4)
    array([0.0138])
    """
    level = _share(delta, len(differ))
    rate_low, rate_high = binomial_interval(differ, n, delta=level)
    _, fast_high = binomial_interval(gains, differ, delta=level)
    slow_low, _ = binomial_interval(losses, differ, delta=level)
    return np.sum(fast_high * rate_high - slow_low * rate_low, axis=0)


def greedy_thresholds(
    confidence: Any,
    prediction: Any,
    label: Any,
    *,
    xi: float,
    delta: float,
    passes: Passes | None = None,
) -> Floats:
    """The greedy choice of section 3: one threshold after the other, each lowered from 1 to the
    last value before the first that breaks the constraint, those before it fixed and those after it
    unused.

    Parameters
    ----------
    confidence
        The confidence of each model but the last, (n, M - 1).
    prediction
        The answer of each model, the slow model's last, (n, M).
    label
        The true classes.
    xi
        The accuracy that may be lost.
    delta
        Shared by the intervals of all exits.
    passes
        Another test of the steps; without one, that `error_bound` is at most `xi`.

    Returns
    -------
    ndarray of shape (M - 1,)
        The thresholds, +inf for an exit that is not used.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> answers = np.column_stack([table.prediction_fast, table.prediction_slow])
    >>> greedy_thresholds(table.confidence_fast, answers, table.label, xi=0.01, delta=0.01).round(4)
    array([0.7635])
    """
    cells, kinds = _as_cells(confidence, prediction, label)
    n, exits = cells.shape
    top = _TWO if exits == 1 else _MORE

    def within(differ: Any, gains: Any, losses: Any) -> Any:
        return error_bound(differ, gains, losses, n, delta=delta, exits=exits) <= xi

    test = passes or within
    chosen, left = np.full(exits, np.inf), np.zeros(n, dtype=bool)
    before = np.zeros((3, 0, 1), dtype=np.int64)
    for exit_ in range(exits):
        here, changes = _from_the_top(cells[~left, exit_], kinds[:, ~left, exit_], top)
        fixed = np.broadcast_to(before, (3, exit_, len(changes)))
        steps = np.concatenate([fixed, here[:, None, changes]], axis=1)
        failed = np.flatnonzero(~np.asarray(test(*steps)))
        last = int(changes[failed[0]]) - 1 if failed.size else top
        taken = here[:, last] if last >= 0 else np.zeros(3, dtype=np.int64)
        before = np.concatenate([before, taken[:, None, None]], axis=1)
        if last >= 0:
            chosen[exit_] = (top - last) / top
            left |= cells[:, exit_] >= top - last
    return chosen


def lowest_threshold(
    confidence: Any, prediction: Any, label: Any, *, xi: float, delta: float
) -> float:
    """Theorem 3, two models: the lowest threshold that keeps the constraint, whatever breaks it
    above, which exits most. Being chosen among many, it loses more than `xi` with a probability
    that no proof bounds.

    Parameters
    ----------
    confidence
        The confidence of each model but the last, (n, M - 1).
    prediction
        The answer of each model, the slow model's last, (n, M).
    label
        The true classes.
    xi
        The accuracy that may be lost.
    delta
        Shared by the three intervals.

    Returns
    -------
    float
        The threshold, +inf if none keeps the constraint.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> answers = np.column_stack([table.prediction_fast, table.prediction_slow])
    >>> found = lowest_threshold(table.confidence_fast, answers, table.label, xi=0.01, delta=0.01)
    >>> print(f"{found:.4f}")
    0.7635
    """
    cells, kinds = _as_cells(confidence, prediction, label)
    steps, changes = _from_the_top(cells[:, 0], kinds[:, :, 0], _TWO)
    differ, gains, losses = steps[:, None, changes]
    bounds = error_bound(differ, gains, losses, len(cells), delta=delta)
    passed = np.flatnonzero(bounds <= xi)
    if not passed.size:
        return float("inf")
    return float(_TWO + 1 - np.append(changes, _TWO + 1)[passed[-1] + 1]) / _TWO


def unsafe_bound(missed: Any, unsafe: Any, n: int, *, delta: float) -> Any:
    """The left side of the shield's constraint, r_up (1 - c_lo): r is how often a rollout is
    unsafe, and c how often the danger at its first un-recoverable state reaches the threshold.

    Theorem 4: at a threshold that was fixed beforehand at most this share of the rollouts is unsafe
    under the shield, with probability at least 1 - `delta`. As the bound rises with what is missed,
    that holds at the highest threshold that keeps it at most xi, too.

    Parameters
    ----------
    missed, unsafe, n
        How many unsafe rollouts do not reach the threshold, how many are unsafe, and how many
        there are; arrays broadcast.
    delta
        The chance that the bound is wrong.

    Returns
    -------
    float or ndarray
        The bounds.

    Examples
    --------
    >>> print(f"{unsafe_bound(5, 100, 1000, delta=0.01):.4f}")
    0.0186
    """
    level = bonferroni_level(delta, 2)
    _, rate = binomial_interval(unsafe, n, delta=level)
    caught, _ = binomial_interval(np.subtract(unsafe, missed), unsafe, delta=level)
    return rate * (1 - caught) * (1 + 1e-15)


def shield_threshold(final_score: Any, unsafe: Any, *, xi: float, delta: float) -> float:
    """The shield's threshold of section 4: the highest that keeps `unsafe_bound` at most `xi`, from
    the danger at the first un-recoverable state of each rollout.

    Parameters
    ----------
    final_score
        That danger; -inf where a rollout was lost at the start. Those of safe rollouts are not
        looked at.
    unsafe
        Whether each rollout is unsafe.
    xi
        The share of the rollouts that may be unsafe.
    delta
        The chance that more are.

    Returns
    -------
    float
        The threshold; -inf (always brake) if none keeps the constraint.

    Examples
    --------
    >>> dangers = [0.1] * 900 + [0.3] * 5 + [0.8] * 95
    >>> shield_threshold(dangers, [False] * 900 + [True] * 100, xi=0.02, delta=0.01) * 2**16 // 1
    52428.0
    """
    dangers = np.sort(np.asarray(final_score, dtype=np.float64)[np.asarray(unsafe, dtype=bool)])
    bounds = unsafe_bound(np.arange(len(dangers) + 1), len(dangers), np.size(unsafe), delta=delta)
    allowed = int(np.count_nonzero(bounds <= xi)) - 1
    if allowed == len(dangers):
        return float("inf")
    return float(np.floor(dangers[allowed] * _TWO) / _TWO) if allowed >= 0 else float("-inf")


def _share(delta: float, exits: int) -> float:
    """The level of each interval: every exit has three."""
    return bonferroni_level(bonferroni_level(delta, exits), 3)


def _as_cells(confidence: Any, prediction: Any, label: Any) -> tuple[Any, Any]:
    """The cell of each score, and which rows differ, are gained and are lost at each exit."""
    scores, answers = np.asarray(confidence, dtype=np.float64), np.asarray(prediction)
    scores = scores.reshape(len(scores), -1)
    fast, slow, truth = answers[:, :-1], answers[:, -1:], np.asarray(label)[:, None]
    differ = fast != slow
    top = _TWO if scores.shape[1] == 1 else _MORE
    kinds = np.stack([differ, differ & (fast == truth), differ & (slow == truth)])
    return np.floor(scores * top).astype(np.int64), kinds


def _from_the_top(cells: Any, kinds: Any, top: int) -> tuple[Any, Any]:
    """How many rows of each kind leave at the thresholds top, top - 1, ..., 0, and the steps at
    which that changes: between two of them every test says the same.
    """
    counts = [np.bincount(cells[kind], minlength=top + 1) for kind in kinds]
    running = np.cumsum(np.array(counts)[:, ::-1], axis=1)
    return running, np.flatnonzero(np.diff(running, axis=1, prepend=-1).any(axis=0))

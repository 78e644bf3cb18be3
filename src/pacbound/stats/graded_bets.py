"""Graded losses from 0 to 1: tests and bounds of their mean by bets, from counts per level.

Integers in, verdicts and bounds out; nothing here knows what is graded. A row whose loss is v
multiplies a bet with the stake s by 1 + s (m - v), whose mean is at most 1 while the mean loss is m
or more. Rows are independent, so the product over all of them has a mean of at most 1, and so has
an average of several such products, the *evidence*. By Markov's inequality it reaches 1/delta with
probability at most delta. The order of the rows plays no part, hence counts per level decide, and
no coin is tossed. Less loss in a row raises each factor: a row whose loss is not known counts as 1.

**Several thresholds at once** (`thresholds_below`, `losses_below`). With stakes that are
the same at every threshold, fixed by the number of rows, xi and delta alone, *every* threshold
whose evidence reaches 1/delta may be claimed, with the whole delta and without a walk: see "Bets on
grades" in docs/proofs.md. Stakes that depend on the rows above a threshold are not
covered: claimed anywhere they reach 2.5 delta.

**Bounds on a mean** (`mean_lower`, `mean_upper`) use stakes that are the same for every mean, so
that the evidence falls as the mean in question rises, and bisection finds where it ends.

Numbers. A stake is rounded down to 20 bits, so that whoever computes it otherwise has the same. An
exponent is lowered by more than rounding can have added to it, and the evidence must reach
(1 + 1e-9)/delta.
"""

from __future__ import annotations

from math import frexp, ldexp, log, sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import (
    failure_probability,
    required_share,
    tolerated_rate,
    whole_number,
    whole_numbers,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# The levels of a grade that nobody declared: from 0 to this.
FINE: Final = 64

# Bets expect a variance of mean (1 - mean) over these, and get these shares of the evidence.
SPREADS: Final = (1.5, 6.0, 24.0, 96.0)
SHARES: Final = (0.4, 0.3, 0.2, 0.1)

# The largest stake as a share of the largest that leaves every factor positive.
MOST: Final = 0.98

# At every threshold: the shares of all rows that bets expect to be above it.
SIZES: Final = (1 / 8, 1 / 4, 1 / 2, 1.0)
# Where all rows count, losses and gains: the variances that bets expect, as multiples of xi.
VARIANCES: Final = (1.5, 0.5)
WITHOUT_LOSS: Final = 1 / 16

# Bounds are multiples of this.
STEP: Final = 2.0**-30

# By how much the logarithm of the evidence must exceed that of 1/delta.
CERTAIN: Final = 1e-9

_BITS: Final = 20
_ROUNDING: Final = 2.0**-44
_ROUNDING_A_ROW: Final = 2.0**-50


class GradeBets(NamedTuple):
    """Stakes, and the share of each in the evidence; the shares add up to 1."""

    stakes: tuple[float, ...]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, stakes: list[float], shares: tuple[float, ...], *, most: float) -> GradeBets:
        """Stakes of at most `most`, each rounded down to 20 bits."""
        return cls(tuple(_rounded(min(stake, most)) for stake in stakes), shares)


def _rounded(stake: float) -> float:
    mantissa, exponent = frexp(stake)
    return ldexp(int(ldexp(mantissa, _BITS)), exponent - _BITS)


def mean_bets(rows: int, mean: float, delta: float) -> GradeBets:
    """Four bets that the mean loss of so many rows is below `mean`."""
    aim, variance = 2.0 * log(1.0 / delta) / max(rows, 1), mean * (1.0 - mean)
    stakes = [sqrt(aim * spread / variance) for spread in SPREADS]
    return GradeBets.of(stakes, SHARES, most=MOST / (1.0 - mean))


def threshold_bets(rows: int, xi: float, delta: float) -> GradeBets:
    """Bets for every threshold of an abstention: four on each share of the rows above it."""
    aim, variance = 2.0 * log(1.0 / delta) / max(rows, 1), xi * (1.0 - xi)
    stakes = [sqrt(aim * spread / size / variance) for size in SIZES for spread in SPREADS]
    shares = tuple(share / len(SIZES) for _ in SIZES for share in SHARES)
    return GradeBets.of(stakes, shares, most=MOST / (1.0 - xi))


def cascade_bets(rows: int, xi: float, delta: float) -> GradeBets:
    """Bets for every threshold of a cascade, where all rows count: two on their variance, or on
    multiples of 1/16 if nothing may be lost.
    """
    aim = 2.0 * log(1.0 / delta) / max(rows, 1)
    stakes = [sqrt(aim / times / (xi or WITHOUT_LOSS)) for times in VARIANCES]
    return GradeBets.of(stakes, (0.5,) * len(VARIANCES), most=MOST / (1.0 - xi))


def interval_bets(rows: int, delta: float) -> GradeBets:
    """Bets for every mean: stakes that double, from the one for a variance of 1/8 up, and shares
    that halve.
    """
    stakes = [sqrt(16.0 * log(1.0 / delta) / max(rows, 1))]
    while stakes[-1] < MOST:
        stakes.append(2.0 * stakes[-1])
    shares = [0.5**place for place in range(1, len(stakes))]
    return GradeBets.of(stakes, (*shares, 1.0 - sum(shares)), most=MOST)


def log_evidence(counts: Integers, values: Floats, bets: GradeBets, mean: float) -> Floats:
    """The logarithm of the evidence against a mean of at least `mean`, from below; the last axis of
    `counts` are the levels, whose losses are `values`.
    """
    logs = np.log1p(np.outer(mean - values, bets.stakes))
    exponents, sizes = counts @ logs, counts @ np.abs(logs)
    exponents -= _ROUNDING * sizes + _ROUNDING_A_ROW * counts.sum(axis=-1, keepdims=True)
    return np.asarray(logsumexp(exponents, axis=-1, b=bets.shares))


def is_enough(evidence: Floats, delta: float) -> NDArray[np.bool_]:
    """Whether evidence, given by its logarithm, reaches 1/delta for certain."""
    return np.asarray(evidence >= log(1.0 / delta) + CERTAIN)


def mean_test(counts: ArrayLike, *, mean: float, delta: float) -> bool:
    """Whether counts per level certify that the mean loss is below `mean`.

    If in truth the mean is `mean` or more, the answer is True with probability at most `delta`, for
    independent rows of one law and a number of rows fixed in advance. `counts[k]` rows have the
    loss k/L, L + 1 being the number of levels; a loss between two levels counts as the higher one.
    That a mean is *above* `mean` is the same question about the gains: counts in reverse, and
    1 - `mean`.

    Examples
    --------
    >>> mean_test([60, 40, 0, 0, 0], mean=0.2, delta=0.05)
    True
    >>> mean_test([60, 20, 10, 5, 5], mean=0.2, delta=0.05)
    False
    """
    losses, values = _levels(counts)
    rate, level = required_share(mean, "mean"), failure_probability(delta)
    bets = mean_bets(int(losses.sum()), rate, level)
    return bool(is_enough(log_evidence(losses, values, bets, rate), level))


def mean_lower(counts: ArrayLike, *, delta: float) -> float:
    """Lower confidence bound on a mean grade, from counts per level.

    The mean is at least the bound with probability at least 1 - `delta`, for independent rows of
    one law. `counts[k]` rows have the grade k/L, L + 1 being the number of levels; a grade between
    two levels counts as the lower one. No rows give 0.

    Examples
    --------
    >>> round(mean_lower([0, 0, 100, 0, 0], delta=0.05), 4)
    0.465
    """
    grades, values = _levels(counts)
    level, rows = failure_probability(delta), int(grades.sum())
    bets, held = interval_bets(rows, level), grades > 0
    counts_held, losses = grades[held], 1.0 - values[held]

    def passes(place: int) -> bool:
        # That the mean is above so much is said of 1 - grade, which is then below the rest.
        evidence = log_evidence(counts_held, losses, bets, 1.0 - place * STEP)
        return bool(is_enough(evidence, level))

    low, high = 0, round(1.0 / STEP)
    while rows and low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low * STEP


def mean_upper(counts: ArrayLike, *, delta: float) -> float:
    """Upper confidence bound on a mean grade: the mirror image of `mean_lower`. A grade between two
    levels counts as the higher one. No rows give 1.

    Examples
    --------
    >>> round(mean_upper([0, 0, 100, 0, 0], delta=0.05), 4)
    0.535
    """
    return 1.0 - mean_lower(_levels(counts)[0][::-1], delta=delta)


def thresholds_below(counts: ArrayLike, *, rows: int, xi: float, delta: float) -> NDArray[np.bool_]:
    """For each threshold, whether the mean loss of the rows above it is certified to be at most
    `xi`: all that are certified hold together with probability at least 1 - `delta`.

    For `rows` independent rows of one law, their number fixed in advance; `counts[t, k]` of them
    are above threshold t and have the loss k/L. There is no walk: a threshold may be certified
    where a higher one is not.

    Examples
    --------
    >>> thresholds_below([[2, 0, 0], [90, 6, 4], [98, 12, 90]], rows=200, xi=0.2, delta=0.1)
    array([False,  True, False])
    """
    evidence = threshold_evidence(counts, rows=rows, xi=xi, delta=delta)
    return is_enough(evidence, delta)


def threshold_evidence(counts: ArrayLike, *, rows: int, xi: float, delta: float) -> Floats:
    """The logarithm of the evidence at each threshold, see `thresholds_below`."""
    losses, values = _levels(counts)
    rate, level = required_share(xi, "xi"), failure_probability(delta)
    bets = threshold_bets(whole_number(rows, "rows"), rate, level)
    return log_evidence(losses, values, bets, rate)


def losses_below(
    sums: ArrayLike, *, rows: int, xi: float, delta: float, steps: int
) -> NDArray[np.bool_]:
    """For each threshold of a cascade, whether its mean loss against the slow model is certified to
    be less than `xi`, wrongly with probability at most `delta`; for two models and `xi` above 0,
    all that are certified hold together with probability at least 1 - `delta`.

    For `rows` independent rows of one law, their number fixed in advance. `sums` are, in `steps` to
    a whole, the sum of all losses, of all gains, of the squares of both, of the cubes of losses and
    of those of gains: a row that goes to the slow model adds nothing.

    A row that loses D from -1 to 1 multiplies a bet by 1 + stake (xi - D), which is 1 + stake xi
    times 1 - uD. The logarithm of this is at least -uD - (uD)^2 / 2 - |D|^3 r, where r makes both
    equal at D = 1, or at D = -1 for gains: what is left of the logarithm after two terms, divided
    by |D|^3, falls with the size of a loss, and with that of a gain.

    Examples
    --------
    >>> few, more = [30, 0, 30, 30, 0], [60, 0, 60, 60, 0]
    >>> losses_below([few, more], rows=1_000, xi=0.06, delta=0.1, steps=1)
    array([ True, False])
    """
    found = whole_numbers(sums, "sums") / float(steps) ** np.array([1, 1, 2, 3, 3])
    rate, level = tolerated_rate(xi), failure_probability(delta)
    bets = cascade_bets(whole_number(rows, "rows"), rate, level)
    stakes = np.array(bets.stakes)
    u = stakes / (1.0 + stakes * rate)
    of_losses, of_gains = np.log1p(-u) + u + u**2 / 2.0, np.log1p(u) - u + u**2 / 2.0
    each = np.stack([-u, u, -(u**2) / 2.0, of_losses, of_gains])
    whole = rows * np.log1p(stakes * rate)
    exponents, sizes = found @ each + whole, found @ np.abs(each) + whole
    exponents -= _ROUNDING * sizes + _ROUNDING_A_ROW * rows
    return is_enough(np.asarray(logsumexp(exponents, axis=-1, b=bets.shares)), level)


def _levels(counts: ArrayLike) -> tuple[Integers, Floats]:
    """Counts per level, and what the levels are."""
    found = whole_numbers(counts, "counts")
    if found.ndim == 0 or found.shape[-1] < 2:
        raise InvalidValueError(
            f"counts has the shape {found.shape}: expected a count for each of at least two levels."
        )
    last = found.shape[-1] - 1
    return found, np.arange(last + 1) / last

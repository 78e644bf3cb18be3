"""Paired tests: do losses exceed gains by less than xi, from b losses and c gains in n independent
outcomes?

An outcome D is +1 (a loss), -1 (a gain) or 0. Integers in, a verdict out; nothing here knows what
is lost or gained, nor how the outcomes were collected. Each verdict is wrong with probability at
most `delta` for every sample size and all true rates, for one question that was fixed before the
data were seen; asking several is the business of whoever calls.
"""

from __future__ import annotations

from math import ceil, log, log1p
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import (
    LARGEST_COUNT,
    failure_probability,
    is_one_of,
    together,
    whole_numbers,
)
from pacbound.stats.binomial import binomial_lower, binomial_upper
from pacbound.stats.paired_region import (
    LARGEST_SAMPLE,
    NEGLECTED_SHARE,
    SAFETY,
    SMALLEST_DELTA,
    paired_counts,
    paired_region,
    positive_rate,
    region_work,
)

PairedBound: TypeAlias = Literal["exact", "pair"]

LOSS_SHARE = 0.8
GAIN_SHARE = 0.2
"""How the pair divides delta: losses are usually the more common, and their bound the wider."""


def paired_test(
    b: ArrayLike, c: ArrayLike, n: int, *, xi: float, delta: float, bound: PairedBound = "exact"
) -> Any:
    """Whether `b` losses and `c` gains in `n` outcomes certify P(loss) - P(gain) < `xi`.

    If in truth P(loss) - P(gain) >= `xi`, the answer is True with probability at most `delta`, for
    independent outcomes of one law, `n` and 0 < `xi` < 1 fixed in advance. False does not show the
    contrary. Arrays give an array, each entry a test on its own; along a walk that stops at the
    first False all of them hold together (`pacbound.stats.sequences`).

    "exact" is the likelihood-ratio test of the trinomial law, calibrated over all nulls. From n =
    200,000 on (and for `delta` below 1e-200) it becomes "pair": an upper bound on losses minus a
    lower one on gains, which by then loses next to nothing.

    Examples
    --------
    >>> paired_test(30, 10, 2000, xi=0.02, delta=0.01)
    True
    >>> paired_test([30, 40], 10, 2000, xi=0.02, delta=0.01, bound="pair").tolist()
    [False, False]

    """
    losses, gains, size = paired_counts(b, c, n)
    rate, level = positive_rate(xi), failure_probability(delta)
    if _is_pair(bound, size, level):
        verdict = paired_upper(losses, gains, size, delta=level) <= rate
    else:
        verdict = paired_region(size, xi=rate, delta=level).accepts(losses, gains)
    return _like(losses, verdict)


def paired_test_work(n: int, *, xi: float, delta: float) -> float:
    """About how long the first exact `paired_test` with these numbers takes, as a multiple of the
    longest that is usual (`pacbound.stats.paired_region.region_work`).

    Examples
    --------
    >>> paired_test_work(2000, xi=0.02, delta=0.01) < 0.01
    True

    """
    rate, level = positive_rate(xi), failure_probability(delta)
    return 0.0 if _is_pair("exact", n, level) else region_work(n, xi=rate, delta=level)


def paired_upper(b: ArrayLike, c: ArrayLike, n: int, *, delta: float) -> NDArray[np.float64]:
    """Upper confidence bound on P(loss) - P(gain) from `b` losses and `c` gains in `n` independent
    outcomes.

    The bound is at least the true difference with probability at least 1 - `delta`, for counts at a
    threshold that was fixed in advance: at a threshold chosen by its counts it does not hold. It is
    the difference of two binomial bounds that share `delta`.

    Examples
    --------
    >>> round(float(paired_upper(30, 10, 2000, delta=0.01)), 5)
    0.02127

    """
    upper = binomial_upper(b, n, delta=LOSS_SHARE * delta)
    lower = binomial_lower(c, n, delta=GAIN_SHARE * delta)
    return np.asarray(np.nextafter(upper - lower, np.inf))


def mcnemar_test(b: ArrayLike, c: ArrayLike, *, delta: float) -> Any:
    """Whether `b` losses and `c` gains certify that losses are no more probable than gains: the
    case xi = 0 (McNemar, exact).

    If in truth P(loss) >= P(gain), the answer is True with probability at most `delta`, since b is
    then at least binomial with b + c trials and rate 1/2. No losses and no gains never pass, so a
    walk cannot start from nothing: test a coarse grid of thresholds fixed in advance, and pass
    `delta` divided by their number.

    Examples
    --------
    >>> mcnemar_test(2, 15, delta=0.01)
    True
    >>> mcnemar_test([0, 0, 0], [0, 6, 7], delta=0.01).tolist()
    [False, False, True]

    """
    losses, gains = together(b=whole_numbers(b, "b"), c=whole_numbers(c, "c"))
    # So few losses have a chance of at most delta at a rate of 1/2 if they have at a lower one.
    # SciPy's chance at 1/2 would be off by more than 1e-9 of itself from some 1e7 on, in double
    # precision; the bound allows for it.
    upper = binomial_upper(losses, losses + gains, delta=failure_probability(delta))
    return _like(losses, np.asarray(upper <= 0.5))


def labels_needed_by_walk(xi: float, *, delta: float, bound: PairedBound = "exact") -> int:
    """The number of outcomes from which on even the best sample, no loss and no gain, certifies
    `xi`.

    That is where a walk from "never" begins: with fewer outcomes it stops at once. For "exact" it
    is the least n with (1 - xi)^n <= delta, that is ln(1/delta) / -ln(1 - xi), up to the 2e-6 of
    delta that are kept for rounding; for "pair", whose losses have 0.8 delta to spend, it is the
    least n with (1 - xi)^n <= 0.8 delta, and so for "exact" beyond 200,000.

    Examples
    --------
    >>> labels_needed_by_walk(0.02, delta=1e-3)
    342
    >>> labels_needed_by_walk(0.02, delta=1e-3, bound="pair")
    353

    """
    rate, level = positive_rate(xi), failure_probability(delta)
    enough = _least_for_pair(rate, level)
    if _is_pair(bound, 0, level) or enough > LARGEST_SAMPLE + 1:
        return enough
    return _least_power(rate, level * (1.0 - SAFETY - NEGLECTED_SHARE))


def _least_power(xi: float, level: float) -> int:
    """The least n with (1 - xi)^n <= level."""
    # Rates below 1e-300 need more labels than a float can count.
    power = log1p(-max(xi, 1e-300))
    n = max(1, ceil(log(level) / power) - 1)
    return n if n * power <= log(level) else n + 1


def _least_for_pair(xi: float, delta: float) -> int:
    n = _least_power(xi, LOSS_SHARE * delta)
    while n < LARGEST_COUNT and binomial_upper(0, n, delta=LOSS_SHARE * delta) > xi:
        n += 1
    return n


def _is_pair(bound: str, n: int, delta: float) -> bool:
    if not is_one_of(bound, ("exact", "pair")):
        raise InvalidValueError(
            f"bound={bound!r} is not a paired bound: expected 'exact' or 'pair'."
        )
    return bound == "pair" or n > LARGEST_SAMPLE or delta < SMALLEST_DELTA


def _like(counts: NDArray[np.int64], verdict: NDArray[np.bool_]) -> Any:
    return bool(verdict) if counts.ndim == 0 else verdict

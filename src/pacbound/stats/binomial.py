"""Exact bounds on a probability from a count of successes and a count of trials (Clopper-Pearson).

Integers in, floats out; nothing here knows what the counts mean. Every bound fails with probability
at most `delta` for every sample size and every true rate, and is rounded outwards. That holds up to
the error of the forward function, which is measured, not proven: see below.

The inverse incomplete beta function is silently wrong in places: SciPy 1.17 has betainccinv(1000,
34505, 0.01) = 0.006, below the observed rate. So it only guesses, and what the forward function
does not confirm is searched for.

The forward function is itself trusted only where it was found accurate:

- SciPy 1.17 computes it in the compiler's long double, and where that has 64 bits or more no error
  above 5e-10 of itself was found up to 1e10 trials. Beyond, the error grows as the square root of
  the trials, to 5e-9 at 1e12, and the last step outwards covers it.
- Up to SciPy 1.16 it is computed in double precision, and later too wherever long double is no
  wider. It then errs by up to 9e-16 of itself for each of the rarer outcome, 7e-7 in all: a tail
  is confirmed only with twice that to spare.
- From 3e10 trials on it jumps, by up to 9e-4 of itself, for counts within about a thousand of one
  half. No jump was found with fewer trials or at other ratios. With more than 1e10 trials, and more
  than 1e9 of both outcomes, the bound is therefore that of Zubkov and Serov: valid without any
  forward function, and at most one success wider, which up to delta = 0.4 is below 1e-3 of `delta`.
- With more than 1e12 trials, or at levels below 1e-200, nothing was measured, and the bound is
  Chernoff's: wider, still valid.

`python -m experiments.huge_counts` compares 50,000 bounds with fifty digits: none is optimistic.

Many hypotheses are tested with one failure probability in a declared order (`fixed_sequence`), or
all at once (`bonferroni_level`, `sidak_level`). What these promise, they promise only for a list of
tests that was fixed before the data were seen: a grid, an order or a number of tests chosen by
looking at the data voids all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import takewhile
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc, betainccinv, betaincinv, ndtri

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import (
    LARGEST_COUNT,
    failure_probabilities,
    failure_probability,
    probabilities,
    successes_of_trials,
    together,
    whole_number,
    whole_numbers,
)

_Floats: TypeAlias = NDArray[np.float64]
_Bools: TypeAlias = NDArray[np.bool_]

MOST_TRIALS = 1e12
# Where the forward functions were compared with 113-bit arithmetic, and within which they are
# trusted.
LEAST_LEVEL = 1e-200

SMOOTH_TRIALS = 1e10
# With more trials than the first, and more of both outcomes than the second, the forward functions
# jump: there the normal law bounds the tail instead.
SMOOTH_COUNT = 1e9

_SAFETY = 1e-9
# A tail is confirmed only up to this share below the level: the first, or the second for each of
# the rarer outcome, whichever is more. In double precision the forward functions were found to err
# by up to 4.4e-10 for counts up to 9e5, and beyond by up to 9e-16 for each.
_SAFETY_EACH = 2e-15

# A guess is kept without further search if its tail is below the level by at most so many times
# that share.
_SLACK = 10.0

# Last step, relative. For larger counts the forward functions err as if the rate were off by a unit
# or two in the last place.
_OUTWARD = 4e-15

_MARGIN = 1e-6
_MARGIN_PER_TRIAL = 1e-15
# `binomial_cdf` errs by far less than this, relatively: it forms 1 - rate, whose rounding counts
# once for each trial, and it jumps where the forward functions do. Chances further than that from a
# level are on the side of it that they seem to be.
_JUMP = 1e-2

# Up to here the spacing of floats just below 1 changes no tail by more than 3e-10, relative.
_COARSE_TRIALS = 1e6


class _Bound(Protocol):
    @overload
    def __call__(self, successes: int, trials: int, *, delta: float) -> float: ...
    @overload
    def __call__(self, successes: ArrayLike, trials: ArrayLike, *, delta: ArrayLike) -> Any: ...


def _typed(bound: Callable[..., Any]) -> _Bound:
    """The same function, of which numbers give a number."""
    return bound


@overload
def binomial_interval(successes: int, trials: int, *, delta: float) -> tuple[float, float]: ...
@overload
def binomial_interval(
    successes: ArrayLike, trials: ArrayLike, *, delta: ArrayLike
) -> tuple[Any, Any]: ...
def binomial_interval(
    successes: ArrayLike, trials: ArrayLike, *, delta: ArrayLike
) -> tuple[Any, Any]:
    """Confidence interval for a rate (Clopper-Pearson, two-sided).

    If `successes` of `trials` independent attempts succeed, each with probability p, the interval
    contains p with probability at least 1 - `delta`: each side fails with probability at most
    `delta`/2. No attempts give [0, 1]. Arrays broadcast, `delta` too, and each interval then holds
    on its own; for all of them at once pass a corrected `delta` (see `pacbound.stats.binomial`).

    Parameters
    ----------
    successes, trials
        Whole numbers, 0 <= successes <= trials <= 2**53; arrays broadcast.
    delta
        The chance that the interval does not hold p, 0 < delta < 1; arrays broadcast too.

    Returns
    -------
    tuple of float or ndarray
        The lower end, rounded down, and the upper end, rounded up.

    Raises
    ------
    InvalidValueError
        If a count is negative or not whole, if more succeeded than were tried, if `delta` is not
        between 0 and 1, or if the shapes do not fit together.
    InvalidTypeError
        If a count or `delta` is not a number: text, booleans, None.

    Examples
    --------
    >>> lower, upper = binomial_interval(90, 100, delta=0.05)
    >>> print(f"{lower:.4f} {upper:.4f}")
    0.8238 0.9510

    """
    hits, trials_, level = _counts_and_level(successes, trials, delta)
    level = level / 2.0
    return _like(hits, _lower(*_flat(hits, trials_, level))), _like(
        hits, _upper(*_flat(hits, trials_, level))
    )


@_typed
def binomial_upper(successes: ArrayLike, trials: ArrayLike, *, delta: ArrayLike) -> Any:
    """Upper confidence bound on a rate (Clopper-Pearson).

    If `successes` of `trials` independent attempts succeed, each with probability p, the returned
    value is at least p with probability at least 1 - `delta`. No attempts give the bound 1. To
    bound an error rate, count errors. Arrays broadcast.

    Parameters
    ----------
    successes, trials
        Whole numbers, 0 <= successes <= trials <= 2**53; arrays broadcast.
    delta
        The chance that the bound is below p, 0 < delta < 1; arrays broadcast too.

    Returns
    -------
    float or ndarray
        The bound, rounded up.

    Raises
    ------
    InvalidValueError
        If a count is negative or not whole, if more succeeded than were tried, if `delta` is not
        between 0 and 1, or if the shapes do not fit together.
    InvalidTypeError
        If a count or `delta` is not a number: text, booleans, None.

    Examples
    --------
    No failure in 59 attempts is what it takes to claim 5 % at 95 % confidence:

    >>> round(binomial_upper(0, 59, delta=0.05), 4)
    0.0495

    """
    arrays = _counts_and_level(successes, trials, delta)
    return _like(arrays[0], _upper(*_flat(*arrays)))


@_typed
def binomial_lower(successes: ArrayLike, trials: ArrayLike, *, delta: ArrayLike) -> Any:
    """Lower confidence bound on a rate (Clopper-Pearson).

    If `successes` of `trials` independent attempts succeed, each with probability p, the returned
    value is at most p with probability at least 1 - `delta`. No attempts give the bound 0. Arrays
    broadcast.

    Parameters
    ----------
    successes, trials
        Whole numbers, 0 <= successes <= trials <= 2**53; arrays broadcast.
    delta
        The chance that the bound is above p, 0 < delta < 1; arrays broadcast too.

    Returns
    -------
    float or ndarray
        The bound, rounded down.

    Raises
    ------
    InvalidValueError
        If a count is negative or not whole, if more succeeded than were tried, if `delta` is not
        between 0 and 1, or if the shapes do not fit together.
    InvalidTypeError
        If a count or `delta` is not a number: text, booleans, None.

    Examples
    --------
    >>> round(binomial_lower(90, 100, delta=0.01), 4)
    0.8087

    """
    arrays = _counts_and_level(successes, trials, delta)
    return _like(arrays[0], _lower(*_flat(*arrays)))


def binomial_upper_within(
    successes: ArrayLike, trials: ArrayLike, rate: float, *, delta: ArrayLike
) -> Any:
    """Whether `binomial_upper` of these counts is at most `rate`: the same verdicts, far faster
    where there are many. Beyond delta = 1/2, where that bound can lie below what was seen, it is
    stricter: more successes than `rate` are never within it.

    The bound is at most `rate` if so few successes have a chance of at most `delta` at `rate`. That
    chance is computed once for all levels, and the bound itself only where the chance is so close
    to the level, or the counts are so large, that rounding could decide.

    Parameters
    ----------
    successes, trials
        Whole numbers, 0 <= successes <= trials; arrays broadcast.
    rate
        What the bound is compared with, 0 <= rate < 1.
    delta
        The chance that a bound is below the true rate, 0 < delta < 1; may be an array that
        broadcasts with the counts.

    Returns
    -------
    bool or ndarray of bool
        False where there were no trials.

    Raises
    ------
    InvalidValueError
        If a count is negative, not whole, or more succeeded than were tried; if a probability is
        not between 0 and 1.

    Examples
    --------
    No failure in 59 attempts is what it takes to claim 5 % at 95 % confidence:

    >>> binomial_upper_within([0, 0], [58, 59], 0.05, delta=0.05)
    array([False,  True])

    """
    hits, attempts = successes_of_trials(successes, trials)
    level = failure_probabilities(delta)
    chance = np.asarray(binomial_cdf(hits, attempts, rate))
    within = chance <= level
    k, n = hits.astype(np.float64), attempts.astype(np.float64)
    margin = _MARGIN + _MARGIN_PER_TRIAL * n + np.where(_jumping(k, n), _JUMP, 0.0)
    known = _measured(n, level) & (chance > 0.0)
    sure = known & (np.abs(chance - level) > margin * level)
    # A chance that underflows, or counts beyond what was measured: Chernoff's bound settles nearly
    # all of them, and no upper bound is below what was seen.
    with np.errstate(all="ignore"):
        apart = np.where(k > 0, n * _divergence(k / n, np.full_like(n, rate)), -n * np.log1p(-rate))
        far = (k < rate * n) & (apart * (1.0 - 1e-6) > 1.0 - np.log(level))
    seen = k > rate * n * (1.0 + 1e-12)
    within, sure = (within | far) & ~seen, sure | far | seen
    if not sure.all():
        some = np.flatnonzero(~sure.ravel())
        close = [
            np.broadcast_to(array, sure.shape).ravel()[some] for array in (hits, attempts, level)
        ]
        within = np.array(within, ndmin=1).ravel()
        within[some] = binomial_upper(close[0], close[1], delta=close[2]) <= rate
        within = within.reshape(sure.shape)
    return within if within.ndim else bool(within)


def binomial_cdf(successes: ArrayLike, trials: ArrayLike, rate: ArrayLike) -> Any:
    """P(S <= `successes`) for S binomial: the chance of so few. Not rounded towards either
    side.

    Any integer may be asked about: 0 for negative ones, 1 from `trials` on.

    Parameters
    ----------
    successes
        Whole numbers, also negative ones; arrays broadcast.
    trials
        Whole numbers from 0 to 2**53.
    rate
        The chance that one trial succeeds, 0 <= rate <= 1.

    Returns
    -------
    float or ndarray
        The probability, as SciPy computes it. Where trials exceed 3e10 and successes are near half
        of them it can be off by 1e-3 of itself: for a guarantee use the bounds above.

    Raises
    ------
    InvalidValueError
        If a count is not whole, `trials` is negative, or `rate` is not between 0 and 1.
    InvalidTypeError
        If an argument does not hold numbers.

    Examples
    --------
    >>> round(binomial_cdf(2, 10, 0.5), 6), binomial_cdf(-1, 10, 0.5), binomial_cdf(10, 10, 0.5)
    (0.054688, 0.0, 1.0)

    """
    k, n, p = _counts_and_rate(successes, trials, rate)
    inside = (k >= 0) & (k < n)
    first, second = np.where(inside, k + 1.0, 1.0), np.where(inside, n - k, 1.0)
    return _like(k, np.where(inside, betaincc(first, second, p), np.where(k < 0, 0.0, 1.0)))


def binomial_sf(successes: ArrayLike, trials: ArrayLike, rate: ArrayLike) -> Any:
    """P(S >= `successes`) for S binomial: the chance of so many. Not rounded towards either
    side.

    `successes` itself is included, unlike in `scipy.stats.binom.sf`. Any integer may be asked
    about: 1 up to zero, 0 beyond `trials`.

    Parameters
    ----------
    successes
        Whole numbers, also negative ones; arrays broadcast.
    trials
        Whole numbers from 0 to 2**53.
    rate
        The chance that one trial succeeds, 0 <= rate <= 1.

    Returns
    -------
    float or ndarray
        The probability, as SciPy computes it. Where trials exceed 3e10 and successes are near half
        of them it can be off by 1e-3 of itself: for a guarantee use the bounds above.

    Raises
    ------
    InvalidValueError
        If a count is not whole, `trials` is negative, or `rate` is not between 0 and 1.
    InvalidTypeError
        If an argument does not hold numbers.

    Examples
    --------
    >>> round(binomial_sf(8, 10, 0.5), 6), binomial_sf(0, 10, 0.5), binomial_sf(11, 10, 0.5)
    (0.054688, 1.0, 0.0)

    """
    k, n, p = _counts_and_rate(successes, trials, rate)
    inside = (k > 0) & (k <= n)
    first, second = np.where(inside, k, 1.0), np.where(inside, n - k + 1.0, 1.0)
    return _like(k, np.where(inside, betainc(first, second, p), np.where(k <= 0, 1.0, 0.0)))


def _counts_and_level(
    successes: ArrayLike, trials: ArrayLike, delta: ArrayLike
) -> tuple[NDArray[Any], ...]:
    hits, attempts = successes_of_trials(successes, trials)
    return together(successes=hits, trials=attempts, delta=failure_probabilities(delta))


def _counts_and_rate(
    successes: ArrayLike, trials: ArrayLike, rate: ArrayLike
) -> tuple[NDArray[Any], ...]:
    hits = whole_numbers(successes, "successes", least=-LARGEST_COUNT)
    return together(
        successes=hits, trials=whole_numbers(trials, "trials"), rate=probabilities(rate, "rate")
    )


def _flat(*arrays: NDArray[Any]) -> tuple[_Floats, ...]:
    return tuple(array.ravel().astype(np.float64) for array in arrays)


def _like(shape: NDArray[Any], values: _Floats) -> Any:
    return float(values.item()) if shape.ndim == 0 else values.reshape(shape.shape)


def _upper(k: _Floats, n: _Floats, level: _Floats) -> _Floats:
    # The rarer outcome is the one bounded: its rate is a small float, with all its digits.
    bound = np.ones_like(level)
    rare, common = (2.0 * k <= n) & (n > 0.0), (2.0 * k > n) & (k < n)
    # Either may be empty, and would take as long as a few counts.
    if rare.any():
        bound[rare] = _above(k[rare], n[rare], level[rare])
    if common.any():
        bound[common] = np.nextafter(1.0 - _below((n - k)[common], n[common], level[common]), 2.0)
    return np.minimum(bound, 1.0)


def _lower(k: _Floats, n: _Floats, level: _Floats) -> _Floats:
    bound = np.zeros_like(level)
    common = 2.0 * k > n
    if common.any():
        bound[common] = np.nextafter(1.0 - _above((n - k)[common], n[common], level[common]), -1.0)
    # A small bound on a common outcome (few trials, tiny level) would be all rounding error if it
    # were taken as a complement.
    direct = (k > 0.0) & (bound < 0.5)
    if direct.any():
        bound[direct] = _below(k[direct], n[direct], level[direct])
    return np.maximum(bound, 0.0)


def _above(k: _Floats, n: _Floats, level: _Floats) -> _Floats:
    """A rate at which so few as k of n have probability at most `level`, for 0 <= k <= n/2 and n >
    0.
    """
    with np.errstate(all="ignore"):
        bound = np.where(
            k == 0.0,
            _above_none(n, level),
            betainccinv(k + 1.0, n - k, level * (1.0 - 2.0 * _safety(k, n))),
        )
        tail = _chance_of_so_few(k, n, bound)
    refused = np.flatnonzero(~((k == 0.0) | (_kept(tail, k, n, level) & _trusted(k, n, level))))
    if refused.size:
        bound[refused] = _search(_chance_of_so_few, k[refused], n[refused], level[refused], end=1.0)
    return np.minimum(np.nextafter(bound + _OUTWARD * bound * (1.0 - bound), 2.0), 1.0)


def _above_none(n: _Floats, level: _Floats) -> _Floats:
    """The same for k = 0, in closed form: 1 - level^(1/n), from the side that keeps its digits."""
    exponent = np.log(level) / n
    return np.where(exponent > -0.5, -np.expm1(exponent), 1.0 - np.exp(exponent) * (1.0 - 1e-12))


def _below(k: _Floats, n: _Floats, level: _Floats) -> _Floats:
    """A rate at which so many as k of n have probability at most `level`, for 0 < k <= n."""
    with np.errstate(all="ignore"):
        bound = np.asarray(betaincinv(k, n - k + 1.0, level * (1.0 - 2.0 * _safety(k, n))))
        tail = _chance_of_so_many(k, n, bound)
    refused = np.flatnonzero(~(_kept(tail, k, n, level) & _trusted(k, n, level)))
    if refused.size:
        bound[refused] = _search(
            _chance_of_so_many, k[refused], n[refused], level[refused], end=0.0
        )
    return np.maximum(np.nextafter(bound - _OUTWARD * bound * (1.0 - bound), -1.0), 0.0)


def _safety(k: _Floats, n: _Floats) -> _Floats:
    return np.maximum(_SAFETY, _SAFETY_EACH * np.minimum(k, n - k))


def _confirmed(tail: _Floats, k: _Floats, n: _Floats, level: _Floats) -> _Bools:
    # A tail of 0 is an underflow and confirms nothing; NaN fails both comparisons.
    return (tail > 0.0) & (tail <= level * (1.0 - _safety(k, n)))


def _kept(tail: _Floats, k: _Floats, n: _Floats, level: _Floats) -> _Bools:
    """Whether a guess is confirmed by its tail, and near enough to the level."""
    near = tail >= level * (1.0 - _SLACK * _safety(k, n))
    return _confirmed(tail, k, n, level) & near


def _measured(n: _Floats, level: _Floats) -> _Bools:
    return (n <= MOST_TRIALS) & (level >= LEAST_LEVEL)


def _jumping(k: _Floats, n: _Floats) -> _Bools:
    return (n > SMOOTH_TRIALS) & (np.minimum(k, n - k) > SMOOTH_COUNT)


def _trusted(k: _Floats, n: _Floats, level: _Floats) -> _Bools:
    return _measured(n, level) & ~_jumping(k, n)


def _chance_of_so_many(k: _Floats, n: _Floats, rate: _Floats) -> _Floats:
    tail = np.asarray(betainc(k, n - k + 1.0, rate))
    # Beyond the median it is computed from 1 - rate, whose rounding shows in it if n is large:
    # round that to the safe side.
    likely = np.flatnonzero(tail > 0.5)
    if likely.size:
        rest = np.nextafter(1.0 - rate[likely], -1.0)
        tail[likely] = 1.0 - betainc((n - k)[likely] + 1.0, k[likely], rest)
    return tail


def _chance_of_so_few(k: _Floats, n: _Floats, rate: _Floats) -> _Floats:
    """P(S <= k) at `rate` or, where they differ, a little above it.

    betaincc(k + 1, n - k, rate) would have to form 1 - rate, whose rounding costs a relative n *
    1e-16 wherever the C compiler's long double is a plain double. So the complement is rounded up
    here and given to betainc, which then makes no error in it.
    """
    complement = np.nextafter(1.0 - rate, 2.0)
    tail = np.asarray(betainc(n - k, k + 1.0, np.minimum(complement, 1.0)))
    many = (n > _COARSE_TRIALS) & (rate < 0.5)
    if many.any():
        tail[many] = _extrapolated(tail[many], k[many], n[many], rate[many], complement[many])
    return tail


def _extrapolated(
    tail: _Floats, k: _Floats, n: _Floats, rate: _Floats, complement: _Floats
) -> _Floats:
    # The rate lies between two floats of its complement. A beta density with parameters of at least
    # 1 is log-concave, hence so is its tail, which therefore lies below the line, in logarithms,
    # through two points to the left.
    before = np.nextafter(complement, 2.0)
    steps = (rate - (1.0 - complement)) / (before - complement)
    ratio = tail / np.asarray(betainc(n - k, k + 1.0, np.minimum(before, 1.0)))
    return np.where(before < 1.0, tail * np.minimum(ratio, 1.0) ** steps, 1.0)


def _search(
    chance: Callable[[_Floats, _Floats, _Floats], _Floats],
    k: _Floats,
    n: _Floats,
    level: _Floats,
    *,
    end: float,
) -> _Floats:
    """The confirmed rate nearest to k/n on the side of `end`; where nothing can be confirmed, the
    normal law's or Chernoff's.
    """
    with np.errstate(all="ignore"):
        # Rounding errors of the exponent are below 1e-6 of it, or of no weight against what
        # Chernoff's bound gives away.
        bound = _far_enough(k, n, -np.log(level) * (1.0 + 1e-6), end)
        some = np.flatnonzero(_measured(n, level) & _jumping(k, n))
        bound[some] = _normal(k[some], n[some], level[some], end)
        some = np.flatnonzero(_trusted(k, n, level))
        k, n, level = k[some], n[some], level[some]
        bound[some] = _halve(
            lambda rate: _confirmed(chance(k, n, rate), k, n, level), bound[some], k / n
        )
    return bound


def _far_enough(k: _Floats, n: _Floats, exponent: _Floats, end: float) -> _Floats:
    """The rate nearest to k/n, on the side of `end`, from which k/n diverges by `exponent` / n."""
    return _halve(
        lambda rate: n * _divergence(k / n, rate) >= exponent, np.full_like(n, end), k / n
    )


def _normal(k: _Floats, n: _Floats, level: _Floats, end: float) -> _Floats:
    """The bound of Zubkov and Serov (2013): for 0 <= k < n - 1 and (k + 1)/n below `rate`, so few
    as k of n have probability at most Phi(-sqrt(2 n D)), D the divergence of (k + 1)/n from `rate`;
    and so for so many, mirrored.
    """
    # It says nothing about tails above one half, where the bound for one half is valid and wider.
    quantile = ndtri(np.minimum(level, 0.5))
    # The exponent errs by less than 1e-8, and relatively by less than 1e-12: counts are large.
    enough = quantile**2 / 2.0 * (1.0 + 1e-9) + 1e-6
    return _far_enough(k + (1.0 if end else -1.0), n, enough, end)


def _halve(holds: Callable[[_Floats], _Bools], sound: _Floats, unsound: _Floats) -> _Floats:
    """Between a `sound` rate and an `unsound` one, a rate that `holds` next to one that does not;
    `sound` itself if none does.

    Halves the number of floats in between, by their bit patterns: 62 steps at most, to the last
    digit, however small the rate.
    """
    good, bad = sound.view(np.int64), unsound.view(np.int64)
    while (apart := np.abs(good - bad) > 1).any():
        middle = (good + bad) // 2
        passes = holds(middle.view(np.float64))
        good, bad = np.where(apart & passes, middle, good), np.where(apart & ~passes, middle, bad)
    return good.view(np.float64)


def _divergence(q: _Floats, p: _Floats) -> _Floats:
    """Kullback-Leibler divergence of a coin of rate q from one of rate p, in a form that keeps its
    digits for p near q.
    """
    near = q * np.log1p((q - p) / p)
    far = q * (np.log(q) - np.log(p))
    rest = np.where(q < 1.0, (1.0 - q) * np.log1p((p - q) / (1.0 - p)), 0.0)
    return np.where(2.0 * p < q, far, near) + rest


def fixed_sequence(passes: Iterable[bool]) -> int:
    """How many tests pass before the first failure, in the declared order: these may all be
    claimed.

    If each test on its own passes a false claim with probability at most delta, then any false
    claim is among the returned ones with probability at most delta: no correction is due, because
    the first false claim in the order must pass its own test before any other can. The order must
    be fixed in advance; nothing is required of how the tests depend on each other.

    A generator is not asked again after the first failure.

    Parameters
    ----------
    passes
        Booleans in the declared order.

    Returns
    -------
    int
        The number of tests before the first failure; 0 if the first one fails: nothing is claimed.

    Raises
    ------
    InvalidTypeError
        If an outcome is not True or False: a p-value, say.

    Examples
    --------
    >>> fixed_sequence([True, True, False, True])
    2

    """
    if not isinstance(passes, Iterable) or isinstance(passes, (str, bytes)):
        raise InvalidTypeError(
            f"passes={passes!r} is not a sequence of outcomes: expected booleans in the declared "
            "order."
        )
    return sum(1 for _ in takewhile(_truth, passes))


def bonferroni_level(delta: float, tests: int) -> float:
    """The level at which each of `tests` tests is run so that all hold together with probability at
    least 1 - `delta`.

    Valid however the tests depend on each other. Rounded down: `tests` times the level is at most
    `delta`.

    Parameters
    ----------
    delta
        The chance that any of the tests is wrong, 0 < delta < 1.
    tests
        How many tests there are, at least 1; fixed before the data were seen.

    Returns
    -------
    float
        The level of each test.

    Raises
    ------
    InvalidValueError
        If `delta` is not between 0 and 1, if `tests` is not a whole number of at least 1, or if
        the level is too small for a float.

    Examples
    --------
    >>> bonferroni_level(0.05, 20)
    0.0025

    """
    total, count = failure_probability(delta), whole_number(tests, "tests", least=1)
    level = total / count
    if Fraction(level) * count > Fraction(total):
        level = math.nextafter(level, 0.0)
    return _positive(level, total, count)


def sidak_level(delta: float, tests: int) -> float:
    """The level at which each of `tests` *independent* tests is run so that all hold together with
    probability >= 1 - `delta`.

    Valid for independent tests, such as those of disjoint bins given their counts; otherwise use
    `bonferroni_level`, which is never larger. Rounded down: (1 - level)^`tests` is at least 1 -
    `delta`.

    Parameters
    ----------
    delta
        The chance that any of the tests is wrong, 0 < delta < 1.
    tests
        How many tests there are, at least 1; fixed before the data were seen.

    Returns
    -------
    float
        The level of each test.

    Raises
    ------
    InvalidValueError
        If `delta` is not between 0 and 1, if `tests` is not a whole number of at least 1, or if
        the level is too small for a float.

    Examples
    --------
    >>> round(sidak_level(0.05, 20), 6)
    0.002561

    """
    total, count = failure_probability(delta), whole_number(tests, "tests", least=1)
    # Three roundings, each of two units in the last place at most; the step down covers them, also
    # among subnormal numbers.
    level = math.nextafter(-math.expm1(math.log1p(-total) / count) * (1.0 - 2e-15), 0.0)
    # (1 - delta/tests)^tests >= 1 - delta (Bernoulli), so the larger of the two is as valid.
    return max(level, bonferroni_level(total, count))


def _truth(outcome: Any) -> bool:
    # Numbers are refused because a p-value, or an index, would read as a pass.
    if isinstance(outcome, np.ndarray) and outcome.ndim == 0:
        outcome = outcome[()]
    if not isinstance(outcome, (bool, np.bool_)):
        raise InvalidTypeError(
            f"{outcome!r} is not the outcome of a test: expected True or False. Compare p-values "
            "with the level."
        )
    return bool(outcome)


def _positive(level: float, delta: float, tests: int) -> float:
    if level == 0.0:
        raise InvalidValueError(
            f"delta={delta} divided among {tests} tests is too small for a float. Pass a larger "
            "delta."
        )
    return level

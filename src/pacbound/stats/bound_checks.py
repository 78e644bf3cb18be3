"""Whether a number is the binomial bound of a count, whoever computed it.

Bounds that were computed elsewhere, by another SciPy, may differ in their last digits. So a bound
is judged by its tail: an upper bound u of k successes in n trials is accepted if P(S <= k) at the
rate u is at most the level, and two floats further in at least (1 - 2e-3) of it. Lower bounds are
their mirror image. Where `pacbound.stats.binomial` uses Chernoff's bound, exp(-n D) stands in place
of the tail, D being the divergence of k/n from u.

Tails are summed in decimal arithmetic, so that nobody has to trust a special function here.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from math import nextafter

import numpy as np
from numpy.typing import NDArray

from pacbound.stats.binomial import LEAST_LEVEL, MOST_TRIALS, SMOOTH_COUNT, SMOOTH_TRIALS

WIDE = Decimal("2e-3")
"""The share of its level that a bound may leave unused."""

MOST_TERMS = 10**8
"""Terms of tails that are summed for one call, some minutes. Bounds that are left are refused."""

_CONTEXT = Context(prec=45, Emax=MAX_EMAX, Emin=MIN_EMIN)
_ROUNDING = Decimal("1e-25")
"""More than the share of itself that a tail below can be off by."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def are_upper_bounds(
    bounds: Floats, successes: Integers, trials: Integers, level: Floats
) -> NDArray[np.bool_]:
    """Which `bounds` are upper bounds at their level, as the module says.

    Parameters
    ----------
    bounds, successes, trials, level
        One of each for every bound; 0 <= bounds <= 1.

    Returns
    -------
    ndarray of bool
        True where the bound is one.

    Examples
    --------
    >>> from pacbound.stats.binomial import binomial_upper
    >>> bound = binomial_upper(3, 40, delta=0.01)
    >>> moved = np.array([bound, bound * (1 - 1e-7), bound * 1.001])
    >>> are_upper_bounds(moved, np.full(3, 3), np.full(3, 40), np.full(3, 0.01)).tolist()
    [True, False, False]

    """
    judge, found = _Judge(), []
    with localcontext(_CONTEXT):
        for bound, hits, attempts, chance in _together(bounds, successes, trials, level):
            inner = nextafter(nextafter(bound, 0.0), 0.0)
            rates = [(Decimal(rate), 1 - Decimal(rate)) for rate in (bound, inner)]
            found.append(judge.accepts(hits, attempts, Decimal(chance), *rates))
    return np.array(found, dtype=np.bool_)


def are_lower_bounds(
    bounds: Floats, successes: Integers, trials: Integers, level: Floats
) -> NDArray[np.bool_]:
    """Which `bounds` are lower bounds: the mirror image of `are_upper_bounds`.

    Examples
    --------
    >>> from pacbound.stats.binomial import binomial_lower
    >>> bound = binomial_lower(37, 40, delta=0.01)
    >>> moved = np.array([bound, bound * (1 + 1e-7)])
    >>> are_lower_bounds(moved, np.full(2, 37), np.full(2, 40), np.full(2, 0.01)).tolist()
    [True, False]

    """
    judge, found = _Judge(), []
    with localcontext(_CONTEXT):
        for bound, hits, attempts, chance in _together(bounds, successes, trials, level):
            inner = nextafter(nextafter(bound, 1.0), 1.0)
            rates = [(1 - Decimal(rate), Decimal(rate)) for rate in (bound, inner)]
            found.append(judge.accepts(attempts - hits, attempts, Decimal(chance), *rates))
    return np.array(found, dtype=np.bool_)


def _together(
    bounds: Floats, successes: Integers, trials: Integers, level: Floats
) -> zip[tuple[float, int, int, float]]:
    columns = bounds, successes, trials, level
    return zip(*(column.tolist() for column in columns), strict=True)


class _Judge:
    """Judges bounds as long as there are terms left to sum."""

    def __init__(self) -> None:
        self.terms = MOST_TERMS

    def accepts(
        self,
        k: int,
        n: int,
        level: Decimal,
        outer: tuple[Decimal, Decimal],
        inner: tuple[Decimal, Decimal],
    ) -> bool:
        """Whether so few as `k` of `n` have a chance of at most `level` at the rate `outer`, and of
        at least (1 - WIDE) times that at the rate `inner`; each is a rate and its complement.
        """
        if k == n:
            return outer[0] == 1
        chernoff = n > MOST_TRIALS or level < Decimal(LEAST_LEVEL) * (1 + Decimal("1e-12"))
        if n <= MOST_TRIALS and level >= Decimal(LEAST_LEVEL):
            jumps = n > SMOOTH_TRIALS and min(k, n - k) > SMOOTH_COUNT
            used = min(level, Decimal("0.5")) if jumps else level
            chance = self._so_few(k, n, *outer)
            if chance <= used * (1 - _ROUNDING):
                near = used * (1 - WIDE)
                # Beyond a level of one half bounds may lie below what was seen, and need not.
                seen = inner[0] * n <= k * (1 + Decimal("1e-14"))
                if seen or chance > near or self._so_few(k, n, *inner) > near:
                    return True
        if not chernoff or outer[0] * n <= k:
            return False
        enough, near = -level.ln(), -(1 - WIDE).ln()
        inside = inner[0] * n <= k or _divergence(k, n, *inner) <= enough + near
        return _divergence(k, n, *outer) >= enough and inside

    def _so_few(self, k: int, n: int, rate: Decimal, rest: Decimal) -> Decimal:
        """P(S <= k) of n trials: the chance of k, times a sum that begins with 1."""
        if rest <= 0:
            return Decimal(0)
        if rate <= 0:
            return Decimal(1)
        if k > n * rate:
            # The rest of the law falls from k + 1 on.
            return 1 - self._so_few(n - k - 1, n, rest, rate)
        odds, total, term = rest / rate, Decimal(1), Decimal(1)
        for i in range(k, 0, -1):
            ratio = odds * i / (n - i + 1)
            term *= ratio
            total += term
            self.terms -= 1
            if term * ratio < total * (1 - ratio) * Decimal("1e-30"):
                break
            if self.terms < 0:
                return Decimal(1)
        ways = _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)
        return total * (ways + k * rate.ln() + (n - k) * rest.ln()).exp()


def _divergence(k: int, n: int, rate: Decimal, rest: Decimal) -> Decimal:
    """N D(k/n, rate), for k below n."""
    if rest <= 0 or (rate <= 0 and k):
        return Decimal("inf")
    seen = k * (k / (n * rate)).ln() if k else Decimal(0)
    return seen + (n - k) * ((n - k) / (n * rest)).ln()


def _log_factorial(n: int) -> Decimal:
    """Ln n!, by Stirling's series from a number on that makes its first missing term vanish."""
    if n < 2:
        return Decimal(0)
    x, product = Decimal(n), Decimal(1)
    while x < 2000:
        x += 1
        product *= x
    terms = ((12, 1), (-360, 3), (1260, 5), (-1680, 7), (1188, 9))
    series = sum((1 / (divisor * x**power) for divisor, power in terms), Decimal(0))
    return (x + Decimal("0.5")) * x.ln() - x + (2 * _PI).ln() / 2 + series - product.ln()


_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097")

"""Binomial tails to fifty digits, by a method that shares nothing with the library: the sum of the
terms, from the largest on.

mpmath's own betainc cancels, or takes minutes, at the sizes tested here.
"""

from __future__ import annotations

import mpmath
from mpmath import mpf

DIGITS = 50


def chance_of_so_few(successes: int, trials: int, rate: float) -> mpf:
    """P(S <= successes), overestimated by at most 1e-14 of itself."""
    with mpmath.workdps(DIGITS):
        return _sum_from(successes, trials, mpf(rate), 1 - mpf(rate))


def chance_of_so_many(successes: int, trials: int, rate: float) -> mpf:
    """P(S >= successes), overestimated by at most 1e-14 of itself."""
    with mpmath.workdps(DIGITS):
        return _sum_from(trials - successes, trials, 1 - mpf(rate), mpf(rate))


def _sum_from(k: int, n: int, p: mpf, q: mpf) -> mpf:
    if k >= n or p == 0:
        return mpf(1)
    if k < 0 or q == 0:
        return mpf(0)
    odds, term, total = q / p, mpf(1), mpf(1)
    for j in range(k, 0, -1):
        ratio = odds * j / (n - j + 1)
        term *= ratio
        total += term
        # The ratios fall from here on, so that what remains is less than a geometric series.
        if ratio < 1 and term < (1 - ratio) * total * mpf("1e-14"):
            total += term / (1 - ratio)
            break
    return total * mpmath.exp(_log_weight(k, n, p, q))


def _log_weight(k: int, n: int, p: mpf, q: mpf) -> mpf:
    choices = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
    return choices + k * mpmath.log(p) + (n - k) * mpmath.log(q)

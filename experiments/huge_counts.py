"""Whether bounds from huge counts are ever optimistic: `python -m experiments.huge_counts`.

From 3e10 trials on, SciPy's incomplete beta function jumps for counts near one half. Both bounds
are compared with fifty digits at random counts of 10^9 to 10^12 trials, most of them where it
jumps, the others at its neighbours. Prints the figures of docs/statistics.md. The 50,000 cases take
20 minutes or more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import mpmath
import numpy as np
import scipy
from mpmath import mpf
from scipy.special import betainc, betaincc

from pacbound import binomial_lower, binomial_upper

DIGITS = 50
_NODES = 32
_PARTS = 2
_NEGLECTED = 45
"""What lies beyond exp(-45) of the first value of the integrand is left out."""

Counts: TypeAlias = tuple[int, int]
Draw: TypeAlias = Callable[[np.random.Generator, int], int]


def tail(successes: int, trials: int, rate: mpf) -> mpf:
    """P(S >= successes) for a `rate` below successes / trials: the integral of the beta density
    below it, by Gauss's rule, to 1e-12 of itself.

    The sum of the terms, which the tests use for smaller counts, has millions of them here.
    """
    more, fewer, rest = successes - 1, trials - successes, 1 - rate
    spread = mpmath.sqrt(rate * rest / trials)
    slope = max((more / rate - fewer / rest) * spread, mpf(0))
    reach = min(spread * (mpmath.sqrt(slope**2 + 2 * _NEGLECTED) - slope), rate)
    half = reach / (2 * _PARTS)
    total = mpf(0)
    for part in range(_PARTS):
        for place, weight in _gauss():
            down = half * (2 * part + 1 + place)
            total += weight * mpmath.exp(
                more * mpmath.log1p(-down / rate) + fewer * mpmath.log1p(down / rest)
            )
    scale = mpmath.loggamma(trials + 1) - mpmath.loggamma(successes) - mpmath.loggamma(fewer + 1)
    return total * half * mpmath.exp(scale + more * mpmath.log(rate) + fewer * mpmath.log(rest))


@cache
def _gauss() -> list[tuple[mpf, mpf]]:
    """Places and weights of Gauss's rule on [-1, 1], to fifty digits by Newton's method."""
    found = []
    for start in np.polynomial.legendre.leggauss(_NODES)[0]:
        x, slope = mpf(float(start)), mpf(1)
        for _ in range(4):
            before, now = mpf(1), x
            for degree in range(2, _NODES + 1):
                before, now = now, ((2 * degree - 1) * x * now - (degree - 1) * before) / degree
            slope = _NODES * (x * now - before) / (x * x - 1)
            x -= now / slope
        found.append((x, 2 / ((1 - x * x) * slope**2)))
    return found


def excess(successes: int, trials: int, delta: float) -> tuple[float, float, bool]:
    """By how much the tails at the lower and at the upper bound exceed `delta`, relative to it (a
    positive one is an optimistic bound), and whether SciPy errs by more than 1e-7 at either.
    """
    lower = binomial_lower(successes, trials, delta=delta)
    upper = binomial_upper(successes, trials, delta=delta)
    with mpmath.workdps(DIGITS):
        many = tail(successes, trials, mpf(lower))
        few = tail(trials - successes, trials, 1 - mpf(upper))
        off = max(
            abs(betainc(successes, trials - successes + 1, lower) / many - 1),
            abs(betainc(trials - successes, successes + 1, 1 - upper) / few - 1)
            if upper > 0.5
            else abs(betaincc(successes + 1, trials - successes, upper) / few - 1),
        )
        return float(many / mpf(delta) - 1), float(few / mpf(delta) - 1), bool(off > 1e-7)


def _near(ratio: float, steps: int) -> Draw:
    return lambda rng, n: round(n * ratio) + int(rng.integers(-steps, steps + 1))


PLACES: dict[str, tuple[float, Draw]] = {
    "one half, within 20": (0.6, _near(0.5, 20)),
    "one half, within 1,000": (0.08, _near(0.5, 1000)),
    "one half, within a deviation": (0.04, lambda rng, n: round(n / 2 + rng.normal() * n**0.5 / 2)),
    "1/3, 1/4, 1/5, 1/8, 1/10, within 20": (
        0.08,
        lambda rng, n: _near(1 / float(rng.choice([3, 4, 5, 8, 10])), 20)(rng, n),
    ),
    "any ratio": (0.06, lambda rng, n: round(n * rng.uniform(0.001, 0.999))),
    "1,000 to half, log-uniform": (
        0.08,
        lambda rng, n: round(float(np.exp(rng.uniform(np.log(1000), np.log(n / 2))))),
    ),
    "998 to 1,001": (0.06, lambda rng, _: int(rng.integers(998, 1002))),
}
"""Where successes are drawn, each with its share of the cases."""


def cases(count: int, seed: int) -> list[tuple[str, int, int, float]]:
    """Where, successes, trials and delta of `count` random cases."""
    rng = np.random.default_rng(seed)
    shares = [share for share, _ in PLACES.values()]
    drawn = []
    for place in rng.choice(list(PLACES), size=count, p=shares):
        least = 3e10 if rng.random() < 0.85 else 1e9
        n = int(np.exp(rng.uniform(np.log(least), np.log(1e12))))
        k = PLACES[place][1](rng, n)
        k = n - k if rng.random() < 0.5 else k
        tiny = rng.random() < 0.5
        drawn.append((str(place), k, n, float(10 ** rng.uniform(-200 if tiny else -12, -0.4))))
    return drawn


def main(count: int = 50_000, seed: int = 0) -> None:
    """Print a line for each place."""
    found: dict[str, list[tuple[float, float, bool]]] = {place: [] for place in PLACES}
    for place, k, n, delta in cases(count, seed):
        found[place].append(excess(k, n, delta))
    print(f"SciPy {scipy.__version__}, {count:,} counts of 10^9 to 10^12 trials, both bounds")
    print(f"{'successes near':36} {'counts':>7} {'SciPy off':>10} {'optimistic':>11}  widest")
    for place, results in found.items():
        both = np.array([result[:2] for result in results])
        off = sum(result[2] for result in results)
        print(
            f"{place:36} {len(both):7} {off:10} {int((both > 0).sum()):11}  "
            f"{-both.min():.1e} of delta"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

"""Whether bounds from huge counts are ever optimistic: `python -m experiments.huge_counts`.

From 3e10 trials on, SciPy's incomplete beta function jumps for counts near one half. Both bounds
are compared with fifty digits at random counts of 10^9 to 10^12 trials, most of them where it
jumps, the others at its neighbours. Prints the figures of docs/proofs.md. The 50,000 cases take
a few minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import mpmath
import numpy as np
import scipy
from mpmath import mpf
from numpy.typing import NDArray
from scipy.special import betainc, betaincc

from pacbound import binomial_lower, binomial_upper

DIGITS = 50
_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_PARTS = 4
_NEGLECTED = 45
"""What lies beyond exp(-45) of the first value of the integrand is left out."""

Case: TypeAlias = tuple[str, int, int, float]
Draw: TypeAlias = Callable[[np.random.Generator, int], int]


def tail(successes: int, trials: int, rate: mpf) -> mpf:
    """P(S >= successes) for a `rate` below successes / trials, to 1e-12 of itself: the integral of
    the beta density below the rate, by Gauss's rule.

    All that cancels is computed to fifty digits: the density at the rate, and its slope there. What
    remains is an integral of positive values that fall from 1, for which floats will do. The sum of
    the terms, which the tests use for smaller counts, has millions of them here.
    """
    more, fewer, rest = successes - 1, trials - successes, 1 - rate
    slope = float(more / rate - fewer / rest)
    spread = float(mpmath.sqrt(rate * rest / trials))
    fall = max(slope * spread, 0.0)
    reach = min(spread * (np.sqrt(fall**2 + 2 * _NEGLECTED) - fall), float(rate))
    down = (np.arange(_PARTS)[:, None] + (1.0 + _PLACES) / 2.0) * (reach / _PARTS)
    curved = more * _beyond_linear(-down / float(rate)) + fewer * _beyond_linear(down / float(rest))
    integral = float((np.exp(-slope * down - curved) @ _WEIGHTS).sum()) * reach / (2 * _PARTS)
    scale = mpmath.loggamma(trials + 1) - mpmath.loggamma(successes) - mpmath.loggamma(fewer + 1)
    return integral * mpmath.exp(scale + more * mpmath.log(rate) + fewer * mpmath.log(rest))


def _beyond_linear(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """x - log(1 + x), with all its digits for small x."""
    series = sum((-1.0) ** power * x**power / power for power in range(20, 1, -1))
    return np.asarray(np.where(np.abs(x) < 0.05, series, x - np.log1p(x)))


@dataclass(frozen=True)
class Excess:
    """By how much the tails at the lower and the upper bound exceed delta, relative to it: a
    positive one is an optimistic bound. And whether SciPy's tail is off by 1e-7 at either.
    """

    many: float
    few: float
    scipy_off: bool


def excesses(drawn: Sequence[Case]) -> Iterator[Excess]:
    """What the bounds of each case are worth."""
    successes, trials, deltas = (np.array([case[i] for case in drawn]) for i in (1, 2, 3))
    lowers = binomial_lower(successes, trials, delta=deltas).tolist()
    uppers = binomial_upper(successes, trials, delta=deltas).tolist()
    for (_, k, n, delta), lower, upper in zip(drawn, lowers, uppers, strict=True):
        with mpmath.workdps(DIGITS):
            many, few = tail(k, n, mpf(lower)), tail(n - k, n, 1 - mpf(upper))
            ratios = betainc(k, n - k + 1, lower) / many, betaincc(k + 1, n - k, upper) / few
            off = any(abs(ratio - 1) > 1e-7 for ratio in ratios)
            yield Excess(float(many / mpf(delta) - 1), float(few / mpf(delta) - 1), off)


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


def cases(count: int, seed: int) -> list[Case]:
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
    drawn = cases(count, seed)
    found: dict[str, list[Excess]] = {place: [] for place in PLACES}
    for case, excess in zip(drawn, excesses(drawn), strict=True):
        found[case[0]].append(excess)
    print(f"SciPy {scipy.__version__}, {count:,} counts of 10^9 to 10^12 trials, both bounds")
    print(f"{'successes near':36} {'counts':>7} {'SciPy off':>10} {'optimistic':>11}  widest")
    for place, results in found.items():
        both = np.array([(result.many, result.few) for result in results])
        off = sum(result.scipy_off for result in results)
        print(
            f"{place:36} {len(both):7} {off:10} {int((both > 0).sum()):11}  "
            f"{-both.min():.1e} of delta"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

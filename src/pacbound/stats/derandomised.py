"""Paired tests of graded differences on few levels, by all tosses of coins at once.

A difference D from -1 to 1 on a few levels is rounded to -1, 0 or 1 by a coin that keeps its mean:
to its sign with probability |D|, else to 0. Tossed outcomes are tested by a region of losses and
gains (`pacbound.stats.paired`) whose chance is at most gamma delta wherever the mean is xi or more.
Nobody tosses: the chance over all coins, given the grades, that the counts lie in the region is a
finite sum. It passes if that chance is at least gamma. Its mean over the grades is at most gamma
delta where the mean difference is xi or more, so by Markov's inequality it reaches gamma with
probability at most delta. The chance falls as any difference rises, since the region is a
staircase, and so one that is not known counts as the largest that it can be.

Given the grades, losses and gains are independent sums of binomials, one for each level. Each is
summed over all but a share of 2e-16 of its law, which only lowers the chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from pacbound.stats.arguments import whole_numbers

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Chances are exact to much less than this, by which they must exceed what is asked.
_BEYOND: Final = 1e-9
# So many standard deviations are summed, and so many counts.
_SPREAD: Final = 9.0
_AT_LEAST: Final = 40


def chance_of_region(differences: ArrayLike, bmax: Integers) -> float:
    """The chance over all coins that losses b and gains c lie in {b <= bmax(c)}, from below.

    `differences[k]` rows have the difference k/M - 1, k from 0 to 2 M; `bmax` goes on as it ends.

    Examples
    --------
    Of ten rows that lose one half, at most four become losses with a chance of 0.377:

    >>> round(chance_of_region([0, 0, 0, 10, 0], np.array([4])), 3)
    0.377
    """
    counts = whole_numbers(differences, "differences")
    steps = (counts.size - 1) // 2
    shares = np.arange(1, steps + 1) / steps
    least, losses = _sum_of_binomials(counts[steps + 1 :].tolist(), shares)
    first, gains = _sum_of_binomials(counts[:steps][::-1].tolist(), shares)
    heights = bmax[np.minimum(first + np.arange(gains.size), bmax.size - 1)]
    below = np.concatenate([[0.0], np.cumsum(losses)])
    places = np.clip(heights - least + 1, 0, losses.size)
    return float(gains @ below[places])


def is_likely(differences: ArrayLike, bmax: Integers, chance: float) -> bool:
    """Whether that chance is at least so large for certain."""
    return chance_of_region(differences, bmax) >= chance + _BEYOND


def _sum_of_binomials(trials: Sequence[int], rates: Floats) -> tuple[int, Floats]:
    """The law of a sum of independent binomials: its first count, and the chances from there on."""
    parts = [_binomial(n, p) for n, p in zip(trials, rates.tolist(), strict=True) if n]
    return reduce(_added, parts, (0, np.ones(1)))


def _added(one: tuple[int, Any], other: tuple[int, Any]) -> tuple[int, Floats]:
    first, law = one[0] + other[0], np.convolve(one[1], other[1])
    places = np.arange(law.size)
    mean = law @ places / law.sum()
    reach = _SPREAD * np.sqrt(law @ (places - mean) ** 2 / law.sum()) + _AT_LEAST
    low, high = max(0, int(mean - reach)), int(mean + reach) + 1
    return first + low, law[low:high]


def _binomial(n: int, p: float) -> tuple[int, Floats]:
    if p == 1.0:
        return n, np.ones(1)
    reach = _SPREAD * np.sqrt(n * p * (1.0 - p)) + _AT_LEAST
    k = np.arange(max(0, int(n * p - reach)), min(n, int(n * p + reach)) + 1)
    ways = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    chances = np.exp(ways + k * np.log(p) + (n - k) * np.log1p(-p))
    return int(k[0]), chances / max(chances.sum(), 1.0)

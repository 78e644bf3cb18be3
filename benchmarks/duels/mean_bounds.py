"""Tests of "the mean is at least xi" for values in [0, 1], each written from its paper.

Each says whether the upper bound on the mean of `values`, at level delta, is at most xi.
"""

from __future__ import annotations

from math import ceil, e, exp, log, sqrt
from typing import Any

import numpy as np
from scipy.special import bdtr, ndtri, xlogy

_CAP = 0.75
"""The largest share of the wealth that a bet may lose, as Waudby-Smith and Ramdas have it."""


def betting(values: Any, *, xi: float, delta: float) -> bool:
    """By betting (Waudby-Smith and Ramdas 2024, one-sided, with the bets that they suggest).

    The bound is at most xi iff the wealth of bets on a mean below xi reaches 1 / delta at some
    time. It is enough to look at the mean xi itself, since the wealth grows with the mean that is
    bet against.
    """
    count = len(values)
    times = np.arange(2, count + 2)
    means = (0.5 + np.cumsum(values)) / times
    variances = (0.25 + np.cumsum((values - means) ** 2)) / times
    before = np.concatenate(([0.25], variances[:-1]))
    stakes = np.minimum(np.sqrt(2.0 * log(2.0 / delta) / (count * before)), _CAP / (1.0 - xi))
    return bool(np.cumsum(np.log1p(stakes * (xi - values))).max() >= -log(delta))


def bentkus(values: Any, *, xi: float, delta: float) -> bool:
    """By the better of Hoeffding's and Bentkus' inequalities (Bates et al. 2021)."""
    count, mean = len(values), float(values.mean())
    if mean >= xi:
        return False
    distance = xlogy(mean, mean / xi) + xlogy(1.0 - mean, (1.0 - mean) / (1.0 - xi))
    most = ceil(float(values.sum()) - 1e-9)
    return bool(min(exp(-count * distance), e * bdtr(most, count, xi)) <= delta)


def normal(values: Any, *, xi: float, delta: float) -> bool:
    """By the central limit theorem: nothing is promised about a finite sample."""
    deviation = float(values.std()) / sqrt(len(values))
    return bool(values.mean() + ndtri(1.0 - delta) * deviation <= xi)

"""The seeded region: a paired test at every number of outcomes, which certifies whatever McNemar's
does.

What it decides, and why a staircase {b <= bmax(c)} with bounded corners is valid, is said in
`pacbound.stats.paired`. The region there begins at no loss and no gain, as a walk must, and is
empty below about ln(1/delta)/xi outcomes. This one begins at McNemar's, which needs no calibration:
where losses exceed gains by xi > 0 it certifies less often still.

Where delta <= 1/4, n ln(2/delta) <= 10,000 and n^2 xi ln(2/delta) <= 150,000 (at delta = 0.05 up to
2,700 outcomes at 0.1 %, 2,000 at 1 %, 900 at 5 %) the other counts with b - c < n xi are taken one
by one, by falling likelihood ratio (rounded to 2^-40; equal ones by more gains, then by fewer
losses). Each joins if the region stays a staircase and the chance of no corner of the nuisance
exceeds delta (1 - 1e-6). So whoever follows this finds the same cells. A count that does not fit
keeps out no other that does: there is neither a critical value nor a least number of gains to be
chosen.

The corners: the nulls P(loss) = v + xi, P(gain) = v lie at sqrt(2 v + xi) = sqrt(xi) .. 1, which is
cut into J equal cells, J = ceil(32 (1 - sqrt(xi)) sqrt(2 n ln(2/delta))). From v to w the chance is
at most that of the law (v + xi, w). A count adds to the chance of those laws alone that are within
sqrt(ln(2e13/delta) / (2 n)) of sqrt((b + c) / n): under all others so many outcomes with a
difference, or so few, have a chance below 1e-13 delta together.

Beyond, the region of the likelihood ratio is calibrated together with McNemar's: filling
would take minutes in the verifier, for 1 % of power. From 200,000 outcomes on the pair of binomial
bounds decides.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pacbound.stats.arguments import failure_probability
from pacbound.stats.binomial import binomial_cdf
from pacbound.stats.paired import (
    SAFETY,
    PairedBound,
    PairedRegion,
    calibrated,
    is_pair,
    likelihood_ratio,
    log_factorials,
    paired_counts,
    paired_test,
    positive_rate,
    region_work,
    staircase,
    staircase_chance,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# A region is filled while the verifier, in plain Python, takes less than ten seconds; and where
# likelihood ratios matter that lie apart, unlike those near 1.
_LARGEST_DELTA: Final = 0.25
_MOST_CELLS: Final = 10_000.0
_MOST_COUNTS: Final = 150_000.0
# A tail that is exactly delta does not pass: McNemar's test rounds its bound outwards.
_TIE: Final = 1e-10
_CELLS: Final = 32.0
# The share of delta that sums and windows leave out.
_LEFT_OUT: Final = 1e-13


def seeded_region(n: int, *, xi: float, delta: float) -> PairedRegion:
    """The counts that certify P(loss) - P(gain) < `xi` from `n` independent outcomes, wrongly with
    probability at most `delta`, all those of McNemar's test among them. It depends on these three
    numbers alone and is kept in memory once computed.

    Examples
    --------
    With 100 outcomes, that none is lost does not show that less than 1 % is; two gains beside do.

    >>> region = seeded_region(100, xi=0.01, delta=0.05)
    >>> region.accepts([0, 0, 1, 1], [1, 2, 4, 5]).tolist()
    [False, True, False, True]
    """
    return _cached(n, positive_rate(xi), failure_probability(delta))


@lru_cache(maxsize=64)
def _cached(n: int, xi: float, delta: float) -> PairedRegion:
    seed = mcnemar_region(n, delta)
    if is_filled(n, xi=xi, delta=delta):
        bmax = _filled(n, xi, delta, seed)
    else:
        bmax = calibrated(n, xi=xi, delta=delta, seed=seed)
    bmax.flags.writeable = False
    return PairedRegion(n=n, xi=xi, delta=delta, bmax=bmax)


def is_filled(n: int, *, xi: float, delta: float) -> bool:
    """Whether the region is filled: for so few outcomes, and so small an xi."""
    size = n * log(2.0 / delta)
    return delta <= _LARGEST_DELTA and size <= _MOST_CELLS and size * n * xi <= _MOST_COUNTS


def seeded_test(
    b: ArrayLike, c: ArrayLike, n: int, *, xi: float, delta: float, bound: PairedBound = "exact"
) -> Any:
    """Whether `b` losses and `c` gains in `n` outcomes certify P(loss) - P(gain) < `xi`, by the
    seeded region: as `pacbound.stats.paired.paired_test`, but it needs no walk and starts from
    nothing less than McNemar's test certifies.

    Examples
    --------
    >>> seeded_test(0, 40, 100, xi=0.01, delta=0.05), seeded_test(0, 0, 100, xi=0.01, delta=0.05)
    (True, False)
    """
    if is_pair(bound, n, delta):
        return paired_test(b, c, n, xi=xi, delta=delta, bound="pair")
    losses, gains, size = paired_counts(b, c, n)
    verdict = seeded_region(size, xi=xi, delta=delta).accepts(losses, gains)
    return verdict if losses.ndim else bool(verdict)


def seeded_work(n: int, *, xi: float, delta: float) -> float:
    """About how long the first exact `seeded_test` with these numbers takes, in the unit of
    `pacbound.stats.paired.region_work`: ten seconds.
    """
    if is_pair("exact", n, delta):
        return 0.0
    if is_filled(n, xi=xi, delta=delta):
        return 0.07 * float((n * log(2.0 / delta) / _MOST_CELLS) ** 1.5)
    return 2.0 * region_work(n, xi=xi, delta=delta)


def mcnemar_region(n: int, delta: float) -> Integers:
    """The most losses beside each number of gains with which McNemar's test certifies; -1 for
    none.
    """
    gains = np.arange(n + 1)
    low, high = np.full(n + 1, -1), n - gains
    while (low < high).any():
        middle = (low + high + 1) // 2
        passes = binomial_cdf(middle, np.maximum(gains + middle, 0), 0.5) <= delta * (1.0 - _TIE)
        low, high = np.where(passes, middle, low), np.where(passes, high, middle - 1)
    return low


def _filled(n: int, xi: float, delta: float, seed: Integers) -> Integers:
    """The staircase of `seed` and of all other counts that fit, in their order."""
    cells = ceil(_CELLS * (1.0 - sqrt(xi)) * sqrt(2.0 * n * log(2.0 / delta)))
    along = (1.0 - sqrt(xi)) * np.arange(cells + 1) / cells
    v = np.minimum(sqrt(xi) * along + along**2 / 2.0, (1.0 - xi) / 2.0)
    loss, gain = v[:-1] + xi, v[1:]
    neither = np.maximum(1.0 - loss - gain, 0.0)
    chances = staircase_chance(staircase(seed, n), n, gain, neither, level=delta * 1e-8)
    logs, _ = log_factorials(n)
    rates = np.log([loss, gain, np.maximum(neither, 1e-300)])
    place, reach = np.sqrt(loss + gain), sqrt(log(2.0 / (_LEFT_OUT * delta)) / (2.0 * n))
    most, allowed = [*seed.tolist(), n], delta * (1.0 - SAFETY)
    for b, c in _in_order(n, xi, seed):
        if most[c] != b - 1 or (b + c < n and most[c + 1] < b):
            continue  # no staircase
        middle, rest = sqrt((b + c) / n), n - b - c
        near = slice(*place.searchsorted([middle - reach, middle + reach]))
        ways = logs[n] - logs[b] - logs[c] - logs[rest]
        more = chances[near] + np.exp(ways + np.array([b, c, rest]) @ rates[:, near])
        if more.max(initial=0.0) <= allowed:
            chances[near], most[c] = more, b
    return staircase(np.array(most[:-1]), n)


def _in_order(n: int, xi: float, seed: Integers) -> list[tuple[int, int]]:
    """The counts beyond `seed` that speak against the null, by falling likelihood ratio."""
    columns = np.arange(n + 1)
    most = np.minimum(np.ceil(columns + n * xi).astype(np.int64) - 1, n - columns)
    lengths = np.maximum(most - seed, 0)
    gains, ends = np.repeat(columns, lengths), np.cumsum(lengths)
    losses = seed[gains] + 1 + np.arange(gains.size) - (ends - lengths)[gains]
    ratio = np.rint(likelihood_ratio(losses, gains, n, xi) * 2.0**40)
    order = np.lexsort((losses, -gains, -ratio))
    return list(zip(losses[order].tolist(), gains[order].tolist(), strict=True))

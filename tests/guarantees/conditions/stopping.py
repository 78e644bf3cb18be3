"""The best rule for when to stop, of all rules that see so much of each row: exactly, backwards.

A rule sees how many rows of each look there are. Given these the rows are independent (Lemma R), so
the chance that the claims of this moment are false is a sum over their outcomes. Whoever may stop
at any time does best by comparing it with the mean of what one row more gives.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import mul

import numpy as np
from numpy.typing import NDArray
from scipy.signal import convolve2d
from scipy.stats import binom

Floats = NDArray[np.float64]
# Whether so many trials with so many events make a false claim: few events do.
Claims = Callable[[int, int], bool]


@dataclass(frozen=True)
class Rows:
    """Rows of a kind: how often they come, what a rule sees of them, and how often one of them is
    an event in the test that it is a trial of, if it is one.
    """

    chance: float
    seen: Hashable
    event: float = 0.0
    test: str | None = "all"


@cache
def limit(claims: Claims, trials: int) -> int:
    """The most events that still make the claim; -1 if not even none."""
    if trials == 0:
        return -1
    most = limit(claims, trials - 1)
    while most >= 0 and not claims(trials, most):
        most -= 1
    while most < trials and claims(trials, most + 1):
        most += 1
    return most


def few(parts: Sequence[tuple[int, float]], most: int) -> float:
    """The chance of at most so many events in all, of parts of so many rows with these rates."""
    laws = [binom.pmf(np.arange(size + 1), size, rate) for size, rate in parts]
    return float(reduce(np.convolve, laws)[: most + 1].sum())


def false_at_best(law: Sequence[Rows], claims: Mapping[str, Claims], rows: int) -> float:
    """The largest chance, over all rules that stop by what they see, that a claim is false."""
    seen = sorted({kind.seen for kind in law}, key=str)
    chances = [sum(kind.chance for kind in law if kind.seen == one) for one in seen]
    moments = [_Moments([kind for kind in law if kind.seen == one], rows) for one in seen]
    tried = {name: [one for one in moments if one.test == name] for name in claims}

    @cache
    def false(name: str, counts: tuple[int, ...]) -> float:
        """The chance that the claim of a test is false, given how many rows of each look it has."""
        parts = [one.laws[count] for one, count in zip(tried[name], counts, strict=True)]
        law: Floats = reduce(convolve2d, parts)
        return float(sum(law[n, : limit(claims[name], n) + 1].sum() for n in range(1, len(law))))

    @cache
    def best(counts: tuple[int, ...]) -> float:
        holds = 1.0
        for name in claims:
            own = (n for n, one in zip(counts, moments, strict=True) if one.test == name)
            holds *= 1 - false(name, tuple(own))
        if sum(counts) == rows:
            return 1 - holds
        after = [(*counts[:i], n + 1, *counts[i + 1 :]) for i, n in enumerate(counts)]
        return max(1 - holds, float(sum(map(mul, chances, map(best, after)))))

    return best((0,) * len(seen))


class _Moments:
    """How many trials and events so many rows of one look have, and in which test."""

    def __init__(self, kinds: list[Rows], rows: int) -> None:
        (self.test,) = {kind.test for kind in kinds} - {None} or {None}
        whole = sum(kind.chance for kind in kinds)
        one = np.zeros((2, 2))
        for kind in kinds:
            tried, weight = int(kind.test is not None), kind.chance / whole
            one[tried, 0] += weight * (1 - kind.event * tried)
            one[tried, 1] += weight * kind.event * tried
        self.laws = [np.ones((1, 1))]
        for _ in range(rows):
            self.laws.append(convolve2d(self.laws[-1], one))

"""The best rule for when to stop, of all rules that see so much of each row: exactly, backwards.

A rule sees how many rows of each look there are. Given these the rows are independent (Lemma R), so
the chance that the claims of this moment are false is a sum over their outcomes. Whoever may stop
at any time does best by comparing it with the mean of what one row more gives.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import product

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
    # How many rows of each look there are, at every moment, and whether a claim is false then.
    counts = np.indices((rows + 1,) * len(seen)).reshape(len(seen), -1)
    counts = counts[:, counts.sum(axis=0) <= rows]
    holds = np.ones(counts.shape[1])
    for name, claim in claims.items():
        own = [place for place, one in enumerate(moments) if one.test == name]
        table = _false([moments[place] for place in own], claim, rows)
        holds *= 1 - table[tuple(counts[own])]
    best = np.zeros((rows + 1,) * len(seen))
    best[tuple(counts)] = 1 - holds
    for total in range(rows - 1, -1, -1):
        at = counts[:, counts.sum(axis=0) == total]
        onward = np.zeros(at.shape[1])
        for place, chance in enumerate(chances):
            onward += chance * best[tuple(at + np.eye(len(seen), dtype=int)[:, [place]])]
        best[tuple(at)] = np.maximum(best[tuple(at)], onward)
    return float(best.flat[0])


def _false(moments: Sequence[_Moments], claim: Claims, rows: int) -> Floats:
    """The chance that a claim is false, by how many rows of each look its test has."""
    found = np.zeros((rows + 1,) * len(moments))
    for counts in product(range(rows + 1), repeat=len(moments)):
        if 0 < sum(counts) <= rows:
            parts = [one.laws[count] for one, count in zip(moments, counts, strict=True)]
            law: Floats = reduce(convolve2d, parts)
            sums = (law[n, : limit(claim, n) + 1].sum() for n in range(1, len(law)))
            found[counts] = sum(sums)
    return found


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

"""The lowest confidence at which to answer, so that at most xi of the answers are wrong: starts at
thresholds that were fixed without these rows.

Where to start may come from anywhere but the rows that certify: from unlabelled scores of the same
model, say. The walk then has the whole delta.

Thresholds t = 0, 1, … go down from the first declared one; start s joins at its threshold and adds
delta / J to the level, a failure resets the level to 0, and t passes if some row is answered and
Upper(E_t, N_t, level) <= xi. **The probability that any threshold with a risk above xi passes is at
most delta** (a fallback procedure along the walk). *Proof.* Let t be the first bad threshold
that passes. The level there comes from starts after the bad threshold before it, which failed and
reset it. Given N_t, E_t is binomial with a rate above xi, so t passes with probability at most that
level. These stretches between bad thresholds share no start, so in all it is at most delta. QED
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pacbound.procedures.abstention_walk import (
    FIRST,
    AbstentionDecision,
    Joining,
    Runs,
    decided,
    levels_of,
    start_counts,
    walk,
)

Integers = NDArray[np.int64]


def decide(
    cells: Integers,
    wrong: Integers,
    right: Integers,
    starts: Sequence[int],
    *,
    xi: float,
    delta: float,
    first: int = FIRST,
) -> AbstentionDecision:
    """As in `abstention.decide`, with a start at each of the cells `starts`, none above `first`."""
    runs, joining_of = _search(cells, wrong, right, starts, delta, first)
    return decided(runs, joining_of, xi=xi, level=Fraction(delta))


def claimed(
    cells: Integers,
    wrong: Integers,
    right: Integers,
    starts: Sequence[int],
    *,
    xi: float,
    delta: float,
    first: int = FIRST,
) -> tuple[tuple[int, int], ...]:
    """The thresholds that `decide` claims, without the reasons of a refusal, which take longer."""
    runs, joining_of = _search(cells, wrong, right, starts, delta, first)
    return walk(runs, joining_of(runs), xi)


def starts_from(
    pool_cells: Integers, n: int, *, xi: float, delta: float, first: int = FIRST
) -> tuple[int, ...]:
    """The cells at which to start for `n` rows: where about as many of them are answered as
    `abstention.decide` has its starts at, judging by the cells of a pool of other scores.
    """
    ranked = np.minimum(np.sort(pool_cells)[::-1], first)
    shares = [Fraction(count, n) for count in start_counts(n, xi=xi, delta=delta)]
    ranks = [max(1, -int(-share * ranked.size // 1)) for share in shares]
    return tuple(int(ranked[rank - 1]) for rank in ranks)


def _search(
    cells: Integers,
    wrong: Integers,
    right: Integers,
    starts: Sequence[int],
    delta: float,
    first: int,
) -> tuple[Runs, Callable[[Runs], Joining]]:
    levels = levels_of(Fraction(delta), len(starts))

    def joining_of(runs: Runs) -> Joining:
        joined = [0] * runs.tops.size
        for cell in starts:
            # The first run at or below the start: where runs were left out, not its own.
            joined[min(int(np.searchsorted(-runs.tops, -cell)), runs.tops.size - 1)] += 1
        return Joining(joined, [0] * runs.tops.size, levels)

    return Runs.of(cells, wrong, right, first, *starts), joining_of

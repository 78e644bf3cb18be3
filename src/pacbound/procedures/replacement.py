"""Replacement: does a new model lose at most xi accuracy against the old one?

D is +1 in a row on which only the old model is right, -1 where only the new one is, 0 elsewhere.
One exact paired test of E D >= xi (`pacbound.stats.seeded`), on n rows that were fixed beforehand;
for xi = 0 McNemar's, which claims that more is gained than lost. There is no walk: nothing is
chosen. Up to 199,999 rows, what certifies at xi = 0 does at every larger xi.

Promise. If E D >= xi, the test passes with probability at most delta, at any time, over any order
of labelling and any number of looks at labels. For a row whose label is missing counts as D = +1,
so at every look there are no fewer losses and no more gains than with all labels; and a test that
passes keeps passing when losses fall and gains rise. So passing at any look implies passing with
all labels, which happens with probability at most delta. Looks at more rows are other tests, and
share delta, as several candidates do. All groups at once: each passes its own test at the full
delta, and if the claim is false for some group, that group's passes with probability at most delta
(intersection-union). Verdicts of their own share delta among the groups. Groups that do not overlap
may be left out for their number of rows alone, given which the tests of the others hold as they
are; where groups overlap each test is at delta over the number of groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.stats.binomial import binomial_upper
from pacbound.stats.paired import PairedBound, labels_needed_by_walk, mcnemar_test
from pacbound.stats.planning import least_passing
from pacbound.stats.seeded import seeded_test
from pacbound.tally.questions.replacement import NEITHER, ONLY_NEW, ONLY_OLD, OPEN, at_best

NAME: Final = "replacement/paired/1"
Floats = NDArray[np.float64]
# What a chance leaves out at each end.
_TAIL: Final = 1e-9
# How many rows would do is searched by the exact test up to so many.
_MOST_SEARCHED: Final = 1000


@dataclass(frozen=True)
class Refusal:
    """Why a new model was not shown to lose at most xi.

    `code` is one of the keys of the claim's sentences, with its `numbers`; `needed` is about how
    many rows it would take if the rates stay as they were seen, None where no number will; and
    `labels` how many of these would need a label.
    """

    code: str
    numbers: Mapping[str, float]
    needed: int | None = None
    labels: int | None = None


def passes(
    losses: Any, gains: Any, n: int, *, xi: float, delta: float, bound: PairedBound = "exact"
) -> Any:
    """Whether so many losses and gains in `n` rows show that less than `xi` is lost."""
    if n == 0:
        return False
    if xi == 0:
        return mcnemar_test(losses, gains, delta=delta)
    return seeded_test(losses, gains, n, xi=xi, delta=delta, bound=bound)


def too_small(n: int, *, xi: float, delta: float) -> bool:
    """Whether so few rows pass only if some are gained: by their number alone."""
    return n == 0 or bool(binomial_upper(0, n, delta=delta) > xi)


def power(
    lost: Floats, gained: Floats, n: int, *, xi: float, delta: float, bound: PairedBound = "exact"
) -> Floats:
    """The chance that `n` rows pass, for each pair of true rates of losses and of gains."""
    # Loaded here: only plans need it.
    from scipy.stats import binom  # noqa: PLC0415

    ends = binom.ppf(_TAIL, n, gained.min()), binom.isf(_TAIL, n, gained.max())
    gains = np.arange(max(int(ends[0]), 0), int(ends[1]) + 1)
    least, most = np.full(gains.size, -1), n - gains
    while (least < most).any():
        middle = (least + most + 1) // 2
        found = passes(np.maximum(middle, 0), gains, n, xi=xi, delta=delta, bound=bound)
        passed = np.asarray(found) & (middle >= 0)
        least, most = np.where(passed, middle, least), np.where(passed, most, middle - 1)
    rates = lost[:, None] / np.maximum(1.0 - gained[:, None], 1e-300)
    chances = binom.pmf(gains, n, gained[:, None]) * binom.cdf(most, n - gains, rates)
    return np.asarray(chances.sum(axis=1))


def refusal(seen: Any, *, xi: float, delta: float) -> Refusal:
    """Why the counts of a candidate's outcomes do not pass, and what would help."""
    n, missing, best = int(seen.sum()), int(seen[OPEN].sum()), at_best(seen)
    numbers = {"n": n, "unlabelled": missing}
    if missing and passes(best[ONLY_OLD], best[ONLY_NEW], n, xi=xi, delta=delta):
        return Refusal("unlabelled", numbers)
    told = int(seen[[ONLY_NEW, ONLY_OLD, NEITHER]].sum())
    # Rows without a label would be lost and gained as those with one.
    losses, gains = (
        int(seen[place]) * (told + missing) // told if told else 0 for place in (ONLY_OLD, ONLY_NEW)
    )
    numbers |= {"losses": losses, "gains": gains}
    if losses - gains >= xi * n and (losses or xi == 0):
        return Refusal("no-better" if xi == 0 else "loses", numbers)
    needed = _rows_needed(losses, gains, n, xi=xi, delta=delta)
    labels = None if needed is None else -(-(told + missing) * needed // max(n, 1))
    few = xi > 0 and too_small(n, xi=xi, delta=delta)
    return Refusal("too-few" if few else "near", numbers, needed, labels)


def _rows_needed(losses: int, gains: int, n: int, *, xi: float, delta: float) -> int | None:
    """About how many rows would pass at these rates; None if more than can be counted."""
    if not losses and not gains:
        least = labels_needed_by_walk(xi, delta=delta)
        return least if least <= LARGEST_COUNT else None

    # For many rows the pair stands in: it asks for a few more, and answers at once.
    def enough(rows: int) -> bool:
        more, fewer = -(-losses * rows // n), gains * rows // n
        bound: PairedBound = "exact" if rows <= _MOST_SEARCHED else "pair"
        return rows > n and bool(passes(more, fewer, rows, xi=xi, delta=delta, bound=bound))

    return least_passing(enough)

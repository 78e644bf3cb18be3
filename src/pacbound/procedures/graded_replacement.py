"""Replacement by grades: is the mean quality of a new model at most xi below the old one's?

D is the quality of the old answer less that of the new one, from -1 to 1 on equal steps; a missing
quality counts as the worst that it can be. The steps that were declared choose one test of
E D >= xi, never the data:

- one step, as of wins, ties and losses: the paired test of losses and gains, as for right and wrong
  answers;
- up to ten steps: the chance over all coins that this test passes at delta / 2, which must be at
  least 1/2 (`pacbound.stats.derandomised`);
- more: four bets on the mean (`pacbound.stats.graded_bets`) at 0.3 delta, or the same chance with
  0.7 in the place of 1/2, at 0.7 delta, for up to 20,000 rows: grades of which nobody said how many
  there are may be few. For more rows bets have the whole delta.

Each keeps passing when a difference falls, so it holds for missing grades at any look.
"""

from __future__ import annotations

from math import ceil, log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pacbound.procedures.replacement import Refusal, passes, too_small
from pacbound.procedures.replacement import refusal as paired_refusal
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.stats.derandomised import is_likely
from pacbound.stats.graded_bets import mean_test
from pacbound.stats.paired import LARGEST_SAMPLE, PairedBound
from pacbound.stats.seeded import mcnemar_region, seeded_region
from pacbound.tally.questions.replacement import at_worst, seen_of

Integers = NDArray[np.int64]

NAME: Final = "replacement/graded/1"
# Differences on so many steps are tossed in thought; finer ones are bet on, too.
MOST_COARSE: Final = 10
MOST_TOSSED: Final = 20_000
_HALF: Final = 0.5
# Of finer ones: the share of delta that tosses have, and the chance that must be reached.
_TOSSED: Final = 0.7


def certifies(levels: Integers, *, xi: float, delta: float, bound: PairedBound = "exact") -> bool:
    """Whether so many rows on each level of the difference, from -1 to 1, show that less than `xi`
    is lost.
    """
    n, steps = int(levels.sum()), levels.size // 2
    if n == 0:
        return False
    if steps == 1:
        return bool(passes(int(levels[2]), int(levels[0]), n, xi=xi, delta=delta, bound=bound))
    if steps <= MOST_COARSE and n <= LARGEST_SAMPLE:
        return is_likely(levels, region(n, xi, _HALF * delta), _HALF)
    mean = (1.0 + xi) / 2.0
    if n > MOST_TOSSED:
        return mean_test(levels, mean=mean, delta=delta)
    if mean_test(levels, mean=mean, delta=(1.0 - _TOSSED) * delta):
        return True
    return is_likely(levels, region(n, xi, _TOSSED * (_TOSSED * delta)), _TOSSED)


def region(n: int, xi: float, delta: float) -> Integers:
    """The most losses beside each number of gains that the paired test lets pass."""
    return seeded_region(n, xi=xi, delta=delta).bmax if xi > 0 else mcnemar_region(n, delta)


def refusal(cells: Integers, *, xi: float, delta: float) -> Refusal:
    """Why the differences of a candidate do not pass, and what would help."""
    seen, steps = seen_of(cells), cells.size // 3 - 1
    if steps == 1:
        return paired_refusal(seen, xi=xi, delta=delta)
    n, missing = int(cells.sum()), int(cells[2 * steps + 1 :].sum())
    numbers: dict[str, Any] = {"n": n, "unlabelled": missing}
    if missing and certifies(at_worst(cells, best=True), xi=xi, delta=delta):
        return Refusal("unlabelled", numbers)
    known = cells[: 2 * steps + 1]
    told = int(known.sum())
    values = np.arange(-steps, steps + 1) / steps
    mean = float(known @ values) / max(told, 1)
    # Rows without a grade would be as those with one.
    losses, gains = (
        int(part.sum()) * n // max(told, 1) for part in (known[steps + 1 :], known[:steps])
    )
    numbers |= {"losses": losses, "gains": gains}
    if mean >= xi and (losses or xi == 0):
        return Refusal("no-better" if xi == 0 else "loses", numbers)
    spread = float(known @ (values - mean) ** 2) / max(told, 1)
    reach = float(ndtri(_HALF * delta)) ** 2 if steps <= MOST_COARSE else 2.0 * log(2.5 / delta)
    needed = max(n + 1, ceil(reach * spread / max(xi - mean, 1e-9) ** 2))
    few = xi > 0 and too_small(n, xi=xi, delta=delta)
    wanted = needed if needed <= LARGEST_COUNT else None
    labels = None if wanted is None else -(-int(seen.sum() - seen[0]) * wanted // max(n, 1))
    return Refusal("too-few" if few else "near", numbers, wanted, labels)

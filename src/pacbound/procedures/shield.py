"""The threshold at which a policy must hand over, so that at most xi of the rollouts are unsafe.

The plain and the shielded rollout coincide until the shield fires, so a shielded rollout can be
unsafe only if the plain one is and every danger score before its first un-recoverable state stayed
below the threshold. That is one binomial count, monotone in the threshold: the largest threshold
whose Clopper-Pearson upper bound is within xi needs no correction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log, log1p
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.procedures.refusal import Refusal, least_passing
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.stats.binomial import binomial_upper
from pacbound.tally.questions.shield import GRID

Bound = Literal["exact", "product"]
Rate = Literal["all", "among-unsafe"]
"""What misses are counted among: all rollouts, or the unsafe ones."""
Integers = NDArray[np.int64]

EXACT = "shield/binomial/1"
ASSUMPTIONS = (
    (
        "The rollouts are independent draws from the distribution of use (rooms, starts, noise); "
        "their number was fixed beforehand."
    ),
    (
        "Every started rollout is counted; one that was lost, or whose backup fails at the start, "
        "is unsafe with score -inf."
    ),
    (
        "A rollout is unsafe if it has a first un-recoverable state; its score is the running "
        "maximum of the danger up to there."
    ),
    (
        "Un-recoverable is judged by one simulation of the backup policy per step, and the "
        "simulator behaves as the world does."
    ),
    "The shield fires once the danger is at or above the threshold, and stays fired until reset.",
)
TOP = GRID.n_cells - 1
"""The highest cell of the question's grid; a procedure of another grid would need another name."""


@dataclass(frozen=True)
class ShieldDecision:
    """A threshold, or why there is none, and the counts that the search passed through."""

    threshold: float
    cells: Integers
    misses: Integers
    allowed: int
    refusal: Refusal | None


def decide(cells: Integers, unsafe: Integers, n: int, *, xi: float, delta: float) -> ShieldDecision:
    """The largest threshold j / 2^16 with Upper(misses below it, n, delta) <= xi.

    `cells` are the occupied cells in rising order, -1 for rollouts lost at the start, and `unsafe`
    the unsafe rollouts in each. With probability at least 1 - `delta` at most a share `xi` of the
    rollouts under the shield is unsafe.
    """
    allowed = allowed_misses(n, xi=xi, delta=delta)
    threshold, cells, misses = search(cells, unsafe, allowed)
    refusal = None
    if threshold == float("-inf"):
        lost = int(misses[0]) if cells.size and cells[0] < 0 else 0
        refusal = (
            _lost(lost, n, max(allowed, 0), xi, delta)
            if lost and xi > 0
            else _too_few(n, xi, delta)
        )
    return ShieldDecision(threshold, cells, misses, allowed, refusal)


def search(cells: Integers, unsafe: Integers, allowed: int) -> tuple[float, Integers, Integers]:
    """The largest threshold that misses at most `allowed` unsafe rollouts, and the cells and misses
    up to where it is found.

    +inf if all may be missed, -inf if no threshold keeps the budget: the rollouts lost at the start
    break it, or it is negative.
    """
    hit = unsafe > 0
    cells, misses = cells[hit], np.cumsum(unsafe[hit])
    over = np.flatnonzero(misses > allowed)
    if not over.size:
        return float("-inf") if allowed < 0 else float("inf"), cells, misses
    first = int(over[0])
    # Every threshold up to and including the cell that breaks the budget still keeps it: scores
    # there are not below it.
    threshold = (
        float("-inf") if allowed < 0 or cells[first] < 0 else GRID.threshold(int(cells[first]))
    )
    return threshold, cells[: first + 1], misses[: first + 1]


def largest_passing(passes: Callable[[int], bool], most: int) -> int:
    """The largest count up to `most` that passes, where every smaller one does too; -1 if none
    does.
    """
    low, high = -1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if passes(middle) else (low, middle - 1)
    return low


def allowed_misses(n: int, *, xi: float, delta: float) -> int:
    """The largest number of misses in `n` rollouts that still certifies `xi`; -1 if even none are
    too many.
    """
    return largest_passing(lambda misses: binomial_upper(misses, n, delta=delta) <= xi, n)


def lost_at_the_start(
    misses: int, n: int, allowed: int, xi: float, needed: Callable[[], int | None]
) -> Refusal:
    """The refusal of rollouts that no threshold can save; `needed` is asked only where more of them
    can help.
    """
    more = None if misses >= xi * n else needed()
    if more is None:
        return Refusal(
            f"{misses} of {n} rollouts are lost at the start, which alone breaks xi = {xi}.", None
        )
    return Refusal(f"{misses} of {n} rollouts are lost at the start; {allowed} may be.", more)


def _lost(misses: int, n: int, allowed: int, xi: float, delta: float) -> Refusal:
    return lost_at_the_start(misses, n, allowed, xi, lambda: _rollouts_needed(misses, n, xi, delta))


def _too_few(n: int, xi: float, delta: float) -> Refusal:
    if xi == 0:
        return Refusal("xi = 0 cannot be certified from any number of rollouts.", None)
    reason = f"{n} rollouts cannot certify xi = {xi} at delta = {delta}, even if none were missed."
    least = log(delta) / log1p(-xi)
    if least > 0.99 * LARGEST_COUNT:
        return Refusal(reason, None)
    needed = ceil(least)
    while binomial_upper(0, needed, delta=delta) > xi:
        needed += 1
    return Refusal(reason, needed)


def _rollouts_needed(misses: int, n: int, xi: float, delta: float) -> int | None:
    """About how many rollouts would pass if misses stayed as common as they were seen."""
    return least_passing(
        lambda rollouts: binomial_upper(-(-misses * rollouts // n), rollouts, delta=delta) <= xi
    )

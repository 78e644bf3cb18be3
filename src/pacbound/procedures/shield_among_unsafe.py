"""The threshold at which at most xi of the *unsafe* rollouts goes unnoticed.

Of the rollouts that have an un-recoverable state, those are missed whose danger stayed below the
threshold up to there. Given which rollouts are unsafe, the scores of the unsafe ones are
independent draws, so the misses among them are binomial, and they rise with the threshold. The
largest threshold whose Clopper-Pearson upper bound is within xi needs no correction: let t be the
least one whose true rate exceeds xi; to choose t or more, the bound at t must be within xi, which
has probability at most delta. A rollout lost at its start is unsafe with score -inf, a miss at
every threshold.

It speaks of the unsafe rollouts alone, however rare they are: xi = 0.05 says that 19 of 20 dangers
are noticed, where `shield/binomial/1` says that 19 of 20 rollouts end well. The first implies the
second, since P(unsafe and missed) <= P(missed | unsafe); the second says nothing about the first.
"""

from __future__ import annotations

from math import ceil, log, log1p

from pacbound.procedures.refusal import Refusal, least_passing
from pacbound.procedures.shield import ASSUMPTIONS as EXACT_ASSUMPTIONS
from pacbound.procedures.shield import (
    Integers,
    ShieldDecision,
    allowed_misses,
    search,
)
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.stats.binomial import binomial_upper

NAME = "shield/among-unsafe/1"
ASSUMPTIONS = EXACT_ASSUMPTIONS


def decide(
    cells: Integers, unsafe: Integers, total: int, *, xi: float, delta: float
) -> ShieldDecision:
    """The largest threshold j / 2^16 with Upper(misses below it, `total`, delta) <= xi.

    `cells` are occupied cells in rising order, -1 for rollouts lost at the start, and `unsafe` the
    unsafe rollouts in each, as far up as the search has to go; `total` is the number of all unsafe
    ones. With probability at least 1 - `delta` at most a share `xi` of the unsafe rollouts is
    missed.
    """
    allowed = allowed_misses(total, xi=xi, delta=delta)
    threshold, cells, misses = search(cells, unsafe, allowed)
    refusal = None
    if threshold == float("-inf"):
        lost = int(misses[0]) if cells.size and cells[0] < 0 else 0
        refusal = _refusal(lost, total, allowed, xi, delta)
    return ShieldDecision(threshold, cells, misses, allowed, refusal)


def _refusal(lost: int, total: int, allowed: int, xi: float, delta: float) -> Refusal:
    if xi == 0:
        return Refusal("xi = 0 cannot be certified from any number of rollouts.", None)
    if allowed < 0:
        reason = (
            f"{total} unsafe rollouts cannot certify xi = {xi} at delta = {delta}, even if none "
            "were missed."
            if total
            else "No rollout is unsafe, so nothing is known about the dangers of unsafe ones."
        )
        return Refusal(reason, _least_unsafe(xi, delta))
    reason = f"{lost} of {total} unsafe rollouts are lost at the start; {allowed} may be."
    if lost >= xi * total:
        return Refusal(reason, None)
    return Refusal(
        reason,
        least_passing(
            lambda many: binomial_upper(-(-lost * many // total), many, delta=delta) <= xi
        ),
    )


def _least_unsafe(xi: float, delta: float) -> int | None:
    least = log(delta) / log1p(-xi)
    if least > 0.99 * LARGEST_COUNT:
        return None
    needed = max(1, ceil(least))
    while binomial_upper(0, needed, delta=delta) > xi:
        needed += 1
    return needed

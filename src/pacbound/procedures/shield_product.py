"""The paper's threshold for a shield: the rate of unsafe rollouts times the share of them that goes
unnoticed.

A rollout under the shield is unsafe only if the plain one is and its danger at the first
un-recoverable state is below the threshold. The paper bounds the two factors of that probability
apart: r_up for the rate of unsafe rollouts among all, and 1 - c_lo for the share of the unsafe ones
that is missed, each from a two-sided interval at delta/2. Given how many rollouts are unsafe, the
misses among them are binomial, so the same rollouts serve both.

The search needs no correction: as the threshold rises the misses do, so c_lo falls while r_up
stays, and the bound is monotone. Let t be the least threshold whose true rate exceeds xi. To choose
t or more, the bound at t must be within xi, and that has probability at most delta. It is kept for
comparison: one binomial over all rollouts allows more misses.
"""

from __future__ import annotations

from pacbound.procedures.refusal import Refusal, least_passing
from pacbound.procedures.shield import ASSUMPTIONS as EXACT_ASSUMPTIONS
from pacbound.procedures.shield import (
    Integers,
    ShieldDecision,
    largest_passing,
    lost_at_the_start,
    search,
)
from pacbound.stats.binomial import binomial_interval
from pacbound.stats.sequences import bonferroni_level

NAME = "shield/product/1"
ASSUMPTIONS = (
    *EXACT_ASSUMPTIONS[:2],
    (
        "A rollout is unsafe if it has a first un-recoverable state; its score is the danger "
        "there, or the maximum up to there."
    ),
    *EXACT_ASSUMPTIONS[3:],
)

_OUTWARD = 1 + 1e-15
"""Covers the difference and the product, each rounded once."""


def decide(
    cells: Integers, unsafe: Integers, total: int, n: int, *, xi: float, delta: float
) -> ShieldDecision:
    """The largest threshold j / 2^16 with r_up (1 - c_lo) <= xi.

    `cells` are occupied cells in rising order, -1 for rollouts lost at the start, and `unsafe` the
    unsafe rollouts in each, as far up as the search has to go; `total` is the number of all unsafe
    ones. With probability at least 1 - `delta` at most a share `xi` of the rollouts under the
    shield is unsafe.
    """
    allowed = allowed_misses(total, n, xi=xi, delta=delta)
    threshold, cells, misses = search(cells, unsafe, allowed)
    refusal = None
    if threshold == float("-inf"):
        lost = int(misses[0]) if misses.size and cells[0] < 0 else 0
        refusal = _refusal(lost, total, n, allowed, xi, delta)
    return ShieldDecision(threshold, cells, misses, allowed, refusal)


def allowed_misses(unsafe: int, n: int, *, xi: float, delta: float) -> int:
    """The largest number of misses among `unsafe` of `n` rollouts that still certifies `xi`; -1 if
    even none are too many.
    """
    return largest_passing(
        lambda misses: product_bound(misses, unsafe, n, delta=delta) <= xi, unsafe
    )


def product_bound(misses: int, unsafe: int, n: int, *, delta: float) -> float:
    """r_up (1 - c_lo), at least the rate of misses with probability at least 1 - `delta`; two-sided
    intervals, as printed.
    """
    level = bonferroni_level(delta, 2)
    _, unsafe_rate = binomial_interval(unsafe, n, delta=level)
    caught, _ = binomial_interval(unsafe - misses, unsafe, delta=level)
    return unsafe_rate * (1 - caught) * _OUTWARD


def _refusal(lost: int, unsafe: int, n: int, allowed: int, xi: float, delta: float) -> Refusal:
    if xi == 0:
        return Refusal("xi = 0 cannot be certified from any number of rollouts.", None)
    if allowed >= 0 or lost >= xi * n:
        return lost_at_the_start(
            lost, n, max(allowed, 0), xi, lambda: _rollouts_needed(lost, unsafe, n, xi, delta)
        )
    reason = (
        f"{n} rollouts, {unsafe} of them unsafe, cannot certify xi = {xi} at delta = {delta}, even "
        "if none were missed."
    )
    return Refusal(reason, _rollouts_needed(lost, unsafe, n, xi, delta))


def _rollouts_needed(misses: int, unsafe: int, n: int, xi: float, delta: float) -> int | None:
    """About how many rollouts would pass if unsafe and missed ones stayed as common as they were
    seen.
    """

    def passes(rollouts: int) -> bool:
        missed, lost = (-(-count * rollouts // n) for count in (misses, unsafe))
        return product_bound(missed, lost, rollouts, delta=delta) <= xi

    return least_passing(passes)

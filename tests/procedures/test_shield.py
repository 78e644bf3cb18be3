"""From counts to a threshold, against a search that tries every one of the 65,537 thresholds."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from numpy.typing import NDArray

from pacbound.procedures.shield import TOP, ShieldDecision, allowed_misses, decide
from pacbound.stats.binomial import binomial_upper

Integers = NDArray[np.int64]


def literal_allowed(n: int, xi: float, delta: float) -> int:
    """The largest k that is improbable, at most delta, if the true rate were xi: in exact
    arithmetic."""
    hit, whole = Fraction(xi).as_integer_ratio()
    budget = Fraction(delta) * whole**n
    term = chance = (whole - hit) ** n
    for k in range(n):
        if chance > budget:
            return k - 1
        term = term * (n - k) * hit // ((k + 1) * (whole - hit))
        chance += term
    return n - 1


def literal_threshold(cells: Integers, unsafe: Integers, allowed: int) -> float:
    """The largest of the thresholds j / 2^16 and +inf below which no more than `allowed` unsafe
    rollouts stay; -inf if none."""
    dense = np.zeros(TOP + 2, dtype=np.int64)
    np.add.at(dense, cells + 1, unsafe)
    below = np.cumsum(dense)  # at index j: the cells up to j - 1, that is all scores below j / 2^16
    if below[-1] <= allowed:
        return inf
    good = [j for j in range(TOP + 1) if below[j] <= allowed]
    return max(good) / TOP if good else -inf


def random_counts(rng: np.random.Generator) -> tuple[Integers, Integers, int]:
    cells = np.unique(
        np.concatenate(
            [
                rng.integers(-1, TOP + 1, size=rng.integers(1, 60)),
                rng.choice([-1, 0, 1, TOP - 1, TOP], 2),
            ]
        )
    )
    unsafe = rng.integers(0, 4, size=cells.size)
    return cells, unsafe, int(unsafe.sum() + rng.integers(1, 400))


def test_the_threshold_is_the_largest_of_the_whole_grid_that_keeps_the_budget() -> None:
    rng = np.random.default_rng(3)
    found = set()
    for _ in range(60):
        cells, unsafe, n = random_counts(rng)
        xi, delta = float(rng.choice([0.02, 0.1, 0.3])), 0.05
        decision = decide(cells, unsafe, n, xi=xi, delta=delta)
        allowed = literal_allowed(n, xi, delta)
        assert decision.allowed == allowed
        assert decision.threshold == literal_threshold(cells, unsafe, allowed)
        assert (decision.refusal is None) == (decision.threshold != -inf)
        found.add("finite" if np.isfinite(decision.threshold) else str(decision.threshold))
    assert found == {"finite", "inf", "-inf"}


def test_the_counts_that_a_decision_keeps_lead_to_the_same_decision() -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        cells, unsafe, n = random_counts(rng)
        first = decide(cells, unsafe, n, xi=0.1, delta=0.05)
        again = decide(first.cells, np.diff(first.misses, prepend=0), n, xi=0.1, delta=0.05)
        assert (again.threshold, again.allowed, again.refusal) == (
            first.threshold,
            first.allowed,
            first.refusal,
        )
        assert np.array_equal(again.cells, first.cells)
        assert np.array_equal(again.misses, first.misses)


def test_unsafe_rollouts_in_the_cell_of_the_threshold_are_not_missed() -> None:
    allowed = literal_allowed(200, 0.1, 0.05)
    cells = np.array([100, 200, 300])
    kept = decide(cells, np.array([allowed, 5, 5]), 200, xi=0.1, delta=0.05)
    assert kept.threshold == 200 / TOP
    assert kept.misses.tolist() == [allowed, allowed + 5]
    assert (
        decide(cells, np.array([allowed + 1, 5, 5]), 200, xi=0.1, delta=0.05).threshold == 100 / TOP
    )


def test_saturated_dangers_are_caught_by_the_threshold_one() -> None:
    assert decide(np.array([TOP]), np.array([150]), 200, xi=0.1, delta=0.05).threshold == 1.0


def test_dangers_of_zero_leave_only_the_threshold_that_always_fires() -> None:
    decision = decide(np.array([0]), np.array([150]), 200, xi=0.1, delta=0.05)
    assert decision.threshold == 0.0
    assert decision.refusal is None


def test_rollouts_lost_at_the_start_are_missed_at_every_threshold() -> None:
    allowed = literal_allowed(200, 0.1, 0.05)
    cells = np.array([-1, TOP])
    assert decide(cells, np.array([allowed, 1]), 200, xi=0.1, delta=0.05).threshold == 1.0
    assert decide(cells, np.array([allowed, 0]), 200, xi=0.1, delta=0.05).threshold == inf
    refused = decide(cells, np.array([allowed + 1, 0]), 200, xi=0.1, delta=0.05)
    assert refused.threshold == -inf
    assert refused.refusal is not None


@pytest.mark.parametrize("n", [1, 7, 59, 300, 1000])
@pytest.mark.parametrize("xi", [0.0, 0.02, 0.05, 0.5, 0.97])
@pytest.mark.parametrize("delta", [0.3, 0.05, 0.01, 1e-6])
def test_allowed_misses_are_the_largest_count_that_is_improbable_at_xi(
    n: int, xi: float, delta: float
) -> None:
    allowed = allowed_misses(n, xi=xi, delta=delta)
    assert allowed == (literal_allowed(n, xi, delta) if xi > 0 else -1)
    assert allowed < 0 or binomial_upper(allowed, n, delta=delta) <= xi
    assert binomial_upper(allowed + 1, n, delta=delta) > xi


def test_two_thousand_rollouts_may_miss_twenty_five_for_two_per_cent() -> None:
    assert allowed_misses(2000, xi=0.02, delta=0.01) == 25
    assert allowed_misses(59, xi=0.05, delta=0.05) == 0
    assert allowed_misses(58, xi=0.05, delta=0.05) == -1


# ---- refusals


def lost(misses: int, n: int, *, xi: float, delta: float) -> ShieldDecision:
    return decide(np.array([-1]), np.array([misses]), n, xi=xi, delta=delta)


@pytest.mark.parametrize(
    ("xi", "delta"), [(0.05, 0.05), (0.02, 1e-3), (0.5, 0.4), (1e-4, 0.01), (0.999, 1e-9)]
)
def test_the_rollouts_that_a_refusal_asks_for_certify_without_a_miss_and_one_fewer_do_not(
    xi: float, delta: float
) -> None:
    refusal = lost(0, 1, xi=xi, delta=delta).refusal
    assert refusal is not None
    assert refusal.needed is not None
    assert lost(0, refusal.needed, xi=xi, delta=delta).threshold == inf
    assert lost(0, refusal.needed - 1, xi=xi, delta=delta).threshold == -inf


@pytest.mark.parametrize("misses", [0, 3])
def test_too_few_rollouts_are_refused_whether_or_not_some_were_missed(misses: int) -> None:
    decision = decide(np.array([500]), np.array([misses]), 50, xi=0.05, delta=0.05)
    assert (decision.threshold, decision.allowed) == (-inf, -1)
    assert decision.refusal is not None
    assert decision.refusal.needed == 59


@pytest.mark.parametrize(
    ("misses", "n", "xi"), [(4, 250, 0.02), (15, 1000, 0.02), (4, 100, 0.05), (40, 100, 0.5)]
)
def test_the_rollouts_that_a_refusal_asks_for_certify_at_the_same_rate_of_lost_starts(
    misses: int, n: int, xi: float
) -> None:
    refusal = lost(misses, n, xi=xi, delta=0.01).refusal
    assert refusal is not None
    assert refusal.needed is not None
    assert refusal.needed > n
    assert lost(-(-misses * refusal.needed // n), refusal.needed, xi=xi, delta=0.01).refusal is None


def test_starts_that_alone_break_xi_are_refused_for_good() -> None:
    # 0.07 * 100 is above 7 in floating point, yet no number of rollouts tells the rate 0.07 from xi
    # = 0.07.
    for misses, n, xi in (
        (50, 1000, 0.02),
        (20, 1000, 0.02),
        (1000, 1000, 0.999),
        (30, 100, 0.07),
    ):
        refusal = lost(misses, n, xi=xi, delta=0.01).refusal
        assert refusal is not None
        assert refusal.needed is None
        assert "alone breaks" in refusal.reason
    refusal = lost(7, 100, xi=0.07, delta=0.01).refusal
    assert refusal is not None
    assert refusal.needed is None


@pytest.mark.parametrize("misses", [0, 5])
def test_no_number_of_rollouts_certifies_that_nothing_is_ever_unsafe(misses: int) -> None:
    decision = decide(np.array([100]), np.array([misses]), 10**6, xi=0.0, delta=0.05)
    assert (decision.threshold, decision.allowed) == (-inf, -1)
    assert decision.refusal is not None
    assert decision.refusal.needed is None


@pytest.mark.parametrize("xi", [1e-17, 1e-300, 5e-324])
def test_more_rollouts_than_can_be_counted_are_not_asked_for(xi: float) -> None:
    refusal = lost(0, 100, xi=xi, delta=0.01).refusal
    assert refusal is not None
    assert refusal.needed is None

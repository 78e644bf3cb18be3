"""The paper's product, against intervals from SciPy and a search that tries every count."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy.stats import binomtest

from pacbound.procedures import shield
from pacbound.procedures.refusal import Refusal
from pacbound.procedures.shield import TOP
from pacbound.procedures.shield_product import allowed_misses, decide, product_bound


def literal_bound(misses: int, unsafe: int, n: int, delta: float) -> float:
    """r_up (1 - c_lo) with two-sided Clopper-Pearson intervals at delta/2 each."""
    rate = binomtest(unsafe, n).proportion_ci(1 - delta / 2, "exact").high
    caught = (
        binomtest(unsafe - misses, unsafe).proportion_ci(1 - delta / 2, "exact").low
        if unsafe
        else 0.0
    )
    return float(rate * (1 - caught))


@pytest.mark.parametrize(("unsafe", "n"), [(0, 1), (0, 40), (1, 1), (7, 40), (40, 40), (100, 2000)])
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-4])
def test_the_bound_is_the_product_of_the_two_interval_ends(
    unsafe: int, n: int, delta: float
) -> None:
    for misses in {0, unsafe // 3, unsafe}:
        found, expected = (
            product_bound(misses, unsafe, n, delta=delta),
            literal_bound(misses, unsafe, n, delta),
        )
        assert found == pytest.approx(expected, rel=1e-7)
        assert found >= expected * (1 - 1e-11)


@pytest.mark.parametrize(
    ("unsafe", "n", "xi"),
    [(100, 2000, 0.02), (0, 50, 0.1), (3, 50, 0.3), (9, 50, 0.01), (20, 90, 0.15)],
)
@pytest.mark.parametrize("delta", [0.1, 0.01])
def test_allowed_misses_are_the_largest_count_whose_bound_keeps_xi(
    unsafe: int, n: int, xi: float, delta: float
) -> None:
    kept = [misses for misses in range(unsafe + 1) if literal_bound(misses, unsafe, n, delta) <= xi]
    assert allowed_misses(unsafe, n, xi=xi, delta=delta) == max(kept, default=-1)
    assert kept == list(range(len(kept)))


def test_one_binomial_allows_25_misses_where_the_product_allows_17() -> None:
    assert shield.allowed_misses(2000, xi=0.02, delta=0.01) == 25
    assert allowed_misses(100, 2000, xi=0.02, delta=0.01) == 17


def test_the_threshold_is_the_largest_of_the_grid_that_misses_no_more_than_allowed() -> None:
    rng = np.random.default_rng(7)
    found = set()
    for _ in range(60):
        cells = np.unique(
            np.concatenate([rng.integers(0, TOP + 1, size=30), rng.choice([-1, 0, TOP], size=2)])
        )
        unsafe = rng.integers(0, 3, size=cells.size)
        total = int(unsafe.sum())
        n = total + int(rng.integers(1, 400))
        xi = float(rng.choice([0.02, 0.1, 0.3]))
        decision = decide(cells, unsafe, total, n, xi=xi, delta=0.05)
        good = [
            j / TOP
            for j in [*cells[cells >= 0].tolist(), 0]
            if unsafe[cells < j].sum() <= decision.allowed
        ]
        expected = inf if 0 <= total <= decision.allowed else max(good, default=-inf)
        assert decision.threshold == (expected if decision.allowed >= 0 else -inf)
        assert (decision.refusal is None) == (decision.threshold != -inf)
        found.add("finite" if np.isfinite(decision.threshold) else str(decision.threshold))
        again = decide(
            decision.cells, np.diff(decision.misses, prepend=0), total, n, xi=xi, delta=0.05
        )
        assert (again.threshold, again.allowed, again.refusal) == (
            decision.threshold,
            decision.allowed,
            decision.refusal,
        )
    assert found == {"finite", "inf", "-inf"}


@pytest.mark.parametrize(
    ("lost", "unsafe", "n", "xi"),
    [(0, 9, 50, 0.01), (0, 0, 20, 0.05), (4, 40, 250, 0.03), (3, 3, 300, 0.02)],
)
def test_the_rollouts_that_a_refusal_asks_for_certify_at_the_same_rates(
    lost: int, unsafe: int, n: int, xi: float
) -> None:
    def refused(lost: int, unsafe: int, n: int) -> Refusal | None:
        return decide(
            np.array([-1, TOP]), np.array([lost, unsafe - lost]), unsafe, n, xi=xi, delta=0.01
        ).refusal

    refusal = refused(lost, unsafe, n)
    assert refusal is not None
    assert refusal.needed is not None
    assert refusal.needed > n
    assert (
        refused(-(-lost * refusal.needed // n), -(-unsafe * refusal.needed // n), refusal.needed)
        is None
    )


def test_what_no_number_of_rollouts_can_show_is_refused_for_good() -> None:
    none_left = decide(np.array([5]), np.array([3]), 3, 10**5, xi=0.0, delta=0.05).refusal
    too_many_lost = decide(np.array([-1]), np.array([60]), 60, 1000, xi=0.05, delta=0.05).refusal
    too_many_of_few = decide(np.array([-1]), np.array([2]), 9, 50, xi=0.01, delta=0.05).refusal
    assert none_left is not None
    assert none_left.needed is None
    assert too_many_lost is not None
    assert too_many_lost.needed is None
    assert "alone breaks" in too_many_lost.reason
    assert too_many_of_few is not None
    assert too_many_of_few.needed is None

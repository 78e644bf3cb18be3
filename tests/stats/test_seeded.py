"""The seeded region: the same cells by two programs, its size, and McNemar's region inside."""

from __future__ import annotations

import itertools
import math
from decimal import localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from tests.products import standing_for
from tests.stats.test_trinomial import outcomes, size_at, size_by_enumeration

from pacbound import exact_verifier
from pacbound.errors import InvalidValueError
from pacbound.exact_verifier import Counts, StepTest
from pacbound.stats.paired import mcnemar_test, paired_region, paired_test, staircase_chance
from pacbound.stats.seeded import is_filled, seeded_region, seeded_test, seeded_work

DELTAS = (0.25, 0.1, 0.05, 0.05 / 3, 0.01, 1e-3, 1e-6)
RATES = (1e-4, 0.003, 0.01, 0.02, 0.05, 0.1, 0.3, 0.7)


def verified(n: int, xi: float, delta: float) -> NDArray[np.int64]:
    """The region that the verifier of the standard library finds."""
    exact_verifier.Effort.left = exact_verifier.MOST_WORK
    with localcontext(exact_verifier.CONTEXT):
        return np.array(exact_verifier.filled(n, xi, delta))


def worst(bmax: NDArray[np.int64], n: int, xi: float, cells: int, *, corners: bool) -> float:
    """The largest chance under laws on the edge of the null, cells of which are bounded by their
    corners or not; by SciPy's distributions."""
    place = np.linspace(math.sqrt(xi), 1.0, cells + 1)
    v = np.clip((place**2 - xi) / 2.0, 0.0, (1.0 - xi) / 2.0)
    loss, gain = v[:-1] + xi, v[1:] if corners else v[:-1]
    c = np.arange(n + 1)
    share = np.minimum(1.0, loss / np.maximum(1.0 - gain, 1e-300))[:, None]
    within = stats.binom.cdf(bmax, n - c, share) * (bmax >= 0)
    return float((stats.binom.pmf(c, n, gain[:, None]) * within).sum(axis=1).max())


@pytest.mark.parametrize(
    ("delta", "most"),
    [
        (0.05, 30),
        pytest.param(0.05, 60, marks=pytest.mark.long),
        *(pytest.param(delta, 60, marks=pytest.mark.product) for delta in DELTAS if delta != 0.05),
    ],
)
def test_both_verifiers_find_the_same_cells_up_to_60_outcomes(delta: float, most: int) -> None:
    for n, xi in itertools.product(range(1, most + 1), RATES):
        assert is_filled(n, xi=xi, delta=delta)
        found = seeded_region(n, xi=xi, delta=delta).bmax
        np.testing.assert_array_equal(found, verified(n, xi, delta), err_msg=f"{n}, {xi}")


@pytest.mark.parametrize("seed", standing_for(range(20), [0]))
def test_both_verifiers_find_the_same_cells_of_larger_regions(seed: int) -> None:
    rng, found = np.random.default_rng(seed), 0
    while found < 4:
        n, delta = int(60 * 30 ** rng.random()), float(rng.choice(DELTAS))
        xi = float(rng.choice(RATES) if rng.random() < 0.5 else 0.3 ** (8 * rng.random()))
        if xi < 1 and is_filled(n, xi=xi, delta=delta):
            bmax = seeded_region(n, xi=xi, delta=delta).bmax
            np.testing.assert_array_equal(bmax, verified(n, xi, delta), err_msg=f"{n} {xi} {delta}")
            found += 1


@pytest.mark.parametrize(
    ("n", "xi", "delta"),
    standing_for(
        list(itertools.product((1, 4, 7, 20, 50, 100, 300), RATES[1:], (0.25, 0.05, 1e-3))),
        [(7, 0.3, 0.25), (50, 0.01, 0.05), (100, 0.05, 0.05)],
    ),
)
def test_the_size_is_at_most_delta_by_corners_and_by_a_fine_grid(
    n: int, xi: float, delta: float
) -> None:
    region = seeded_region(n, xi=xi, delta=delta)
    assert (np.diff(region.bmax) >= 0).all()
    cells = math.ceil(32 * (1 - math.sqrt(xi)) * math.sqrt(2 * n * math.log(2 / delta)))
    if is_filled(n, xi=xi, delta=delta):
        assert worst(region.bmax, n, xi, cells, corners=True) <= delta
    assert worst(region.bmax, n, xi, 3_001, corners=False) <= delta * (1 - 1e-7)
    v = (1.0 - xi) / 2.0 * np.linspace(0.0, 1.0, 200)
    chances = region.chance(v + xi, v)
    expected = [size_at(region.bmax, n, xi, rate) for rate in v]
    assert np.allclose(chances, expected, rtol=1e-7, atol=2e-6 * delta)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 12, 25, 40])
@pytest.mark.parametrize("xi", [0.01, 0.05, 0.3])
def test_no_law_that_loses_xi_passes_with_more_than_delta(n: int, xi: float) -> None:
    """All over the null, not on its edge alone."""
    b, c, _ = outcomes(n)
    for delta in (0.2, 0.05, 0.01):
        assert size_by_enumeration(n, xi, seeded_test(b, c, n, xi=xi, delta=delta)) <= delta


@pytest.mark.parametrize("delta", [0.7, *standing_for(DELTAS, [0.05, 0.25], rest="long")])
def test_what_certifies_at_xi_0_certifies_at_every_larger_xi(delta: float) -> None:
    """All tables of small samples; fewer losses or more gains keep them in."""
    for n in range(1, 41):
        b, c, _ = outcomes(n)
        better = mcnemar_test(b, c, delta=delta)
        for xi in RATES:
            passes = seeded_test(b, c, n, xi=xi, delta=delta)
            assert passes[better].all()
            table = np.zeros((n + 2, n + 2), dtype=bool)
            table[b, c] = passes
            keeps = table[:-2, 1:-1] | ~table[1:-1, :-2]  # one loss becomes a gain
            assert keeps[b[c < n] - 1, c[c < n]][b[c < n] > 0].all()


@pytest.mark.parametrize(
    ("n", "xi"),
    [(2_500, 0.03), (3_000, 5e-4), pytest.param(60_000, 1e-3, marks=pytest.mark.long)],
)
def test_mcnemars_region_is_inside_that_of_many_outcomes_which_both_verifiers_know(
    n: int, xi: float
) -> None:
    delta = 0.05
    region = seeded_region(n, xi=xi, delta=delta)
    assert not is_filled(n, xi=xi, delta=delta)
    c = np.linspace(0, n, 300).astype(np.int64)
    most = np.minimum(region.bmax[c], n - c)
    inside = most < n - c
    assert not mcnemar_test((most + 1)[inside], c[inside], delta=delta).any()
    v = (1.0 - xi) / 2.0 * np.linspace(0.0, 1.0, 60) ** 2
    assert (region.chance(v + xi, v) <= delta).all()
    with localcontext(exact_verifier.CONTEXT):
        test = StepTest(n, xi, exact_verifier.decimal(delta), seeded=True)
        for gains in (30, n // 50):
            exact_verifier.Effort.left = exact_verifier.MOST_WORK
            losses = int(region.bmax[gains])
            assert test.may_pass(Counts((n,), (losses,), (gains,)))
            assert not test.may_pass(Counts((n,), (losses + 2,), (gains,)))
            assert test.may_fail(Counts((n,), (losses + 1,), (gains,)))


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 250), xi=st.floats(1e-4, 0.9), delta=st.sampled_from(DELTAS))
def test_nothing_lost_and_nothing_gained_passes_where_it_may(
    n: int, xi: float, delta: float
) -> None:
    left = (1 - xi) ** n
    passes = seeded_test(0, 0, n, xi=xi, delta=delta)
    assert passes is (left <= delta) or abs(left / delta - 1) < 3e-6


def power(n: int, xi: float, lost: float, gained: float, *, today: bool = False) -> float:
    region = (paired_region if today else seeded_region)(n, xi=xi, delta=0.05)
    c = np.arange(n + 1)
    most = region.bmax[np.minimum(c, region.bmax.size - 1)]
    below = stats.binom.cdf(most, n - c, lost / (1.0 - gained)) * (most >= 0)
    return float((stats.binom.pmf(c, n, gained) * below).sum())


@pytest.mark.parametrize(
    ("n", "xi", "least"),
    [(50, 0.01, 0.45), (100, 0.01, 0.74), (100, 0.05, 0.93), (200, 0.01, 0.95)],
)
def test_gains_are_seen_below_the_number_of_rows_that_a_loss_of_nothing_takes(
    n: int, xi: float, least: float
) -> None:
    """Ten points are gained, of rates as on ImageNet."""
    assert power(n, xi, 0.08, 0.18) > least - 0.1
    for lost, gained in [(0.01, 0.01), (0.05, 0.05), (0.08, 0.18), (0.1, 0.12)]:
        assert power(n, xi, lost, gained) >= power(n, xi, lost, gained, today=True)


@pytest.mark.parametrize("first", [0, 1, 7, 30])
def test_the_chance_of_a_staircase_that_begins_late_is_exact(first: int) -> None:
    n, c = 30, np.arange(31)
    bmax = np.where(c < first, -1, (c - first) // 3)
    for gain, neither in [(0.3, 0.5), (0.01, 0.9), (0.5, 0.01)]:
        b, counts, logs = outcomes(n)
        rest = n - b - counts
        law = np.exp(logs) * (1 - gain - neither) ** b * gain**counts * neither**rest
        expected = float(law[b <= bmax[counts]].sum())
        found = staircase_chance(bmax, n, np.array([gain]), np.array([neither]), level=1e-3)
        assert 0 <= found[0] - expected <= 2e-9


def test_from_200_000_outcomes_on_the_pair_decides_and_a_rate_of_0_is_not_for_it() -> None:
    asked: dict[str, Any] = {"xi": 0.01, "delta": 1e-3}
    assert seeded_test(1000, 3000, 200_000, **asked) is paired_test(1000, 3000, 200_000, **asked)
    assert seeded_work(200_000, **asked) == 0.0
    assert seeded_test([0, 9], [9, 0], 50, xi=0.02, delta=0.1).tolist() == [True, False]
    with pytest.raises(InvalidValueError, match="mcnemar_test"):
        seeded_test(0, 9, 50, xi=0.0, delta=0.1)

"""The paired tests, held against enumeration and against oracles that share no code with them."""

from __future__ import annotations

import itertools
import math
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import pytest
from experiments.huge_counts import tail
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats
from scipy.special import betainc, betaincc
from tests.products import standing_for

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats import binomial
from pacbound.stats.paired import (
    PairedBound,
    labels_needed_by_walk,
    likelihood_ratio,
    mcnemar_test,
    paired_region,
    paired_test,
    paired_upper,
)

Floats = NDArray[np.float64]


@lru_cache(maxsize=8)
def outcomes(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """All (b, c) of n outcomes, and the logarithms of their multinomial coefficients from exact
    integers."""
    pairs = [(b, c) for b in range(n + 1) for c in range(n - b + 1)]
    logs = [math.log(math.comb(n, b) * math.comb(n - b, c)) for b, c in pairs]
    return np.array([b for b, _ in pairs]), np.array([c for _, c in pairs]), np.array(logs)


def chances(n: int, losses: Floats, gains: Floats) -> Floats:
    """P(b, c) for every outcome (columns) under every law (rows)."""
    b, c, logs = outcomes(n)

    def power(rate: Floats, count: NDArray[np.int64]) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(count == 0, 0.0, count * np.log(rate[:, None]))

    rest = np.maximum(1.0 - losses - gains, 0.0)
    return np.exp(logs + power(losses, b) + power(gains, c) + power(rest, n - b - c))


def whole_null(xi: float, steps: int) -> tuple[Floats, Floats]:
    """Laws all over {P(loss) - P(gain) >= xi}: its boundary densely, its corners, its inside."""
    boundary = (
        (1.0 - xi)
        / 2.0
        * np.concatenate(
            [np.linspace(0.0, 1.0, 20 * steps), np.linspace(0.0, 1.0, 20 * steps) ** 3]
        )
    )
    grid = [
        (loss, gain)
        for loss in np.linspace(xi, 1.0, steps)
        for gain in np.linspace(0.0, 1.0, steps)
        if loss - gain >= xi and loss + gain <= 1.0
    ]
    return (
        np.concatenate([boundary + xi, [loss for loss, _ in grid]]),
        np.concatenate([boundary, [gain for _, gain in grid]]),
    )


def size_by_enumeration(n: int, xi: float, rejects: NDArray[np.bool_], steps: int = 25) -> float:
    return float(chances(n, *whole_null(xi, steps))[:, rejects].sum(axis=1).max())


def size_at(bmax: NDArray[np.int64], n: int, xi: float, v: float) -> float:
    """The chance of {b <= bmax(c)} at one null, by SciPy's distributions, over all c that have any
    weight."""
    c = np.arange(
        max(0, int(n * v - 14 * math.sqrt(n * v) - 100)),
        min(n, int(n * v + 14 * math.sqrt(n * v) + 100)) + 1,
    )
    share = min(1.0, (v + xi) / (1.0 - v))
    return float(
        np.sum(
            stats.binom.pmf(c, n, v)
            * stats.binom.cdf(bmax[np.minimum(c, bmax.size - 1)], n - c, share)
        )
    )


GRID = [
    (n, xi, delta)
    for n, xi, delta in itertools.product(
        (5, 12, 20, 33, 60), (0.03, 0.1, 0.25, 0.6, 0.9), (0.4, 0.1, 0.05, 0.01, 1e-4)
    )
    if (1 - xi) ** n < delta * (1 - 1e-5)
]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "xi", "delta"), GRID)
def test_the_exact_test_certifies_falsely_with_probability_at_most_delta_anywhere_in_the_null(
    n: int, xi: float, delta: float
) -> None:
    b, c, _ = outcomes(n)
    rejects = paired_test(b, c, n, xi=xi, delta=delta)
    assert rejects[(b == 0) & (c == 0)].all()
    assert size_by_enumeration(n, xi, rejects) <= delta


@pytest.mark.slow
@pytest.mark.parametrize(("n", "xi", "delta"), GRID)
def test_the_pair_certifies_falsely_with_probability_at_most_delta_anywhere_in_the_null(
    n: int, xi: float, delta: float
) -> None:
    b, c, _ = outcomes(n)
    assert (
        size_by_enumeration(n, xi, paired_test(b, c, n, xi=xi, delta=delta, bound="pair")) <= delta
    )


@pytest.mark.parametrize(
    ("n", "xi", "delta", "size"),
    [(30, 0.1, 0.05, 0.0463), (60, 0.05, 0.1, 0.0981), (200, 0.03, 0.01, 0.0073)],
)
def test_the_size_is_close_to_delta(n: int, xi: float, delta: float, size: float) -> None:
    region = paired_region(n, xi=xi, delta=delta)
    v = (1.0 - xi) / 2.0 * np.linspace(0.0, 1.0, 4001)
    worst = max(size_at(region.bmax, n, xi, rate) for rate in v[::10])
    assert worst == pytest.approx(size, abs=6e-5)
    assert 0.7 * delta <= worst <= delta
    assert float(region.chance(v + xi, v).max()) == pytest.approx(size, abs=6e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "xi", "delta"),
    [
        (700, 0.02, 1e-3),
        (3_500, 0.3, 1e-4),
        (20_000, 0.02, 1e-3),
        (20_000, 0.005, 0.05),
        (20_000, 0.1, 1e-6),
        (100_000, 0.01, 1e-3),
    ],
)
def test_the_size_at_large_n_is_at_most_delta_and_not_much_less(
    n: int, xi: float, delta: float
) -> None:
    bmax = paired_region(n, xi=xi, delta=delta).bmax
    fractions = np.concatenate([np.linspace(0.0, 1.0, 30) ** 3, [1e-6, 1e-5, 1e-4]])
    near_zero = np.linspace(0.0, 12.0, 25) / n
    worst = max(size_at(bmax, n, xi, v) for v in [*(fractions * (1.0 - xi) / 2.0), *near_zero])
    assert 0.7 * delta <= worst <= delta


@pytest.mark.parametrize(
    ("n", "xi", "delta"),
    [(40, 0.2, 1e-2), (150, 0.05, 1e-3), (600, 0.05, 1e-12), (300, 0.6, 1e-100)],
)
def test_the_reported_chance_agrees_with_arbitrary_precision_arithmetic_from_above(
    n: int, xi: float, delta: float
) -> None:
    region = paired_region(n, xi=xi, delta=delta)
    assert not region.empty
    for v in (0.0, 0.3 / n, 0.02, (1 - xi) / 4, (1 - xi) / 2 - 1e-3):
        with mpmath.workdps(40):
            gain, loss = mpmath.mpf(v), mpmath.mpf(v) + mpmath.mpf(xi)
            rest, total = 1 - gain - loss, mpmath.mpf(0)
            for c in range(n + 1 if v else 1):
                column = math.comb(n, c) * gain**c
                if column * (1 - gain) ** (n - c) > mpmath.mpf(delta) * mpmath.mpf(10) ** -12:
                    most = min(int(region.bmax[min(c, region.bmax.size - 1)]), n - c)
                    total += column * mpmath.fsum(
                        math.comb(n - c, b) * loss**b * rest ** (n - c - b) for b in range(most + 1)
                    )
        excess = (region.chance(v + xi, v)[0] - total) / delta
        assert 0.0 <= excess <= 2e-6
        assert total <= delta


def ratio_by_search(b: int, c: int, n: int, xi: float) -> float:
    """The log likelihood ratio, its null maximum found by a numerical search, not by a formula."""
    if b - c >= n * xi:
        return 0.0

    def likelihood(loss: float, gain: float) -> float:
        rates = ((b, loss), (c, gain), (n - b - c, 1.0 - loss - gain))
        return sum(count * math.log(max(rate, 1e-320)) for count, rate in rates if count)

    top = (1.0 - xi) / 2.0
    found = optimize.minimize_scalar(
        lambda v: -likelihood(v + xi, v), bounds=(0.0, top), options={"xatol": 1e-13}
    )
    best = max(-float(found.fun), likelihood(xi, 0.0), likelihood(top + xi, top))
    return likelihood(b / n, c / n) - best


@pytest.mark.parametrize(
    ("n", "xi", "delta"),
    [(1, 0.99, 0.05), (2, 0.8, 0.05), (9, 0.4, 0.05), (14, 0.25, 0.1), (24, 0.2, 0.01)],
)
def test_the_region_is_the_one_a_plain_search_over_all_critical_values_finds(
    n: int, xi: float, delta: float
) -> None:
    b, c, _ = outcomes(n)
    ratios = np.array([ratio_by_search(int(i), int(j), n, xi) for i, j in zip(b, c, strict=True)])
    table = chances(n, *whole_null(xi, 40))
    best = np.zeros(b.size, dtype=bool)
    for critical in np.unique(ratios.round(7))[::-1]:
        trial = ratios >= critical - 1e-7
        if table[:, trial].sum(axis=1).max() > delta:
            break
        best = trial
    np.testing.assert_array_equal(paired_test(b, c, n, xi=xi, delta=delta), best)


@pytest.mark.parametrize(("n", "xi"), [(1, 0.5), (7, 0.3), (40, 0.02), (40, 0.9)])
def test_the_likelihood_ratio_is_that_of_a_numerical_search_and_falls_in_losses_and_rises_in_gains(
    n: int, xi: float
) -> None:
    b, c, _ = outcomes(n)
    ratio = likelihood_ratio(b, c, n, xi)
    expected = [ratio_by_search(int(i), int(j), n, xi) for i, j in zip(b, c, strict=True)]
    np.testing.assert_allclose(ratio, expected, rtol=1e-6, atol=1e-6)
    table = dict(zip(zip(b.tolist(), c.tolist(), strict=True), ratio.tolist(), strict=True))
    for (losses, gains), value in table.items():
        assert value <= table.get((losses - 1, gains), math.inf) + 1e-9
        assert value >= table.get((losses, gains - 1), -math.inf) - 1e-9


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 400),
    fraction=st.floats(1.0001, 8.0),
    delta=st.sampled_from([0.9, 0.5, 0.1, 0.01, 1e-5, 1e-12, 1e-100]),
    v=st.just(0.0) | st.floats(1e-300, 1),  # SciPy's binom overflows between
)
def test_any_region_is_a_staircase_whose_chance_is_at_most_delta(
    n: int, fraction: float, delta: float, v: float
) -> None:
    xi = -math.expm1(fraction * math.log(delta) / n)
    if not 0.0 < xi < 1.0:
        return
    region = paired_region(n, xi=xi, delta=delta)
    assert (np.diff(region.bmax) >= 0).all()
    assert region.bmax[0] >= 0
    rate = v * (1.0 - xi) / 2.0
    assert size_at(region.bmax, n, xi, rate) <= delta * (1 + 1e-9)


@pytest.mark.parametrize(
    ("n", "xi", "delta"),
    [
        (0, 0.1, 0.05),
        (1, 0.5, 0.05),
        (3, 0.1, 0.5),
        (100_000, 1e-9, 0.5),
        (50, 0.1, 1e-12),
        (199_999, 1e-4, 1e-100),
    ],
)
def test_too_few_outcomes_certify_nothing(n: int, xi: float, delta: float) -> None:
    region = paired_region(n, xi=xi, delta=delta)
    assert region.empty
    assert (region.bmax == -1).all()
    assert not region.accepts(0, np.arange(min(n, 50) + 1)).any()
    assert region.chance(xi, 0.0) <= 1e-6 * delta


@pytest.mark.parametrize("bound", ["exact", "pair"])
@pytest.mark.parametrize("delta", [0.9, 0.5, 0.1, 0.05, 1e-3, 1e-6, 1e-12, 1e-100])
@pytest.mark.parametrize(
    "xi", standing_for([0.999, 0.9, 0.5, 0.3, 0.1, 0.05, 0.02], [0.999, 0.9, 0.3], rest="long")
)
def test_labels_needed_is_the_first_sample_size_that_can_certify_anything(
    xi: float, delta: float, bound: PairedBound
) -> None:
    needed = labels_needed_by_walk(xi, delta=delta, bound=bound)
    assert all(
        paired_test(0, 0, n, xi=xi, delta=delta, bound=bound) for n in range(needed, needed + 4)
    )
    assert not paired_test(0, 0, needed - 1, xi=xi, delta=delta, bound=bound)
    # Not 1 - xi: that is a rounded float, and (1 - 0.9) ** 1 <= 0.1 would be decided by its last
    # digit.
    share = delta * (1.0 - 2e-6 if bound == "exact" else 0.8)
    with mpmath.workdps(40):
        left = 1 - mpmath.mpf(xi)
        assert left**needed <= share * (1 + 1e-9)
        assert left ** (needed - 1) > share * (1 - 1e-9)


def test_labels_needed_covers_the_change_to_the_pair_and_rates_beyond_counting() -> None:
    assert labels_needed_by_walk(1e-4, delta=1e-3) == 69_075
    needed = labels_needed_by_walk(3.4e-5, delta=1e-3)
    assert needed == labels_needed_by_walk(3.4e-5, delta=1e-3, bound="pair") == 209_729
    assert paired_test(0, 0, needed, xi=3.4e-5, delta=1e-3)
    assert labels_needed_by_walk(1e-300, delta=0.5) > 10**299


def test_no_larger_sample_is_refused_where_the_exact_test_gives_way_to_the_pair() -> None:
    xi = -math.expm1(math.log(1e-3) / 199_000)
    assert paired_test(0, 0, 199_500, xi=xi, delta=1e-3)
    assert not paired_test(0, 0, 200_000, xi=xi, delta=1e-3)
    needed = labels_needed_by_walk(xi, delta=1e-3)
    assert needed > 200_000
    assert paired_test(0, 0, needed, xi=xi, delta=1e-3)


def test_from_200_000_outcomes_on_the_pair_decides() -> None:
    b = np.arange(1_800, 2_000)
    exact = paired_test(b, 0, 200_000, xi=0.01, delta=1e-3)
    np.testing.assert_array_equal(
        exact, paired_test(b, 0, 200_000, xi=0.01, delta=1e-3, bound="pair")
    )
    assert exact[0]
    assert not exact[-1]
    with pytest.raises(InvalidValueError, match="bound='pair'"):
        paired_region(200_000, xi=0.01, delta=1e-3)


def test_for_unimaginably_small_delta_the_pair_decides() -> None:
    assert paired_test(0, 0, 10_000, xi=0.1, delta=1e-250)
    assert not paired_test(0, 0, 5_000, xi=0.1, delta=1e-250)
    with pytest.raises(InvalidValueError, match="too small"):
        paired_region(10_000, xi=0.1, delta=1e-250)


def test_the_exact_test_certifies_more_than_the_pair() -> None:
    c = np.arange(60)
    exact = [int(paired_test(np.arange(120), k, 2000, xi=0.02, delta=1e-3).sum()) for k in c]
    pair = [
        int(paired_test(np.arange(120), k, 2000, xi=0.02, delta=1e-3, bound="pair").sum())
        for k in c
    ]
    assert all(more >= less for more, less in zip(exact, pair, strict=True))
    assert sum(exact) > sum(pair) + 60


@pytest.mark.parametrize(("n", "delta"), [(5, 0.2), (20, 0.05), (40, 0.01)])
def test_the_upper_bound_misses_the_true_difference_with_probability_at_most_delta(
    n: int, delta: float
) -> None:
    b, c, _ = outcomes(n)
    bounds = paired_upper(b, c, n, delta=delta)
    rates = [
        (loss, gain)
        for loss in np.linspace(0, 1, 41)
        for gain in np.linspace(0, 1, 41)
        if loss + gain <= 1
    ]
    losses, gains = np.array([loss for loss, _ in rates]), np.array([gain for _, gain in rates])
    misses = bounds[None, :] < (losses - gains)[:, None]
    assert float((chances(n, losses, gains) * misses).sum(axis=1).max()) <= delta


@pytest.mark.parametrize(
    ("b", "c", "n", "delta"), [(3, 2, 50, 0.1), (30, 10, 2000, 0.01), (7, 40, 60, 1e-4)]
)
def test_the_upper_bound_is_the_difference_of_two_binomial_bounds_that_share_delta(
    b: int, c: int, n: int, delta: float
) -> None:
    upper, lower = (
        stats.beta.ppf(1 - 0.8 * delta, b + 1, n - b),
        stats.beta.ppf(0.2 * delta, c, n - c + 1),
    )
    bound = paired_upper(b, c, n, delta=delta)
    assert bound == pytest.approx(upper - lower, rel=1e-7)
    assert paired_test(b, c, n, xi=max(bound, 1e-9), delta=delta, bound="pair")


def test_the_upper_bound_of_no_outcomes_is_one() -> None:
    assert paired_upper(0, 0, 0, delta=0.1) >= 1.0
    assert paired_upper(0, 0, 0, delta=0.1) == pytest.approx(1.0)


@pytest.mark.parametrize(("n", "delta"), [(8, 0.1), (25, 0.05), (50, 1e-3)])
def test_mcnemar_certifies_falsely_with_probability_at_most_delta(n: int, delta: float) -> None:
    b, c, _ = outcomes(n)
    rejects = mcnemar_test(b, c, delta=delta)
    assert rejects.any()
    assert size_by_enumeration(n, 0.0, rejects) <= delta


def test_mcnemar_is_the_exact_sign_test() -> None:
    for b, c in itertools.product(range(12), range(30)):
        tail = sum(math.comb(b + c, k) for k in range(b + 1)) / 2 ** (b + c)
        assert mcnemar_test(b, c, delta=0.01) is (tail < 0.01)
    assert mcnemar_test(0, 0, delta=0.999) is False
    assert mcnemar_test(0, 2000, delta=1e-200) is True


@pytest.mark.parametrize(
    ("b", "c"), [(9_990_000, 10_010_000), (999_900_000, 10**9), (10**11 - 10**6, 10**11)]
)
def test_mcnemar_of_huge_counts_is_exact_whatever_the_precision_of_the_forward_function(
    monkeypatch: pytest.MonkeyPatch, b: int, c: int
) -> None:
    with mpmath.workdps(50):
        chance = float(tail(c, b + c, mpmath.mpf("0.5")))
    for name, forward in [("betainc", betainc), ("betaincc", betaincc)]:
        monkeypatch.setattr(
            binomial, name, lambda a, b, x, f=forward: f(a, b, x) * (1 - 9e-16 * np.minimum(a, b))
        )
    assert mcnemar_test(b, c, delta=chance * (1 - 1e-9)) is False
    assert mcnemar_test(b, c, delta=chance * (1 + 2e-3)) is True


def test_scalars_give_booleans_and_arrays_give_arrays() -> None:
    assert paired_test(0, 0, 500, xi=0.02, delta=0.01) is True
    verdicts = paired_test([[0, 1], [2, 300]], 3, 500, xi=0.02, delta=0.01)
    assert verdicts.shape == (2, 2)
    assert verdicts.dtype == np.bool_
    assert isinstance(paired_upper(3, 1, 100, delta=0.1), float)
    assert paired_upper([3, 4], [1, 1], 100, delta=0.1).shape == (2,)
    assert paired_test([], [], 500, xi=0.02, delta=0.01).shape == (0,)


def test_a_region_is_computed_once_and_cannot_be_changed() -> None:
    first = paired_region(5_000, xi=0.0213, delta=1e-3)
    start = time.process_time()
    assert paired_region(5_000, xi=0.0213, delta=1e-3) is first
    assert time.process_time() - start < 0.05
    with pytest.raises(ValueError, match="read-only"):
        first.bmax[0] = 10**6


def test_threads_agree_on_a_region() -> None:
    with ThreadPoolExecutor(4) as pool:
        regions = list(
            pool.map(lambda _: paired_region(1_234, xi=0.0321, delta=1e-3).bmax, range(8))
        )
    assert all(np.array_equal(regions[0], other) for other in regions)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"b": 6, "c": 5}, InvalidValueError, "b=6 and c=5 cannot be among n=10 outcomes"),
    ({"b": -1}, InvalidValueError, "b holds -1"),
    ({"c": -1}, InvalidValueError, "c holds -1"),
    ({"b": 0.5}, InvalidValueError, "b holds 0.5"),
    ({"b": "two"}, InvalidTypeError, "b has dtype"),
    ({"b": True}, InvalidTypeError, "b has dtype bool"),
    ({"b": [1, 2], "c": [1, 2, 3]}, InvalidValueError, "do not fit together"),
    ({"n": -10}, InvalidValueError, "n holds -10"),
    ({"n": 10.5}, InvalidValueError, "n holds 10.5"),
    ({"n": [10, 10]}, InvalidTypeError, "one whole number"),
    ({"xi": 0.0}, InvalidValueError, "mcnemar_test"),
    ({"xi": 1.0}, InvalidValueError, "xi=1.0"),
    ({"xi": -0.1}, InvalidValueError, "xi=-0.1"),
    ({"xi": float("nan")}, InvalidValueError, "xi is NaN"),
    ({"xi": "0.1"}, InvalidTypeError, "xi='0.1'"),
    ({"delta": 0.0}, InvalidValueError, "delta=0.0"),
    ({"delta": 1.2}, InvalidValueError, "pass delta=0.05"),
    ({"bound": "product"}, InvalidValueError, "expected 'exact' or 'pair'"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_bad_arguments_raise_and_say_why(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments: dict[str, Any] = {"b": 1, "c": 1, "n": 10, "xi": 0.1, "delta": 0.1} | change
    with pytest.raises(error, match=message):
        paired_test(arguments.pop("b"), arguments.pop("c"), arguments.pop("n"), **arguments)


def test_bad_counts_raise_in_the_other_functions_too() -> None:
    with pytest.raises(InvalidValueError, match="cannot be among"):
        paired_upper(6, 5, 10, delta=0.1)
    with pytest.raises(InvalidValueError, match=r"delta=1\.1"):
        paired_upper(6, 3, 10, delta=1.1)
    with pytest.raises(InvalidValueError, match="b holds -1"):
        mcnemar_test(-1, 5, delta=0.1)
    with pytest.raises(InvalidValueError, match="delta=2"):
        mcnemar_test(1, 5, delta=2)
    with pytest.raises(InvalidValueError, match="mcnemar_test"):
        labels_needed_by_walk(0.0, delta=0.1)
    with pytest.raises(InvalidValueError, match="cannot be among"):
        paired_region(50, xi=0.1, delta=0.1).accepts(50, 1)

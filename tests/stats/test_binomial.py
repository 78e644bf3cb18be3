"""Bounds on a rate are valid everywhere, tight, and the same for scalars and arrays."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from experiments.huge_counts import cases, excesses, tail
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc, betainccinv, comb
from tests.products import standing_for

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats import binomial
from pacbound.stats.binomial import (
    binomial_cdf,
    binomial_interval,
    binomial_lower,
    binomial_sf,
    binomial_upper,
)

TRIALS = [
    1,
    2,
    3,
    5,
    10,
    59,
    100,
    998,
    1000,
    1001,
    2000,
    35504,
    10**5,
    10**6,
    10**7,
    10**9,
    10**10,
    10**12,
]
DELTAS = [
    0.5,
    0.3,
    0.05,
    0.01,
    1e-3,
    1e-6,
    1e-12,
    1e-20,
    1e-50,
    1e-100,
    1e-150,
    1e-200,
    1e-250,
    1e-300,
]
HUGE = [
    (10**6, 10**9),
    (10**6, 10**12),
    (10**9 - 10**6, 10**9),
    (10**5, 10**10),
    (10**10 - 10**5, 10**10),
    (10**5, 10**12),
]


def pairs() -> list[tuple[int, int]]:
    few = [0, 1, 2, 10, 40, 999, 1000, 1001]
    found = {
        (k, n)
        for n in TRIALS
        for s in [*few, n // 2 if n <= 10**6 else 0, n // 3 if n <= 10**6 else 1]
        for k in (s, n - s)
    }
    return sorted((k, n) for k, n in found if 0 <= k <= n)


def stepped(bound: float, towards: float, steps: int) -> float:
    for _ in range(steps):
        bound = math.nextafter(bound, towards)
    return bound


def check_upper(oracle: Any, k: int, n: int, delta: float) -> None:
    bound = binomial_upper(k, n, delta=delta)
    if k == n:
        assert bound == 1.0
        return
    tail = oracle.chance_of_so_few(k, n, bound)
    assert tail <= mpmath.mpf(delta), f"optimistic: {k} of {n} at {delta}"
    if delta >= 1e-150 and tail < delta * (1 - mpmath.mpf("1e-6")):
        nearer = stepped(bound, 0.0, 4)
        assert oracle.chance_of_so_few(k, n, nearer) > delta, f"loose: {k} of {n} at {delta}"


def check_lower(oracle: Any, k: int, n: int, delta: float) -> None:
    bound = binomial_lower(k, n, delta=delta)
    if k == 0:
        assert bound == 0.0
        return
    tail = oracle.chance_of_so_many(k, n, bound)
    assert tail <= mpmath.mpf(delta), f"optimistic: {k} of {n} at {delta}"
    if delta >= 1e-150 and tail < delta * (1 - mpmath.mpf("1e-6")):
        nearer = stepped(bound, 1.0, 4)
        assert oracle.chance_of_so_many(k, n, nearer) > delta, f"loose: {k} of {n} at {delta}"


def test_the_oracle_agrees_with_sums_of_fractions(oracle: Any) -> None:
    for k, n, rate in [(0, 1, 0.25), (3, 10, 0.75), (7, 20, 0.5), (20, 20, 0.5)]:
        exact = sum(
            math.comb(n, j) * mpmath.mpf(rate) ** j * (1 - mpmath.mpf(rate)) ** (n - j)
            for j in range(k + 1)
        )
        assert abs(oracle.chance_of_so_few(k, n, rate) / exact - 1) < 1e-13
        assert abs(oracle.chance_of_so_many(n - k, n, 1 - rate) / exact - 1) < 1e-13


def test_oracle_cases_are_at_least_two_thousand() -> None:
    assert len(pairs()) * len(DELTAS) >= 2000


@pytest.mark.slow
@pytest.mark.parametrize("delta", standing_for(DELTAS, [0.05, 1e-6], rest="long"))
def test_no_bound_is_optimistic_or_loose(oracle: Any, delta: float) -> None:
    for k, n in pairs():
        check_upper(oracle, k, n, delta)
        check_lower(oracle, k, n, delta)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.5, 0.01, 1e-6, 1e-100, 1e-150, 1e-300])
@pytest.mark.parametrize(("k", "n"), standing_for(HUGE, HUGE[:3], rest="long"))
def test_no_bound_from_many_successes_is_optimistic_or_loose(
    oracle: Any, k: int, n: int, delta: float
) -> None:
    check_upper(oracle, k, n, delta)
    check_lower(oracle, k, n, delta)


@pytest.mark.parametrize("delta", [0.6, 0.9, 1 - 1e-9, 1e-307, 1e-320, 5e-324])
@pytest.mark.parametrize("n", [1, 2, 7, 1000, 384818063, 909776468, 10**12, 2**53])
def test_no_bound_is_optimistic_for_odd_levels_and_for_all_trials_allowed(
    oracle: Any, n: int, delta: float
) -> None:
    for k in {k for k in (0, 1, 2, 19, n - 19, n - 2, n - 1, n) if 0 <= k <= n}:
        if k < n:
            assert oracle.chance_of_so_few(k, n, binomial_upper(k, n, delta=delta)) <= mpmath.mpf(
                delta
            )
        if k > 0:
            assert oracle.chance_of_so_many(k, n, binomial_lower(k, n, delta=delta)) <= mpmath.mpf(
                delta
            )


@pytest.mark.slow
@given(
    n=st.integers(1, 10**12),
    share=st.floats(0, 1),
    most=st.integers(1, 3000),
    mirrored=st.booleans(),
    exponent=st.floats(-300, -0.31),
)
@settings(max_examples=400, deadline=None)
def test_no_bound_at_random_is_optimistic_or_loose(
    oracle: Any, n: int, share: float, most: int, mirrored: bool, exponent: float
) -> None:
    few = round(share * min(n, most))
    k = n - few if mirrored else few
    check_upper(oracle, k, n, 10.0**exponent)
    check_lower(oracle, k, n, 10.0**exponent)


JUMPS = [
    ("the lower bound", 235071008297, 470142016593, 1.8179632021058675e-10),
    ("the upper bound", 60228669690, 120457339381, 7.723764956887432e-05),
]
"""Where SciPy's forward function is off by 2.7e-5 and 2.5e-6 of itself at the exact bound."""


def check_excesses(drawn: list[tuple[str, int, int, float]]) -> None:
    for case, excess in zip(drawn, excesses(drawn), strict=True):
        assert -1e-3 < excess.many <= 0, case
        assert -1e-3 < excess.few <= 0, case


def test_no_bound_is_optimistic_where_the_forward_function_jumps() -> None:
    check_excesses(JUMPS)


MANY = [
    ("near one half", 2313947048, 4627894090, 0.00044978110808622385),
    ("near one half", 4923403491, 9846806992, 1.0902653134947056e-50),
    ("near one half", 1282568029, 2212324094, 1.666886470296802e-98),
    ("fewer", 9723998, 960731483, 0.11046565771605328),
    ("fewer", 76996722, 5597177501, 4.892276301222568e-07),
    ("fewer", 770113920, 5317702085, 1.0718541327541034e-08),
    ("mirrored", 1395649177, 1419325988, 5.376445082883617e-38),
    ("few of very many", 57223775, 863106598916, 2.0201695197303334e-99),
]
"""Where bounds were optimistic by up to 6e-7 of delta with SciPy up to 1.16, whose forward function
is computed in double precision."""


def test_no_bound_is_optimistic_if_the_forward_function_is_computed_in_double_precision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_excesses(MANY)
    # The error that was found at most, in the direction that hurts, whichever SciPy this is.
    monkeypatch.setattr(
        binomial, "betainc", lambda a, b, x: betainc(a, b, x) * (1 - 9e-16 * np.minimum(a, b))
    )
    check_excesses(MANY)


def test_the_normal_bound_on_huge_counts_holds_for_small_ones_too(oracle: Any) -> None:
    # It is a theorem for every number of trials, so that it can be tried where all can be tried.
    for n in range(4, 25):
        k = np.arange(1, n - 1, dtype=np.float64)
        for delta in (0.9, 0.5, 0.3, 1e-2, 1e-6, 1e-30):
            levels = np.full_like(k, delta)
            upper = binomial._normal(k, np.full_like(k, n), levels, 1.0)
            lower = binomial._normal(k + 1, np.full_like(k, n), levels, 0.0)
            for few, above, below in zip(k.astype(int).tolist(), upper, lower, strict=True):
                assert oracle.chance_of_so_few(few, n, above) <= delta
                assert oracle.chance_of_so_many(few + 1, n, below) <= delta


@pytest.mark.slow
def test_no_bound_from_huge_counts_is_optimistic_or_loose() -> None:
    check_excesses(cases(500, seed=2021))


@pytest.mark.parametrize("delta", [0.5, 0.7, 0.999])
@pytest.mark.parametrize("n", [10**11, 10**12 - 1])
def test_huge_counts_are_bounded_beyond_the_observed_rate_at_any_level(
    n: int, delta: float
) -> None:
    for k in (n // 2 - 1, n // 2, n // 2 + 1, n // 3, 2 * n // 3):
        lower, upper = binomial_interval(k, n, delta=delta)
        assert lower < k / n < upper
        assert binomial_lower(k, n, delta=delta) < k / n < binomial_upper(k, n, delta=delta)


def test_huge_counts_are_bounded_in_the_order_of_their_successes() -> None:
    for n in (3 * 10**10, 10**12):
        for middle in (n // 2, n // 4, 10**9, n - 10**9):
            k = np.arange(middle - 30, middle + 31)
            lower, upper = binomial_interval(k, n, delta=1e-6)
            assert (np.diff(lower) >= 0).all()
            assert (np.diff(upper) >= 0).all()


def test_the_integral_of_the_experiment_agrees_with_the_oracle(oracle: Any) -> None:
    with mpmath.workdps(50):
        for k, n, rate in [(500, 1000, 0.4), (999, 10**12, 8e-10), (10**5, 10**9, 9.96e-5)]:
            exact = oracle.chance_of_so_many(k, n, rate)
            assert abs(tail(k, n, mpmath.mpf(rate)) / exact - 1) < 1e-12


@pytest.mark.parametrize("delta", [0.5, 0.1, 0.05, 1e-2, 1e-4])
def test_bound_misses_the_true_rate_with_probability_at_most_delta(delta: float) -> None:
    for n in range(1, 61):
        counts = np.arange(n + 1)
        lower, upper = binomial_interval(counts, n, delta=delta)
        above, below = (
            binomial_upper(counts, n, delta=delta),
            binomial_lower(counts, n, delta=delta),
        )
        # The chance of a miss jumps where the rate crosses a bound, so the floats on either side of
        # each are tried as well.
        edges = np.concatenate([lower, upper, above, below])
        rates = np.concatenate(
            [np.linspace(0, 1, 1001), np.nextafter(edges, 0), np.nextafter(edges, 1)]
        )[:, None]
        weights = comb(n, counts) * rates**counts * (1 - rates) ** (n - counts)
        for missed in ((rates < lower) | (rates > upper), rates > above, rates < below):
            assert (np.where(missed, weights, 0.0).sum(axis=1) <= delta).all()


def test_the_case_that_scipy_gets_wrong_is_right() -> None:
    assert binomial_upper(999, 35504, delta=0.01) == pytest.approx(0.030246575508, rel=1e-9)


@pytest.mark.parametrize("wrong", [math.nan, 0.0, 1e-5, 0.4, 1.0, -3.0, math.inf])
def test_bounds_do_not_depend_on_what_the_inverse_beta_function_returns(
    monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    k, n = (
        np.array([1, 5, 40, 999, 1000, 17, 3, 30000]),
        np.array([10, 10, 60, 35504, 2000, 10**7, 10**12, 35504]),
    )
    expected = binomial_interval(k, n, delta=0.01)
    monkeypatch.setattr(binomial, "betainccinv", lambda a, b, y: np.full_like(a, wrong))
    monkeypatch.setattr(binomial, "betaincinv", lambda a, b, y: np.full_like(a, wrong))
    for found, right in zip(binomial_interval(k, n, delta=0.01), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-8)


def test_bounds_agree_with_the_inverse_beta_function_where_it_is_right() -> None:
    k, n = np.array([0, 1, 5, 50, 500]), np.array([10, 10, 100, 1000, 10000])
    np.testing.assert_allclose(
        binomial_upper(k, n, delta=0.05), betainccinv(k + 1, n - k, 0.05), rtol=1e-8
    )


@pytest.mark.parametrize("n", [1, 2, 59, 10**6, 10**12])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-10, 1e-300])
def test_no_successes_and_no_failures_have_the_closed_form(n: int, delta: float) -> None:
    with mpmath.workdps(400):
        complement = mpmath.mpf(delta) ** (mpmath.mpf(1) / n)
        bound = 1 - complement
    assert binomial_upper(0, n, delta=delta) == pytest.approx(float(bound), rel=1e-14)
    assert binomial_upper(0, n, delta=delta) >= bound
    assert binomial_lower(n, n, delta=delta) <= complement
    assert binomial_lower(0, n, delta=delta) == 0.0
    assert binomial_upper(n, n, delta=delta) == 1.0


def test_no_trials_say_nothing() -> None:
    assert binomial_interval(0, 0, delta=0.05) == (0.0, 1.0)
    assert (binomial_lower(0, 0, delta=0.05), binomial_upper(0, 0, delta=0.05)) == (0.0, 1.0)


def test_interval_is_the_two_bounds_at_half_of_delta() -> None:
    k, n = np.array([0, 3, 10, 997]), np.array([10, 10, 10, 1000])
    lower, upper = binomial_interval(k, n, delta=0.02)
    assert (lower == binomial_lower(k, n, delta=0.01)).all()
    assert (upper == binomial_upper(k, n, delta=0.01)).all()


@pytest.mark.parametrize("one", [3, np.int64(3), np.uint8(3), np.array(3), 3.0])
def test_scalars_give_python_floats(one: Any) -> None:
    for value in (
        *binomial_interval(one, 10, delta=0.05),
        binomial_cdf(one, 10, 0.5),
        binomial_sf(one, 10, np.float64(0.5)),
    ):
        assert type(value) is float


def test_arrays_broadcast_and_delta_with_them() -> None:
    bounds = binomial_upper(np.arange(4)[:, None], [10, 20, 30], delta=0.05)
    assert bounds.shape == (4, 3)
    assert bounds.dtype == np.float64
    assert bounds[2, 1] == binomial_upper(2, 20, delta=0.05)
    levels = binomial_lower(9, 10, delta=[0.1, 0.01])
    assert levels.tolist() == [binomial_lower(9, 10, delta=0.1), binomial_lower(9, 10, delta=0.01)]
    assert binomial_upper(
        np.ones((2, 1, 1), int), np.full((5, 1), 9), delta=np.full(3, 0.1)
    ).shape == (2, 5, 3)


def test_empty_arrays_give_empty_arrays() -> None:
    lower, upper = binomial_interval([], [], delta=0.05)
    assert lower.shape == upper.shape == (0,)
    assert binomial_upper(np.zeros((0, 3), int), 5, delta=0.1).shape == (0, 3)
    assert binomial_cdf([], [], 0.5).shape == (0,)


counted = st.integers(0, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
levels = st.floats(1e-150, 0.5)


@given(st.lists(st.tuples(counted, levels), min_size=1, max_size=8))
@settings(deadline=None)
def test_arrays_hold_exactly_what_scalars_give(cases: list[tuple[tuple[int, int], float]]) -> None:
    k, n = np.array([pair for pair, _ in cases]).T
    lower, upper = binomial_interval(k, n, delta=[delta for _, delta in cases])
    assert list(zip(lower.tolist(), upper.tolist(), strict=True)) == [
        binomial_interval(*pair, delta=delta) for pair, delta in cases
    ]


@given(counted, levels)
@settings(deadline=None)
def test_bounds_rise_with_successes_and_widen_with_confidence(
    pair: tuple[int, int], delta: float
) -> None:
    k, n = pair
    lower, upper = binomial_interval(k, n, delta=delta)
    assert 0.0 <= lower <= k / max(n, 1) <= upper <= 1.0 or n == 0
    wider = binomial_interval(k, n, delta=delta * 0.99)
    assert wider[0] <= lower
    assert upper <= wider[1]
    after = binomial_interval(k + 1, n + 1, delta=delta)
    assert lower <= after[0]
    assert binomial_upper(k, n + 1, delta=delta) <= binomial_upper(k, n, delta=delta)
    assert binomial_lower(k, n + 1, delta=delta) <= binomial_lower(k, n, delta=delta)
    if k < n:
        more = binomial_interval(k + 1, n, delta=delta)
        assert lower <= more[0]
        assert upper <= more[1]


@given(counted, levels)
@settings(deadline=None)
def test_successes_and_failures_are_mirror_images(pair: tuple[int, int], delta: float) -> None:
    k, n = pair
    assert binomial_lower(k, n, delta=delta) == pytest.approx(
        1.0 - binomial_upper(n - k, n, delta=delta), abs=1e-9
    )


def test_tails_agree_with_the_oracle(oracle: Any) -> None:
    for k, n, rate in [
        (0, 1, 0.5),
        (3, 10, 0.2),
        (999, 35504, 0.03),
        (10, 10**9, 3e-8),
        (500, 1000, 0.4),
        (7, 7, 0.1),
    ]:
        # Where long double is a plain double, 1 - rate is rounded, which 1e9 trials amplify.
        few = oracle.chance_of_so_few(k, n, rate)
        assert abs(binomial_cdf(k, n, rate) / few - 1) < 1e-12 + n * 1.2e-16
        assert abs(binomial_sf(k, n, rate) / oracle.chance_of_so_many(k, n, rate) - 1) < 1e-6


def test_tails_have_their_edges() -> None:
    for rate in (0.0, 0.3, 1.0):
        assert binomial_cdf([-5, -1, 4, 5, 9], 5, rate).tolist()[:2] == [0.0, 0.0]
        assert binomial_cdf([5, 9], 5, rate).tolist() == [1.0, 1.0]
        assert binomial_sf([-5, 0], 5, rate).tolist() == [1.0, 1.0]
        assert binomial_sf([6, 9], 5, rate).tolist() == [0.0, 0.0]
    assert binomial_cdf([0, 4], 5, [0.0, 1.0]).tolist() == [1.0, 0.0]
    assert binomial_sf([1, 5], 5, [0.0, 1.0]).tolist() == [0.0, 1.0]
    assert (
        binomial_cdf(0, 0, 0.5),
        binomial_sf(0, 0, 0.5),
        binomial_cdf(-1, 0, 0.5),
        binomial_sf(1, 0, 0.5),
    ) == (1, 1, 0, 0)


@given(counted, st.floats(0, 1))
@settings(deadline=None)
def test_tails_add_up_to_one(pair: tuple[int, int], rate: float) -> None:
    k, n = pair
    assert binomial_cdf(k, n, rate) + binomial_sf(k + 1, n, rate) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("k", "n", "error", "message"),
    [
        (math.nan, 10, InvalidValueError, "successes holds nan, which is not a count"),
        (math.inf, 10, InvalidValueError, "successes holds inf, which is not a count"),
        (-1, 10, InvalidValueError, "successes holds -1, which is not a count: expected 0 to"),
        (2.5, 10, InvalidValueError, "Pass counts, not rates"),
        ([1, 0.25], 10, InvalidValueError, "successes holds 0.25"),
        (True, 10, InvalidTypeError, "Sum booleans before passing them"),
        ("3", 10, InvalidTypeError, "does not hold counts: expected integers"),
        (object(), 10, InvalidTypeError, "dtype object"),
        (None, 10, InvalidTypeError, "dtype object"),
        (1 + 0j, 10, InvalidTypeError, "dtype complex128"),
        ([[1], [1, 2]], 10, InvalidTypeError, "rows of different lengths"),
        (11, 10, InvalidValueError, "11 successes of 10 trials cannot be.*Check the order"),
        ([1, 12], [10, 11], InvalidValueError, "12 successes of 11 trials cannot be"),
        (
            [1, 2],
            [10, 11, 12],
            InvalidValueError,
            r"successes of shape \(2,\) and trials of shape \(3,\) do not fit",
        ),
        (1, 2**53 + 2, InvalidValueError, "trials holds 9007199254740994"),
        (1, 1e300, InvalidValueError, "trials holds 1e\\+300"),
        (1, -10, InvalidValueError, "trials holds -10"),
    ],
)
def test_bad_counts_are_refused(k: Any, n: Any, error: type[Exception], message: str) -> None:
    for bound in (binomial_interval, binomial_upper, binomial_lower):
        with pytest.raises(error, match=message):
            bound(k, n, delta=0.05)


@pytest.mark.parametrize(
    ("delta", "error", "message"),
    [
        (0, InvalidValueError, "delta=0 is not a failure probability: expected 0 < delta < 1"),
        (1, InvalidValueError, "delta=1 is not"),
        (
            1.2,
            InvalidValueError,
            "delta=1.2 is not a failure probability.*For a 95 % guarantee pass delta=0.05",
        ),
        (-0.1, InvalidValueError, "delta=-0.1 is not"),
        (math.nan, InvalidValueError, "delta is NaN"),
        ("0.1", InvalidTypeError, "delta='0.1' is not a failure probability: expected one number"),
        (None, InvalidTypeError, "delta=None"),
        (True, InvalidTypeError, "delta=True"),
        ([0.1, 1.5], InvalidValueError, "delta=1.5 is not"),
        ([0.1, math.nan], InvalidValueError, "delta holds NaN"),
        (["0.1"], InvalidTypeError, "dtype <U3"),
        ([0.1, 0.2, 0.3], InvalidValueError, r"delta of shape \(3,\) do not fit together"),
    ],
)
def test_bad_deltas_are_refused(delta: Any, error: type[Exception], message: str) -> None:
    for bound in (binomial_interval, binomial_upper, binomial_lower):
        with pytest.raises(error, match=message):
            bound([1, 2], [10, 10], delta=delta)


def test_bad_rates_are_refused() -> None:
    for chance in (binomial_cdf, binomial_sf):
        with pytest.raises(
            InvalidValueError,
            match=r"rate holds 1.5, which is not a probability: expected 0 <= rate <= 1",
        ):
            chance(1, 10, 1.5)
        with pytest.raises(InvalidValueError, match="rate holds NaN"):
            chance(1, 10, math.nan)
        with pytest.raises(InvalidTypeError, match="rate has dtype"):
            chance(1, 10, "half")

"""Hypergeometric tails against exact arithmetic, and what they allow against a search."""

from fractions import Fraction
from itertools import permutations
from math import comb, log
from typing import Any

import mpmath
import numpy as np
import pytest

from pacbound.errors import InvalidValueError
from pacbound.stats.hypergeometric import (
    chance_that_a_look_errs,
    hypergeometric_tail,
    largest_count,
    least_drawn,
    passes,
    planned_sample,
    staged_counts,
)


def exact_tail(k: int, population: int, marked: int, drawn: int) -> Fraction:
    ways = sum(
        comb(marked, x) * comb(population - marked, drawn - x) for x in range(min(k, drawn) + 1)
    )
    return Fraction(ways, comb(population, drawn))


@pytest.mark.parametrize("population", [1, 2, 7, 12])
def test_every_tail_of_a_small_population_is_exact_and_never_low(population: int) -> None:
    for marked in range(population + 1):
        for drawn in range(population + 1):
            for k in range(-1, drawn + 2):
                exact = float(exact_tail(k, population, marked, drawn)) if k >= 0 else 0.0
                found = hypergeometric_tail(k, population=population, marked=marked, drawn=drawn)
                assert exact * (1 - 1e-14) <= found <= exact * (1 + 1e-14) + 1e-299


@pytest.mark.parametrize(
    ("k", "population", "marked", "drawn"),
    [(30, 9_000, 400, 900), (0, 20_000, 40, 700), (70, 4_000, 180, 1_800), (3, 999, 54, 118)],
)
def test_tails_of_a_large_population_agree_with_integers(
    k: int, population: int, marked: int, drawn: int
) -> None:
    exact = exact_tail(k, population, marked, drawn)
    found = hypergeometric_tail(k, population=population, marked=marked, drawn=drawn)
    assert found == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize("k", [1322, 1200, 900])
def test_tails_of_two_million_records_agree_with_mpmath(k: int) -> None:
    population, drawn = 2_000_000, 27_758
    marked = 100_000 + 1 + k

    def log_choose(n: int, x: int) -> mpmath.mpf:
        return mpmath.loggamma(n + 1) - mpmath.loggamma(x + 1) - mpmath.loggamma(n - x + 1)

    with mpmath.workdps(40):
        all_ways = log_choose(population, drawn)
        total = mpmath.fsum(
            mpmath.exp(
                log_choose(marked, x) + log_choose(population - marked, drawn - x) - all_ways
            )
            for x in range(k - 600, k + 1)
        )
        found = hypergeometric_tail(k, population=population, marked=marked, drawn=drawn)
        assert abs(found / total - 1) < 1e-10


def test_a_tail_below_all_floats_is_rounded_up_not_to_zero() -> None:
    tail = hypergeometric_tail(0, population=10_000, marked=5_000, drawn=5_000)
    assert 0 < tail <= 1e-300


@pytest.mark.parametrize(("marked", "drawn"), [(11, 3), (3, 11), (-1, 3), (3, -1)])
def test_more_marked_or_drawn_than_there_are_is_refused(marked: int, drawn: int) -> None:
    with pytest.raises(InvalidValueError, match="of 10 cannot be"):
        hypergeometric_tail(0, population=10, marked=marked, drawn=drawn)


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize(("population", "tolerated"), [(9, 1), (12, 3), (12, 10), (5, 0)])
def test_the_largest_count_and_the_least_sample_are_those_of_a_search(
    population: int, tolerated: int, delta: float
) -> None:
    def qualifies(k: int, drawn: int) -> bool:
        marked = tolerated + 1 + k
        if k < 0 or marked > population:
            return True
        return exact_tail(k, population, marked, drawn) <= Fraction(delta) * (
            1 - Fraction(1, 10**9)
        )

    for drawn in range(population + 1):
        found = [k for k in range(-1, drawn + 1) if qualifies(k, drawn)]
        assert found == list(range(-1, max(found) + 1)), "what passes is a beginning"
        best = largest_count(population=population, tolerated=tolerated, drawn=drawn, delta=delta)
        assert best == max(found)
    for k in range(population - tolerated):
        least = min(drawn for drawn in range(k, population + 1) if qualifies(k, drawn))
        found_least = least_drawn(k, population=population, tolerated=tolerated, delta=delta)
        assert found_least == least


@pytest.mark.parametrize(
    ("population", "rate", "delta", "count", "drawn"),
    [
        (1000, 0.05, 0.1, 3, 118),
        (1000, 0.05, 0.01, 3, 172),
        (10_000, 0.05, 0.1, 22, 554),
        (10_000, 0.02, 0.1, 10, 719),
        (10_000, 0.02, 0.01, 13, 1094),
        (10_000, 0.01, 0.1, 6, 962),
        (50_000, 0.05, 0.1, 70, 1585),
        (200, 0.05, 0.1, 0, 37),
    ],
)
def test_the_rule_for_the_size_of_a_sample_gives_what_was_measured(
    population: int, rate: float, delta: float, count: int, drawn: int
) -> None:
    tolerated = round(rate * population)
    plan = planned_sample(population=population, tolerated=tolerated, rate=rate, delta=delta)
    assert plan == (drawn, count)
    kept: dict[str, Any] = {"population": population, "tolerated": tolerated, "delta": delta}
    assert passes(count, drawn=drawn, **kept)
    assert not passes(count, drawn=drawn - 1, **kept)
    assert not passes(count + 1, drawn=drawn, **kept)


def test_three_looks_allow_what_the_recursion_says() -> None:
    looks: dict[str, Any] = {"population": 10_000, "tolerated": 500, "looks": [400, 800, 1600]}
    assert staged_counts(**looks, delta=0.1) == (13, 32, 77)
    chance = chance_that_a_look_errs(**looks, counts=[13, 32, 77])
    assert round(chance, 4) == 0.0955
    single = [
        largest_count(population=10_000, tolerated=500, drawn=drawn, delta=0.1)
        for drawn in (400, 800, 1600)
    ]
    assert single == [14, 34, 81]


@pytest.mark.parametrize(
    ("population", "tolerated", "looks", "counts"),
    [
        (7, 1, (2, 4), (0, 1)),
        (7, 2, (1, 3), (0, 0)),
        (8, 1, (3, 5), (1, 3)),
        (7, 1, (2, 3, 5), (0, 0, 2)),
        (7, 2, (3, 5), (-1, 1)),
        (7, 4, (3, 5), (0, 3)),
    ],
)
def test_the_recursion_over_looks_equals_all_permutations(
    population: int, tolerated: int, looks: tuple[int, ...], counts: tuple[int, ...]
) -> None:
    orders = np.array(list(permutations(range(population))))
    erred = np.zeros(len(orders), dtype=bool)
    for drawn, count in zip(looks, counts, strict=True):
        marked = tolerated + 1 + count
        if count >= 0 and marked <= population:
            # Record i stands at place orders[:, i] of the permutation.
            erred |= (orders[:, :marked] < drawn).sum(axis=1) <= count
    chance = chance_that_a_look_errs(
        population=population, tolerated=tolerated, looks=looks, counts=counts
    )
    assert chance == pytest.approx(erred.mean(), rel=1e-8, abs=1e-15)
    assert chance >= erred.mean()


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.3, 0.9])
def test_weighted_looks_together_keep_delta_and_spend_most_of_it(delta: float) -> None:
    counts = staged_counts(
        population=3_000, tolerated=150, looks=[300, 900], delta=delta, weights=(0.85, 0.15)
    )
    both: dict[str, Any] = {"population": 3_000, "tolerated": 150, "looks": [300, 900]}
    assert chance_that_a_look_errs(**both, counts=counts) <= delta
    more = chance_that_a_look_errs(**both, counts=[counts[0] + 1, counts[1] + 1])
    assert log(more / delta) > 0

"""Many tests share one failure probability, and never exceed it by rounding."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.binomial import (
    bonferroni_level,
    fixed_sequence,
    sidak_level,
)

DELTAS = [1 - 1e-12, 0.5, 0.1, 0.05, 1e-3, 1e-10, 1e-17, 1e-100, 1e-300]
TESTS = [1, 2, 3, 7, 20, 1000, 10**6 + 3, 10**9]


@pytest.mark.parametrize(
    ("passes", "count"),
    [
        ([], 0),
        ([False], 0),
        ([True], 1),
        ([True, True, False, True], 2),
        ([True] * 5, 5),
        ([False, True], 0),
    ],
)
def test_only_what_passes_before_the_first_failure_counts(passes: list[bool], count: int) -> None:
    assert fixed_sequence(passes) == count
    assert fixed_sequence(np.array(passes, dtype=bool)) == count
    assert fixed_sequence(iter(passes)) == count


def test_nothing_is_evaluated_after_the_first_failure() -> None:
    asked: list[int] = []

    def passes(step: int) -> bool:
        asked.append(step)
        return step < 3

    assert fixed_sequence(passes(step) for step in range(100)) == 3
    assert asked == [0, 1, 2, 3]


def test_an_endless_sequence_ends_at_its_first_failure() -> None:
    def outcomes() -> Iterator[bool]:
        yield from (True, True)
        while True:
            yield False

    assert fixed_sequence(outcomes()) == 2


@pytest.mark.parametrize(
    "bad", [[0.01, 0.5], [1, 0], ["yes"], [None], np.ones((2, 2), bool), np.array([0.5])]
)
def test_outcomes_that_are_not_boolean_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidTypeError, match="not the outcome of a test: expected True or False"):
        fixed_sequence(bad)


@pytest.mark.parametrize("passes", [3, "yes", lambda step: True])
def test_sequences_that_make_no_sense_are_refused(passes: Any) -> None:
    with pytest.raises(InvalidTypeError):
        fixed_sequence(passes)


@pytest.mark.parametrize("falsehoods", list(product([False, True], repeat=4)))
def test_fixed_sequence_claims_a_falsehood_with_probability_at_most_delta(
    falsehoods: tuple[bool, ...],
) -> None:
    # Independent tests that pass falsehoods at exactly delta and truths at 0.9: every outcome
    # weighted exactly.
    delta, wrong = Fraction(1, 10), Fraction(0)
    for outcome in product([False, True], repeat=4):
        chances = [delta if false else Fraction(9, 10) for false in falsehoods]
        weight = Fraction(1)
        for passed, chance in zip(outcome, chances, strict=True):
            weight *= chance if passed else 1 - chance
        wrong += weight * any(falsehoods[: fixed_sequence(outcome)])
    assert wrong <= delta


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("tests", TESTS)
def test_levels_never_add_up_to_more_than_delta(delta: float, tests: int) -> None:
    level = bonferroni_level(delta, tests)
    assert Fraction(level) * tests <= Fraction(delta)
    assert Fraction(level) * tests >= Fraction(delta) * (1 - Fraction(1, 10**12))
    check_sidak(delta, tests)


def check_sidak(delta: float, tests: int) -> None:
    level = sidak_level(delta, tests)
    with mpmath.workdps(700):
        kept, allowed = mpmath.log1p(-mpmath.mpf(level)) * tests, mpmath.log1p(-mpmath.mpf(delta))
        assert kept >= allowed
        assert kept <= allowed * (1 - mpmath.mpf("1e-10")) or delta > 0.999
    assert level >= bonferroni_level(delta, tests)


@given(st.floats(1e-290, 0.999999), st.integers(1, 10**9))
@settings(deadline=None)
def test_sidak_level_is_never_too_large(delta: float, tests: int) -> None:
    check_sidak(delta, tests)


def test_one_test_gets_all_of_delta() -> None:
    assert sidak_level(0.05, 1) == bonferroni_level(0.05, 1) == 0.05


def test_sidak_level_is_exact_in_fractions() -> None:
    for delta, tests in [(0.05, 20), (0.5, 3), (0.01, 100), (0.3, 7)]:
        assert (1 - Fraction(sidak_level(delta, tests))) ** tests >= 1 - Fraction(delta)


def test_levels_too_small_for_a_float_are_refused() -> None:
    for level in (bonferroni_level, sidak_level):
        with pytest.raises(InvalidValueError, match=r"too small for a float\. Pass a larger delta"):
            level(5e-324, 10)


@pytest.mark.parametrize(("delta", "tests"), [(0.0, 3), (1.0, 3), (0.1, 0), (0.1, -1), (0.1, 2.5)])
def test_bad_values_are_refused(delta: float, tests: Any) -> None:
    for level in (bonferroni_level, sidak_level):
        with pytest.raises(InvalidValueError):
            level(delta, tests)


@pytest.mark.parametrize(
    ("delta", "tests"), [("0.1", 3), (0.1, "3"), (0.1, True), (0.1, [3]), (None, 3)]
)
def test_bad_types_are_refused(delta: Any, tests: Any) -> None:
    for level in (bonferroni_level, sidak_level):
        with pytest.raises(InvalidTypeError):
            level(delta, tests)

"""Columns in a random order pass for related ones no more often than the bound says, by going
through all orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import permutations, product
from math import comb, exp, log

import numpy as np
import pytest
from numpy.typing import NDArray

from pacbound.tally.label_matches import log_chance_of_matches, most_matches


def _counts(column: list[int]) -> NDArray[np.int64]:
    return np.bincount(column, minlength=4)


def _margins() -> Iterator[tuple[list[int], list[int]]]:
    """Two columns of up to 6 rows in up to 4 classes, each with its classes in order."""
    for rows in (2, 4, 6):
        kinds = [tuple(sorted(column)) for column in product(range(3 + rows % 2), repeat=rows)]
        chosen = sorted(set(kinds))[:: rows + 2]
        for one, other in product(chosen, chosen[::3]):
            yield list(one), list(other)


def test_a_random_order_is_as_surprising_as_the_bound_says_at_most_so_often() -> None:
    for one, other in _margins():
        seen: Counter[float] = Counter()
        for order in set(permutations(other)):
            both = [a for a, b in zip(one, order, strict=True) if a == b]
            seen[log_chance_of_matches(_counts(one), _counts(other), _counts(both))] += 1
        passed = 0
        for bound in sorted(seen):
            passed += seen[bound]
            assert passed / seen.total() <= exp(bound) * (1 + 1e-9), (one, other, bound)


def test_one_class_in_two_is_judged_by_the_hypergeometric_tail_to_within_a_tenth() -> None:
    rows, a, b, m = 2000, 900, 1100, 620
    tail = sum(comb(a, j) * comb(rows - a, b - j) for j in range(m, a + 1)) / comb(rows, b)
    both = [m, rows - a - b + m]
    found = log_chance_of_matches([a, rows - a], [b, rows - b], both)
    # Two classes, and two bounds.
    assert log(4 * tail) <= found <= log(4 * tail * 1.1)


def test_a_class_to_every_row_is_judged_by_all_matches_together() -> None:
    alone = np.ones(1000, dtype=np.int64)
    matching = np.arange(1000) < 30
    assert log_chance_of_matches(alone, alone, matching) < log(1e-20)
    assert log_chance_of_matches(alone, alone, alone) < -2000


@pytest.mark.parametrize(
    ("one", "other"), [([9, 0], [0, 9]), ([9, 0], [9, 0]), ([9, 0], [4, 5]), ([0], [0])]
)
def test_margins_that_leave_no_choice_say_nothing(one: list[int], other: list[int]) -> None:
    assert log_chance_of_matches(one, other, most_matches(np.array(one), np.array(other))) == 0.0


def test_fewer_matches_than_by_chance_say_nothing() -> None:
    assert log_chance_of_matches([500, 500], [500, 500], [10, 10]) == 0.0


def test_a_billion_rows_are_judged_at_once() -> None:
    half = 5 * 10**8
    assert log_chance_of_matches([half] * 2, [half] * 2, [half // 2 + 10**5] * 2) < log(1e-6)
    assert log_chance_of_matches([half] * 2, [half] * 2, [half // 2 + 10**4] * 2) > log(1e-6)

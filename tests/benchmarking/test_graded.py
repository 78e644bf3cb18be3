"""Coins against bounds on means: the bounds by exact sums, and the laws by what they lose."""

from itertools import product
from math import prod

import numpy as np
import pytest
from benchmarks.duels.graded import LAWS, Law, by_coins, by_flaws, by_mean, measure, table
from benchmarks.duels.mean_bounds import bentkus, betting

LEVELS = {0.0: 0.6, 0.5: 0.3, 1.0: 0.1}
"""A law of grades with the mean 0.25."""


@pytest.mark.parametrize("bound", [betting, bentkus])
def test_a_bound_passes_a_mean_of_xi_with_probability_at_most_delta(bound: object) -> None:
    assert callable(bound)
    chance = sum(
        prod(LEVELS[value] for value in values)
        for values in product(LEVELS, repeat=8)
        if bound(np.array(values), xi=0.25, delta=0.3)
    )
    assert 0 < chance <= 0.3


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_what_a_law_loses_is_known(law: Law) -> None:
    scores, differences = law.draw(200_000, np.random.default_rng(0))
    seen = np.where(scores >= 0.4, differences, 0.0)
    assert seen.mean() == pytest.approx(law.lost(0.6), abs=5 * seen.std() / len(seen) ** 0.5)
    assert law.lost(law.possible(0.02)) == pytest.approx(0.02)


def test_grades_of_zero_and_one_are_what_the_coins_say() -> None:
    scores, differences = LAWS[3].draw(2_000, np.random.default_rng(1))
    assert by_coins(scores, differences, xi=0.05, seed=3) == by_flaws(scores, differences, xi=0.05)


def test_more_exits_are_found_until_the_bound_fails() -> None:
    scores, differences = LAWS[0].draw(2_000, np.random.default_rng(2))
    found = by_mean(scores, differences, bentkus, xi=0.05, lowest=0.0)
    for exits, passes in ((found, True), (found + 1 / 4_096, False)):
        lost = np.where(scores >= 1 - exits, differences, 0.0)
        assert bentkus(lost, xi=0.05, delta=0.01) is passes


def test_a_law_is_measured_and_shown() -> None:
    row = measure(LAWS[-1], 2, rows=2_000, xi=0.05)
    assert row["flaws"]["exits"] < row["coins"]["exits"] < row["possible"]
    assert row["met"] is None, "small continuous losses have no bar"
    assert table([row]).count("\n") == 2

"""Bets against bounds on means: the bounds by exact sums, and the laws by what they lose."""

from itertools import product
from math import prod

import numpy as np
import pytest
from benchmarks.duels.graded import LAWS, measure, table
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


def test_a_law_is_measured_and_shown() -> None:
    row = measure(LAWS[-1], 2, rows=2_000, xi=0.05)
    assert row["flaws"]["exits"] < row["bets"]["exits"] < row["possible"]
    assert row["met"] is None, "small continuous losses have no bar"
    assert table([row]).count("\n") == 2

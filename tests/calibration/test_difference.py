"""How much more often one group is right than another, from their intervals."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from pacbound import calibrate
from pacbound.errors import InvalidValueError


def test_two_groups_are_compared_by_their_intervals() -> None:
    groups = np.array(["north"] * 300 + ["south"] * 500)
    correct = np.arange(800) % 10 < np.where(groups == "north", 9, 6)
    certificate = calibrate(correct=correct, groups=groups, delta=0.05, n_bins=1)
    (low, high), (mirrored_low, mirrored_high) = (
        certificate.difference(*pair)[0] for pair in (("north", "south"), ("south", "north"))
    )
    assert 0.1 < low < 0.3 < high < 0.5
    assert (mirrored_low, mirrored_high) == (-high, -low)
    north, south = (certificate.tables[name] for name in ("north", "south"))
    assert low <= north.lower[0] - south.upper[0]
    assert high >= north.upper[0] - south.lower[0]


def test_differences_are_jointly_wrong_at_most_delta() -> None:
    # Every pair of outcomes of two small groups, with its exact probability.
    sizes, rates, delta = (9, 6), (0.8, 0.3), 0.2
    groups, wrong = ["a"] * sizes[0] + ["b"] * sizes[1], 0.0
    for a, b in product(range(sizes[0] + 1), range(sizes[1] + 1)):
        correct = [True] * a + [False] * (sizes[0] - a) + [True] * b + [False] * (sizes[1] - b)
        made = calibrate(correct=correct, groups=groups, delta=delta, n_bins=1)
        low, high = made.difference("a", "b")[0]
        chance = binom.pmf(a, sizes[0], rates[0]) * binom.pmf(b, sizes[1], rates[1])
        wrong += chance * (not low <= rates[0] - rates[1] <= high)
    assert 0 < wrong <= delta


def test_a_group_that_is_not_there_is_not_compared() -> None:
    certificate = calibrate(correct=[True] * 9, groups=list("aaabbbccc"), delta=0.05, n_bins=1)
    with pytest.raises(InvalidValueError, match="'d' is not a group of this certificate"):
        certificate.difference("a", "d")
    with pytest.raises(InvalidValueError, match="compared with itself"):
        certificate.difference("a", "a")
    alone = calibrate(correct=[True] * 9, delta=0.05, n_bins=1)
    with pytest.raises(InvalidValueError, match="none: pass groups"):
        alone.difference("a", "b")

"""Thresholds of shields that people choose by hand: what they are, and that none is a promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pacbound import certify_shield
from pacbound.baselines import (
    observed_miss_threshold,
)

TOP = 2**16


def by_hand(scores: Any, unsafe: Any, xi: float) -> float:
    """Every threshold of the grid that may matter, from the largest down; scores are multiples of
    4096 / 2^16."""
    cells = np.where(np.isneginf(scores), -1, np.floor(np.maximum(scores, 0) * TOP)).astype(int)
    for threshold in [
        math.inf,
        TOP,
        *sorted((cell + step for cell in range(0, TOP, 4096) for step in (0, 1)), reverse=True),
    ]:
        if (unsafe & (cells < threshold)).sum() / len(cells) <= xi:
            return threshold / TOP
    return -math.inf


@pytest.mark.parametrize("xi", [0.0, 0.01, 0.05, 0.2, 0.29, 0.5])
@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_it_is_the_largest_threshold_of_the_grid_with_a_tolerable_miss_rate(
    xi: float, lost: float
) -> None:
    rng = np.random.default_rng(0)
    unsafe = rng.random(100) < 0.5
    scores = np.where(
        unsafe & (rng.random(100) < lost),
        -np.inf,
        rng.choice(np.arange(0, TOP + 1, 4096), size=100) / TOP,
    )
    assert observed_miss_threshold(scores, unsafe, xi=xi) == by_hand(scores, unsafe, xi)


def test_a_certified_threshold_is_never_above_the_one_of_the_observed_rate() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        scores, unsafe = rng.random(300), rng.random(300) < 0.4
        found = certify_shield(scores, unsafe, xi=0.1, delta=0.05)
        assert found.threshold <= observed_miss_threshold(scores, unsafe, xi=0.1)


@pytest.mark.slow
def test_the_observed_rate_is_exceeded_by_new_rollouts_about_half_of_the_time() -> None:
    # Unsafe rollouts are 40 % of all, with scores spread evenly: at threshold t a share 0.4 t is
    # missed.
    rng, broken = np.random.default_rng(3), 0
    for _ in range(400):
        scores, unsafe = rng.random(200), rng.random(200) < 0.4
        broken += 0.4 * min(1.0, observed_miss_threshold(scores, unsafe, xi=0.1)) > 0.1
    assert 0.4 < broken / 400 < 0.65

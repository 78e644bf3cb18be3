"""Thresholds of shields that people choose by hand: what they are, and that none is a promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pacbound import Tally, certify_shield
from pacbound.baselines import (
    ALWAYS_BRAKE,
    NAIVE_THRESHOLD,
    POLICY_ALONE,
    observed_miss_threshold,
    xi_threshold,
)
from pacbound.errors import InvalidTypeError, InvalidValueError

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


def test_a_share_written_as_a_decimal_is_met_exactly() -> None:
    scores, unsafe = np.full(100, 0.5), np.arange(100) < 30
    scores[29] = 0.75
    assert observed_miss_threshold(scores, unsafe, xi=0.29) == 0.75
    assert observed_miss_threshold(scores, unsafe, xi=0.28) == 0.5


def test_saturated_scores_are_stopped_by_a_threshold_of_one() -> None:
    assert observed_miss_threshold([1.0, 1.0], [True, True], xi=0.1) == 1.0


def test_all_may_be_missed_or_none_can_be_saved() -> None:
    assert observed_miss_threshold([0.5, 0.5], [False, False], xi=0.0) == POLICY_ALONE == math.inf
    assert observed_miss_threshold([0.5, 0.1], [True, False], xi=0.5) == POLICY_ALONE
    assert (
        observed_miss_threshold([-np.inf, 0.1], [True, False], xi=0.4) == ALWAYS_BRAKE == -math.inf
    )


def test_a_tally_gives_what_the_arrays_give() -> None:
    rng = np.random.default_rng(1)
    scores, unsafe = rng.random(500), rng.random(500) < 0.3
    tally = Tally.count("shield", score=scores, unsafe=unsafe)
    assert observed_miss_threshold(tally, xi=0.1) == observed_miss_threshold(scores, unsafe, xi=0.1)


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


def test_thresholds_that_look_at_no_row() -> None:
    assert NAIVE_THRESHOLD == 0.5
    assert xi_threshold(xi=0.03) == 0.03
    with pytest.raises(InvalidValueError, match=r"xi=1\.5"):
        xi_threshold(xi=1.5)


@pytest.mark.parametrize(
    ("scores", "unsafe", "error", "message"),
    [
        ([], [], InvalidValueError, "no rollouts"),
        ([0.5], None, InvalidTypeError, "unsafe is missing"),
        (
            Tally.count("shield", score=[0.5], unsafe=[True]),
            [True],
            InvalidTypeError,
            "pass it alone",
        ),
        (
            Tally.count("calibration", confidence=[0.5], correct=[True]),
            None,
            InvalidValueError,
            "not a tally of rollouts",
        ),
        ([np.nan], [True], InvalidValueError, "NaN"),
        ([-np.inf], [False], InvalidValueError, "a lost rollout is unsafe"),
        ([0.5, 0.5], [True], InvalidValueError, "Rows do not match"),
    ],
)
def test_what_no_threshold_follows_from_is_refused(
    scores: Any, unsafe: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        observed_miss_threshold(scores, unsafe, xi=0.1)

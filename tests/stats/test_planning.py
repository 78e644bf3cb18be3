"""Plans are what a brute-force search over all numbers of trials finds."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
from scipy.special import comb
from tests.products import standing_for

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.binomial import binomial_cdf, binomial_upper
from pacbound.stats.planning import trials_needed


def works(n: int, target: float, expected: float, delta: float, power: float) -> bool:
    """By definition: the weights of all counts whose bound meets the target."""
    counts = np.arange(n + 1)
    weights = comb(n, counts) * expected**counts * (1.0 - expected) ** (n - counts)
    return bool(weights[binomial_upper(counts, n, delta=delta) <= target].sum() >= power)


@pytest.mark.parametrize(
    ("target", "expected", "delta", "power", "plan"),
    [
        (0.05, 0.025, 0.01, 0.9, (755, 828)),
        (0.02, 0.01, 1e-3, 0.9, (2923, 3048)),
        (0.01, 0.0, 1e-3, 0.9, (688, 688)),
        (0.05, 0.0, 0.05, 0.5, (59, 59)),
    ],
)
def test_known_plans_are_reproduced(
    target: float, expected: float, delta: float, power: float, plan: tuple[int, int]
) -> None:
    assert trials_needed(target, expected, delta=delta, power=power) == plan


@pytest.mark.parametrize(
    "target", standing_for([0.2, 0.3, 0.5, 0.8, 0.95], [0.3, 0.95], rest="long")
)
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.6])
@pytest.mark.parametrize(
    ("delta", "power"), [(0.05, 0.9), (0.01, 0.5), (0.2, 0.99), (0.3, 0.1), (1e-4, 0.8)]
)
def test_plans_agree_with_brute_force(
    target: float, share: float, delta: float, power: float
) -> None:
    expected = share * target
    first, always = trials_needed(target, expected, delta=delta, power=power)
    tried = 2 * always + 20 if always < 490 else 1000
    assert always < 900
    working = [works(n, target, expected, delta, power) for n in range(1, tried + 1)]
    assert working.index(True) + 1 == first
    assert tried - working[::-1].index(False) + 1 == always if False in working else always == 1


@pytest.mark.parametrize(("target", "expected"), [(0.01, 0.009), (0.001, 0.0009), (0.3, 0.295)])
def test_large_plans_work_where_they_say_and_not_just_before(
    target: float, expected: float
) -> None:
    delta, power = 1e-3, 0.9
    first, always = trials_needed(target, expected, delta=delta, power=power)
    assert (
        chance_of_success(first, target, expected, delta)
        >= power
        > chance_of_success(first - 1, target, expected, delta)
    )
    assert (
        chance_of_success(always, target, expected, delta)
        >= power
        > chance_of_success(always - 1, target, expected, delta)
    )


def chance_of_success(n: int, target: float, expected: float, delta: float) -> float:
    low, high = -1, n
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if binomial_upper(middle, n, delta=delta) <= target else (low, middle)
        )
    return float(binomial_cdf(low, n, expected))


def test_close_rates_take_seconds() -> None:
    started = time.process_time()
    assert trials_needed(0.001, 0.0009, delta=0.01) == (1241694, 1260306)
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize(
    ("target", "expected"),
    [(1e-6, 9e-7), (0.5, 0.5 - 1e-9), (0.3, math.nextafter(0.3, 0)), (1e-300, 0)],
)
def test_plans_beyond_reason_are_refused_at_once(target: float, expected: float) -> None:
    with pytest.raises(
        InvalidValueError, match=r"more than 1,000,000,000 trials to tell apart\. Raise the target"
    ):
        trials_needed(target, expected, delta=0.01)


@pytest.mark.parametrize("expected", [0.05, 0.06, 0.9])
def test_an_expected_rate_that_misses_the_target_is_refused_with_the_remedy(
    expected: float,
) -> None:
    with pytest.raises(
        InvalidValueError, match=r"is not below target=0\.05.*Raise the target, or improve"
    ):
        trials_needed(0.05, expected, delta=0.01)


@pytest.mark.parametrize("power", [0, 1, 1.5, -0.1, math.nan])
def test_a_power_that_is_no_chance_is_refused(power: float) -> None:
    with pytest.raises(InvalidValueError, match="power"):
        trials_needed(0.05, 0.01, delta=0.01, power=power)


@pytest.mark.parametrize(
    ("target", "expected", "delta"),
    [
        (1.0, 0.5, 0.1),
        (math.nan, 0.1, 0.1),
        (0.1, -0.1, 0.1),
        (0.1, 0.05, 0),
        (0.1, 0.05, 1.2),
        (0.1, 0.05, 1e-250),
    ],
)
def test_bad_values_are_refused(target: float, expected: float, delta: float) -> None:
    with pytest.raises(InvalidValueError):
        trials_needed(target, expected, delta=delta)


@pytest.mark.parametrize("bad", ["0.1", None, True, [0.1]])
def test_bad_types_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidTypeError):
        trials_needed(bad, 0.05, delta=0.1)
    with pytest.raises(InvalidTypeError):
        trials_needed(0.2, 0.05, delta=0.1, power=bad)

"""Planned looks: the chance that any of them passes wrongly, by exact enumeration."""

from fractions import Fraction
from itertools import pairwise, product
from math import comb

import numpy as np
import pytest
from scipy.stats import binom

from pacbound import planned_looks, trials_needed
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.threshold import allowed_events
from pacbound.stats import looks as module
from pacbound.stats.binomial import binomial_cdf
from pacbound.stats.looks import PlannedLooks

TEN = [round(236.5 * i) for i in range(1, 11)]


def exact_passes(looks: tuple[int, ...], largest: tuple[int, ...], rate: float) -> list[Fraction]:
    """The chance that each look is the first to pass, in rational arithmetic: the float `rate` is
    taken for the number that it is."""
    p, states, before, passed = Fraction(rate), {0: Fraction(1)}, 0, []
    for trials, most in zip(looks, largest, strict=True):
        added = trials - before
        law = [comb(added, k) * p**k * (1 - p) ** (added - k) for k in range(added + 1)]
        grown: dict[int, Fraction] = {}
        for (errors, chance), (more, weight) in product(states.items(), enumerate(law)):
            grown[errors + more] = grown.get(errors + more, Fraction(0)) + chance * weight
        passed.append(sum((c for k, c in grown.items() if k <= most), Fraction(0)))
        states = {k: c for k, c in grown.items() if k > most}
        before = trials
    return passed


PLANS = [
    (0.3, 0.1, (4, 9, 14)),
    (0.5, 0.05, (3, 6, 7, 14)),
    (0.2, 0.2, (5, 20, 21, 40)),
    (0.1, 0.05, (30, 31, 32, 60)),
    (0.9, 0.01, (2, 3, 5, 8, 13)),
    (0.02, 0.5, (20, 50)),
    (0.15, 1e-6, (60, 90)),
    (0.3, 0.1, tuple(range(1, 30))),
    (0.999, 1e-9, (3, 9)),
]


@pytest.mark.slow
def test_the_recursion_equals_a_sum_over_all_sequences() -> None:
    plan = planned_looks(0.3, delta=0.1, looks=(4, 9, 14))
    total = Fraction(0)
    for outcomes in product((0, 1), repeat=14):
        errors = np.cumsum(outcomes)
        if any(errors[n - 1] <= c for n, c in zip(plan.looks, plan.largest_errors, strict=True)):
            total += Fraction(0.3) ** int(errors[-1]) * (1 - Fraction(0.3)) ** int(14 - errors[-1])
    assert total == sum(exact_passes(plan.looks, plan.largest_errors, 0.3))
    assert total <= Fraction(plan.spent) <= total + Fraction(1.1e-6) * Fraction(0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("xi", "delta", "looks"), PLANS)
def test_some_look_passes_wrongly_with_probability_at_most_delta(
    xi: float, delta: float, looks: tuple[int, ...]
) -> None:
    plan = planned_looks(xi, delta=delta, looks=looks)
    size = sum(exact_passes(looks, plan.largest_errors, xi))
    assert 0 < size <= Fraction(plan.spent) <= Fraction(delta)
    assert Fraction(plan.spent) <= size + Fraction(1.1e-6) * Fraction(delta)
    for worse in (xi + 1e-9, (1 + xi) / 2, 1.0):
        assert sum(exact_passes(looks, plan.largest_errors, worse)) <= size


@pytest.mark.parametrize(("xi", "delta", "looks"), PLANS)
def test_no_larger_common_level_would_do(xi: float, delta: float, looks: tuple[int, ...]) -> None:
    plan = planned_looks(xi, delta=delta, looks=looks)
    following = [
        binomial_cdf(most + 1, n, xi) for n, most in zip(looks, plan.largest_errors, strict=True)
    ]
    level = min(following)
    assert max(plan.levels) <= level
    more = tuple(
        most + (chance <= level)
        for most, chance in zip(plan.largest_errors, following, strict=True)
    )
    assert sum(exact_passes(looks, more, xi)) > Fraction(delta) * (1 - Fraction(3e-6))


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.2, 0.5, 1.0])
def test_expected_labels_are_those_of_the_exact_law(rate: float) -> None:
    plan = planned_looks(0.2, delta=0.2, looks=(5, 20, 21, 40))
    passes = exact_passes(plan.looks, plan.largest_errors, rate)
    assert plan.passing(rate) == pytest.approx([float(chance) for chance in passes], abs=1e-6)
    never = 1 - sum(passes)
    exact = sum((n * c for n, c in zip(plan.looks, passes, strict=True)), Fraction(0)) + 40 * never
    assert plan.expected_labels(rate) == pytest.approx(float(exact), rel=1e-6)


@pytest.mark.parametrize(("xi", "delta", "n"), [(0.02, 0.01, 2038), (0.1, 0.05, 29), (0.5, 0.4, 3)])
def test_one_look_is_the_fixed_sample(xi: float, delta: float, n: int) -> None:
    plan = planned_looks(xi, delta=delta, looks=[n])
    assert plan.allowed(n) == allowed_events(n, rate=xi, delta=delta)


@pytest.mark.parametrize(("n", "xi"), [(10_000, 0.02), (1_000_000, 0.1), (200_000, 0.0001)])
def test_large_samples_lose_no_digits(n: int, xi: float) -> None:
    """Two looks, by incomplete beta functions instead of sums and products of ratios."""
    delta = 1e-3
    plan = planned_looks(xi, delta=delta, looks=[n, 2 * n])
    first, second = plan.largest_errors
    failing = np.arange(first + 1, second + 1)
    weights = np.diff(binomial_cdf(np.arange(first, second + 1), n, xi))
    direct = binomial_cdf(first, n, xi) + weights @ binomial_cdf(second - failing, n, xi)
    assert plan.spent == pytest.approx(direct, abs=1.1e-6 * delta)
    assert plan.spent <= delta


def test_ten_looks_take_a_third_fewer_labels_than_a_fixed_sample() -> None:
    plan = planned_looks(0.02, delta=0.01, looks=TEN)
    chance = sum(plan.passing(0.01))
    assert chance >= 0.9
    assert plan.expected_labels(0.01) <= 1450
    assert plan.looks[-1] == 2365
    fixed, _ = trials_needed(0.02, 0.01, delta=0.01, power=chance)
    assert fixed > 1.4 * plan.expected_labels(0.01)


def test_ten_looks_pass_wrongly_with_probability_at_most_delta() -> None:
    # A recursion of its own: drop what passed, and convolve the rest with the law of new labels.
    plan = planned_looks(0.02, delta=0.01, looks=TEN)
    law, size = np.ones(1), 0.0
    for added, most in zip(np.diff(TEN, prepend=0), plan.largest_errors, strict=True):
        law = np.convolve(law, binom.pmf(np.arange(added + 1), added, 0.02))
        size += float(law[: most + 1].sum())
        law[: most + 1] = 0.0
    assert size == pytest.approx(plan.spent, abs=1.1e-8)
    assert 0.9 * 0.01 < size <= 0.01


def test_a_plan_allows_more_than_an_equal_share_of_delta() -> None:
    plan = planned_looks(0.02, delta=0.01, looks=TEN)
    shared = [allowed_events(n, rate=0.02, delta=0.001) for n in TEN]
    assert all(a >= b for a, b in zip(plan.largest_errors, shared, strict=True))
    assert sum(plan.largest_errors) > sum(shared)


def test_a_later_look_never_allows_fewer_errors() -> None:
    plan = planned_looks(0.1, delta=0.05, looks=range(10, 300, 7))
    assert all(a <= b for a, b in pairwise(plan.largest_errors))
    assert plan.largest_errors[0] == -1
    assert plan.levels[0] == 0.0
    assert plan.verdict(0, 10) is False


def test_a_verdict_is_asked_for_at_a_planned_look() -> None:
    plan = planned_looks(0.02, delta=0.01, looks=[500, 1000])
    assert [plan.verdict(k, 1000) for k in (0, 9, 10)] == [True, True, False]
    assert plan.position(1000) == 1
    with pytest.raises(InvalidValueError, match="750 is not a planned look: expected one of 500"):
        plan.verdict(3, 750)
    with pytest.raises(InvalidValueError, match="600 errors of 500 trials cannot be"):
        plan.verdict(600, 500)
    with pytest.raises(InvalidValueError, match="not a rate"):
        plan.expected_labels(1.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"looks": []}, "rising numbers"),
        ({"looks": [500, 500]}, "rising numbers"),
        ({"looks": [1000, 500]}, "rising numbers"),
        ({"looks": [[500, 1000]]}, "rising numbers"),
        ({"looks": [0, 500]}, "looks holds 0"),
        ({"looks": [500.5]}, "whole numbers"),
        ({"looks": [100, 200]}, "The last look needs 228 trials or more"),
        ({"looks": range(1, 10**6)}, "take too long to compute"),
        ({"looks": [10**8, 2 * 10**8]}, "take too long to compute"),
        ({"xi": 0.0}, "xi=0 is shown by no number of trials"),
        ({"xi": 1.0}, "xi"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1e-250}, "at least 1e-200"),
    ],
)
def test_what_is_no_plan_is_refused(arguments: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"xi": 0.02, "delta": 0.01, "looks": [500], **arguments}
    with pytest.raises(InvalidValueError, match=message):
        planned_looks(given.pop("xi"), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("looks", ["500,1000", [True, False], ["a"]])
def test_looks_that_are_no_numbers_are_refused(looks: object) -> None:
    with pytest.raises(InvalidTypeError):
        planned_looks(0.02, delta=0.01, looks=looks)  # type: ignore[arg-type]


def test_a_tiny_delta_is_kept() -> None:
    plan = planned_looks(0.3, delta=1e-150, looks=(1200, 1500))
    assert 0 < plan.spent <= 1e-150
    size = sum(exact_passes((12, 15), (0, 0), 0.3))
    assert float(size) == pytest.approx(module._spent((12, 15), (0, 0), 0.3, 0.9), abs=1e-6)


def test_a_plan_is_a_value() -> None:
    plan = planned_looks(0.02, delta=0.01, looks=np.array([500, 1000]))
    assert plan == planned_looks(0.02, delta=0.01, looks=[500, 1000])
    assert isinstance(plan, PlannedLooks)
    assert hash(plan)
    with pytest.raises(AttributeError):
        plan.delta = 0.5  # type: ignore[misc]

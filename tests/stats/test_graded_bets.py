"""Bets on graded losses against the standard library's own computation."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from pacbound import exact_verifier as exact
from pacbound.errors import InvalidValueError
from pacbound.stats import graded_bets

SETTINGS = [(rows, mean, delta) for rows in (1, 30, 1000, 10**6) for mean in (0.02, 0.3, 0.9)
            for delta in (1e-6, 0.05, 0.5)]  # fmt: skip


def _stakes(bets: Any) -> list[float]:
    return [float(stake) for stake in bets.stakes]


@pytest.mark.parametrize(("rows", "mean", "delta"), SETTINGS)
def test_both_verifiers_place_the_same_bets(rows: int, mean: float, delta: float) -> None:
    with localcontext(exact.CONTEXT):
        rate, level = Decimal(mean), Decimal(delta)
        ours = graded_bets.mean_bets, graded_bets.threshold_bets, graded_bets.cascade_bets
        theirs = exact.Bets.on_mean, exact.Bets.on_thresholds, exact.Bets.on_exits
        for one, other in zip(ours, theirs, strict=True):
            assert list(one(rows, mean, delta).stakes) == _stakes(other(rows, rate, level))
        every = graded_bets.interval_bets(rows, delta)
        assert list(every.stakes) == _stakes(exact.Bets.on_every_mean(rows, level))
        assert abs(sum(every.shares) - 1) < 1e-15


@pytest.mark.parametrize("number", [2, 3, 5, 65])
def test_both_verifiers_agree_on_every_verdict(number: int) -> None:
    with localcontext(exact.CONTEXT):
        seen, rng = set(), np.random.default_rng(1)
        for _ in range(60):
            law = rng.dirichlet(np.ones(number) * 0.4)
            counts = rng.multinomial(int(rng.integers(0, 400)), law)
            mean = float(
                np.clip(law @ np.arange(number) / (number - 1) * rng.uniform(1, 1.4), 0.01, 0.99)
            )
            delta = float(rng.choice([0.01, 0.1, 0.5]))
            rate, level, plain = Decimal(mean), Decimal(delta), counts.tolist()
            found = graded_bets.mean_test(counts, mean=mean, delta=delta)
            seen.add(found)
            assert exact.mean_test(plain, rate, level) in (found, None)
            steps = np.stack([counts // 2, counts])
            below = graded_bets.thresholds_below(steps, rows=400, xi=mean, delta=delta)
            grades = np.diff(steps, axis=0, prepend=0)[:, ::-1].tolist()
            added = [dict(enumerate(one)) for one in grades]
            theirs = exact.thresholds_test(added, number, 400, rate, level)
            assert all(one in (other, None) for one, other in zip(theirs, below, strict=True))
            lower = graded_bets.mean_lower(counts, delta=delta)
            exact.require_mean_lower(plain, Decimal(lower), level, "bound")
            if counts.sum() and lower:
                for wrong in (lower + 2.0**-20, lower - 2.0**-20):
                    with pytest.raises(exact.WrongError):
                        exact.require_mean_lower(plain, Decimal(wrong), level, "bound")
        assert seen == {False, True}


def test_both_verifiers_agree_on_the_exits_of_a_cascade() -> None:
    with localcontext(exact.CONTEXT):
        seen, rng = set(), np.random.default_rng(1)
        for _ in range(60):
            lost = rng.integers(-240, 241, size=300) * (rng.random(300) < 0.3)
            xi, delta = float(rng.choice([0, rng.uniform(0.02, 0.3)])), 0.05
            lost -= int(rng.integers(0, 60)) * (lost > 60)
            losses, gains = np.maximum(lost, 0), np.maximum(-lost, 0)
            sums = [int(each.sum()) for each in (losses, gains, lost**2, losses**3, gains**3)]
            found = graded_bets.losses_below(sums, rows=300, xi=xi, delta=delta, steps=240)
            theirs = exact.sums_test(sums, 300, Decimal(xi), Decimal(delta))
            assert theirs in (bool(found), None)
            seen.add(bool(found))
        assert seen == {False, True}


def test_no_rows_bound_nothing() -> None:
    assert graded_bets.mean_lower([0, 0, 0], delta=0.1) == 0.0
    assert graded_bets.mean_upper([0, 0, 0], delta=0.1) == 1.0
    assert not graded_bets.mean_test([0, 0], mean=0.5, delta=0.1)


def test_counts_of_one_level_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="at least two levels"):
        graded_bets.mean_lower([3], delta=0.1)


def test_many_rows_are_bounded_closely() -> None:
    counts = np.array([0, 10**9, 2 * 10**9, 0, 0])
    low, high = (
        bound(counts, delta=0.01) for bound in (graded_bets.mean_lower, graded_bets.mean_upper)
    )
    assert low < 5 / 12 < high
    assert high - low < 1e-4

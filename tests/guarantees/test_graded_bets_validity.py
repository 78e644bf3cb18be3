"""Bets on graded losses: exactly how often a false claim is made, over all samples and all laws on
a grid.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from experiments.grades.search import (
    Family,
    Form,
    broken,
    compositions,
    region_rule,
    search,
    worst_chances,
)

from pacbound.stats.graded_bets import (
    cascade_bets,
    losses_below,
    mean_lower,
    mean_test,
    mean_upper,
    thresholds_below,
)

THREE = (0.0, 0.5, 1.0)


@pytest.mark.parametrize(
    ("form", "losses"), [("answers", THREE), ("cascade", (-1.0, 1.0)), ("cascade", (-0.5, 1.0))]
)
def test_some_false_threshold_is_claimed_with_probability_at_most_delta(
    form: Form, losses: tuple[float, ...]
) -> None:
    found = search(Family(form, 5, 2, losses), 8, deltas=4, climbs=3)
    assert 0.99 < found["worst"]["ratio"] <= 1.0 + 1e-6


def test_the_search_breaks_a_test_that_may_not_be_claimed_anywhere() -> None:
    assert broken(Family("cascade", 10, 2, (-1.0, 1.0)), 6, region_rule)["ratio"] > 1.2


@pytest.mark.parametrize(("xi", "delta"), [(0.3, 0.5), (0.5, 0.3), (0.6, 0.1)])
def test_what_is_claimed_of_answers_is_false_with_probability_at_most_delta(
    xi: float, delta: float
) -> None:
    family = Family("answers", 6, 2, THREE)
    counts = family.counts()
    claims = thresholds_below(family.above(counts), rows=6, xi=xi, delta=delta)
    laws = np.array(list(compositions(9, family.categories))) / 9
    (worst,), _ = worst_chances(family, laws, [(claims, xi)])
    assert 0 < worst <= delta


@pytest.mark.parametrize("losses", [(-1.0, 1.0), (-0.5, 0.25, 1.0)])
@pytest.mark.parametrize(("xi", "delta"), [(0.0, 0.6), (0.2, 0.5), (0.3, 0.3), (0.5, 0.2)])
def test_what_is_claimed_of_exits_is_false_with_probability_at_most_delta(
    xi: float, delta: float, losses: tuple[float, ...]
) -> None:
    family = Family("cascade", 8 if len(losses) < 3 else 6, 2, losses)
    counts, values = family.counts(), np.array(losses)
    lost, gained = np.maximum(values, 0), np.maximum(-values, 0)
    powers = np.column_stack([lost, gained, values**2, lost**3, gained**3]) * 64
    sums = np.rint(family.above(counts) @ (powers * [1 / 16, 1 / 16, 1 / 4, 1, 1])).astype(int)
    claims = losses_below(sums, rows=family.rows, xi=xi, delta=delta, steps=4)
    grid = 12 if len(losses) < 3 else 7
    laws = np.array(list(compositions(grid, family.categories))) / grid
    (worst,), _ = worst_chances(family, laws, [(claims, xi)])
    assert 0 < worst <= delta


def test_sums_of_powers_never_say_more_than_the_losses_themselves() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        lost = rng.integers(-60, 61, size=200) * (rng.random(200) < rng.uniform(0.05, 0.9))
        xi, delta = float(rng.uniform(0, 0.6)), float(rng.choice([0.01, 0.2]))
        losses, gains = np.maximum(lost, 0), np.maximum(-lost, 0)
        sums = [each.sum() for each in (losses, gains, lost**2, losses**3, gains**3)]
        bets = cascade_bets(200, xi, delta)
        factors = 1 + np.outer(bets.stakes, xi - lost / 60)
        evidence = np.prod(factors, axis=1) @ bets.shares
        if losses_below(sums, rows=200, xi=xi, delta=delta, steps=60):
            assert evidence >= 1 / delta


@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize("rows", [8, 16])
def test_a_bound_misses_the_mean_with_probability_at_most_delta(rows: int, delta: float) -> None:
    family = Family("answers", rows, 1, THREE[:2])  # Counts of three categories.
    counts = family.counts()
    lower = np.array([mean_lower(one, delta=delta) for one in counts])
    upper = np.array([mean_upper(one, delta=delta) for one in counts])
    laws = np.array(list(compositions(30, 3))) / 30
    chances = np.exp(np.log(np.maximum(laws, 1e-300)) @ counts.T + family.log_ways(counts))
    means = laws @ np.array(THREE)
    assert (chances * (lower > means[:, None])).sum(axis=1).max() <= delta
    assert (chances * (upper < means[:, None])).sum(axis=1).max() <= delta
    passed = [
        (chances * np.array([mean_test(one, mean=mean, delta=delta) for one in counts])).sum(axis=1)
        for mean in (0.25, 0.5)
    ]
    for mean, chance in zip((0.25, 0.5), passed, strict=True):
        assert chance[means >= mean - 1e-12].max() <= delta


def test_less_loss_in_a_row_never_unmakes_a_claim() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        counts = rng.multinomial(60, rng.dirichlet(np.ones(5)))
        better = counts.copy()
        level = rng.choice(np.flatnonzero(counts[1:])) + 1
        better[level - 1 : level + 1] += [1, -1]
        one, other = (mean_upper(each, delta=0.1) for each in (counts, better))
        assert other <= one
        tests = [mean_test(each, mean=0.4, delta=0.1) for each in (counts, better)]
        assert all(a <= b for a, b in pairwise(tests))

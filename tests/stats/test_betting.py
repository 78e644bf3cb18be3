"""Bets keep their mean, whichever way they are added up, and labels leave the same bits in whatever
parts they come."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.products import standing_for

from pacbound.errors import InvalidValueError
from pacbound.stats.betting import (
    RISES,
    Bets,
    Restarts,
    RunningSums,
    difference_bets,
    joined,
    loss_bets,
)

Clock = type[Restarts] | type[RunningSums]
CLOCKS: list[Clock] = [Restarts, RunningSums]


def _losses(xi: float) -> Bets:
    bets = loss_bets(xi)
    assert bets is not None
    return bets


def _same(one: object, other: object) -> bool:
    return all(
        np.array_equal(value, vars(other)[name]) for name, value in vars(one).items()
    ) and type(one) is type(other)


@pytest.mark.parametrize("xi", [1e-9, 0.001, 0.02, 0.3, 0.5, 0.9, 0.95])
def test_the_mean_of_a_factor_is_at_most_one_at_the_rate_allowed(xi: float) -> None:
    for less, more in _losses(xi).factors.T.tolist():
        mean = (1 - Fraction(xi)) * Fraction(less) + Fraction(xi) * Fraction(more)
        assert 1 - Fraction(1, 2**39) < mean < 1
        assert less < more


@pytest.mark.parametrize("xi", [1e-9, 0.02, 0.5, 0.99])
@pytest.mark.parametrize("v", [0.0, 0.001, 0.2])
def test_the_mean_of_a_factor_of_differences_is_at_most_one(xi: float, v: float) -> None:
    gain, loss = Fraction(v), Fraction(v) + Fraction(xi)
    for gained, equal, lost in difference_bets(xi).factors.T.tolist():
        assert gained > 0
        mean = gain * Fraction(gained) + (1 - gain - loss) * Fraction(equal) + loss * Fraction(lost)
        assert 1 - Fraction(1, 2**39) < mean < 1


def _every_sequence(xi: float, length: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    sequences = np.array(list(product((0, 1), repeat=length)))
    losses = sequences.sum(axis=1)
    return sequences, xi**losses * (1 - xi) ** (length - losses)


@pytest.mark.parametrize("block", [1, 3, 200])
@pytest.mark.parametrize("xi", [0.1, 0.4])
def test_over_all_sequences_the_evidence_of_restarts_keeps_its_mean(xi: float, block: int) -> None:
    bets = replace(_losses(xi), block=block)
    sequences, chances = _every_sequence(xi, 10)
    paths = np.array([Restarts.fresh(bets).after(bets, one)[1] for one in sequences])
    means = chances @ paths
    assert (means <= 1).all()
    assert (means > 1 - 1e-9).all()


@pytest.mark.parametrize("xi", [0.1, 0.4])
def test_over_all_sequences_running_sums_grow_by_one_a_label(xi: float) -> None:
    bets = replace(_losses(xi), block=4)
    sequences, chances = _every_sequence(xi, 10)
    paths = np.array([RunningSums.fresh(bets).after(bets, one)[1] for one in sequences])
    labels = np.arange(1, 11)
    assert (chances @ paths <= labels).all()
    assert (chances @ paths > labels * (1 - 1e-9)).all()


@pytest.mark.parametrize("delta", standing_for([0.5, 0.2, 0.05], [0.2], rest="long"))
@pytest.mark.parametrize("block", [2, 5])
def test_over_all_sequences_the_alarm_rings_with_probability_at_most_delta(
    delta: float, block: int
) -> None:
    bets = replace(_losses(0.3), block=block)
    sequences, chances = _every_sequence(0.3, 13)
    rang = [
        bool((Restarts.fresh(bets).after(bets, one)[1] >= 1 / delta).any()) for one in sequences
    ]
    assert 0 < chances[rang].sum() <= delta


@pytest.mark.parametrize("limit", [3, 20])
def test_over_all_sequences_running_sums_ring_by_t_with_probability_at_most_t_of_the_limit(
    limit: int,
) -> None:
    bets = _losses(0.3)
    sequences, chances = _every_sequence(0.3, 12)
    paths = np.array([RunningSums.fresh(bets).after(bets, one)[1] for one in sequences])
    by = np.maximum.accumulate(paths, axis=1) >= limit
    promised = np.arange(1, 13) / limit
    assert (chances @ by <= promised).all()
    assert (chances @ by)[-1] > 0


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_evidence_is_that_of_the_plain_recursion(clock: Clock) -> None:
    bets, outcomes = _losses(0.02), (np.random.default_rng(5).random(1000) < 0.03).astype(np.int64)
    _, evidence = clock.fresh(bets).after(bets, outcomes)
    rates = np.array([0.02 * rise for rise in RISES])
    up, down = rates / 0.02, (1 - rates) / 0.98
    wealth, rest, plain = np.zeros(11), 1.0, []
    for place, loss in enumerate(outcomes):
        if clock is RunningSums:
            wealth = (wealth + 1) * (up if loss else down)
            plain.append(wealth.mean())
            continue
        if place % 200 == 0:
            s = place // 200
            wealth, rest = wealth + 1 / ((s + 1) * (s + 2)) / 11, 1 / (s + 2)
        wealth = wealth * (up if loss else down)
        plain.append(rest + wealth.sum())
    np.testing.assert_allclose(evidence, plain, rtol=1e-8)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("bets", [_losses(0.02), _losses(0.0399), difference_bets(0.01)])
def test_labels_in_whatever_parts_leave_the_same_bits(clock: Clock, bets: Bets) -> None:
    rng = np.random.default_rng(7)
    outcomes = rng.integers(0, len(bets.factors), 2500)
    whole, evidence = clock.fresh(bets).after(bets, outcomes)
    for sizes in ([1] * 2500, [199, 2, 399, 1900], rng.multinomial(2500, [0.01] * 100).tolist()):
        parts, found, done = clock.fresh(bets), [], 0
        for size in sizes:
            parts, path = parts.after(bets, outcomes[done : done + size])
            found += path.tolist()
            done += size
        assert _same(parts, whole)
        assert found == evidence.tolist()
        assert parts.evidence(bets) == evidence[-1]


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_mean_over_counts_keeps_the_promise_too(clock: Clock) -> None:
    bets, size, xi = _losses(0.1), 30, 0.1
    # Two batches of 30: the second after each number of losses in the first.
    chances = [comb(size, k) * xi**k * (1 - xi) ** (size - k) for k in range(size + 1)]
    mean = 0.0
    for first, chance in enumerate(chances):
        after = clock.fresh(bets).after_counts(bets, (size - first, first))
        for second, other in enumerate(chances):
            both = after.after_counts(bets, (size - second, second))
            mean += chance * other * both.evidence(bets)
    expected = 1.0 if clock is Restarts else 2 * size
    assert expected * (1 - 1e-8) < mean <= expected


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_batch_of_one_label_is_that_label(clock: Clock) -> None:
    bets = _losses(0.02)
    one, _ = clock.fresh(bets).after(bets, np.array([1]))
    batch = clock.fresh(bets).after_counts(bets, (0, 1))
    assert batch.evidence(bets) == pytest.approx(one.evidence(bets), rel=1e-9)


@pytest.mark.parametrize("clock", CLOCKS)
def test_no_count_makes_the_evidence_anything_but_a_number(clock: Clock) -> None:
    bets = _losses(0.02)
    for counts in ((10**15, 0), (0, 10**15), (10**15, 10**15), (0, 0)):
        wealth = clock.fresh(bets).after_counts(bets, counts).after_counts(bets, counts)
        assert 0 <= wealth.evidence(bets) < np.inf


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("outcome", [0, 1])
def test_a_long_run_of_one_outcome_stays_a_number(clock: Clock, outcome: int) -> None:
    for xi in (1e-6, 0.0399, 0.9):
        bets = _losses(xi)
        _, evidence = clock.fresh(bets).after(bets, np.full(1000, outcome))
        assert not np.isnan(evidence).any()
        assert (evidence >= 0).all()


def test_rates_above_one_are_not_bet_on() -> None:
    assert _losses(0.3).weights.size == sum(0.3 * rise < 1 for rise in RISES)
    assert loss_bets(0.96) is None
    assert loss_bets(1.0) is None


@pytest.mark.parametrize("xi", [0.0, -0.1, float("nan")])
def test_nothing_to_lose_is_nothing_to_bet_on(xi: float) -> None:
    for make in (loss_bets, difference_bets):
        with pytest.raises(InvalidValueError, match="no room to bet"):
            make(xi)


def test_joined_bets_are_the_average_of_their_evidence() -> None:
    parts = [_losses(0.1), _losses(0.4)]
    both, outcomes = joined(parts), np.array([0, 1, 1, 0, 1] * 100)
    for clock in CLOCKS:
        alone = [clock.fresh(part).after(part, outcomes)[1] for part in parts]
        together = clock.fresh(both).after(both, outcomes)[1]
        np.testing.assert_allclose(together, np.mean(alone, axis=0), rtol=1e-12)

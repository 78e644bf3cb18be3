"""PAC Labels as it is written here: on tiny tables, against every sample that can be drawn."""

from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest
from benchmarks.duels.mean_bounds import betting
from benchmarks.duels.pac_labels import DELTA, XI, answer, best, label, measure, table

from pacbound import answer_batch
from pacbound.procedures.batch import plan

DRAWN = np.array(list(product(range(5), repeat=4)))
"""All samples of four of five records, with replacement."""


def test_the_betting_bound_is_the_wealth_of_its_bets() -> None:
    losses, xi, delta = np.array([0.0, 0.0, 1.0, 0.0]), 0.4, 0.5
    wealth, most, seen = 1.0, 0.0, [0.5]
    variance, squares = 0.25, 0.25
    for time, loss in enumerate(losses, start=1):
        stake = min((2 * log(2 / delta) / (len(losses) * variance)) ** 0.5, 0.75 / (1 - xi))
        wealth *= 1 + stake * (xi - loss)
        most = max(most, wealth)
        seen.append(loss)
        squares += (loss - sum(seen) / (time + 1)) ** 2
        variance = squares / (time + 1)
    assert betting(losses, xi=xi, delta=0.99 * delta) == (most >= 1 / (0.99 * delta))
    assert betting(losses, xi=xi, delta=delta) == (most >= 1 / delta)


@pytest.mark.parametrize("xi", [0.2, 0.4])
def test_the_betting_bound_passes_a_mean_of_xi_with_probability_at_most_delta(xi: float) -> None:
    chance = 0.0
    for losses in product((0.0, 1.0), repeat=11):
        if betting(np.array(losses), xi=xi, delta=0.2):
            chance += xi ** sum(losses) * (1 - xi) ** (len(losses) - sum(losses))
    assert 0 < chance <= 0.2


@pytest.mark.parametrize("wrong", list(product((False, True), repeat=5)))
def test_more_labels_than_xi_are_wrong_with_probability_at_most_delta(
    wrong: tuple[bool, ...],
) -> None:
    left = [label(np.array(wrong), drawn, betting, xi=0.4, delta=0.3)[1] for drawn in DRAWN]
    assert np.mean(np.array(left) > 2) <= 0.3


@pytest.mark.parametrize("looks", [1, 2])
def test_our_side_is_what_answer_batch_does(looks: int) -> None:
    rng = np.random.default_rng(1)
    confidence = np.sort(rng.random(1_000))[::-1]
    model, expert = np.zeros(1_000, dtype=int), (rng.random(1_000) > confidence).astype(int)
    sketch = plan(1_000, 1_000, xi=XI, delta=DELTA, looks=looks)
    for seed in range(5):
        result: Any = answer_batch(
            confidence,
            model,
            expert.__getitem__,
            xi=XI,
            delta=DELTA,
            looks=looks,
            answers=None,
            key=np.random.default_rng(seed).bytes(16).hex(),
            chunk=1_000,
        )
        found = answer(model != expert, sketch, np.random.default_rng(seed))
        kept = result.answered_by == "fast"
        assert found == (kept.sum(), (result.predictions != expert).sum())


def test_a_table_is_measured_and_shown() -> None:
    rng = np.random.default_rng(2)
    confidence = rng.random(1_000).round(1)
    rows = (confidence, np.zeros(1_000), rng.random(1_000) > confidence)
    found = measure(rows, 20, name="tied", shares=(0.1, 0.2))
    assert [one["K"] for one in found["theirs"]] == [100, 200] * 2
    assert found["ours"]["saved"] < found["needed"] < 1
    assert best(found, "betting")["saved"] < found["needed"]
    assert table([found]).count("\n") == 2

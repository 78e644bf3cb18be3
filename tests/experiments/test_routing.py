"""The routing experiment counts over a known population: its arithmetic, row by row."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from experiments.routing import draws, pairs
from experiments.routing.__main__ import _budget


@pytest.fixture(scope="module")
def pair() -> pairs.Pair:
    random = np.random.default_rng(5)
    rows, speakers = 3_000, np.arange(3_000) % 700 // 2
    label = random.integers(0, 4, rows)
    scores = np.round(random.random(rows), 2)
    fast = np.where(random.random(rows) < 0.5 + scores / 2, label, (label + 1) % 4)
    slow = np.where(random.random(rows) < 0.97, label, (label + 2) % 4)
    return pairs.Pair(
        "generated",
        "cheap",
        "dear",
        2_000,
        scores,
        np.column_stack([fast, slow]),
        label,
        pairs._weights(speakers, rows),
        (1.0, 10.0),
    )


@pytest.mark.parametrize("threshold", [0.0, 0.37, 0.5, 0.99, 1.0, np.inf])
def test_losses_and_costs_are_those_of_a_walk_over_all_rows(
    pair: pairs.Pair, threshold: float
) -> None:
    exits = loss = dollars = 0.0
    for score, (fast, slow), label, weight in zip(
        pair.confidences, pair.predictions, pair.labels, pair.weights, strict=True
    ):
        leaves = score >= threshold
        exits += weight * leaves
        loss += weight * leaves * (int(slow == label) - int(fast == label))
        dollars += weight * ((0 if threshold == np.inf else 1) + (0 if leaves else 10))
    assert np.allclose(draws.TrueTradeOff(pair).at(threshold), (exits, loss, dollars))


def test_the_tuned_threshold_is_the_lowest_that_loses_at_most_xi_in_its_sample(
    pair: pairs.Pair,
) -> None:
    rows = np.arange(500)
    chosen = draws._tuned(pair, rows, 0.02)
    lost = pair.right[rows, 1].astype(int) - pair.right[rows, 0]
    fine = [
        score
        for score in np.unique(pair.confidences[rows])
        if lost[pair.confidences[rows] >= score].sum() <= 0.02 * len(rows)
    ]
    assert chosen == min(fine)


def test_the_same_budget_buys_the_dearest_threshold_by_feeling_that_it_can_pay() -> None:
    magic = {
        str(threshold): {"dollars": 10 * threshold, "loss": 0.03 * (1 - threshold)}
        for threshold in draws.MAGIC
    }
    pair = {
        "dollars": [1.0, 10.0],
        "magic": magic,
        "chosen": {"0.01": {"certified": {"dollars": 7.5, "loss": 0.004}}},
    }
    certified, bought, usual = _budget(pair)
    assert certified == "7.50 $ (25% saved), +0.0040"
    assert bought == "≥ 0.7: 7.00 $ (30% saved), +0.0090"
    assert usual == "9.00 $ (10% saved), +0.0030"
    pair["chosen"] = {"0.01": {"certified": {"dollars": 6.0, "loss": 0.004}}}
    assert _budget(pair)[1].endswith("**✗**"), "0.5 loses more than xi"
    pair["chosen"] = {"0.01": {"certified": {"dollars": 4.0, "loss": 0.004}}}
    assert _budget(pair)[1] == "none of them"

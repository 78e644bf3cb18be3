"""The routing experiment counts over a known population: its arithmetic, row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from experiments.routing import draws, figure, pairs
from experiments.routing.__main__ import _budget, markdown


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


def test_a_speaker_with_many_rows_weighs_no_more_than_one_with_few() -> None:
    weights = pairs._weights(np.array([7, 7, 7, 9]), 4)
    assert np.allclose(weights, [1 / 6, 1 / 6, 1 / 6, 1 / 2])


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


def test_every_method_is_measured_and_told(pair: pairs.Pair) -> None:
    result = draws.measured(pair, 3)
    for xi in draws.TOLERANCES:
        methods = result["chosen"][str(xi)]
        assert methods.keys() == draws.CHOICES.keys()
        assert methods["certified"]["violations"] == 0
        assert methods["certified"]["dollars"] <= methods["paper, mended"]["dollars"]
        assert result["best_possible"][str(xi)]["loss"] <= xi
    record = {"command": "generated", "seeds": [0, 2], "pairs": [result]}
    assert markdown(record).count("| certified |") == len(draws.TOLERANCES)
    drawn = figure.figure([result], [draws.TrueTradeOff(pair)])
    assert drawn.axes[0].get_title() == "generated\ncheap → dear"


def test_a_file_of_another_digest_is_refused(tmp_path: Path) -> None:
    (tmp_path / pairs.APIS).write_bytes(b"other")
    with pytest.raises(SystemExit, match="SHA-256"):
        pairs.pairs(tmp_path)


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


def test_generated_pairs_can_violate_and_have_speakers() -> None:
    rows, speakers = pairs.generated()
    assert np.isclose(rows.weights.sum(), 1)
    assert np.isclose(speakers.weights.sum(), 1)
    assert len(np.unique(speakers.confidences)) > speakers.n
    truth = draws.TrueTradeOff(rows)
    assert float(truth.at(0.0)[1]) > max(draws.TOLERANCES)

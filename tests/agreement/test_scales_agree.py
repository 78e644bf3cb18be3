"""Scores that are written in other units, such as percentages, fall into the same cells wherever
they are counted: every engine divides once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.tally.question_names import question_of

from pacbound import Tally

SCALES = [100.0, 255.0, 7.0, 3.0]


def counted(rows: Any, **named: Any) -> Tally:
    return Tally.count(question_of(named), data=rows, **named)


def written(scale: float) -> Any:
    """Numbers whose quotients lie on edges of bins and of cells, and beside them."""
    rng = np.random.default_rng(0)
    edges = np.arange(101) / 100 * scale
    beside = [np.nextafter(edges, inf)[:-1] for inf in (0.0, scale)]
    digits = np.round(rng.random(2000) * scale, 1)
    return np.concatenate([edges, *beside, digits, rng.random(2000) * scale])


@pytest.mark.parametrize("scale", SCALES)
def test_a_score_is_divided_by_its_scale_once_in_every_engine(
    table: Callable[[Any], Any], scale: float
) -> None:
    numbers = written(scale)
    right = np.arange(len(numbers)) % 3 > 0
    rows = table(pa.table({"c": numbers, "ok": right}))
    for bins in (20, 7):
        found = counted(rows, confidence="c", correct="ok", n_bins=bins, scale=scale)
        assert found == Tally.count(
            "calibration", confidence=numbers / scale, correct=right, n_bins=bins
        )
    found = counted(rows, score="c", positive="ok", scale=scale)
    assert found == Tally.count("recall", score=numbers / scale, positive=right)


def test_rollouts_that_were_lost_stay_lost_whatever_the_scale(table: Callable[[Any], Any]) -> None:
    scores, unsafe = [-np.inf, 30.0, 29.0, 100.0], [True, False, True, True]
    rows = table(pa.table({"s": scores, "u": unsafe}))
    found = counted(rows, score="s", unsafe="u", scale=100)
    assert found == Tally.count("shield", score=np.array(scores) / 100, unsafe=unsafe)


def test_cascades_are_scaled_in_every_exit_and_weights_are_not(
    table: Callable[[Any], Any],
) -> None:
    rng = np.random.default_rng(1)
    n = 400
    first, second = rng.integers(0, 101, (2, n))
    answers = rng.integers(0, 2, (4, n))
    weights = rng.random(n) * 3
    rows = table(
        pa.table({
            "a": first, "b": second, "p": answers[0], "q": answers[1], "r": answers[2],
            "y": answers[3], "w": weights, "id": np.arange(n),
        })
    )  # fmt: skip
    named: dict[str, Any] = {"weight_bound": 3.0, "seed": 4, "unrelated_labels": True}
    found = counted(
        rows, confidence=["a", "b"], prediction=["p", "q", "r"], label="y", weights="w",
        row_ids="id", scale=100, **named,
    )  # fmt: skip
    scores = np.column_stack([first, second]) / 100
    assert found == Tally.count(
        "cascade", confidence=scores, prediction=answers[:3].T, label=answers[3],
        weights=weights, row_ids=np.arange(n), **named,
    )  # fmt: skip


def test_edges_from_the_rows_are_the_same_in_every_engine(table: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(2)
    # Ties, also on the edges, and scores of exactly 1.
    percent = np.minimum(rng.integers(0, 120, 3000), 100)
    right = rng.random(3000) < percent / 100
    rows = table(pa.table({"c": percent, "ok": right}))
    bins: dict[str, Any] = {"n_bins": 6, "edges": "equal-mass"}
    found = counted(rows, confidence="c", correct="ok", scale=100, **bins)
    assert found == Tally.count("calibration", confidence=percent / 100, correct=right, **bins)

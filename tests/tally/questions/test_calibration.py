"""Counting by arithmetic alone puts every score where the arrays' is, or does not count at all."""

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacbound import Tally
from pacbound.tally.classes import ClassRule
from pacbound.tally.count import Counting
from pacbound.tally.frames.engine_rows import EngineRows
from pacbound.tally.questions import CALIBRATION


def count_plain_bins(frame: Any, *, confidence: str, correct: str, n_bins: int) -> Tally | None:
    """The tally by arithmetic alone, if everything is plain."""
    question = CALIBRATION.of_columns(confidence=confidence, correct=correct, n_bins=n_bins)
    rows = EngineRows(frame, question.slots, ClassRule(), read_again=True)
    judged = question._judge_plain(rows) if question._may_be_plain(rows) else None
    if judged is None:
        return None
    counting = Counting(question)
    counting.add(judged)
    return Tally.of(question, counting.result())


def around(n_bins: int) -> list[float]:
    """Every edge and its neighbours in float64, and the edges as float32 has them."""
    edges = np.arange(n_bins + 1) / n_bins
    near = [edges, edges.astype(np.float32).astype(np.float64)]
    for direction in (0.0, 1.0):
        step = edges
        for _ in range(20):
            step = np.nextafter(step, direction)
            near.append(step)
    return [float(value) for value in np.concatenate(near) if 0 <= value <= 1]


@pytest.mark.parametrize("n_bins", [1, 2, 3, 7, 10, 15, 20, 49, 100, 1000, 2**20])
def test_scores_at_and_around_every_edge_are_where_the_arrays_put_them(n_bins: int) -> None:
    scores = (
        np.array(around(min(n_bins, 1000)))
        if n_bins < 2**20
        else np.random.default_rng(0).integers(0, 2**20, 5000) / 2**20
    )
    flags = np.arange(len(scores)) % 3 == 0
    relation = duckdb.from_arrow(pl.DataFrame({"c": scores, "ok": flags}).to_arrow())
    assert count_plain_bins(relation, confidence="c", correct="ok", n_bins=n_bins) == Tally.count(
        "calibration", confidence=scores, correct=flags, n_bins=n_bins
    )


@given(
    rows=st.lists(
        st.tuples(st.floats(0, 1) | st.sampled_from(around(20)), st.booleans()), min_size=1
    ),
    n_bins=st.integers(1, 60),
)
def test_any_scores_are_where_the_arrays_put_them(
    rows: list[tuple[float, bool]], n_bins: int
) -> None:
    frame = pl.DataFrame({"c": [row[0] for row in rows], "ok": [row[1] for row in rows]})
    assert count_plain_bins(frame, confidence="c", correct="ok", n_bins=n_bins) == Tally.count(
        "calibration",
        confidence=frame["c"].to_numpy(),
        correct=frame["ok"].to_numpy(),
        n_bins=n_bins,
    )


@pytest.mark.parametrize(
    "bad",
    [
        -1e-300,
        -0.01,
        -0.05,
        -1.0,
        -7.0,
        1.0000001,
        1.05,
        50.0,
        1e300,
        np.nan,
        np.inf,
        -np.inf,
        None,
    ],
)
def test_a_score_that_is_not_plain_is_not_counted(bad: float | None) -> None:
    for frame in (
        pl.DataFrame({"c": [0.5, bad], "ok": [True, False]}),
        pl.DataFrame({"c": [bad], "ok": [True]}, schema_overrides={"c": pl.Float64}),
    ):
        for engine in (frame, duckdb.from_arrow(frame.to_arrow())):
            assert count_plain_bins(engine, confidence="c", correct="ok", n_bins=20) is None

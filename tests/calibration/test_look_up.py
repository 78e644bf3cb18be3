"""Intervals are looked up for one score or a column of them, whatever holds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from pacbound import calibrate

SCORES, RIGHT = [0.3, 0.9] * 100, [False, True] * 100
PLAIN = calibrate(SCORES, RIGHT, delta=0.05, n_bins=2)
GROUPED = calibrate(SCORES, RIGHT, delta=0.05, n_bins=2, groups=["a", "a", "b", "b"] * 50)


@pytest.mark.parametrize(
    "one", [0.9, np.float32(0.9), np.float64(0.9), np.array(0.9), torch.tensor(0.9), 1, np.uint8(1)]
)
def test_one_score_has_one_interval_and_one_estimate(one: Any) -> None:
    interval = PLAIN.interval(one)
    assert interval.shape == (2,)
    assert np.array_equal(interval, PLAIN.interval([0.9])[0])
    assert type(PLAIN.estimate(one)) is float
    assert PLAIN.estimate(one) == PLAIN.estimate([0.9])[0]
    assert np.array_equal(GROUPED.interval(one, "b"), GROUPED.interval([0.9], ["b"])[0])


@pytest.mark.parametrize(
    "column",
    [
        list,
        tuple,
        np.array,
        torch.tensor,
        pa.array,
        pl.Series,
        lambda values: pa.chunked_array([values]),
        lambda values: pd.Series(values, index=[7, 9]),
        lambda values: pd.Series(values, dtype="Float64"),
        lambda values: pl.DataFrame({"c": values})["c"],
    ],
)
def test_a_column_has_an_interval_for_each_row(column: Callable[[Any], Any]) -> None:
    assert np.array_equal(PLAIN.interval(column([0.9, 0.2])), PLAIN.interval([0.9, 0.2]))
    assert np.array_equal(PLAIN.estimate(column([0.9, 0.2])), PLAIN.estimate([0.9, 0.2]))
    assert PLAIN.interval(column([0.9, 0.2])).shape == (2, 2)

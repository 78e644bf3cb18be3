"""Softmax in float64, safe from overflow, and the baseline that trusts it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from pacbound.baselines import NaiveSoftmax, softmax
from pacbound.errors import InvalidTypeError, InvalidValueError


@pytest.mark.parametrize("shape", [(1, 2), (7, 2), (20_000, 10), (90, 1000)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_softmax_equals_scipys_in_float64(shape: tuple[int, int], dtype: Any) -> None:
    logits = (8 * np.random.default_rng(1).normal(size=shape)).astype(dtype)
    probabilities = softmax(logits)
    assert probabilities.dtype == np.float64
    np.testing.assert_allclose(
        probabilities, special.softmax(logits.astype(np.float64), axis=1), rtol=1e-13
    )


def test_no_finite_logit_overflows() -> None:
    logits = [[1e308, -1e308], [-1e308, -1e308], [5e307, 5e307], [800.0, 0.0]]
    np.testing.assert_array_equal(softmax(logits), [[1, 0], [0.5, 0.5], [0.5, 0.5], [1, 0]])


@pytest.mark.parametrize(
    ("logits", "error", "message"),
    [
        ([[0.0, float("nan")]], InvalidValueError, r"logits\[0, 1\] is nan"),
        ([[0.0, 1.0], [float("-inf"), 0.0]], InvalidValueError, r"logits\[1, 0\] is -inf.*-1e4"),
        ([0.0, 1.0], InvalidValueError, "shape"),
        (np.empty((3, 0)), InvalidValueError, "shape"),
        ([["a", "b"]], InvalidTypeError, "logits"),
    ],
)
def test_what_is_no_table_of_finite_logits_is_refused(
    logits: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        softmax(logits)
    with pytest.raises(error, match=message):
        NaiveSoftmax().predict_confidence(logits)

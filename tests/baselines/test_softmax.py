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


def test_naive_confidence_is_the_highest_probability_to_the_last_bit() -> None:
    logits = 3 * np.random.default_rng(2).normal(size=(30_000, 7))
    naive = NaiveSoftmax().fit(logits, np.zeros(30_000, dtype=int))
    np.testing.assert_array_equal(naive.predict_proba(logits), softmax(logits))
    np.testing.assert_array_equal(naive.predict_confidence(logits), softmax(logits).max(axis=1))


def test_no_rows_give_no_rows() -> None:
    assert softmax(np.empty((0, 3))).shape == (0, 3)
    assert NaiveSoftmax().predict_confidence(np.empty((0, 3))).shape == (0,)


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


@pytest.mark.parametrize("library", ["torch", "jax.numpy", "pandas"])
def test_logits_of_other_libraries_are_taken_as_they_are(library: str) -> None:
    module = pytest.importorskip(library)
    logits = [[0.5, 1.5, -2.0], [0.0, 0.0, 4.0]]
    table = getattr(
        module, {"torch": "tensor", "jax.numpy": "asarray", "pandas": "DataFrame"}[library]
    )(logits)
    np.testing.assert_array_equal(softmax(table), softmax(logits))

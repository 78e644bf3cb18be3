"""Thresholds without a guarantee: each is what the paper says it is, on the grid and the exit rule
of the certified ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pacbound.baselines import (
    SLOW_ALONE,
    TemperatureScaling,
    histogram_threshold,
    softmax,
    softmax_threshold,
    temperature_threshold,
)


def lost(confidence: Any, predictions: Any, labels: Any, threshold: float) -> float:
    """The error increase of the cascade on these rows, the long way."""
    fast, slow = np.asarray(predictions).T
    answers = np.where(np.asarray(confidence, dtype=np.float64) >= threshold, fast, slow)
    return (int((answers != labels).sum()) - int((slow != labels).sum())) / len(answers)


def rows(seed: int, n: int = 400) -> tuple[Any, Any, Any]:
    """A fast model that is right as often as it says, with scores that tie, and a slow one that is
    right on 95 %."""
    rng = np.random.default_rng(seed)
    confidence, labels = rng.integers(8, 65, n) / 64, rng.integers(0, 5, n)
    rate = np.stack([confidence, np.full(n, 0.95)], axis=1)
    return confidence, np.where(rng.random((n, 2)) < rate, labels[:, None], 7), labels


@pytest.mark.parametrize(
    ("error", "xi", "expected"),
    [(0.07, 0.02, 0.91), (0.0, 0.0, 1.0), (1.0, 0.5, 0.0), (0.6, 0.4, 0.0)],
)
def test_softmax_threshold_is_one_minus_xi_and_the_slow_error_and_never_negative(
    error: float, xi: float, expected: float
) -> None:
    assert softmax_threshold(error, xi=xi) == pytest.approx(expected)


def test_temperature_threshold_is_the_softmax_threshold_on_fitted_confidences() -> None:
    rng = np.random.default_rng(0)
    logits = 6 * rng.normal(size=(900, 4))
    labels = (logits / 3 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    chosen = temperature_threshold(logits[:600], labels[:600], 0.05, xi=0.02)
    fitted = TemperatureScaling().fit(logits[:600], labels[:600])
    assert chosen.threshold == softmax_threshold(0.05, xi=0.02)
    assert chosen.scaling.temperature_ == fitted.temperature_
    np.testing.assert_array_equal(
        chosen.exits(logits[600:]), fitted.predict_confidence(logits[600:]) >= chosen.threshold
    )
    claimed = softmax(logits[600:]).max(axis=1) >= chosen.threshold
    assert 0 < chosen.exits(logits[600:]).sum() < claimed.sum()


@pytest.mark.parametrize("xi", [0.0, 0.01, 0.03, 0.2])
@pytest.mark.parametrize("seed", range(5))
def test_histogram_threshold_is_the_lowest_of_the_grid_that_holds_on_the_rows_seen(
    seed: int, xi: float
) -> None:
    confidence, predictions, labels = rows(seed)
    threshold = histogram_threshold(confidence, predictions, labels, xi=xi)
    assert lost(confidence, predictions, labels, threshold) <= xi
    # The losses change only at scores of the rows, so those and one step above them are all there
    # is to try.
    tried = np.unique(np.concatenate([[0.0], confidence, confidence + 2**-16]))
    assert [
        t for t in tried if t < threshold and lost(confidence, predictions, labels, t) <= xi
    ] == []


def test_saturated_scores_that_break_xi_leave_the_slow_model_alone() -> None:
    threshold = histogram_threshold([1.0, 1.0], [[0, 1], [1, 1]], [1, 1], xi=0.1)
    assert threshold == SLOW_ALONE == math.inf
    assert histogram_threshold([0.5], [[0, 1]], [1], xi=0.1) == 0.5 + 2**-16

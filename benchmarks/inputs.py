"""Made-up predictions of the sizes that are measured; what is in them hardly changes the times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def probabilities(rows: int, classes: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Softmax outputs in float32, and labels that agree with the top one about as often as it
    claims."""
    rng = np.random.default_rng(rows + classes)
    table = 3.0 * rng.standard_normal((rows, classes), dtype=np.float32)
    table -= table.max(axis=1, keepdims=True)
    np.exp(table, out=table)
    table /= table.sum(axis=1, keepdims=True)
    right = rng.random(rows) < table.max(axis=1)
    labels = np.where(right, table.argmax(axis=1), rng.integers(classes, size=rows))
    return table, labels.astype(np.int64)


def confidences(
    rows: int, *, seed: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores in (0, 1], and whether each was right, about as often as it claims."""
    rng = np.random.default_rng(rows if seed is None else seed)
    scores = 1.0 - rng.random(rows) ** 2
    return scores, rng.random(rows) < scores


def pairs(count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Successes and trials as calibration bins have them: mostly successes, 1 to 5,000 trials."""
    rng = np.random.default_rng(count)
    trials = rng.integers(1, 5001, size=count)
    return rng.binomial(trials, rng.uniform(0.5, 1.0, size=count)), trials


def dangers(rollouts: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The largest danger score of each rollout, mostly small, and whether it became unsafe, about
    as often as it claims."""
    rng = np.random.default_rng(rollouts)
    scores = rng.beta(1, 4, size=rollouts)
    return scores, rng.random(rollouts) < scores

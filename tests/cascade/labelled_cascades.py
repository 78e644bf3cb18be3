"""Cascades that are labelled bit by bit, drawn from seeds; `asked_rows.json` is of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Problem:
    """The rows of a cascade with the truth about them, and what is asked for."""

    scores: Array
    predictions: Array
    truth: Array
    doubt: Array | None
    declined: frozenset[int]
    asked: dict[str, Any]
    count: int

    @property
    def graded(self) -> bool:
        """Whether the truth is a grade for each model."""
        return self.truth.ndim == 2


def problem(seed: int) -> Problem:
    """Two to four models, ties, costs, an order by doubt, rows that nobody can tell, and in every
    fourth case grades.
    """
    rng = np.random.default_rng(seed)
    models, rows = int(rng.integers(2, 5)), int(rng.integers(150, 400))
    scores = rng.choice(rng.random(40), size=(rows, models - 1)) ** 0.3
    labels = rng.integers(0, 4, rows)
    accuracy = [*(0.5 + 0.5 * scores[:, m] for m in range(models - 1)), np.full(rows, 0.9)]
    predictions = np.column_stack(
        [np.where(rng.random(rows) < share, labels, rng.integers(0, 4, rows)) for share in accuracy]
    )
    truth: Array = labels
    if seed % 4 == 3:
        worse = rng.random((rows, models - 1)) < 0.6 * (1 - scores)
        slow = rng.choice(np.arange(1, 6), size=rows, p=[0.05, 0.05, 0.1, 0.3, 0.5])
        fast = np.clip(slow[:, None] - np.where(worse, 2, rng.integers(-1, 2, worse.shape)), 1, 5)
        truth = np.column_stack([fast, slow]).astype(float)
    asked: dict[str, Any] = {
        "xi": float(rng.choice([0.0, 0.05, 0.1, 0.2])),
        "delta": float(rng.choice([0.05, 0.2])),
    }
    if rng.random() < 0.5:
        asked["costs"] = [float(value) for value in np.cumsum(rng.integers(1, 9, models))]
    doubt = rng.random(rows) if rng.random() < 0.3 else None
    declined = frozenset(np.flatnonzero(rng.random(rows) < rng.choice([0.0, 0.05])).tolist())
    return Problem(
        scores, predictions, truth, doubt, declined, asked, int(rng.choice([1, 7, 20, 60]))
    )


def partly(grades: Array, row: int, time: int) -> Array:
    """The grades of a row that are told at some time: the first alone, then all."""
    found = grades.copy()
    if row % 3 == 0 and time == 0:
        found[1:] = np.nan
    return found

"""A cascade of three models or more, along the best path through their thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.cascade import few_labels, random_cascade
from tests.kinds.kind import Kind
from tests.kinds.random_rows import rate

from pacbound import Certificate, Tally, certify_cascade


def three_models(rows: int) -> Tally:
    rng = np.random.default_rng(6)
    label = rng.integers(0, 10, size=rows)
    confidences = np.sort(rng.beta(5, 1, size=(rows, 2)), axis=1)
    right = rng.random((rows, 3)) < np.column_stack([confidences, np.full(rows, 0.95)])
    predictions = np.where(right, label[:, None], label[:, None] + 1 + np.arange(3))
    return Tally.count("cascade", confidence=confidences, prediction=predictions, label=label)


def _random(rng: np.random.Generator) -> Certificate:
    options: dict[str, Any] = {"xi": rate(rng)}
    return random_cascade(rng, int(rng.integers(1, 120)), int(rng.integers(3, 5)), **options)


KIND = Kind(
    made={
        "cascade-paths-exact": lambda: certify_cascade(
            data=three_models(600), xi=0.1, delta=0.05, costs=(1.0, 3.0, 9.0)
        ),
        "cascade-paths-no-loss": lambda: certify_cascade(
            data=three_models(2000), xi=0.0, delta=0.05
        ),
        "cascade-paths-refused": lambda: certify_cascade(
            data=three_models(50), xi=0.01, delta=0.05
        ),
        "cascade-paths-partial-exact": lambda: certify_cascade(
            data=few_labels(three_models(600), 500), xi=0.1, delta=0.05, costs=(1.0, 3.0, 9.0)
        ),
        "cascade-paths-partial-no-loss": lambda: certify_cascade(
            data=few_labels(three_models(2000), 1900), xi=0.0, delta=0.05
        ),
        "cascade-paths-no-labels": lambda: certify_cascade(
            data=few_labels(three_models(600), 0), xi=0.1, delta=0.05
        ),
    },
    layouts=("cascade-paths-exact",),
    random=_random,
    trials=100,
)

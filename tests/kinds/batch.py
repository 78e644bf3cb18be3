"""A batch whose records are all there: few of the answers differ from the slow model's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.kinds.kind import Kind
from tests.kinds.random_rows import level, rate, scores

from pacbound import Certificate, answer_batch


def _made(
    rows: int, *, xi: float = 0.05, gaps: int = 0, skipped: int = 0, **options: Any
) -> Certificate:
    rng = np.random.default_rng(7)
    slow = rng.integers(0, 10, size=rows)
    confidence = np.round(rng.beta(5, 1, size=rows), 2)
    fast = np.where(rng.random(rows) < confidence, slow, (slow + 1) % 10)
    confidence[:gaps] = np.nan

    def answers(asked: NDArray[np.int64]) -> list[int | None]:
        return [None if row < skipped else int(slow[row]) for row in asked]

    made = answer_batch(
        confidence,
        fast,
        answers,
        xi=xi,
        delta=0.1,
        answers=None,
        key=rng.bytes(16).hex(),
        **options,
    ).certificate
    assert made is not None
    return made


def _random(rng: np.random.Generator) -> Certificate:
    rows = int(rng.integers(1, 600))
    slow = rng.integers(0, 4, size=rows)
    score = scores(rng, rows)
    fast = np.where(rng.random(rows) < score, slow, (slow + 1) % 4)
    score = np.where(rng.random(rows) < rng.choice([0.0, 0.2]), np.nan, score)
    made = answer_batch(
        score,
        fast,
        lambda asked: slow[asked],
        xi=rate(rng),
        delta=level(rng),
        answers=None,
        looks=int(rng.choice([1, 1, 2])),
        whole_ties=bool(rng.random() < 0.3),
        key=rng.bytes(16).hex(),
    ).certificate
    assert made is not None
    return made


KIND = Kind(
    made={
        "batch": lambda: _made(1000),
        "batch-all-asked": lambda: _made(15),
        "batch-gaps": lambda: _made(400, gaps=50, skipped=60),
        "batch-nothing-sampled": lambda: _made(20, xi=0.6, gaps=10),
        "batch-two-looks": lambda: _made(1000, looks=2),
        "batch-whole-ties": lambda: _made(1000, whole_ties=True),
    },
    layouts=("batch-whole-ties",),
    random=_random,
    trials=1200,
)

"""Batches drawn from seeds: what `batches.json` was recorded on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def key_of(seed: int) -> str:
    """The key of a sample that is the same at every time."""
    return np.random.default_rng(seed).bytes(16).hex()


@dataclass(frozen=True)
class BatchProblem:
    """The records of a batch with the expert's answers, None where there is none, and options."""

    confidence: Array
    fast: Array
    expert: list[Any]
    asked: dict[str, Any]

    def ask(self, rows: Array) -> list[Any]:
        """What the expert says of these rows."""
        return [self.expert[row] for row in rows.tolist()]


def batch_problem(seed: int) -> BatchProblem:
    """Scores with ties and without any, numbers or text, records that nobody can answer, two
    looks, whole ties and samples of any size.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 500))
    confidence = rng.beta(4, 1, n)
    if rng.random() < 0.5:
        confidence = np.round(confidence, 1)
    if rng.random() < 0.3:
        confidence = np.where(rng.random(n) < 0.6, 1.0, confidence)
    codes = rng.integers(0, 4, n)
    fast_codes = np.where(rng.random(n) < 0.6 + 0.4 * confidence, codes, (codes + 1) % 4)
    if rng.random() < 0.3:
        confidence = np.where(rng.random(n) < 0.05, np.nan, confidence)
    names = ["cat", "dog", "emu", "fox"] if rng.random() < 0.5 else [0, 1, 2, 3]
    fast = np.array([names[code] for code in fast_codes])
    expert: list[Any] = [names[code] for code in codes]
    if rng.random() < 0.3:
        expert = [
            None if gone else one for one, gone in zip(expert, rng.random(n) < 0.03, strict=True)
        ]
    asked: dict[str, Any] = {
        "xi": float(rng.choice([0.0, 0.02, 0.05, 0.1, 0.3])),
        "delta": float(rng.choice([0.05, 0.1, 0.3])),
        "looks": int(rng.choice([1, 2])),
        "whole_ties": bool(rng.random() < 0.3),
    }
    scored = int((~np.isnan(confidence)).sum())
    if rng.random() < 0.2 and scored:
        asked["sample"] = int(rng.integers(1, scored + 1))
    return BatchProblem(confidence, fast, expert, asked)

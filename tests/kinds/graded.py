"""Graded answers: calibrations, abstentions and cascades."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.kind import Kind, Use
from tests.kinds.random_rows import level, names, rate, scores

from pacbound import Certificate, calibrate, certify_abstention, certify_cascade

JUDGED: dict[str, Any] = {"quality_scale": (1, 5), "graded_by": "two annotators"}


def graded_rows(rows: int, seed: int = 4) -> dict[str, Any]:
    """Confidences and grades from 1 to 5."""
    rng = np.random.default_rng(seed)
    score = rng.beta(3, 1, size=rows)
    grade = np.clip(np.rint(1 + 4 * score + rng.normal(0, 0.5, rows)), 1, 5)
    return {"confidence": score, "quality": grade, **JUDGED}


def cascade_rows(rows: int, models: int, lacking: float, seed: int = 4) -> dict[str, Any]:
    """Confidences and qualities, of which a share `lacking` is missing."""
    rng = np.random.default_rng(seed)
    score = rng.beta(3, 1, size=(rows, models - 1))
    slow = rng.choice([0.5, 0.75, 1.0], size=rows)
    fast = np.where(rng.random(score.shape) < 0.3 * (1 - score), slow[:, None] - 0.5, slow[:, None])
    quality = np.column_stack([fast, slow])
    quality[rng.random(quality.shape) < lacking] = np.nan
    return {"confidence": score, "quality": quality}


def _random(rng: np.random.Generator) -> Certificate:
    rows, kind = int(rng.integers(1, 300)), int(rng.integers(0, 3))
    groups = names(rng, rows) if rng.random() < 0.3 else None
    asked: dict[str, Any] = {"delta": level(rng), "groups": groups}
    if kind == 0:
        return calibrate(scores(rng, rows), quality=rng.random(rows), n_bins=5, **asked)
    if kind == 1:
        quality = rng.choice([0.0, 0.9, 1.0], size=rows)
        return certify_abstention(scores(rng, rows), quality=quality, xi=rate(rng), **asked)
    quality = rng.choice([0.2, 0.8, 1.0, np.nan], size=(rows, 3), p=[0.05, 0.2, 0.7, 0.05])
    models = int(rng.choice([2, 3]))
    confidence = scores(rng, rows, models - 1)
    given: dict[str, Any] = {"quality": quality[:, :models], "xi": rate(rng)}
    return certify_cascade(confidence, **given, **asked)


def _use() -> Use:
    made = certify_abstention(xi=0.25, delta=0.05, **graded_rows(3000))
    return Use(made, _rows)


def _rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    grade = rng.choice([1.0, 3.0], n) if bad else rng.choice([4.0, 5.0], n)
    return {"confidence": np.full(n, 0.999), "quality": grade}


KIND = Kind(
    made={
        "calibration-graded": lambda: calibrate(n_bins=4, delta=0.05, **graded_rows(600)),
        "abstention-graded": lambda: certify_abstention(xi=0.25, delta=0.05, **graded_rows(900)),
        "calibration-levels": lambda: calibrate(
            n_bins=4, delta=0.05, **graded_rows(600) | {"quality_scale": (1, 2, 3, 4, 5)}
        ),
        "cascade-graded": lambda: certify_cascade(xi=0.1, delta=0.05, **cascade_rows(600, 2, 0.0)),
        "cascade-graded-partial": lambda: certify_cascade(
            xi=0.1, delta=0.05, **cascade_rows(600, 2, 0.05)
        ),
        "cascade-graded-paths": lambda: certify_cascade(
            xi=0.1, delta=0.05, **cascade_rows(600, 3, 0.02)
        ),
    },
    layouts=("calibration-graded", "abstention-graded", "cascade-graded-partial"),
    random=_random,
    use=_use,
)

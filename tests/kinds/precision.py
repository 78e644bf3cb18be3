"""Precision: at least a share of the flagged rows is positive."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.kind import Kind, Pilot, Use
from tests.kinds.random_rows import level, names, rate, scores

from pacbound import Certificate, certify_precision


def _made(**options: Any) -> Certificate:
    rng = np.random.default_rng(4)
    score = rng.beta(3, 1, size=900).round(2)
    return certify_precision(score, rng.random(900) < score, delta=0.05, **options)


def _random(rng: np.random.Generator) -> Certificate:
    rows = int(rng.integers(1, 400))
    score = scores(rng, rows)
    positive = rng.random(rows) < score ** float(rng.choice([0.1, 0.5, 2.0]))
    groups = names(rng, rows) if rng.random() < 0.3 else None
    target, delta = 1 - rate(rng), level(rng)
    return certify_precision(
        score, positive, target=min(max(target, 1e-9), 1 - 1e-9), delta=delta, groups=groups
    )


def _use() -> Use:
    score = np.concatenate([np.linspace(0.8, 0.999, 2000), np.linspace(0.1, 0.5, 1000)])
    positive = np.arange(3000) % np.where(score > 0.6, 100, 2) > 0
    return Use(certify_precision(score, positive, target=0.95, delta=0.05), _rows)


def _rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    score = rng.choice([0.05, 0.9, 1.0], n)
    # Rows that are not flagged may be negative as often as they like.
    positive = rng.random(n) < np.where(score < 0.5, 0.2, 0.5 if bad else 0.98)
    return {"score": score, "positive": positive}


def _pilot(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    positive = rng.random(rows) < 0.3
    score = np.where(positive, rng.beta(6, 2, size=rows), rng.beta(1, 6, size=rows))
    return {"score": score, "positive": positive}


KIND = Kind(
    made={
        "precision": lambda: _made(target=0.8),
        "precision-groups": lambda: _made(target=0.7, groups=np.arange(900) % 2),
        "precision-refused": lambda: _made(target=0.995),
    },
    layouts=("precision-groups",),
    random=_random,
    use=_use,
    pilot=Pilot(
        _pilot,
        lambda tally: certify_precision(data=tally, target=0.9, delta=0.05).coverage,
        {"target": 0.9, "claim": "precision"},
        0.04,
    ),
)

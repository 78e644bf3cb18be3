"""Drives: few of the rollouts under a shield are unsafe, at the last threshold that passed."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.kind import Kind, Use
from tests.kinds.random_rows import level, rate

from pacbound import Certificate, certify_drives


def _made(*drives: tuple[float, int, int], lost: int = 0, **options: Any) -> Certificate:
    threshold = np.concatenate([[g] * rollouts for g, rollouts, _ in drives])
    unsafe = np.concatenate([np.arange(rollouts) < bad for _, rollouts, bad in drives])
    told = np.where(np.arange(len(unsafe)) < lost, np.nan, unsafe)
    return certify_drives(threshold, told, **{"xi": 0.1, "delta": 0.05, **options})


def _random(rng: np.random.Generator) -> Certificate:
    thresholds = [-np.inf, 0.0, *rng.random(3).tolist(), 1.0, np.inf]
    chosen = np.sort(rng.choice(thresholds, size=int(rng.integers(1, 6)), replace=False))
    sizes = rng.integers(1, 300, size=len(chosen))
    rates = rng.choice([0.0, 0.01, 0.05, 0.3], size=len(chosen))
    unsafe = [rng.random(n) < p for n, p in zip(sizes, rates, strict=True)]
    told = np.concatenate(unsafe).astype(float)
    told[rng.random(len(told)) < rng.choice([0.0, 0.01])] = np.nan
    horizon = None if rng.random() < 0.5 else int(rng.integers(1, 500))
    asked: dict[str, Any] = {"xi": rate(rng), "delta": level(rng), "horizon": horizon}
    return certify_drives(np.repeat(chosen, sizes), told, **asked)


def _rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    return rng.random(n) < (0.5 if bad else 0.02)


KIND = Kind(
    made={
        "drives": lambda: _made((0.25, 200, 3), (0.3, 150, 4), (0.7, 200, 40), horizon=400),
        "drives-all-pass": lambda: _made((0.1, 100, 0), (0.5, 100, 5), lost=3),
        "drives-policy-alone": lambda: _made((-np.inf, 80, 0), (np.inf, 80, 1)),
        "drives-untested": lambda: _made((0.1, 100, 0), (0.2, 100, 30), (0.3, 100, 0)),
        "drives-refused": lambda: _made((0.25, 100, 30), (0.5, 100, 0)),
        "drives-too-few": lambda: _made((0.25, 10, 0)),
    },
    layouts=("drives",),
    random=_random,
    use=lambda: Use(_made((0.25, 400, 3)), _rows),
)

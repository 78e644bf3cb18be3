"""Pass rates: enough of all rows pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.kind import Kind, Use
from tests.kinds.random_rows import level, rate

from pacbound import Certificate, Tally, certify_rate


def _made(rows: int, failed: int, **options: Any) -> Certificate:
    asked = {"target": 0.9, "delta": 0.05, **options}
    return certify_rate(np.arange(rows) >= failed, **asked)


def _random(rng: np.random.Generator) -> Certificate:
    rows = int(rng.integers(1, 400))
    passed = (rng.random(rows) > rng.choice([0.0, 0.01, 0.05, 0.3])).astype(float)
    passed[rng.random(rows) < rng.choice([0.0, 0.01])] = np.nan
    asked: dict[str, Any] = {"target": 1 - rate(rng, zero=0), "delta": level(rng)}
    if rng.random() < 0.4:
        asked["threshold"] = float(rng.choice([-np.inf, 0.0, rng.random(), 1.0, np.inf]))
    if rng.random() < 0.3:
        asked["groups"] = rng.integers(0, 3, size=rows)
    return certify_rate(passed, **asked)


def _rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    return {"passed": rng.random(n) < (0.5 if bad else 0.98)}


def _clustered() -> Certificate:
    passed, clusters = np.arange(800) % 40 > 0, np.arange(800) // 4
    tally = Tally.count("pass-rate", passed=passed, clusters=clusters, seed=0)
    return certify_rate(data=tally, target=0.8, delta=0.05)


KIND = Kind(
    made={
        "pass-rate": lambda: _made(300, 12),
        "pass-rate-clusters": _clustered,
        "pass-rate-groups": lambda: _made(300, 3, groups=np.arange(300) % 3),
        "pass-rate-refused": lambda: _made(300, 40),
        "pass-rate-too-few": lambda: _made(20, 0),
        "pass-rate-under-shield": lambda: _made(300, 12, threshold=0.3),
        "pass-rate-under-shield-refused": lambda: _made(300, 40, threshold=float("inf")),
    },
    layouts=("pass-rate-clusters", "pass-rate-groups", "pass-rate-under-shield"),
    random=_random,
    use=lambda: Use(_made(400, 3), _rows),
)

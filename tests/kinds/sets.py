"""Prediction sets: the true label is missing from at most a share of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.kind import Kind
from tests.kinds.random_rows import level, names, rate

from pacbound import Certificate, certify_sets


def _made(rows: int, **options: Any) -> Certificate:
    rng = np.random.default_rng(8)
    probability = rng.dirichlet([0.4] * 3, size=rows)
    label = (probability.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1).astype(float)
    label[:2] = np.nan
    return certify_sets(probability.round(2), label, **{"xi": 0.15, "delta": 0.05, **options})


def _random(rng: np.random.Generator) -> Certificate:
    rows, labels = int(rng.integers(1, 200)), int(rng.integers(2, 5))
    probability = rng.dirichlet([0.4] * labels, size=rows).round(int(rng.integers(1, 4)))
    label = rng.integers(0, labels, size=rows).astype(float)
    label[rng.random(rows) < rng.choice([0.0, 0.05])] = np.nan
    options: dict[str, Any] = {"xi": rate(rng), "delta": level(rng)}
    if rng.random() < 0.4:
        options["groups"] = names(rng, rows)
        options["group_thresholds"] = str(rng.choice(["common", "own"]))
        options["small_groups"] = str(rng.choice(["refuse", "leave-out"]))
    elif rng.random() < 0.3:
        options |= {"clusters": np.arange(rows) // 2, "seed": int(rng.integers(9))}
    if np.isnan(label).all():
        label[0] = 0
    return certify_sets(np.minimum(probability, 1.0), label, **options)


KIND = Kind(
    made={
        "sets": lambda: _made(300),
        "sets-groups": lambda: _made(300, groups=np.arange(300) % 3, group_thresholds="own"),
        "sets-small-groups": lambda: _made(
            300, groups=np.arange(300) // 145, small_groups="leave-out"
        ),
        "sets-refused": lambda: _made(300, xi=0.005),
    },
    layouts=("sets-groups",),
    random=_random,
)

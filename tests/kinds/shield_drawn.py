"""A shield whose rollouts were drawn in clusters, or by weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.kind import Kind
from tests.kinds.random_rows import level, rate, scores
from tests.kinds.shield import shield_tally

from pacbound import Certificate, Tally, certify_shield


def _random(rng: np.random.Generator) -> Certificate:
    rows = int(rng.integers(4, 200))
    columns = {"score": scores(rng, rows), "unsafe": rng.random(rows) < 0.1}
    draws: list[dict[str, Any]] = [
        {"clusters": np.arange(rows) // 3},
        {"clusters": np.arange(rows) // 3, "cluster_bound": 4, "seed": 3},
        {"weights": rng.random(rows) + 0.5, "weight_bound": 2.0, "seed": 1},
    ]
    tally = Tally.count("shield", **columns, **draws[int(rng.integers(3))])
    return (
        certify_shield(data=tally, xi=rate(rng), delta=level(rng)) if tally.rows else _random(rng)
    )


KIND = Kind(
    made={
        "shield-clusters-per-row": lambda: certify_shield(
            data=shield_tally(1500, clusters=np.arange(1500) // 3, cluster_bound=5),
            xi=0.1,
            delta=0.05,
        ),
    },
    layouts=("shield-clusters-per-row",),
    random=_random,
)

"""A shield whose rollouts were drawn in clusters, or by weights; among the trials, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.kind import Kind
from tests.kinds.random_rows import level, rate, scores
from tests.kinds.shield import shield_tally

from pacbound import (
    Certificate,
    certify_false_alarms,
    certify_shield,
)
from pacbound.errors import InvalidValueError


def _random(rng: np.random.Generator) -> Certificate:
    rows = int(rng.integers(4, 200))
    columns: dict[str, Any] = {"score": scores(rng, rows), "unsafe": rng.random(rows) < 0.1}
    draws: list[dict[str, Any]] = [
        {"clusters": np.arange(rows) // 3, "seed": 0},
        {"clusters": np.arange(rows) // 3, "cluster_bound": 4, "seed": 3},
        {"weights": rng.random(rows) + 0.5, "weight_bound": 2.0, "seed": 1},
    ]
    draw = draws[int(rng.integers(3))]
    asked: dict[str, Any] = {"xi": rate(rng), "delta": level(rng)}
    kind = int(rng.integers(3))
    try:
        if kind == 0:
            return certify_shield(**columns, **asked, **draw, rate="among-unsafe")
        if kind == 1:
            return certify_false_alarms(**columns, **asked, **draw)
        return certify_shield(**columns, **asked, **draw)
    except InvalidValueError:
        # A bound may leave nothing to certify.
        return _random(rng)


KIND = Kind(
    made={
        "shield-clusters-per-row": lambda: certify_shield(
            data=shield_tally(1500, clusters=np.arange(1500) // 3, cluster_bound=5, seed=0),
            xi=0.1,
            delta=0.05,
        ),
    },
    layouts=("shield-clusters-per-row",),
    random=_random,
)

"""A cascade of three models, exit after exit."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from tests.kinds.cascade import BOUNDS, random_rows
from tests.kinds.cascade_paths import three_models
from tests.kinds.kind import Kind
from tests.kinds.random_rows import level, rate

from pacbound import Certificate, certify_cascade


def _made(bound: Literal["exact", "pair", "product"]) -> Certificate:
    return certify_cascade(data=three_models(600), xi=0.1, delta=0.05, bound=bound, method="greedy")


def _random(rng: np.random.Generator) -> Certificate:
    columns = random_rows(rng, int(rng.integers(1, 120)), 3, 1.0)
    bound: Any = rng.choice(BOUNDS)
    xi, delta = rate(rng, zero=0), level(rng)
    return certify_cascade(
        **columns,
        unseen_labels=1.0,
        unrelated_labels=True,
        xi=xi,
        delta=delta,
        bound=bound,
        method="greedy",
    )


KIND = Kind(
    made={
        "cascade-greedy-exact": lambda: _made("exact"),
        "cascade-greedy-pair": lambda: _made("pair"),
        "cascade-greedy-product": lambda: _made("product"),
    },
    random=_random,
    trials=60,
)

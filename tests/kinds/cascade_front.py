"""A cascade along a sequence of thresholds that other rows declared."""

from __future__ import annotations

import numpy as np
from tests.kinds.cascade import cascade_tally, random_rows
from tests.kinds.cascade_paths import three_models
from tests.kinds.kind import Kind
from tests.kinds.random_rows import level, rate

from pacbound import Certificate, Tally
from pacbound.claims.cascade import certify_declared
from pacbound.procedures.cascade import Declared


def front(rows: int, *, xi: float = 0.1) -> Certificate:
    """Along a short sequence that does not fall, with an exit that is not used at first."""
    steps = [[1000, 1025], [900, 980], [960, 700], [700, 650], [500, 0], [0, 0]]
    declared = Declared((4, 0, 2), (1.0, 2.0, 6.0), 0.2, 7, 150, np.array(steps).T)
    return certify_declared(three_models(rows), declared, xi=xi, delta=0.05)


def _front_of_two(rows: int, *, xi: float) -> Certificate:
    steps = [[65000, 62000, 63000, 40000, 20000, 0]] if xi else [[62000, 60000, 58000, 0]]
    declared = Declared((1, 0), (1.0, 9.0), 0.25, 0, 200, np.array(steps))
    return certify_declared(cascade_tally(rows), declared, xi=xi, delta=0.05)


def _random(rng: np.random.Generator) -> Certificate:
    models = int(rng.choice([2, 3]))
    columns = random_rows(rng, int(rng.integers(1, 250)), models, 1.0)
    top = 65536 if models == 2 else 1024
    steps = np.unique(rng.integers(0, top, size=(8, models - 1)), axis=0)
    steps = steps[np.argsort(-steps.sum(axis=1))]
    declared = Declared(
        tuple(rng.permutation(5)[:models].tolist()),
        tuple(map(float, rng.integers(1, 9, size=models))),
        0.2,
        int(rng.integers(100)),
        50,
        steps.T,
    )
    return certify_declared(
        Tally.count("cascade", **columns, unseen_labels=1.0, unrelated_labels=True),
        declared,
        xi=rate(rng),
        delta=level(rng),
    )


KIND = Kind(
    made={
        "cascade-front-exact": lambda: front(600),
        "cascade-front-no-loss": lambda: _front_of_two(2000, xi=0.0),
        "cascade-front-refused": lambda: front(20),
        "cascade-front-two-models": lambda: _front_of_two(600, xi=0.05),
    },
    layouts=("cascade-front-exact",),
    random=_random,
)

"""Several claims that hold together."""

from __future__ import annotations

from functools import partial

import numpy as np
from tests.kinds.calibration import drawn_columns
from tests.kinds.kind import Kind
from tests.kinds.random_rows import level, rate, scores
from tests.kinds.shield import shield_tally

from pacbound import (
    Certificate,
    Tally,
    calibrate,
    certify_recall,
    certify_shield,
    certify_together,
)


def _made(shield_rows: int) -> Certificate:
    return certify_together(
        {
            "brake": partial(certify_shield, data=shield_tally(shield_rows), xi=0.05),
            "confidence": partial(calibrate, data=Tally.count("calibration", **drawn_columns(300))),
        },
        delta=0.05,
        shares={"brake": 4, "confidence": 1},
    )


def _random(rng: np.random.Generator) -> Certificate:
    rows = int(rng.integers(5, 200))
    score = scores(rng, rows)
    flag = rng.random(rows) < 0.1
    return certify_together(
        {
            "brake": partial(certify_shield, score, flag, xi=rate(rng)),
            "find": partial(certify_recall, score, flag, target=0.8),
            "confidence": partial(calibrate, score, ~flag, n_bins=3),
        },
        delta=level(rng),
    )


KIND = Kind(
    made={
        "bundle": lambda: _made(shield_rows=500),
        "bundle-about": lambda: _made(shield_rows=500).with_about({"owner": "Ada"}),
        "bundle-refused": lambda: _made(shield_rows=50),
    },
    layouts=("bundle",),
    random=_random,
)

"""A shield: few of the rollouts become unsafe without its backup."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from tests.kinds.kind import Kind, Pilot, Use
from tests.kinds.random_rows import level, many, rate, scores

from pacbound import Certificate, Tally, certify_shield
from pacbound.claims.shield import ShieldCertificate
from pacbound.tally.row_options import RowOptions


def shield_tally(rows: int, **draw: Unpack[RowOptions]) -> Tally:
    rng = np.random.default_rng(5)
    unsafe = rng.random(rows) < 0.2
    score = np.where(unsafe, rng.beta(4, 1, size=rows), rng.beta(1, 4, size=rows))
    score[np.flatnonzero(unsafe)[:2]] = -np.inf
    return Tally.count("shield", score=score, unsafe=unsafe, **draw)


def _random(rng: np.random.Generator) -> Certificate:
    rows = int(rng.integers(1, 300))
    unsafe = rng.random(rows) < rng.choice([0.02, 0.1, 0.5])
    score = np.where(unsafe & (rng.random(rows) < 0.02), -np.inf, scores(rng, rows))
    options: dict[str, Any] = {"xi": rate(rng), "delta": level(rng)}
    way = int(rng.integers(4))
    if way == 0 and options["xi"] > 0:
        last = rows + 50 + int(3 * np.log(1 / options["delta"]) / options["xi"])
        options["looks"] = sorted({rows, *rng.integers(1, last, size=3).tolist(), last})
    elif way == 1:
        options["rate"] = "among-unsafe"
    if way == 2:
        tally = Tally.count("shield", score=score, unsafe=unsafe)
        return certify_shield(data=many(tally, int(10 ** rng.integers(1, 4))), **options)
    return certify_shield(score, unsafe, **options)


def watched(xi: float = 0.02) -> ShieldCertificate:
    return certify_shield([0.1] * 1000, [False] * 1000, xi=xi, delta=0.01)


def _rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    return rng.random(n) < (0.3 if bad else 0.01)


def _pilot(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    unsafe = rng.random(rows) < 0.1
    scores = np.where(unsafe, rng.beta(6, 2, size=rows), rng.beta(1, 6, size=rows))
    return {"score": scores, "unsafe": unsafe}


def _interventions(tally: Tally) -> float:
    certificate = certify_shield(data=tally, xi=0.05, delta=0.05)
    return certificate.acted / certificate.n


KIND = Kind(
    made={
        "shield": lambda: certify_shield(data=shield_tally(500), xi=0.05, delta=0.05),
        "shield-among-unsafe": lambda: certify_shield(
            data=shield_tally(500), xi=0.2, delta=0.05, rate="among-unsafe"
        ),
        "shield-among-unsafe-refused": lambda: certify_shield(
            data=shield_tally(50), xi=0.05, delta=0.05, rate="among-unsafe"
        ),
        "shield-horizon": lambda: certify_shield(
            data=shield_tally(500), xi=0.05, delta=0.05, horizon=400
        ).with_about({"model": "policy of 3 May", "owner": "Ada"}),
        "shield-looks": lambda: certify_shield(
            data=shield_tally(500), xi=0.05, delta=0.05, looks=(250, 500, 1000)
        ),
        "shield-looks-refused": lambda: certify_shield(
            data=shield_tally(50), xi=0.05, delta=0.05, looks=(50, 500, 1000)
        ),
        "shield-refused": lambda: certify_shield(data=shield_tally(50), xi=0.01, delta=0.05),
    },
    layouts=("shield-among-unsafe-refused", "shield-horizon", "shield-looks"),
    random=_random,
    trials=1100,
    use=lambda: Use(watched(), _rows),
    pilot=Pilot(_pilot, _interventions, {"xi": 0.05}, 0.02),
)

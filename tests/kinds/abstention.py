"""Abstention: of the rows that are answered, few are answered wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.kind import Kind, Pilot, Use
from tests.kinds.random_rows import level, names, rate, scores

from pacbound import Certificate, Tally, certify_abstention
from pacbound.claims.abstention import AbstentionCertificate


def _tally(rows: int, *, groups: bool = False) -> Tally:
    rng = np.random.default_rng(7)
    confidence = np.minimum(rng.beta(6, 1, size=rows) * 1.05, 1.0)
    correct = rng.random(rows) < confidence**2
    named = {"groups": rng.choice(["day", "night", "dusk"], size=rows, p=[0.6, 0.39, 0.01])}
    return Tally.count(
        "abstention",
        confidence=confidence.round(2),
        correct=correct,
        groups=named["groups"] if groups else None,
    )


def _random(rng: np.random.Generator) -> Certificate:
    rows = int(rng.integers(1, 400))
    score = scores(rng, rows)
    correct = rng.random(rows) < score ** float(rng.choice([0.1, 0.5, 2.0]))
    options: dict[str, Any] = {"xi": rate(rng), "delta": level(rng)}
    if rng.random() < 0.3:
        options["groups"] = names(rng, rows)
    if rng.random() < 0.3:
        options["first_threshold"] = float(rng.random())
    return certify_abstention(score, correct, **options)


def watched(**options: Any) -> AbstentionCertificate:
    confidence = np.concatenate([np.linspace(0.8, 0.999, 2000), np.linspace(0.1, 0.5, 1000)])
    right = np.arange(3000) % np.where(confidence > 0.6, 100, 2) > 0
    return certify_abstention(confidence, right, xi=0.05, delta=0.05, **options)


def _rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    confidence = rng.choice([0.05, 0.9, 1.0], n)
    # Rows that are not answered may be wrong as often as they like.
    right = rng.random(n) < np.where(confidence < 0.5, 0.2, 0.5 if bad else 0.98)
    return {"confidence": confidence, "correct": right}


def _pilot(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    confidence = rng.beta(5, 1, size=rows)
    correct = rng.random(rows) < confidence
    return {"question": "abstention", "confidence": confidence, "correct": correct}


KIND = Kind(
    made={
        "abstention": lambda: certify_abstention(data=_tally(900), xi=0.15, delta=0.05),
        "abstention-groups": lambda: certify_abstention(
            data=_tally(900, groups=True), xi=0.2, delta=0.05
        ),
        "abstention-declared": lambda: certify_abstention(
            data=_tally(900), xi=0.15, delta=0.05, first_threshold=0.8
        ),
        "abstention-declared-refused": lambda: certify_abstention(
            data=_tally(900), xi=0.001, delta=0.05, first_threshold=0.8
        ),
        "abstention-refused": lambda: certify_abstention(data=_tally(900), xi=0.01, delta=0.05),
    },
    layouts=("abstention-groups", "abstention-declared"),
    random=_random,
    trials=900,
    use=lambda: Use(watched(), _rows),
    pilot=Pilot(
        _pilot,
        lambda tally: certify_abstention(data=tally, xi=0.1, delta=0.05).coverage,
        {"xi": 0.1},
        0.06,
    ),
)

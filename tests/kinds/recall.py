"""Recall: at least a share of the positives is flagged."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.kind import Kind, Pilot, Use
from tests.kinds.random_rows import level, rate, scores

from pacbound import Certificate, Tally, certify_recall
from pacbound.claims.recall import RecallCertificate


def recall_tally(rows: int, **draw: Any) -> Tally:
    rng = np.random.default_rng(9)
    positive = rng.random(rows) < 0.2
    score = np.where(positive, rng.beta(4, 1, size=rows), rng.beta(1, 4, size=rows))
    return Tally.count("recall", score=score.round(2), positive=positive, **draw)


def _random(rng: np.random.Generator) -> Certificate:
    rows = int(rng.integers(1, 300))
    positive, score = rng.random(rows) < rng.random(), scores(rng, rows)
    options: dict[str, Any] = {"target": 1 - rate(rng, zero=0), "delta": level(rng)}
    positives = int(positive.sum())
    if positives and rng.random() < 0.3:
        # The last look can always pass.
        last = positives + 50 + int(3 * np.log(1 / options["delta"]) / (1 - options["target"]))
        looks = sorted({positives, *rng.integers(1, last, size=2).tolist(), last})
        return certify_recall(score, positive, looks=looks, **options)
    return certify_recall(score, positive, **options)


def watched(target: float = 0.9) -> RecallCertificate:
    scores = [0.8] * 980 + [0.1] * 20 + [0.2] * 1000
    return certify_recall(scores, [True] * 1000 + [False] * 1000, target=target, delta=0.01)


def _rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    positive = rng.random(n) < 0.7
    # Negatives may be flagged as rarely as they like.
    flagged = rng.random(n) < np.where(positive, 0.5 if bad else 0.95, 0.1)
    return {"score": np.where(flagged, 0.85, 0.3), "positive": positive}


def pilot_rows(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    positive = rng.random(rows) < 0.3
    score = np.where(positive, rng.beta(6, 2, size=rows), rng.beta(1, 6, size=rows))
    return {"score": score, "positive": positive}


KIND = Kind(
    made={
        "recall": lambda: certify_recall(data=recall_tally(600), target=0.9, delta=0.05),
        "recall-clusters": lambda: certify_recall(
            data=recall_tally(1200, clusters=np.arange(1200) // 4, seed=0), target=0.9, delta=0.05
        ),
        "recall-clusters-groups": lambda: certify_recall(
            data=recall_tally(
                1200,
                clusters=np.arange(1200) // 6,
                groups=np.where(np.arange(1200) % 4, "CT", "MRI"),
                seed=5,
            ),
            target=0.8,
            delta=0.05,
            group_thresholds="own",
        ),
        "recall-looks": lambda: certify_recall(
            data=recall_tally(600), target=0.9, delta=0.05, looks=(60, 116, 200)
        ),
        "recall-looks-refused": lambda: certify_recall(
            data=recall_tally(60), target=0.9, delta=0.05, looks=(14, 60, 116)
        ),
        "recall-refused": lambda: certify_recall(data=recall_tally(100), target=0.95, delta=0.01),
    },
    layouts=("recall-looks-refused", "recall-clusters", "recall-clusters-groups"),
    random=_random,
    trials=1160,
    use=lambda: Use(watched(), _rows),
    pilot=Pilot(
        pilot_rows,
        lambda tally: certify_recall(data=tally, target=0.9, delta=0.05).coverage,
        {"target": 0.9},
        0.02,
    ),
)

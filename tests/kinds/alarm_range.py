"""A range of thresholds with few false alarms and a high recall, or few misses."""

from __future__ import annotations

import numpy as np
from tests.kinds.kind import Kind
from tests.kinds.random_rows import level, rate, scores
from tests.kinds.recall import recall_tally
from tests.kinds.shield import shield_tally

from pacbound import Certificate, certify_alarm_range


def _random(rng: np.random.Generator) -> Certificate:
    rows = int(rng.integers(2, 300))
    positive = rng.random(rows) < rng.choice([0.2, 0.5])
    positive[:2] = True, False
    score = np.where(positive, scores(rng, rows), 1 - scores(rng, rows))
    return certify_alarm_range(
        score, positive, xi=rate(rng), target=1 - rate(rng, zero=0), delta=level(rng)
    )


KIND = Kind(
    made={
        "alarm-range-clusters": lambda: certify_alarm_range(
            data=recall_tally(
                1600, clusters=np.arange(1600) // 4, among=["negative", "positive"], seed=0
            ),
            xi=0.2,
            target=0.8,
            delta=0.05,
        ),
        "alarm-range": lambda: certify_alarm_range(
            data=recall_tally(400), xi=0.1, target=0.8, delta=0.05
        ),
        "alarm-range-empty": lambda: certify_alarm_range(
            data=recall_tally(400), xi=0.015, target=0.9, delta=0.2
        ),
        "alarm-range-rollouts": lambda: certify_alarm_range(
            data=shield_tally(300), xi=0.1, missed=0.1, delta=0.1
        ),
    },
    layouts=("alarm-range-clusters", "alarm-range", "alarm-range-rollouts"),
    random=_random,
)

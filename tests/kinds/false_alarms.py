"""False alarms: few of the negatives raise one."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.kind import Kind, Pilot, Use
from tests.kinds.random_rows import level, rate, scores
from tests.kinds.recall import pilot_rows, recall_tally
from tests.kinds.shield import shield_tally

from pacbound import Certificate, Tally, certify_false_alarms
from pacbound.claims.false_alarms import FalseAlarmCertificate


def _random(rng: np.random.Generator) -> Certificate:
    rows = int(rng.integers(1, 300))
    positive, score = rng.random(rows) < rng.random(), scores(rng, rows)
    return certify_false_alarms(1 - score, positive, xi=rate(rng), delta=level(rng))


def watched(xi: float = 0.1) -> FalseAlarmCertificate:
    scores = [0.8] * 20 + [0.1] * 980 + [0.9] * 1000
    return certify_false_alarms(scores, [False] * 1000 + [True] * 1000, xi=xi, delta=0.01)


def _rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    positive = rng.random(n) < 0.3
    # Positives may raise an alarm as rarely as they like.
    raised = rng.random(n) < np.where(positive, 0.2, 0.5 if bad else 0.05)
    return {"score": np.where(raised, 0.85, 0.05), "positive": positive}


def _recall(tally: Tally) -> float:
    found = certify_false_alarms(data=tally, xi=0.1, delta=0.05).share("positive")
    assert found is not None
    return found


KIND = Kind(
    made={
        "false-alarms": lambda: certify_false_alarms(data=recall_tally(600), xi=0.1, delta=0.05),
        "false-alarms-clusters-per-row": lambda: certify_false_alarms(
            data=recall_tally(
                1200, clusters=np.arange(1200) // 4, cluster_bound=5, seed=3, among="negative"
            ),
            xi=0.1,
            delta=0.05,
        ),
        "false-alarms-refused": lambda: certify_false_alarms(
            data=recall_tally(60), xi=0.01, delta=0.05
        ),
        "false-alarms-rollouts": lambda: certify_false_alarms(
            data=shield_tally(400), xi=0.1, delta=0.05
        ),
        "false-alarms-rollouts-refused": lambda: certify_false_alarms(
            data=shield_tally(50), xi=0.01, delta=0.05
        ),
    },
    layouts=("false-alarms", "false-alarms-clusters-per-row", "false-alarms-rollouts-refused"),
    random=_random,
    use=lambda: Use(watched(), _rows),
    pilot=Pilot(pilot_rows, _recall, {"xi": 0.1, "claim": "false-alarms"}, 0.02),
)

"""Certificates to watch over, one of each kind, and rows that keep or break their claims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.kinds import KINDS
from tests.kinds.kind import Use

from pacbound import (
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_false_alarms,
    certify_recall,
    certify_shield,
)
from pacbound.claims.abstention import AbstentionCertificate
from pacbound.claims.calibration_certificate import CalibrationCertificate
from pacbound.claims.cascade import CascadeCertificate
from pacbound.claims.false_alarms import FalseAlarmCertificate
from pacbound.claims.recall import RecallCertificate
from pacbound.claims.shield import ShieldCertificate

CLOCKS = ["ever", "one per 10,000 labels"]


def shield(xi: float = 0.02) -> ShieldCertificate:
    return certify_shield([0.1] * 1000, [False] * 1000, xi=xi, delta=0.01)


def cascade(xi: float = 0.02) -> CascadeCertificate:
    answers = [[1, 1]] * 900 + [[0, 1]] * 100
    return certify_cascade([0.9] * 900 + [0.1] * 100, answers, [1] * 1000, xi=xi, delta=0.05)


def calibration(**options: Any) -> CalibrationCertificate:
    rng = np.random.default_rng(11)
    confidence = rng.random(5000)
    right = rng.random(5000) < confidence
    return calibrate(confidence, right, delta=0.01, n_bins=5, **options)


def abstention(**options: Any) -> AbstentionCertificate:
    # Scores that differ: ties at the top hide where the walk may start.
    confidence = np.concatenate([np.linspace(0.8, 0.999, 2000), np.linspace(0.1, 0.5, 1000)])
    right = np.arange(3000) % np.where(confidence > 0.6, 100, 2) > 0
    return certify_abstention(confidence, right, xi=0.05, delta=0.05, **options)


def recall(target: float = 0.9) -> RecallCertificate:
    scores = [0.8] * 980 + [0.1] * 20 + [0.2] * 1000
    return certify_recall(scores, [True] * 1000 + [False] * 1000, target=target, delta=0.01)


def false_alarms(xi: float = 0.1) -> FalseAlarmCertificate:
    scores = [0.8] * 20 + [0.1] * 980 + [0.9] * 1000
    return certify_false_alarms(scores, [False] * 1000 + [True] * 1000, xi=xi, delta=0.01)


def groups(*, overlapping: bool = False, own: bool = False) -> CascadeCertificate:
    answers = [[1, 1]] * 1800 + [[0, 1]] * 200
    night = np.arange(2000) % 2 == 0
    certificate = certify_cascade(
        [0.9] * 1800 + [0.1] * 200,
        answers,
        [1] * 2000,
        xi=0.02,
        delta=0.05,
        groups={"night": night} if overlapping else np.where(night, "night", "day"),
        group_thresholds="own" if own else "common",
    )
    assert isinstance(certificate, CascadeCertificate)
    return certificate


def _shield_rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    return rng.random(n) < (0.3 if bad else 0.01)


def _cascade_rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    confidence, labels = rng.random(n), rng.integers(0, 3, n)
    slow = np.where(rng.random(n) < 0.9, labels, (labels + 1) % 3)
    same = rng.random(n) < (0.5 if bad else 0.99)
    fast = np.where(same, slow, (labels + 2) % 3)
    predictions = np.column_stack([fast, slow])
    return {"confidence": confidence, "prediction": predictions, "label": labels}


def _calibration_rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    confidence = rng.random(n)
    right = rng.random(n) < (confidence / 2 if bad else confidence)
    return {"confidence": confidence, "correct": right}


def _abstention_rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    confidence = rng.choice([0.05, 0.9, 1.0], n)
    # Rows that are not answered may be wrong as often as they like.
    right = rng.random(n) < np.where(confidence < 0.5, 0.2, 0.5 if bad else 0.98)
    return {"confidence": confidence, "correct": right}


def _recall_rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    positive = rng.random(n) < 0.7
    # Negatives may be flagged as rarely as they like.
    flagged = rng.random(n) < np.where(positive, 0.5 if bad else 0.95, 0.1)
    return {"score": np.where(flagged, 0.85, 0.3), "positive": positive}


def _false_alarm_rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    positive = rng.random(n) < 0.3
    # Positives may raise an alarm as rarely as they like.
    raised = rng.random(n) < np.where(positive, 0.2, 0.5 if bad else 0.05)
    return {"score": np.where(raised, 0.85, 0.05), "positive": positive}


def _group_rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    rows = _cascade_rows(n, rng, bad=False)
    night = rng.random(n) < 0.5
    # By day nothing is lost, so that all rows together lose half of what the night does.
    if bad:
        lost = night & (rng.random(n) < 0.1)
        rows["prediction"][:, 1] = rows["label"]
        rows["prediction"][lost, 0] = (rows["label"][lost] + 1) % 3
        rows["confidence"] = np.maximum(rows["confidence"], 0.95 * lost)
    return {**rows, "groups": np.where(night, "night", "day")}


def _overlapping_rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    rows = _group_rows(n, rng, bad)
    return {**rows, "groups": {"night": rows["groups"] == "night"}}


USES = {
    "abstention": lambda: Use(abstention(), _abstention_rows),
    "cascade-groups": lambda: Use(groups(), _group_rows),
    "cascade-overlapping-groups": lambda: Use(groups(overlapping=True), _overlapping_rows),
    "false-alarms": lambda: Use(false_alarms(), _false_alarm_rows),
    "recall": lambda: Use(recall(), _recall_rows),
    "shield": lambda: Use(shield(), _shield_rows),
    "cascade": lambda: Use(cascade(), _cascade_rows),
    "calibration": lambda: Use(calibration(), _calibration_rows),
    **{name: kind.use for name, kind in KINDS.items() if kind.use},
}


@pytest.fixture(params=sorted(USES))
def use(request: pytest.FixtureRequest) -> Use:
    """Each kind of certificate in turn."""
    return USES[request.param]()


@pytest.fixture(params=CLOCKS)
def clock(request: pytest.FixtureRequest) -> str:
    """Each promise in turn."""
    return str(request.param)

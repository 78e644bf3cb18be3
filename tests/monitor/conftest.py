"""Certificates to watch over, one of each kind, and rows that keep or break their claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pacbound import (
    CalibrationCertificate,
    CascadeCertificate,
    Certificate,
    ShieldCertificate,
    calibrate,
    certify_cascade,
    certify_shield,
)

CLOCKS = ["ever", "one per 10,000 labels"]


@dataclass(frozen=True)
class Use:
    """A certificate, and rows of its use: `rows(n, rng, bad)` breaks the claim if it is `bad`."""

    certificate: Certificate
    rows: Callable[[int, np.random.Generator, bool], Any]

    def part(self, rows: Any, where: slice) -> Any:
        if isinstance(rows, dict):
            return {name: column[where] for name, column in rows.items()}
        return rows[where]


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


def _shield_rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    return rng.random(n) < (0.3 if bad else 0.01)


def _cascade_rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    confidence, labels = rng.random(n), rng.integers(0, 3, n)
    slow = np.where(rng.random(n) < 0.9, labels, (labels + 1) % 3)
    same = rng.random(n) < (0.5 if bad else 0.99)
    fast = np.where(same, slow, (labels + 2) % 3)
    predictions = np.column_stack([fast, slow])
    return {"confidences": confidence, "predictions": predictions, "labels": labels}


def _calibration_rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    confidence = rng.random(n)
    right = rng.random(n) < (confidence / 2 if bad else confidence)
    return {"confidence": confidence, "correct": right}


USES = {
    "shield": lambda: Use(shield(), _shield_rows),
    "cascade": lambda: Use(cascade(), _cascade_rows),
    "calibration": lambda: Use(calibration(), _calibration_rows),
}


@pytest.fixture(params=sorted(USES))
def use(request: pytest.FixtureRequest) -> Use:
    """Each kind of certificate in turn."""
    return USES[request.param]()


@pytest.fixture(params=CLOCKS)
def clock(request: pytest.FixtureRequest) -> str:
    """Each promise in turn."""
    return str(request.param)

"""What the alarm display draws is what the certificate holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.report.conftest import marks

from pacbound import certify_false_alarms, certify_recall
from pacbound.errors import InvalidTypeError
from pacbound.figure import Range, Steps, Upright
from pacbound.report import AlarmDisplay

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

SCORE = np.linspace(0, 1, 1001)
POSITIVE = SCORE > 0.6


def _range(display: Any) -> list[tuple[float, float]]:
    return [(mark.low, mark.high) for mark in marks(display, Range, "certified")]


def test_the_curve_and_the_threshold_are_those_of_the_certificate() -> None:
    certificate = certify_false_alarms(SCORE, POSITIVE, xi=0.1, delta=0.05)
    display = AlarmDisplay.from_certificate(certificate)
    (curve,) = marks(display, Steps)
    place = np.flatnonzero(curve.x >= certificate.threshold)[0]
    assert curve.y[place] == pytest.approx(certificate.observed_false_alarm_rate)
    assert [mark.x for mark in marks(display, Upright)] == [certificate.threshold]


def test_a_refusal_has_no_threshold_and_without_negatives_there_is_no_curve() -> None:
    display = AlarmDisplay.from_certificate(
        certify_false_alarms([0.2, 0.9], [True, True], xi=0.1, delta=0.05)
    )
    assert marks(display, Upright) == []
    assert marks(display, Steps) == []
    assert len(marks(display, Steps, panel=1)) == 1


def test_another_certificate_is_refused() -> None:
    other: Any = certify_recall(SCORE, POSITIVE, target=0.9, delta=0.05)
    with pytest.raises(InvalidTypeError, match="expected what certify_false_alarms"):
        AlarmDisplay.from_certificate(other)

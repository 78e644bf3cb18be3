"""What the alarm figure draws is what the certificate holds."""

from __future__ import annotations

import numpy as np
import pytest
from tests.report.conftest import marks

from pacbound import certify_false_alarms
from pacbound.figure import Steps, Upright

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

SCORE = np.linspace(0, 1, 1001)
POSITIVE = SCORE > 0.6


def test_the_curve_and_the_threshold_are_those_of_the_certificate() -> None:
    certificate = certify_false_alarms(SCORE, POSITIVE, xi=0.1, delta=0.05)
    figure = certificate.figure()
    (curve,) = marks(figure, Steps)
    place = np.flatnonzero(curve.x >= certificate.threshold)[0]
    assert curve.y[place] == pytest.approx(certificate.observed_rate)
    assert [mark.x for mark in marks(figure, Upright)] == [certificate.threshold]


def test_a_refusal_has_no_threshold_and_without_negatives_there_is_no_curve() -> None:
    figure = certify_false_alarms([0.2, 0.9], [True, True], xi=0.1, delta=0.05).figure()
    assert marks(figure, Upright) == []
    assert marks(figure, Steps) == []
    assert len(marks(figure, Steps, panel=1)) == 1

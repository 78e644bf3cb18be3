"""What the recall display draws is what the certificate holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.report.conftest import marks

from pacbound import certify_recall, certify_shield
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.figure import Level, Steps, Upright
from pacbound.report import RecallDisplay

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

SCORE = np.linspace(0, 1, 1001)
POSITIVE = np.arange(1001) % 3 == 0


def test_the_curves_are_those_of_the_certificate() -> None:
    certificate = certify_recall(SCORE, POSITIVE, target=0.9, delta=0.05)
    display = RecallDisplay.from_certificate(certificate)
    (recall,), (flagged,) = marks(display, Steps), marks(display, Steps, panel=1)
    place = np.flatnonzero(recall.x >= certificate.threshold)[0]
    assert recall.y[place] == pytest.approx(certificate.observed_recall)
    assert flagged.y[place] == pytest.approx(certificate.flag_rate)
    assert [mark.x for mark in marks(display, Upright, "certified")] == [certificate.threshold]
    assert [mark.y for mark in marks(display, Level, "certified")] == [0.9]
    assert "n = 1,001, delta = 0.05" in display.ax_.get_title("left")
    assert "Certified is what was asked for" in display.ax_.get_title("left")


def test_a_refusal_has_no_threshold_and_without_positives_there_is_no_curve() -> None:
    display = RecallDisplay.from_certificate(
        certify_recall([0.2, 0.9], [False, False], target=0.9, delta=0.05)
    )
    assert marks(display, Upright) == []
    assert "Nothing is certified" in display.figure.caption
    assert marks(display, Steps) == []
    assert len(marks(display, Steps, panel=1)) == 1


def test_groups_are_drawn_one_by_one() -> None:
    groups = np.where(np.arange(1001) % 2, "even", "odd")
    certificate = certify_recall(SCORE, POSITIVE, groups=groups, target=0.9, delta=0.05)
    assert "odd" in RecallDisplay.from_certificate(certificate, group="odd").figure.title
    with pytest.raises(InvalidValueError, match="it has 'even', 'odd'"):
        RecallDisplay.from_certificate(certificate)


def test_another_certificate_is_refused() -> None:
    other: Any = certify_shield(SCORE, POSITIVE, xi=0.5, delta=0.05)
    with pytest.raises(InvalidTypeError, match="expected a RecallCertificate"):
        RecallDisplay.from_certificate(other)

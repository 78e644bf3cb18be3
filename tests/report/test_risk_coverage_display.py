"""What the risk-coverage display draws is what the certificate holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pacbound import calibrate, certify_abstention
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.report import RiskCoverageDisplay

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

CONFIDENCE = np.linspace(0.3, 1.0, 1000)
CORRECT = np.arange(1000) % 10 > 3 * (CONFIDENCE < 0.7)


def _line(display: Any, name: str) -> Any:
    (found,) = [line for line in display.ax_.lines if line.get_gid() == name]
    return found.get_xydata()


def test_the_curve_is_that_of_the_certificate_and_the_dot_lies_on_it_at_the_threshold() -> None:
    certificate = certify_abstention(CONFIDENCE, CORRECT, xi=0.2, delta=0.05)
    display = RiskCoverageDisplay.from_certificate(certificate)
    curve, ((x, y),) = _line(display, "curve"), _line(display, "threshold")
    answered = certificate.threshold <= CONFIDENCE
    assert x == pytest.approx(answered.mean())
    assert x == certificate.coverage
    assert y == pytest.approx(1 - CORRECT[answered].mean())
    assert curve[-1] == pytest.approx([1.0, 1 - CORRECT.mean()])
    assert curve[0, 0] == pytest.approx(0.01, abs=1e-3)
    assert (_line(display, "xi")[:, 1] == 0.2).all()


def test_a_refusal_has_no_dot() -> None:
    refused = certify_abstention(CONFIDENCE, CORRECT, xi=0.001, delta=0.05)
    display = RiskCoverageDisplay.from_certificate(refused)
    assert not [line for line in display.ax_.lines if line.get_gid() == "threshold"]
    legend = display.ax_.get_legend()
    assert legend is not None
    assert "refused" in legend.get_texts()[1].get_text()


def test_groups_are_drawn_one_by_one() -> None:
    groups = np.where(np.arange(1000) % 2, "even", "odd")
    certificate = certify_abstention(CONFIDENCE, CORRECT, groups=groups, xi=0.2, delta=0.05)
    display = RiskCoverageDisplay.from_certificate(certificate, group="odd")
    assert display.rows == 500
    assert display.threshold == certificate.thresholds["odd"]
    assert "of group odd" in display.ax_.get_title(loc="left")
    with pytest.raises(InvalidValueError, match="it has 'even', 'odd'"):
        RiskCoverageDisplay.from_certificate(certificate)


def test_another_certificate_is_refused() -> None:
    other: Any = calibrate(CONFIDENCE, CORRECT, delta=0.05)
    with pytest.raises(InvalidTypeError, match="expected an AbstentionCertificate"):
        RiskCoverageDisplay.from_certificate(other)

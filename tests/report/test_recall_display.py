"""What the recall display draws is what the certificate holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pacbound import certify_recall, certify_shield
from pacbound.errors import InvalidTypeError
from pacbound.report import RecallDisplay

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

SCORE = np.linspace(0, 1, 1001)
POSITIVE = np.arange(1001) % 3 == 0


def _line(ax: Any, name: str) -> Any:
    return [line.get_xydata() for line in ax.lines if line.get_gid() == name]


def test_the_curves_are_those_of_the_certificate() -> None:
    certificate = certify_recall(SCORE, POSITIVE, target=0.9, delta=0.05)
    display = RecallDisplay.from_certificate(certificate)
    (recall,), (flagged,) = _line(display.ax_, "found"), _line(display.panel_ax_, "flagged")
    place = np.flatnonzero(recall[:, 0] >= certificate.threshold)[0]
    assert recall[place, 1] == pytest.approx(certificate.observed_recall)
    assert flagged[place, 1] == pytest.approx(certificate.flag_rate)
    assert (_line(display.ax_, "threshold")[0][:, 0] == certificate.threshold).all()
    assert (_line(display.ax_, "target")[0][:, 1] == 0.9).all()


def test_a_refusal_has_no_threshold_and_without_positives_there_is_no_curve() -> None:
    display = RecallDisplay.from_certificate(
        certify_recall([0.2, 0.9], [False, False], target=0.9, delta=0.05)
    )
    assert _line(display.ax_, "threshold") == []
    assert np.isnan(_line(display.ax_, "found")[0][:, 1]).all()


def test_another_certificate_is_refused() -> None:
    other: Any = certify_shield(SCORE, POSITIVE, xi=0.5, delta=0.05)
    with pytest.raises(InvalidTypeError, match="expected a RecallCertificate"):
        RecallDisplay.from_certificate(other)

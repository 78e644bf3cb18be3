"""What the alarm display draws is what the certificate holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pacbound import certify_alarm_range, certify_false_alarms, certify_recall
from pacbound.errors import InvalidTypeError
from pacbound.report import AlarmDisplay

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

SCORE = np.linspace(0, 1, 1001)
POSITIVE = SCORE > 0.6


def _line(ax: Any, name: str) -> Any:
    return [line.get_xydata() for line in ax.lines if line.get_gid() == name]


def _shade(ax: Any) -> Any:
    found = [patch for patch in ax.patches if patch.get_gid() == "certified"]
    return [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in found]


def test_the_curve_and_the_shade_are_those_of_the_certificate() -> None:
    certificate = certify_false_alarms(SCORE, POSITIVE, xi=0.1, delta=0.05)
    display = AlarmDisplay.from_certificate(certificate)
    (curve,) = _line(display.ax_, "false alarms")
    place = np.flatnonzero(curve[:, 0] >= certificate.threshold)[0]
    assert curve[place, 1] == pytest.approx(certificate.observed_false_alarm_rate)
    assert _shade(display.ax_) == [pytest.approx((certificate.threshold, 1.0))]
    assert _line(display.ax_, "misses") == []


def test_a_range_shows_the_misses_as_its_claim_counts_them() -> None:
    both = certify_alarm_range(SCORE, POSITIVE, xi=0.1, target=0.9, delta=0.05)
    display = AlarmDisplay.from_certificate(both)
    assert _shade(display.ax_) == [pytest.approx((both.lowest, both.highest))]
    (misses,) = _line(display.ax_, "misses")
    place = np.flatnonzero(misses[:, 0] >= both.highest)[0]
    assert misses[place, 1] == pytest.approx(1 - both.misses.observed_recall)  # type: ignore[union-attr,operator]
    assert [line[0, 1] for line in _line(display.ax_, "allowed")] == pytest.approx([0.1, 0.1])
    # Of all rollouts, not of the unsafe ones.
    shield = certify_alarm_range(SCORE, unsafe=POSITIVE, xi=0.1, missed=0.1, delta=0.05)
    (misses,) = _line(AlarmDisplay.from_certificate(shield).ax_, "misses")
    place = np.flatnonzero(misses[:, 0] >= shield.highest)[0]
    assert misses[place, 1] == pytest.approx(shield.misses.observed_miss_rate)  # type: ignore[union-attr]


def test_a_refusal_has_no_shade_and_without_negatives_there_is_no_curve() -> None:
    display = AlarmDisplay.from_certificate(
        certify_false_alarms([0.2, 0.9], [True, True], xi=0.1, delta=0.05)
    )
    assert _shade(display.ax_) == []
    assert np.isnan(_line(display.ax_, "false alarms")[0][:, 1]).all()
    empty = certify_alarm_range(SCORE, np.arange(1001) % 2, xi=0.1, target=0.9, delta=0.05)
    assert _shade(AlarmDisplay.from_certificate(empty).ax_) == []


def test_another_certificate_is_refused() -> None:
    other: Any = certify_recall(SCORE, POSITIVE, target=0.9, delta=0.05)
    with pytest.raises(InvalidTypeError, match="expected what certify_false_alarms"):
        AlarmDisplay.from_certificate(other)

"""What the alarm display draws is what the certificate holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.report.conftest import marks

from pacbound import certify_alarm_range, certify_false_alarms, certify_recall
from pacbound.errors import InvalidTypeError
from pacbound.figure import Level, Range, Steps, Upright
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


def test_a_range_shows_the_misses_as_its_claim_counts_them() -> None:
    both = certify_alarm_range(SCORE, POSITIVE, xi=0.1, target=0.9, delta=0.05)
    display = AlarmDisplay.from_certificate(both)
    assert _range(display) == [pytest.approx((both.lowest, both.highest))]
    (misses,) = marks(display, Steps, "other")
    place = np.flatnonzero(misses.x >= both.highest)[0]
    assert misses.y[place] == pytest.approx(1 - both.misses.observed_recall)  # type: ignore[union-attr,operator]
    assert [level.y for level in marks(display, Level)] == pytest.approx([0.1, 0.1])
    # Of all rollouts, not of the unsafe ones.
    shield = certify_alarm_range(SCORE, unsafe=POSITIVE, xi=0.1, missed=0.1, delta=0.05)
    (misses,) = marks(AlarmDisplay.from_certificate(shield), Steps, "other")
    place = np.flatnonzero(misses.x >= shield.highest)[0]
    assert misses.y[place] == pytest.approx(shield.misses.observed_miss_rate)  # type: ignore[union-attr]


def test_the_page_shows_the_same_range() -> None:
    both = certify_alarm_range(SCORE, POSITIVE, xi=0.1, target=0.9, delta=0.05)
    (figure,) = both.figures()
    shown = [mark.name for mark in figure.legend]
    assert shown[0].startswith("certified: ")
    assert shown[1:] == [
        "negatives with an alarm, as seen (no guarantee)",
        "10 % of them allowed",
        "positives missed, as seen",
        "10 % allowed",
    ]


def test_a_refusal_has_no_threshold_and_without_negatives_there_is_no_curve() -> None:
    display = AlarmDisplay.from_certificate(
        certify_false_alarms([0.2, 0.9], [True, True], xi=0.1, delta=0.05)
    )
    assert marks(display, Upright) == []
    assert marks(display, Steps) == []
    assert len(marks(display, Steps, panel=1)) == 1
    empty = certify_alarm_range(SCORE, np.arange(1001) % 2, xi=0.1, target=0.9, delta=0.05)
    assert _range(AlarmDisplay.from_certificate(empty)) == []


def test_another_certificate_is_refused() -> None:
    other: Any = certify_recall(SCORE, POSITIVE, target=0.9, delta=0.05)
    with pytest.raises(InvalidTypeError, match="expected what certify_false_alarms"):
        AlarmDisplay.from_certificate(other)

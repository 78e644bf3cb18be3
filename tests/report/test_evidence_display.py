"""The figure of the evidence shows the numbers of the monitor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.report.conftest import marks

from pacbound import Monitor, certify_shield
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.figure import Dots, Steps
from pacbound.report import EvidenceDisplay


def _monitor() -> Monitor:
    certificate = certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
    monitor, rng = Monitor(certificate, delta=1e-3), np.random.default_rng(0)
    monitor.update(rng.random(3000) < 0.01)
    monitor.update(rng.random(3000) < 0.2)
    return monitor


def test_what_is_drawn_is_what_the_monitor_knows() -> None:
    monitor = _monitor()
    display = EvidenceDisplay.from_monitor(monitor)
    labels, evidence = monitor.history
    (line,), (dots,) = marks(display, Steps), marks(display, Dots)
    assert line.x.tolist() == [0, *labels.tolist()]
    assert line.y[:-1].tolist() == evidence.tolist()
    assert dots.x.tolist() == [alarm.label for alarm in monitor.alarms]
    assert display.ax_.get_yscale() == "log"
    low, high = display.ax_.get_ylim()
    assert low < evidence.min()
    assert high > max(monitor.limit, evidence.max())
    title = display.ax_.get_title(loc="left")
    assert "shield" in title
    assert "the chance of any false alarm is at most 0.1 %" in title


def test_given_axes_are_drawn_on() -> None:
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert EvidenceDisplay.from_monitor(_monitor(), ax=ax).ax_ is ax


def test_evidence_of_zero_is_drawn_on_a_logarithmic_axis() -> None:
    EvidenceDisplay([1, 2], [0.0, 3.0], limit=10).plot().figure_.canvas.draw()


@pytest.mark.parametrize(
    ("labels", "evidence", "limit"),
    [
        ([], [], 10),
        ([1, 2], [1.0], 10),
        ([2, 1], [1.0, 1.0], 10),
        ([1, 2], [1.0, float("nan")], 10),
        ([1, 2], [1.0, -1.0], 10),
        ([1, 2], [1.0, 1.0], 0),
        ([0, 2], [1.0, 1.0], 10),
    ],
)
def test_numbers_that_cannot_be_are_refused(labels: Any, evidence: Any, limit: float) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError)):
        EvidenceDisplay(labels, evidence, limit=limit)


def test_a_monitor_without_labels_and_what_is_none_are_refused() -> None:
    fresh = Monitor(_monitor().certificate, delta=1e-3)
    with pytest.raises((InvalidValueError, InvalidTypeError)):
        EvidenceDisplay.from_monitor(fresh)
    with pytest.raises(InvalidTypeError, match="expected a Monitor"):
        EvidenceDisplay.from_monitor("monitor")  # type: ignore[arg-type]

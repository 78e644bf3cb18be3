"""The figure of the evidence shows the numbers of the monitor."""

from __future__ import annotations

import numpy as np
import pytest
from tests.report.conftest import marks

from pacbound import Monitor, certify_shield
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.figure import Dots, Steps
from pacbound.report import plot
from pacbound.report.plotting import figure_of


def _monitor() -> Monitor:
    certificate = certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
    monitor, rng = Monitor(certificate, delta=1e-3), np.random.default_rng(0)
    monitor.update(rng.random(3000) < 0.01)
    monitor.update(rng.random(3000) < 0.2)
    return monitor


def test_what_is_drawn_is_what_the_monitor_knows() -> None:
    monitor = _monitor()
    figure = figure_of(monitor)
    labels, evidence = monitor.history
    (line,), (dots,) = marks(figure, Steps), marks(figure, Dots)
    assert line.x.tolist() == [0, *labels.tolist()]
    assert line.y[:-1].tolist() == evidence.tolist()
    assert dots.x.tolist() == [alarm.label for alarm in monitor.alarms]
    assert plot(figure).axes[0].get_yscale() == "log"
    low, high = plot(figure).axes[0].get_ylim()
    assert low < evidence.min()
    assert high > max(monitor.limit, evidence.max())
    title = figure.title
    assert "shield" in title
    assert "the chance of any false alarm is at most 0.1 %" in title


def test_a_monitor_without_labels_and_what_is_none_are_refused() -> None:
    fresh = Monitor(_monitor().certificate, delta=1e-3)
    with pytest.raises(InvalidValueError, match="has seen no label"):
        plot(fresh)
    with pytest.raises(InvalidTypeError, match="expected a figure, a certificate, a monitor"):
        plot("monitor")  # type: ignore[arg-type]

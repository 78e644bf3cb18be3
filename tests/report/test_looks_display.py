"""The figure of planned looks."""

from __future__ import annotations

import numpy as np
import pytest
from tests.report.conftest import marks

pytest.importorskip("matplotlib", reason="figures need the extra `report`")

from matplotlib.figure import Figure

from pacbound import planned_looks
from pacbound.errors import InvalidValueError
from pacbound.figure import Level, Line, Note
from pacbound.report import LooksDisplay

LOOKS = [100, 500, 1000, 2000]


def test_points_are_what_each_look_allows_and_the_panel_when_one_has_passed() -> None:
    plan = planned_looks(0.02, delta=0.01, looks=LOOKS)
    display = LooksDisplay.from_plan(plan, rate=0.005)
    (allowed,), (claimed,) = marks(display, Line), marks(display, Level)
    assert allowed.x.tolist() == LOOKS
    assert plan.largest_errors[0] == -1
    assert np.isnan(allowed.y[0])
    assert allowed.y[1:].tolist() == [
        most / look for most, look in zip(plan.largest_errors[1:], LOOKS[1:], strict=True)
    ]
    assert (allowed.y[1:] < claimed.y).all()
    (passed,) = marks(display, Line, panel=1)
    assert passed.y == pytest.approx(np.cumsum(plan.passing(0.005)))
    named = [note.text for note in marks(display, Note)]
    assert named == [str(most) for most in plan.largest_errors[1:]]
    assert [text.get_text() for text in display.ax_.texts] == named


def test_half_of_the_rate_is_taken_for_the_truth_and_axes_may_be_given() -> None:
    plan = planned_looks(0.02, delta=0.01, looks=range(300, 6000, 300))
    figure = Figure()
    display = LooksDisplay.from_plan(plan, ax=figure.add_subplot())
    assert "passed if the rate is 0.01 (no guarantee)" in [
        mark.name for mark in display.figure.legend
    ]
    assert display.figure_ is figure
    assert not display.ax_.texts


def test_what_is_no_rate_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="not a rate"):
        LooksDisplay.from_plan(planned_looks(0.02, delta=0.01, looks=LOOKS), rate=2)

"""The figure of planned looks."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra `report`")

from matplotlib.figure import Figure

from pacbound import planned_looks
from pacbound.errors import InvalidValueError
from pacbound.report import LooksDisplay

LOOKS = [100, 500, 1000, 2000]


def test_points_are_what_each_look_allows_and_the_panel_when_one_has_passed() -> None:
    plan = planned_looks(0.02, delta=0.01, looks=LOOKS)
    display = LooksDisplay.from_plan(plan, rate=0.005)
    lines = {line.get_gid(): np.asarray(line.get_data()) for line in display.ax_.get_lines()}
    looks, allowed = lines["allowed"]
    assert looks.tolist() == LOOKS
    assert plan.largest_errors[0] == -1
    assert np.isnan(allowed[0])
    assert allowed[1:].tolist() == [
        most / look for most, look in zip(plan.largest_errors[1:], LOOKS[1:], strict=True)
    ]
    assert (allowed[1:] < lines["claimed"][1][0]).all()
    (passed,) = display.panel_.get_lines()
    assert np.asarray(passed.get_ydata()) == pytest.approx(np.cumsum(plan.passing(0.005)))
    named = [text.get_text() for text in display.ax_.texts]
    assert named == [str(most) for most in plan.largest_errors[1:]]


def test_half_of_the_rate_is_taken_for_the_truth_and_axes_may_be_given() -> None:
    plan = planned_looks(0.02, delta=0.01, looks=range(300, 6000, 300))
    figure = Figure()
    display = LooksDisplay.from_plan(plan, ax=figure.add_subplot())
    assert display.rate == 0.01
    assert display.figure_ is figure
    assert not display.ax_.texts


def test_what_is_no_rate_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="not a rate"):
        LooksDisplay(planned_looks(0.02, delta=0.01, looks=LOOKS), rate=2)

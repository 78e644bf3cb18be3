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
from pacbound.report import plot
from pacbound.report.plotting import errors_by_look

LOOKS = [100, 500, 1000, 2000]


def test_points_are_what_each_look_allows_and_the_panel_when_one_has_passed() -> None:
    plan = planned_looks(0.02, delta=0.01, looks=LOOKS)
    figure = errors_by_look(plan, 0.005)
    (allowed,), (claimed,) = marks(figure, Line), marks(figure, Level)
    assert allowed.x.tolist() == LOOKS
    assert plan.largest_errors[0] == -1
    assert np.isnan(allowed.y[0])
    assert allowed.y[1:].tolist() == [
        most / look for most, look in zip(plan.largest_errors[1:], LOOKS[1:], strict=True)
    ]
    assert (allowed.y[1:] < claimed.y).all()
    (passed,) = marks(figure, Line, panel=1)
    assert passed.y == pytest.approx(np.cumsum(plan.passing(0.005)))
    named = [note.text for note in marks(figure, Note)]
    assert named == [str(most) for most in plan.largest_errors[1:]]
    assert [text.get_text() for text in plot(figure).axes[0].texts] == named


def test_half_of_the_rate_is_taken_for_the_truth_and_axes_may_be_given() -> None:
    plan = planned_looks(0.02, delta=0.01, looks=range(300, 6000, 300))
    canvas = Figure()
    assert plot(plan, ax=canvas.add_subplot()) is canvas
    shown = [text.get_text() for text in canvas.axes[0].get_legend().get_texts()]  # type: ignore[union-attr]
    assert "passed if the rate is 0.01 (no guarantee)" in shown
    assert not canvas.axes[0].texts


def test_what_is_no_rate_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="not a rate"):
        errors_by_look(planned_looks(0.02, delta=0.01, looks=LOOKS), 2)

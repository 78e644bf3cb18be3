"""The figure of a plan."""

import numpy as np
import pytest
from tests.report.conftest import legend, marks

pytest.importorskip("matplotlib", reason="figures need the extra `report`")

from pacbound import Tally, plan_from_pilot
from pacbound.figure import Level, Line, Upright
from pacbound.planning import PilotPlan
from pacbound.report import plot
from pacbound.report.plotting import figure_of


def plan(**options: object) -> PilotPlan:
    rng = np.random.default_rng(0)
    unsafe = rng.random(400) < 0.1
    scores = np.where(unsafe, rng.beta(6, 2, size=400), rng.beta(1, 6, size=400))
    pilot = Tally.count("shield", score=scores, unsafe=unsafe)
    given = {"xi": 0.05, "delta": 0.05, "sizes": [100, 1000, 8000], "draws": 10, **options}
    return plan_from_pilot(pilot, **given)  # type: ignore[arg-type]


def test_the_line_is_the_average_and_the_panel_what_is_enough() -> None:
    found = plan(goal=0.1)
    figure = figure_of(found)
    (value,), (goal,), (needed,) = (marks(figure, kind) for kind in (Line, Level, Upright))
    assert value.x.tolist() == [100, 1000, 8000]
    assert value.y.tolist() == [point.value for point in found.points]
    assert goal.y == 0.1
    assert found.needed is not None
    assert needed.x == found.needed.rows
    (reached,) = marks(figure, Line, panel=1)
    assert reached.y.tolist() == [point.reached for point in found.points]


def test_the_title_says_that_nothing_is_guaranteed() -> None:
    figure = figure_of(plan())
    assert "nothing here is guaranteed" in figure.caption
    assert figure.panels[0].y.label == "Intervention rate"
    assert figure.x.label == "Rollouts"


def test_without_a_goal_no_goal_is_drawn() -> None:
    assert "goal" not in legend(figure_of(plan()))


@pytest.mark.parametrize("sizes", [[130], [100, 110], [30, 10**6]])
def test_any_sizes_have_ticks(sizes: list[int]) -> None:
    figure = figure_of(plan(sizes=sizes))
    labels = [tick.get_text() for tick in plot(figure).axes[-1].get_xticklabels()]
    assert labels
    assert all(label.rstrip("kM").replace(",", "").isdigit() for label in labels)

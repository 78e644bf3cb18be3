"""The figure of a plan."""

from pathlib import Path

import numpy as np
import pytest
from tests.report.conftest import legend, marks

pytest.importorskip("matplotlib", reason="figures need the extra `report`")

from matplotlib.figure import Figure

from pacbound import Tally, plan_from_pilot
from pacbound.figure import Level, Line, Upright
from pacbound.planning import PilotPlan
from pacbound.report import PlanDisplay


def plan(**options: object) -> PilotPlan:
    rng = np.random.default_rng(0)
    unsafe = rng.random(400) < 0.1
    scores = np.where(unsafe, rng.beta(6, 2, size=400), rng.beta(1, 6, size=400))
    pilot = Tally.count("shield", score=scores, unsafe=unsafe)
    given = {"xi": 0.05, "delta": 0.05, "sizes": [100, 1000, 8000], "draws": 10, **options}
    return plan_from_pilot(pilot, **given)  # type: ignore[arg-type]


def test_the_line_is_the_average_and_the_panel_what_is_enough() -> None:
    found = plan(goal=0.1)
    display = PlanDisplay.from_plan(found)
    (value,), (goal,), (needed,) = (marks(display, kind) for kind in (Line, Level, Upright))
    assert value.x.tolist() == [100, 1000, 8000]
    assert value.y.tolist() == [point.value for point in found.points]
    assert goal.y == 0.1
    assert found.needed is not None
    assert needed.x == found.needed.rows
    (reached,) = marks(display, Line, panel=1)
    assert reached.y.tolist() == [point.reached for point in found.points]


def test_the_title_says_that_nothing_is_guaranteed() -> None:
    display = PlanDisplay.from_plan(plan())
    assert "nothing here is guaranteed" in display.ax_.get_title(loc="left")
    assert display.ax_.get_ylabel() == "Intervention rate"
    assert display.axes_[-1].get_xlabel() == "Rollouts"


def test_without_a_goal_no_goal_is_drawn() -> None:
    assert "goal" not in legend(PlanDisplay.from_plan(plan()))


@pytest.mark.parametrize("sizes", [[130], [100, 110], [30, 10**6]])
def test_any_sizes_have_ticks(sizes: list[int]) -> None:
    display = PlanDisplay.from_plan(plan(sizes=sizes))
    labels = [tick.get_text() for tick in display.axes_[-1].get_xticklabels()]
    assert labels
    assert all(label.rstrip("kM").replace(",", "").isdigit() for label in labels)


def test_it_is_drawn_on_given_axes_and_saved(tmp_path: Path) -> None:
    figure = Figure()
    display = PlanDisplay.from_plan(plan(), ax=figure.add_subplot())
    assert display.figure_ is figure
    assert display._repr_png_() is None
    PlanDisplay.from_plan(plan()).figure_.savefig(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")

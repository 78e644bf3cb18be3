"""The figure of a plan."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra `report`")

from matplotlib.figure import Figure

from pacbound import Tally, plan_from_pilot
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
    lines = {line.get_gid(): np.asarray(line.get_data()) for line in display.ax_.get_lines()}
    assert lines["value"][0].tolist() == [100, 1000, 8000]
    assert lines["value"][1].tolist() == [point.value for point in found.points]
    assert lines["goal"][1][0] == 0.1
    assert found.needed is not None
    assert lines["needed"][0][0] == found.needed.rows
    reached = next(line for line in display.panel_.get_lines() if line.get_gid() == "reached")
    assert np.asarray(reached.get_ydata()).tolist() == [point.reached for point in found.points]


def test_the_title_says_that_nothing_is_guaranteed() -> None:
    display = PlanDisplay.from_plan(plan())
    assert "nothing here is guaranteed" in display.ax_.get_title(loc="left")
    assert display.ax_.get_ylabel() == "Intervention rate"
    assert display.panel_.get_xlabel() == "Rollouts"


def test_without_a_goal_no_goal_is_drawn() -> None:
    gids = [line.get_gid() for line in PlanDisplay.from_plan(plan()).ax_.get_lines()]
    assert "goal" not in gids


@pytest.mark.parametrize("sizes", [[130], [100, 110], [30, 10**6]])
def test_any_sizes_have_ticks(sizes: list[int]) -> None:
    display = PlanDisplay.from_plan(plan(sizes=sizes))
    labels = [tick.get_text() for tick in display.panel_.get_xticklabels()]
    assert labels
    assert all(label.replace(",", "").isdigit() for label in labels)


def test_it_is_drawn_on_given_axes_and_saved(tmp_path: Path) -> None:
    figure = Figure()
    display = PlanDisplay.from_plan(plan(), ax=figure.add_subplot())
    assert display.figure_ is figure
    assert display._repr_png_() is None
    PlanDisplay.from_plan(plan()).figure_.savefig(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")

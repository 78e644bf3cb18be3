"""The figures of shields draw the numbers they are given, say what is certified, and stay within
the axes they are given."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pacbound import binomial_interval
from pacbound.errors import InvalidTypeError, InvalidValueError, MissingDependencyError
from pacbound.report import (
    DesiredSafetyDisplay,
    Drive,
    FloorPlan,
    RolloutDisplay,
    Shape,
    SuccessSafetyDisplay,
    palette,
)

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

COUNTS = {"exact": (80, 520), "product": (60, 480), "histogram": (110, 560), "naive": (310, 640)}
XI = [0.1, 0.03, 0.05]
UNSAFE = {"exact": [80, 20, 38], "histogram": [104, 33, 49]}
CERTIFIED = ["exact"]
PLAN = FloorPlan(
    6, 5, (Shape(4, 2, 1, 0.5, yaw=0.5), Shape(1, 4, 0.6, 0.6, is_round=True)), goal=(5, 4)
)
OFF = Drive([(0.5 + 0.3 * step, 1.0, 0.1) for step in range(11)], collided=True)
ON = Drive([(0.5 + 0.3 * step, 1.0, 0.1) for step in range(7)], fired_at=4)

WAYS: dict[str, Any] = {
    "success": lambda ax: SuccessSafetyDisplay.from_counts(
        COUNTS, rollouts=1000, xi=0.1, certified=CERTIFIED, delta=0.01, ax=ax
    ),
    "desired": lambda ax: DesiredSafetyDisplay.from_counts(
        XI, UNSAFE, rollouts=1000, certified=CERTIFIED, delta=0.01, ax=ax
    ),
    "rollout": lambda ax: RolloutDisplay(PLAN, {"Shield off": OFF, "Shield on": ON}).plot(ax),
}

PROGRAM = """
import sys
from pacbound.report import DesiredSafetyDisplay, Drive, FloorPlan
from pacbound.report import RolloutDisplay, SuccessSafetyDisplay
assert "matplotlib" not in sys.modules
SuccessSafetyDisplay({"a": (0.5, 0.1)}, xi=0.1).plot()._repr_png_()
DesiredSafetyDisplay([0.1], {"a": [0.1]}).plot()._repr_png_()
RolloutDisplay(FloorPlan(1, 1), {"a": Drive([(0, 0)])}).plot()._repr_png_()
assert "matplotlib.pyplot" not in sys.modules
"""


@pytest.fixture(params=WAYS)
def draw(request: pytest.FixtureRequest) -> Any:
    return WAYS[request.param]


def axes(display: Any) -> list[Any]:
    return list(display.axes_) if isinstance(display, RolloutDisplay) else [display.ax_]


def line(ax: Any, name: str) -> Any:
    (found,) = [one for one in ax.lines if one.get_gid() == name]
    return found


def title(ax: Any) -> str:
    return str(ax.get_title("left"))


def test_every_method_is_at_its_safety_and_its_success() -> None:
    display = WAYS["success"](None)
    for name, (unsafe, successes) in COUNTS.items():
        assert display.points[name] == ((1000 - unsafe) / 1000, successes / 1000)
        assert np.asarray(line(display.ax_, name).get_xydata()).tolist() == [
            list(display.points[name])
        ]
    assert set(line(display.ax_, "desired").get_xdata()) == {0.9}


def test_error_bars_are_exact_intervals_of_both_rates(extents: Any) -> None:
    display = WAYS["success"](None)
    low, high = binomial_interval(920, 1000, delta=0.05)
    assert extents(display.ax_, "exact: safety bar").tolist() == [[low, high, 0.52, 0.52]]
    low, high = binomial_interval(520, 1000, delta=0.05)
    assert extents(display.ax_, "exact: success bar").tolist() == [[0.92, 0.92, low, high]]
    plain = SuccessSafetyDisplay.from_counts(COUNTS, rollouts=1000, xi=0.1, bar_delta=None)
    assert plain.intervals == {}
    assert len(extents(plain.ax_, "exact: safety bar")) == 0


def test_achieved_safety_is_drawn_by_rising_desired_safety_with_exact_bars(extents: Any) -> None:
    display = WAYS["desired"](None)
    np.testing.assert_allclose(
        line(display.ax_, "exact").get_xydata(), [[0.9, 0.92], [0.95, 0.962], [0.97, 0.98]]
    )
    low, high = binomial_interval(1000 - np.array(UNSAFE["exact"]), 1000, delta=0.05)
    desired = 1 - np.array(XI)
    np.testing.assert_array_equal(
        extents(display.ax_, "exact: bars"), np.column_stack([desired, desired, low, high])
    )
    assert display.falls_short["histogram"].tolist() == [True, True, False]
    assert not display.falls_short["exact"].any()
    along, up = line(display.ax_, "desired").get_data()
    assert along.tolist() == up.tolist()
    assert along[0] < 0.9
    assert along[1] == 1.0


@pytest.mark.parametrize("way", ["success", "desired"])
def test_blue_is_certified_and_vermilion_is_not(way: str) -> None:
    display = WAYS[way](None)
    methods = COUNTS if way == "success" else UNSAFE
    for name in methods:
        color = palette.CERTIFIED if name in CERTIFIED else palette.OBSERVED
        assert to_rgba(line(display.ax_, name).get_markeredgecolor()) == to_rgba(color)
    assert "blue: xi is certified; vermilion: no guarantee" in title(display.ax_)
    assert set(methods) <= {text.get_text() for text in display.ax_.get_legend().get_texts()}


def test_titles_say_what_is_known() -> None:
    assert (
        title(WAYS["success"](None).ax_).splitlines()[0]
        == "Success against safety: xi = 0.1, delta = 0.01, 1,000 test rollouts"
    )
    assert (
        title(WAYS["desired"](None).ax_).splitlines()[0]
        == "Desired and achieved safety, delta = 0.01, 1,000 test rollouts"
    )
    assert (
        title(SuccessSafetyDisplay({}, xi=0.1).plot().ax_).splitlines()[0]
        == "Success against safety: xi = 0.1"
    )


def test_a_drive_changes_colour_where_the_shield_fires_and_ends_where_it_ended() -> None:
    off, on = WAYS["rollout"](None).axes_
    assert len(line(off, "policy drives").get_xydata()) == 11
    assert len(line(off, "backup brakes").get_xydata()) == 0
    assert len(line(on, "policy drives").get_xydata()) == 5
    assert len(line(on, "backup brakes").get_xydata()) == 3
    assert np.asarray(line(on, "shield fires").get_xydata()).tolist() == [[0.5 + 0.3 * 4, 1.0]]
    assert np.asarray(line(off, "collision").get_xydata()).tolist() == [[0.5 + 0.3 * 10, 1.0]]
    assert len(line(on, "collision").get_xydata()) == 0
    assert title(off) == "Shield off: collides at step 10"
    assert title(on).replace("\n", " ") == "Shield on: the shield fires at step 4, and it stops"
    assert len([patch for patch in off.patches if patch.get_gid() == "shape"]) == 2


def test_panels_read_alike() -> None:
    off, on = WAYS["rollout"](None).axes_
    legends = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in (off, on)]
    assert legends[0] == legends[1]
    assert off.get_xlim() == on.get_xlim()
    assert off.get_ylim() == on.get_ylim()
    off.figure.canvas.draw()
    assert off.get_window_extent().height == pytest.approx(on.get_window_extent().height)
    assert off.get_window_extent().width == pytest.approx(on.get_window_extent().width)


def test_shapes_are_drawn_where_they_stand() -> None:
    plan = FloorPlan(6, 5, (Shape(4, 2, 2, 1, yaw=np.pi / 2), Shape(1, 4, 0.6, 0.6, is_round=True)))
    (ax,) = RolloutDisplay(plan, {"a": Drive([(0, 0)])}).plot().axes_
    shapes: list[Any] = [patch for patch in ax.patches if patch.get_gid() == "shape"]
    box, disc = shapes
    corners = (box.get_patch_transform() + ax.transData.inverted() + ax.transData).transform(
        box.get_path().vertices
    )
    assert corners.min(axis=0).tolist() == pytest.approx([3.5, 1.0])
    assert corners.max(axis=0).tolist() == pytest.approx([4.5, 3.0])
    assert disc.center == (1, 4)
    assert disc.radius == 0.3


@pytest.mark.parametrize(
    ("drive", "story"),
    [
        (Drive([(0, 0), (1, 0)], success=True), "reaches the goal in 1 steps"),
        (Drive([(0, 0), (1, 0)]), "is still on its way after 1 steps"),
        (
            Drive([(0, 0), (1, 0)], fired_at=0, collided=True),
            "collides at step 1, though the shield fired at step 0",
        ),
    ],
)
def test_stories_say_what_became_of_it(drive: Drive, story: str) -> None:
    assert drive.story == story


def test_a_room_of_the_robot_becomes_a_plan() -> None:
    def obstacle(kind: str, *, is_round: bool = False, blocks: bool = True) -> Any:
        half = (0.5, 0.25, 0.4)
        return SimpleNamespace(
            kind=kind, x=1.0, y=2.0, half_size=half, yaw=0.3, is_round=is_round, blocks=blocks
        )

    things = [
        obstacle("wall"),
        obstacle("cylinder", is_round=True),
        obstacle("table top", blocks=False),
    ]
    plan = FloorPlan.of(SimpleNamespace(width=4.0, depth=3.0, goal=(3.0, 1.0), obstacles=things))
    assert plan == FloorPlan(
        4.0,
        3.0,
        (
            Shape(1.0, 2.0, 1.0, 0.5, 0.3, is_wall=True),
            Shape(1.0, 2.0, 1.0, 0.5, 0.3, is_round=True),
            Shape(1.0, 2.0, 1.0, 0.5, 0.3, is_overhead=True),
        ),
        (3.0, 1.0),
    )


def test_no_methods_and_many_are_no_error() -> None:
    assert SuccessSafetyDisplay({}, xi=0.1).plot()._repr_png_()
    assert DesiredSafetyDisplay([], {}).plot()._repr_png_()
    names = [f"method {place}" for place in range(14)]
    assert SuccessSafetyDisplay(dict.fromkeys(names, (0.9, 0.4)), xi=0.1).plot()._repr_png_()
    assert DesiredSafetyDisplay([0.1], {name: [np.nan] for name in names}).plot()._repr_png_()


@pytest.mark.parametrize("point", [(0.0, 0.0), (1.0, 1.0), (1.0, 0.0)])
def test_extreme_rates_are_in_sight(point: tuple[float, float]) -> None:
    ax = SuccessSafetyDisplay({"a": point}, xi=0.0).plot().ax_
    assert ax.get_xlim()[0] < point[0] < ax.get_xlim()[1]
    assert ax.get_ylim()[0] <= point[1] < ax.get_ylim()[1]


def test_figures_never_load_pyplot_and_imports_do_not_load_matplotlib() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], check=True)


def test_a_new_figure_shows_itself_and_given_axes_are_shown_by_their_owner(draw: Any) -> None:
    display = draw(None)
    assert type(display.figure_.canvas) is FigureCanvasAgg
    assert display._repr_png_().startswith(b"\x89PNG")
    ax = Figure().subplots()
    given = draw(ax)
    assert axes(given)[0] is ax
    assert given.figure_ is ax.figure
    assert given.figure_.axes == axes(given)
    assert given._repr_png_() is None


def test_plot_returns_the_display_and_can_be_repeated(draw: Any) -> None:
    display = draw(None)
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first


@pytest.mark.parametrize("layout", [None, "constrained", "compressed", "tight"])
@pytest.mark.parametrize("size", [(6.4, 4.8), (8.0, 6.0), (14.0, 8.0), None])
def test_nothing_is_cut_off_or_overlaps(
    draw: Any, layout: Any, size: tuple[float, float] | None
) -> None:
    if size is None:
        display = draw(None)
    else:
        figure = Figure(figsize=size, layout=layout)
        FigureCanvasAgg(figure)
        display = draw(figure.subplots())
    figure = display.figure_
    figure.canvas.draw()
    drawn = figure.get_tightbbox().transformed(figure.dpi_scale_trans)
    assert drawn.x0 >= figure.bbox.x0 - 1
    assert drawn.x1 <= figure.bbox.x1 + 1
    assert drawn.y0 >= figure.bbox.y0 - 1
    assert drawn.y1 <= figure.bbox.y1 + 1
    for ax in axes(display):
        legend, heading, data = (
            ax.get_legend().get_window_extent(),
            ax._left_title.get_window_extent(),
            ax.get_window_extent(),
        )
        assert legend.y0 >= data.y1
        assert heading.y0 >= legend.y1 - 2


def test_axes_without_a_grid_and_subfigures_are_drawn_on(draw: Any) -> None:
    figure = Figure()
    FigureCanvasAgg(figure)
    assert draw(figure.add_axes((0.1, 0.1, 0.8, 0.8))).figure_ is figure
    figure.canvas.draw()
    parts: Any = Figure(layout="constrained").subfigures(1, 2)
    assert draw(parts[1].subplots()).figure_ is parts[1].figure
    parts[1].figure.canvas.draw()


@pytest.mark.parametrize("ax", [Figure(), np.array([None]), "axes"])
def test_what_is_no_axes_is_refused(draw: Any, ax: Any) -> None:
    with pytest.raises(InvalidTypeError, match="expected one matplotlib Axes"):
        draw(ax)


def test_drawing_without_matplotlib_names_the_command_that_installs_it(
    draw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        "matplotlib",
        "matplotlib.axes",
        "matplotlib.figure",
        "matplotlib.backends.backend_agg",
    ]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pacbound\[report\]'"):
        draw(None)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SuccessSafetyDisplay({"a": 0.5}, xi=0.1), "'a'.*a safety rate and a success rate"),  # type: ignore[dict-item]
        (lambda: SuccessSafetyDisplay({"a": (0.5, 8.1)}, xi=0.1), "rates of a holds 8.1"),
        (lambda: SuccessSafetyDisplay({"a": (0.5, 0.1)}, xi=1.0), "xi=1.0"),
        (
            lambda: SuccessSafetyDisplay({"a": (0.5, 0.1)}, xi=0.1, certified=["b"]),
            "'b' is not among the methods",
        ),
        (
            lambda: SuccessSafetyDisplay({"a": (0.5, 0.1)}, xi=0.1, intervals={"b": 0}),
            "'b' is not among the methods",
        ),
        (
            lambda: SuccessSafetyDisplay({"a": (0.5, 0.1)}, xi=0.1, intervals={"a": [0, 1]}),
            "intervals of 'a'.*shape",
        ),
        (
            lambda: SuccessSafetyDisplay.from_counts({"a": (60, 50)}, rollouts=100, xi=0.1),
            "none both",
        ),
        (
            lambda: SuccessSafetyDisplay.from_counts(
                {"a": (6, 5)}, rollouts=100, xi=0.1, bar_delta=2.0
            ),
            "bar_delta=2.0",
        ),
        (lambda: DesiredSafetyDisplay([0.1, 1.5], {}), "xi=1.5"),
        (lambda: DesiredSafetyDisplay([0.1], {"a": [0.1, 0.2]}), "'a'.*for each xi"),
        (lambda: DesiredSafetyDisplay([0.1], {"a": [1.2]}), "'a'.*from 0 to 1"),
        (lambda: DesiredSafetyDisplay([0.1], {"a": [0.1]}, intervals={"a": [0, 1]}), "'a'.*shape"),
        (
            lambda: DesiredSafetyDisplay.from_counts([0.1], {"a": [101]}, rollouts=100),
            "from 0 to 100 rollouts",
        ),
        (lambda: FloorPlan(0, 3), "A floor of 0 x 3"),
        (lambda: Drive([]), "poses have shape"),
        (lambda: Drive([(0, 0, 0, 0)]), "poses have shape"),
        (lambda: Drive([(0, np.nan)]), "poses have shape"),
        (lambda: Drive([(0, 0)], fired_at=1), "fired_at=1"),
        (lambda: RolloutDisplay(PLAN, {"a": ON}, robot_radius=0.0), "robot_radius=0.0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make()


def test_what_is_no_plan_and_no_drive_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match=r"FloorPlan\.of\(room\)"):
        RolloutDisplay(SimpleNamespace(), {"a": ON})  # type: ignore[arg-type]
    for drives in ({}, {"a": [(0, 0)]}):
        with pytest.raises(InvalidTypeError, match="a Drive for each panel"):
            RolloutDisplay(PLAN, drives)  # type: ignore[arg-type]

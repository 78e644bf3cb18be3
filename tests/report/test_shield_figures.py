"""The figures of shields draw the numbers they are given, say what is certified, and stay within
the axes they are given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.report.conftest import legend, marks, named, rows

from pacbound import binomial_interval
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.figure import Boxes, Flats, Line, Upright
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

from matplotlib.colors import to_rgba

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


def line(ax: Any, name: str) -> Any:
    (found,) = [one for one in ax.lines if one.get_gid() == name]
    return found


def method_dots(display: Any, name: str) -> Any:
    (found,) = [one for one in display.ax_.lines if one.get_label() == name]
    return found


def title(ax: Any) -> str:
    return str(ax.get_title("left"))


def test_every_method_is_at_its_safety_and_its_success() -> None:
    display = WAYS["success"](None)
    for name, (unsafe, successes) in COUNTS.items():
        dot = named(display, name)
        assert rows(dot.x, dot.y) == [[(1000 - unsafe) / 1000, successes / 1000]]
    assert [mark.x for mark in marks(display, Upright)] == [0.9]


def test_error_bars_are_exact_intervals_of_both_rates() -> None:
    display = WAYS["success"](None)
    bar = marks(display, Flats)[0]
    low, high = binomial_interval(920, 1000, delta=0.05)
    assert rows(bar.left, bar.right, bar.y) == [[low, high, 0.52]]
    bar = marks(display, Boxes)[0]
    low, high = binomial_interval(520, 1000, delta=0.05)
    assert rows(bar.left, bar.right, bar.low, bar.high) == [[0.92, 0.92, low, high]]
    plain = SuccessSafetyDisplay.from_counts(COUNTS, rollouts=1000, xi=0.1, bar_delta=None)
    assert marks(plain, Flats) == marks(plain, Boxes) == []


def test_achieved_safety_is_drawn_by_rising_desired_safety_with_exact_bars() -> None:
    display = WAYS["desired"](None)
    dots = named(display, "exact")
    np.testing.assert_allclose(rows(dots.x, dots.y), [[0.9, 0.92], [0.95, 0.962], [0.97, 0.98]])
    low, high = binomial_interval(1000 - np.array(UNSAFE["exact"]), 1000, delta=0.05)
    bars = marks(display, Boxes)[0]
    np.testing.assert_array_equal(rows(bars.low, bars.high), rows(low, high))
    np.testing.assert_allclose(bars.left, 1 - np.array(XI), atol=1e-3)
    diagonal = marks(display, Line, "ideal")[0]
    assert diagonal.x.tolist() == diagonal.y.tolist()
    assert 0.88 < diagonal.x[0] < 0.9
    assert 0.97 < diagonal.x[1] < 0.99


@pytest.mark.parametrize("way", ["success", "desired"])
def test_blue_is_certified_and_vermilion_is_not(way: str) -> None:
    display = WAYS[way](None)
    methods = COUNTS if way == "success" else UNSAFE
    for name in methods:
        is_certified = name in CERTIFIED
        assert named(display, name).look == ("certified" if is_certified else "seen")
        color = palette.CERTIFIED if is_certified else palette.OBSERVED
        assert to_rgba(method_dots(display, name).get_markeredgecolor()) == to_rgba(color)
    assert "blue: xi is certified; vermilion: no guarantee" in title(display.ax_)
    assert set(methods) <= set(legend(display))


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
        title(SuccessSafetyDisplay.from_rates({}, xi=0.1).ax_).splitlines()[0]
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
        (Drive([(0, 0), (1, 0)], success=True), "reaches the goal in 1 step"),
        (Drive([(0, 0)] * 3, success=True), "reaches the goal in 2 steps"),
        (Drive([(0, 0), (1, 0)]), "is still on its way after 1 step"),
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


def test_figures_without_methods_and_with_many_are_drawn() -> None:
    assert SuccessSafetyDisplay.from_rates({}, xi=0.1)._repr_png_()
    assert DesiredSafetyDisplay.from_rates([], {})._repr_png_()
    names = [f"method {place}" for place in range(14)]
    assert SuccessSafetyDisplay.from_rates(dict.fromkeys(names, (0.9, 0.4)), xi=0.1)._repr_png_()
    assert DesiredSafetyDisplay.from_rates([0.1], {name: [np.nan] for name in names})._repr_png_()


def test_the_axes_begin_at_the_methods_and_not_at_zero() -> None:
    ax = WAYS["success"](None).ax_
    assert 0.6 < ax.get_xlim()[0] < 0.69
    assert 0.4 < ax.get_ylim()[0] < 0.48
    assert 0.64 < ax.get_ylim()[1] < 0.72


def test_error_bars_are_drawn_for_every_method_and_markers_are_hollow() -> None:
    display = WAYS["success"](None)
    assert len(marks(display, Flats)) == len(marks(display, Boxes)) == len(COUNTS)
    assert len(display.ax_.collections) == 2 * len(COUNTS)
    faces = {method_dots(display, name).get_markerfacecolor() for name in COUNTS}
    assert faces == {"none"}


@pytest.mark.parametrize("point", [(0.0, 0.0), (1.0, 1.0), (1.0, 0.0)])
def test_extreme_rates_are_in_sight(point: tuple[float, float]) -> None:
    ax = SuccessSafetyDisplay.from_rates({"a": point}, xi=0.0).ax_
    assert ax.get_xlim()[0] < point[0] <= ax.get_xlim()[1]
    assert ax.get_ylim()[0] <= point[1] < ax.get_ylim()[1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SuccessSafetyDisplay.from_rates({"a": 0.5}, xi=0.1),  # type: ignore[dict-item]
            "'a'.*a safety rate and a success rate",
        ),
        (
            lambda: SuccessSafetyDisplay.from_rates({"a": (0.5, 8.1)}, xi=0.1),
            "rates of a holds 8.1",
        ),
        (lambda: SuccessSafetyDisplay.from_rates({"a": (0.5, 0.1)}, xi=1.0), "xi=1.0"),
        (
            lambda: SuccessSafetyDisplay.from_rates({"a": (0.5, 0.1)}, xi=0.1, certified=["b"]),
            "'b' is not among the methods",
        ),
        (
            lambda: SuccessSafetyDisplay.from_rates({"a": (0.5, 0.1)}, xi=0.1, intervals={"b": 0}),
            "'b' is not among the methods",
        ),
        (
            lambda: SuccessSafetyDisplay.from_rates(
                {"a": (0.5, 0.1)}, xi=0.1, intervals={"a": [0, 1]}
            ),
            "'a' has .* expected .2, 2. rates",
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
        (lambda: DesiredSafetyDisplay.from_rates([0.1, 1.5], {}), "xi=1.5"),
        (lambda: DesiredSafetyDisplay.from_rates([0.1], {"a": [0.1, 0.2]}), "'a'.*for each xi"),
        (lambda: DesiredSafetyDisplay.from_rates([0.1], {"a": [1.2]}), "'a'.*from 0 to 1"),
        (
            lambda: DesiredSafetyDisplay.from_rates([0.1], {"a": [0.1]}, intervals={"a": [0, 1]}),
            "'a'.*shape",
        ),
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


def test_anything_but_a_plan_and_drives_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match=r"FloorPlan\.of\(room\)"):
        RolloutDisplay(SimpleNamespace(), {"a": ON})  # type: ignore[arg-type]
    for drives in ({}, {"a": [(0, 0)]}):
        with pytest.raises(InvalidTypeError, match="a Drive for each panel"):
            RolloutDisplay(PLAN, drives)  # type: ignore[arg-type]

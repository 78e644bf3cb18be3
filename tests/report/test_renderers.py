"""One figure, drawn as SVG and by matplotlib."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.figure.conftest import SHAPES

from pacbound.errors import InvalidTypeError, MissingDependencyError
from pacbound.figure import (
    Axis,
    Band,
    Bars,
    Boxes,
    Dots,
    Figure,
    Flats,
    Level,
    Line,
    Look,
    Mark,
    Panel,
    Steps,
    Upright,
)
from pacbound.figures.thinning import thinned
from pacbound.figures.with_matplotlib import draw
from pacbound.report import page
from pacbound.report.svg import figure_html, svg

UNIT = Axis("Across", 0, 1)
NAN = float("nan")


def _one(*marks: Mark, y: Axis = UNIT, x: Axis = UNIT) -> Figure:
    return Figure("Title", "Caption.", x, [Panel(y, marks)])


@pytest.mark.parametrize("name", SHAPES)
def test_the_page_shows_every_name_and_says_title_and_caption(name: str) -> None:
    figure = SHAPES[name]
    root = ElementTree.fromstring(figure_html(figure, rows=5).replace("\N{NO-BREAK SPACE}%", " %"))
    (chart,) = root.findall("svg")
    assert (chart.get("role"), chart.get("aria-label")) == (
        "img",
        f"{figure.title}. {figure.caption}",
    )
    assert [item.find("svg").tail for item in root.findall("ul/li")] == [  # type: ignore[union-attr]
        mark.name for mark in figure.legend
    ]
    assert "nan" not in "".join(path.get("d", "") for path in root.iter("path"))
    head = ["".join(cell.itertext()) for cell in root.iterfind(".//thead//th")]
    table = figure.table(5)
    assert head == (list(table.head) if table.rows else [])


def test_the_style_sheet_has_every_class_that_is_drawn() -> None:
    style = (Path(page.__file__).parent / "style.css").read_text(encoding="utf-8")
    looks: tuple[Look, ...] = get_args(Look)
    marks: list[Any] = [
        kind(*numbers, look, f"{kind.__name__} {look}")  # type: ignore[call-arg]
        for look in looks
        for kind, numbers in (
            (Line, (0, 0)),
            (Level, (0.5,)),
            (Upright, (0.5,)),
            (Boxes, (0, 1, 0, 1)),
            (Dots, (0.5, 0.5)),
        )
    ]
    root = ElementTree.fromstring(figure_html(_one(*marks)))
    classes = {word for node in root.iter() for word in node.get("class", "").split()}
    assert classes > {"line-certified", "line-seen", "area-certified", "dashed", "dot-certified"}
    styled = set(re.findall(r"\.([a-z][a-z-]*)", style))
    assert classes - styled == set()


@pytest.mark.parametrize("name", SHAPES)
def test_matplotlib_draws_every_name(name: str) -> None:
    figure = SHAPES[name]
    axes = draw(figure)
    assert len(axes) == len(figure.panels)
    legend = axes[0].get_legend()
    shown = [] if legend is None else [text.get_text() for text in legend.get_texts()]
    assert sorted(shown) == sorted(mark.name for mark in figure.legend)
    assert axes[-1].get_xlabel() == figure.x.label


def test_matplotlib_draws_lines_and_dots_at_their_numbers() -> None:
    x, y = np.array([0.1, 0.4, 0.8]), np.array([0.3, NAN, 0.9])
    steps = Steps(x, y, "seen", "steps")
    axes = draw(_one(Line(x, y, "seen", "line"), steps, Dots(x, y, "seen", "dots")))[0]
    line, stairs, dots = axes.get_lines()
    for drawn, corners in ((line, (x, y)), (stairs, steps.corners()), (dots, (x, y))):
        np.testing.assert_array_equal(np.asarray(drawn.get_data()), np.asarray(corners))
    # A dot at the end of an axis is seen whole.
    assert not dots.get_clip_on()
    level, upright = draw(_one(Level(0.7, "certified"), Upright(0.2, "certified")))[0].get_lines()
    assert set(np.asarray(level.get_ydata())) == {0.7}
    assert set(np.asarray(upright.get_xdata())) == {0.2}


@pytest.mark.parametrize("look", ["certified", "unknown", "rows"])
def test_matplotlib_draws_boxes_of_any_width_at_their_sides(look: Look) -> None:
    wide, thin = (0.1, 0.3, 0.25, 0.75), (0.6, 0.6, 0.4, 0.9)
    left, right, low, high = np.transpose([wide, thin])
    axes = draw(_one(Boxes(left, right, low, high, look)))[0]
    assert [_sides(one) for one in axes.collections] == [[wide], [thin]]
    bars = Bars(np.array([0.1, 0.3]), np.array([0.3, 0.5]), np.array([0.2, 0.6]), look)
    (drawn,) = draw(_one(bars, y=Axis("Up", 0.1, 1)))[0].collections
    assert _sides(drawn) == [(0.1, 0.3, 0.1, 0.2), (0.3, 0.5, 0.1, 0.6)]


def test_matplotlib_draws_flats_and_bands_from_end_to_end() -> None:
    flats = Flats(np.array([0.1, 0.5]), np.array([0.4, 0.9]), np.array([0.3, 0.8]), "certified")
    (drawn,) = draw(_one(flats))[0].collections
    assert _sides(drawn) == [(0.1, 0.4, 0.3, 0.3), (0.5, 0.9, 0.8, 0.8)]
    band = Band(np.array([0.1, 0.9]), np.array([0.2, 0.3]), np.array([0.5, 0.7]), "certified")
    (drawn,) = draw(_one(band))[0].collections
    assert _sides(drawn) == [(0.1, 0.9, 0.2, 0.7)]


def _sides(drawn: Any) -> list[tuple[float, ...]]:
    """The left, right, low and high sides of each part of a collection."""
    parts = [np.asarray(path.vertices) for path in drawn.get_paths()]
    ends = [
        (part[:, 0].min(), part[:, 0].max(), part[:, 1].min(), part[:, 1].max()) for part in parts
    ]
    return [tuple(map(float, one)) for one in ends]


@pytest.mark.parametrize("name", ["share", "bins, single scores", "evidence, huge", "forecast"])
def test_matplotlib_saves_what_it_drew(name: str, tmp_path: Path) -> None:
    draw(SHAPES[name])[0].figure.figure.savefig(tmp_path / "figure.png", dpi=50)
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_matplotlib_draws_on_axes_that_are_passed() -> None:
    from matplotlib.figure import Figure as Canvas

    two, canvas = SHAPES["share"], Canvas()
    left, right = canvas.subplots(1, 2)
    assert draw(two, left)[0] is left
    assert len(canvas.axes) == 3  # its lower part is the second panel
    assert draw(SHAPES["coverage"], right) == [right]
    free = Canvas()
    assert draw(two, free.add_axes((0.2, 0.2, 0.5, 0.5))) == free.axes
    with pytest.raises(InvalidTypeError, match="expected one matplotlib Axes"):
        draw(two, "axes")  # type: ignore[arg-type]


def test_series_of_one_look_differ_in_every_renderer() -> None:
    dots = [Dots(0.5, 0.5, "seen", f"method {place}", series=place) for place in (1, 2, 3)]
    figure = _one(*dots)
    root = ElementTree.fromstring(figure_html(figure))
    keys = [item.find("svg/path") for item in root.findall("ul/li")]
    assert len({key.get("d") for key in keys if key is not None}) == 3
    drawn: Any = draw(figure)[0].get_lines()
    assert len({line.get_marker() for line in drawn}) == 3
    assert {line.get_markerfacecolor() for line in drawn} == {"none"}


def test_without_matplotlib_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ["", ".axes", ".figure", ".backends.backend_agg"]:
        monkeypatch.setitem(sys.modules, f"matplotlib{name}", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pacbound\[report\]'"):
        draw(SHAPES["share"])


def test_names_from_data_are_text_and_neither_markup_nor_formulas_nor_commands() -> None:
    name = "<script>$a$ _x\x1b[2J \u202eabc"
    figure = _one(Line([0, 1], [0, 1], "seen", f"_{name}"))
    hostile = Figure(name, name, UNIT, figure.panels)
    assert "<script>" not in figure_html(hostile)
    legend = draw(hostile)[0].get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == 1


# Rounding: what is drawn of an interval is never narrower than the interval.


def _edges(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return np.sort(rng.random((40, 2)), axis=1).T


def _vertical(d: str) -> list[tuple[float, float]]:
    return [(float(low), float(high)) for low, high in re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", d)]


@pytest.mark.parametrize("wide", [0.01, 0.0])
def test_svg_rounds_certified_intervals_outwards(wide: float) -> None:
    low, high = _edges(1)
    left = np.linspace(0, 0.9, 40)
    root = ElementTree.fromstring(svg(_one(Boxes(left, left + wide, low, high, "certified"))))
    (path,) = root.findall("svg/path")
    frame = next(p for p in root.iter("path") if p.get("class") == "frame").get("d", "")
    top, bottom = (float(number) for number in re.findall(r"M\S+ (\S+)V(\S+)H", frame)[0])
    drawn = np.array(_vertical(path.get("d", "")))
    shares = (bottom - drawn) / (bottom - top)
    assert len(drawn) == 40
    assert (shares[:, 0] <= low + 1e-12).all()
    assert (shares[:, 1] >= high - 1e-12).all()
    assert (np.abs(shares - np.stack([low, high], axis=1)) < 0.11 / (bottom - top)).all()


# Gaps, and figures of many rows.


def test_no_line_is_drawn_where_a_number_is_missing() -> None:
    line = Line([0, 0.2, 0.4, 0.6, 0.8, 1], [0.5, 0.5, NAN, NAN, 0.5, 0.5], "seen", "x")
    (path,) = ElementTree.fromstring(svg(_one(line))).findall("svg/path")
    assert path.get("d", "").count("M") == 2


def test_no_band_is_drawn_where_its_ends_are_missing() -> None:
    band = Band([0, 0.2, 0.5, 0.8, 1], [0, 0, NAN, 0, 0], [1, 1, NAN, 1, 1], "seen", "x")
    assert [x.tolist() for x, _, _ in band.stretches()] == [[0, 0.2], [0.8, 1]]
    (path,) = ElementTree.fromstring(svg(_one(band))).findall("svg/path")
    assert path.get("d", "").count("Z") == 2


@pytest.mark.parametrize("kind", [Line, Steps, Dots])
def test_many_points_become_few_and_no_peak_is_lost(kind: Any) -> None:
    rng = np.random.default_rng(5)
    x = np.sort(rng.random(200_000))
    y = 0.4 + 0.1 * rng.random(200_000)
    y[[77_777, 123_456]] = 0.95, 0.05
    few = thinned(kind(x, y, "seen", "x"), UNIT, 120)
    assert isinstance(few, Line | Dots)
    assert few.x.size < 1000
    assert (few.y.min(), few.y.max()) == (0.05, 0.95)
    assert (np.diff(few.x) >= 0).all()
    assert len(svg(_one(kind(x, y, "seen", "x")))) < 60_000


def test_thinning_keeps_the_shape_where_points_are_far_apart() -> None:
    # A few points over most of the axis, and very many at its end.
    x = np.concatenate([np.linspace(0, 0.9, 10), np.linspace(0.99, 1, 100_000)])
    few = thinned(Line(x, np.sqrt(x), "seen"), UNIT, 100)
    assert isinstance(few, Line)
    assert few.x[:10].tolist() == x[:10].tolist()


def test_thinning_keeps_gaps() -> None:
    x = np.linspace(0, 1, 100_001)
    y = np.where(np.abs(x - 0.5) < 1e-4, np.nan, 0.5)
    few = thinned(Line(x, y, "seen"), UNIT, 100)
    assert isinstance(few, Line)
    assert np.isnan(few.y).any()
    assert few.x.size < 1000


def test_points_in_no_order_are_still_few() -> None:
    rng = np.random.default_rng(6)
    few = thinned(Line(rng.random(50_000), rng.random(50_000), "seen"), UNIT, 100)
    assert isinstance(few, Line)
    assert few.x.size < 1000


@pytest.mark.parametrize("kind", [Boxes, Band, Bars, Flats])
def test_many_intervals_become_few_that_hold_them_all(kind: Any) -> None:
    rng = np.random.default_rng(7)
    left = np.linspace(0, 1, 20_001)[:-1]
    right = left + 1 / 20_000
    low, high = np.sort(rng.random((2, 20_000)), axis=0)
    sides: dict[Any, Any] = {
        Boxes: (left, right, low, high),
        Band: (left, low, high),
        Bars: (left, right, high),
        Flats: (left, right, high),
    }
    few = thinned(kind(*sides[kind], "certified", "x"), UNIT, 100)
    upper = getattr(few, "high", getattr(few, "height", getattr(few, "y", None)))
    assert upper is not None
    assert upper.size < 500
    assert upper.max() == high.max()
    assert len(svg(_one(kind(*sides[kind], "certified", "x")))) < 60_000
    if kind is Boxes:
        assert isinstance(few, Boxes)
        for begin, end, least, most in zip(few.left, few.right, few.low, few.high, strict=True):
            inside = (left >= begin) & (right <= end + 1e-12)
            assert least <= low[inside].min()
            assert most >= high[inside].max()


def test_the_words_beside_a_horizontal_axis_do_not_touch() -> None:
    long = Axis("Across", 123_450.5, 123_450.9)
    root = ElementTree.fromstring(svg(_one(x=long)))
    places = [float(t.get("x", "")) for t in root.iter("text") if t.get("class") == "across"]
    assert len(places) >= 2
    words = [t.text or "" for t in root.iter("text") if t.get("class") == "across"]
    assert np.diff(places).min() > 8 * max(map(len, words))

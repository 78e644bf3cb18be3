"""The figures of cascades draw the numbers they are given, say what is certified, and stay within
the axes they are given."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from pacbound import binomial_interval
from pacbound.errors import InvalidTypeError, InvalidValueError, MissingDependencyError
from pacbound.report import DesiredAchievedDisplay, ErrorCostDisplay, palette

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

POINTS = {
    "exact": (1200.0, 0.081),
    "product": (1500.0, 0.078),
    "histogram": (1000.0, 0.095),
    "softmax": (2600.0, 0.076),
}
XI = [0.02, 0.005, 0.01]
COUNTS = {"exact": [(240, 60), (70, 40), (130, 60)], "histogram": [(300, 70), (90, 30), (160, 50)]}
CERTIFIED = ["exact"]

WAYS: dict[str, Any] = {
    "cost": lambda ax: ErrorCostDisplay.from_costs(
        POINTS,
        slow=(3000, 0.075),
        xi=0.01,
        certified=CERTIFIED,
        trade_off=([900, 2000, 3300], [0.1, 0.076, 0.075]),
        ax=ax,
    ),
    "desired": lambda ax: DesiredAchievedDisplay.from_counts(
        XI, COUNTS, rows=10_000, certified=CERTIFIED, delta=0.01, ax=ax
    ),
}

PROGRAM = """
import sys
from pacbound.report import DesiredAchievedDisplay, ErrorCostDisplay
assert "matplotlib" not in sys.modules
ErrorCostDisplay({"a": (0.5, 0.1)}, slow_error=0.1, xi=0.1).plot()._repr_png_()
DesiredAchievedDisplay([0.1], {"a": [0.1]}).plot()._repr_png_()
assert "matplotlib.pyplot" not in sys.modules
"""


@pytest.fixture(params=WAYS)
def draw(request: pytest.FixtureRequest) -> Any:
    return WAYS[request.param]


def _line(display: Any, name: str) -> Any:
    (line,) = [line for line in display.ax_.lines if line.get_gid() == name]
    return line


def _legend(display: Any) -> list[str]:
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def _title(display: Any) -> str:
    return str(display.ax_.get_title("left"))


def test_every_method_is_at_its_error_and_its_share_of_the_slow_cost() -> None:
    display = WAYS["cost"](None)
    for name, (cost, error) in POINTS.items():
        assert display.points[name] == (cost / 3000, error)
        assert np.asarray(_line(display, name).get_xydata()).tolist() == [[cost / 3000, error]]
    assert np.asarray(_line(display, "slow model alone").get_xydata()).tolist() == [[1.0, 0.075]]
    np.testing.assert_allclose(_line(display, "trade-off").get_xdata(), [0.3, 2 / 3, 1.1])


def test_the_desired_error_is_the_slow_one_plus_xi_and_in_sight() -> None:
    display = ErrorCostDisplay({"a": (0.5, 0.08)}, slow_error=0.08, xi=0.05).plot()
    assert display.desired_error == 0.13
    assert set(_line(display, "desired").get_ydata()) == {0.13}
    low, high = display.ax_.get_ylim()
    assert low < display.slow_error < display.desired_error < high


def test_a_cascade_that_costs_more_than_the_slow_model_is_in_sight() -> None:
    display = ErrorCostDisplay({"a": (1.8, 0.08)}, slow_error=0.08, xi=0.05).plot()
    assert display.ax_.get_xlim()[0] == 0.0
    assert display.ax_.get_xlim()[1] > 1.8


@pytest.mark.parametrize("way", WAYS)
def test_blue_is_certified_and_vermilion_is_not(way: str) -> None:
    display = WAYS[way](None)
    methods = POINTS if way == "cost" else COUNTS
    for name in methods:
        color = palette.CERTIFIED if name in CERTIFIED else palette.OBSERVED
        assert to_rgba(_line(display, name).get_markeredgecolor()) == to_rgba(color)
    assert len({_line(display, name).get_marker() for name in methods}) == len(methods)
    assert "blue: xi is certified; vermilion: no guarantee" in _title(display)
    assert set(methods) <= set(_legend(display))


def test_titles_say_what_is_known() -> None:
    points = {"a": (0.5, 0.1)}
    plain = ErrorCostDisplay(points, slow_error=0.1, xi=0.02).plot()
    told = ErrorCostDisplay(points, slow_error=0.1, xi=0.02, rows=10_000, delta=0.01).plot()
    assert _title(plain).splitlines()[0] == "Error against cost: xi = 0.02"
    assert (
        _title(told).splitlines()[0]
        == "Error against cost: xi = 0.02, delta = 0.01, 10,000 test rows"
    )
    assert (
        _title(WAYS["desired"](None)).splitlines()[0]
        == "Desired and achieved error increase, delta = 0.01, 10,000 test rows"
    )


def test_achieved_increases_are_losses_less_gains_drawn_by_rising_xi() -> None:
    display = WAYS["desired"](None)
    assert display.achieved["exact"].tolist() == [0.018, 0.003, 0.007]
    assert np.asarray(_line(display, "exact").get_xydata()).tolist() == [
        [0.005, 0.003],
        [0.01, 0.007],
        [0.02, 0.018],
    ]
    assert display.exceeds["histogram"].tolist() == [True, True, True]
    assert not display.exceeds["exact"].any()


def test_error_bars_are_bounds_on_losses_less_bounds_on_gains(extents: Any) -> None:
    display = WAYS["desired"](None)
    b, c = np.array(COUNTS["exact"]).T
    b_low, b_high = binomial_interval(b, 10_000, delta=0.025)
    c_low, c_high = binomial_interval(c, 10_000, delta=0.025)
    expected = np.stack([b_low - c_high, b_high - c_low], axis=1)
    np.testing.assert_array_equal(display.intervals["exact"], expected)
    np.testing.assert_array_equal(
        extents(display.ax_, "exact: bars"), np.column_stack([XI, XI, expected])
    )
    low, high = display.ax_.get_ylim()
    assert low < expected.min()
    assert high > display.intervals["histogram"].max()


def test_error_bars_miss_the_true_increase_with_probability_at_most_their_delta() -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(500, [0.08, 0.05, 0.87], size=2000)[:, :2]
    display = DesiredAchievedDisplay.from_counts(
        [0.05] * 2000, {"a": counts}, rows=500, bar_delta=0.1
    )
    lower, upper = display.intervals["a"].T
    assert np.mean((lower > 0.03) | (upper < 0.03)) <= 0.1


def test_no_bars_are_drawn_where_none_are_asked_for(extents: Any) -> None:
    display = DesiredAchievedDisplay.from_counts(XI, COUNTS, rows=10_000, bar_delta=None)
    assert display.intervals == {}
    assert len(extents(display.ax_, "exact: bars")) == 0


def test_some_methods_may_have_bars_and_some_increases_may_be_unknown(extents: Any) -> None:
    seen = {"a": [0.01, np.nan], "b": [0.0, -0.01]}
    display = DesiredAchievedDisplay(
        [0.01, 0.02], seen, intervals={"b": [(-0.01, 0.01), (-0.02, 0.0)]}
    ).plot()
    assert extents(display.ax_, "b: bars").tolist() == [
        [0.01, 0.01, -0.01, 0.01],
        [0.02, 0.02, -0.02, 0.0],
    ]
    assert display.exceeds["a"].tolist() == [False, False]
    assert display._repr_png_()


def test_the_diagonal_spans_all_xi() -> None:
    display = WAYS["desired"](None)
    along, up = _line(display, "desired").get_data()
    assert along.tolist() == up.tolist()
    assert along[0] == 0.0
    assert along[1] > max(XI)


def test_no_methods_is_no_error() -> None:
    assert ErrorCostDisplay({}, slow_error=0.1, xi=0.1).plot()._repr_png_()
    assert DesiredAchievedDisplay([], {}).plot()._repr_png_()


def test_many_methods_are_drawn() -> None:
    names = [f"method {place}" for place in range(14)]
    assert (
        len(
            _legend(
                ErrorCostDisplay(dict.fromkeys(names, (0.5, 0.1)), slow_error=0.1, xi=0.1).plot()
            )
        )
        == 16
    )
    assert len(_legend(DesiredAchievedDisplay([0.1], {name: [0.1] for name in names}).plot())) == 15


def test_figures_never_load_pyplot_and_imports_do_not_load_matplotlib() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], check=True)


def test_a_new_figure_shows_itself_and_given_axes_are_shown_by_their_owner(draw: Any) -> None:
    display = draw(None)
    assert type(display.figure_.canvas) is FigureCanvasAgg
    assert display._repr_png_().startswith(b"\x89PNG")
    ax = Figure().subplots()
    given = draw(ax)
    assert given.ax_ is ax
    assert given.figure_ is ax.figure
    assert given.figure_.axes == [ax]
    assert given._repr_png_() is None


def test_plot_returns_the_display_and_can_be_repeated(draw: Any) -> None:
    display = draw(None)
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
@pytest.mark.parametrize("size", [(6.4, 4.8), (8.0, 6.0), (14.0, 8.0)])
def test_nothing_is_cut_off_or_overlaps(draw: Any, layout: Any, size: tuple[float, float]) -> None:
    figure = Figure(figsize=size, layout=layout)
    FigureCanvasAgg(figure)
    ax = draw(figure.subplots()).ax_
    figure.canvas.draw()
    drawn = figure.get_tightbbox().transformed(figure.dpi_scale_trans)
    assert drawn.x0 >= figure.bbox.x0 - 1
    assert drawn.x1 <= figure.bbox.x1 + 1
    assert drawn.y0 >= figure.bbox.y0 - 1
    assert drawn.y1 <= figure.bbox.y1 + 1
    legend, title, data = (
        ax.get_legend().get_window_extent(),
        ax._left_title.get_window_extent(),
        ax.get_window_extent(),
    )
    assert legend.y0 >= data.y1
    assert title.y0 >= legend.y1 - 2


def test_subfigures_are_drawn_on(draw: Any) -> None:
    figure = Figure(layout="constrained")
    parts: Any = figure.subfigures(1, 2)
    assert draw(parts[1].subplots()).figure_ is figure
    figure.canvas.draw()


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
    ("points", "options", "message"),
    [
        ({"a": 0.5}, {}, "'a'.*a cost and an error"),
        ({"a": (0.0, 0.1)}, {}, "'a'.*cost above 0"),
        ({"a": (0.5, 8.1)}, {}, "'a'.*error from 0 to 1"),
        ({"a": (np.inf, 0.1)}, {}, "'a'"),
        ({"a": (0.5, 0.1)}, {"slow_error": -0.1}, "slow_error"),
        ({"a": (0.5, 0.1)}, {"xi": 1.0}, "xi=1.0"),
        ({"a": (0.5, 0.1)}, {"certified": ["b"]}, "'b' is not among the methods.*'a'"),
        ({"a": (0.5, 0.1)}, {"trade_off": ([0.1, 0.2], [0.1])}, "trade_off"),
    ],
)
def test_what_is_no_error_and_cost_is_refused(
    points: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        ErrorCostDisplay(points, **{"slow_error": 0.1, "xi": 0.02, **options})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DesiredAchievedDisplay([0.1, 1.5], {}), "xi=1.5"),
        (lambda: DesiredAchievedDisplay([0.1], {"a": [0.1, 0.2]}), "'a'.*for each xi"),
        (
            lambda: DesiredAchievedDisplay([0.1], {"a": [0.1]}, intervals={"b": [[0, 1]]}),
            "'b' is not among",
        ),
        (
            lambda: DesiredAchievedDisplay([0.1], {"a": [0.1]}, intervals={"a": [0, 1]}),
            "'a'.*shape",
        ),
        (
            lambda: DesiredAchievedDisplay.from_counts([0.1], {"a": [(60, 50)]}, rows=100),
            "at most 100 rows",
        ),
        (lambda: DesiredAchievedDisplay.from_counts([0.1], {"a": [1, 2]}, rows=100), "pairs"),
        (
            lambda: DesiredAchievedDisplay.from_counts(
                [0.1], {"a": [(1, 2)]}, rows=100, bar_delta=2.0
            ),
            "bar_delta=2.0",
        ),
    ],
)
def test_what_is_no_increase_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make()

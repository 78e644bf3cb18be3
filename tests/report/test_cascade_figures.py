"""The figures of cascades draw the numbers they are given, say what is certified, and stay within
the axes they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.report.conftest import legend, marks, named, rows

from pacbound import binomial_interval
from pacbound.errors import InvalidValueError
from pacbound.figure import Boxes, Level, Line
from pacbound.report import DesiredAchievedDisplay, ErrorCostDisplay, palette

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

from matplotlib.colors import to_rgba

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


def _bars(display: Any, place: int = 0) -> Any:
    """The low and high ends of the error bars of one method."""
    bars = marks(display, Boxes)[place]
    return np.stack([bars.low, bars.high], axis=1)


def _points(display: Any, name: str) -> list[list[float]]:
    mark = named(display, name)
    return rows(mark.x, mark.y)


def _title(display: Any) -> str:
    return str(display.ax_.get_title("left"))


def _drawn(display: Any, name: str) -> Any:
    (line,) = [line for line in display.ax_.lines if line.get_label() == name]
    return line


def test_every_method_is_at_its_error_and_its_share_of_the_slow_cost() -> None:
    display = WAYS["cost"](None)
    for name, (cost, error) in POINTS.items():
        assert _points(display, name) == [[cost / 3000, error]]
    assert _points(display, "slow model alone") == [[1.0, 0.075]]
    np.testing.assert_allclose(named(display, "all thresholds").x, [0.3, 2 / 3, 1.1])


def test_the_desired_error_is_the_slow_one_plus_xi_and_in_sight() -> None:
    display = ErrorCostDisplay.from_costs({"a": (0.5, 0.08)}, slow=(1.0, 0.08), xi=0.05)
    assert [level.y for level in marks(display, Level)] == [0.13]
    low, high = display.ax_.get_ylim()
    assert low < 0.08
    assert high > 0.13


def test_a_cascade_that_costs_more_than_the_slow_model_is_in_sight() -> None:
    display = ErrorCostDisplay.from_costs({"a": (1.8, 0.08)}, slow=(1.0, 0.08), xi=0.05)
    low, high = display.ax_.get_xlim()
    assert low < 1.0
    assert high > 1.8


def test_the_axes_end_at_the_methods_even_where_a_trade_off_goes_on() -> None:
    curve = [0.05, 0.4, 0.9, 1.5], [0.6, 0.12, 0.1, 0.1]
    points = {"a": (0.6, 0.12), "b": (0.65, 0.11)}
    display = ErrorCostDisplay.from_costs(points, slow=(1.0, 0.1), xi=0.02, trade_off=curve)
    assert _points(display, "all thresholds") == np.transpose(curve).tolist()
    (left, right), (low, high) = display.ax_.get_xlim(), display.ax_.get_ylim()
    assert 0.5 < left < 0.6
    assert 1.0 < right < 1.1
    assert 0.09 < low < 0.1
    assert 0.12 < high < 0.13


@pytest.mark.parametrize("way", WAYS)
def test_blue_is_certified_and_vermilion_is_not(way: str) -> None:
    display = WAYS[way](None)
    methods = POINTS if way == "cost" else COUNTS
    for name in methods:
        is_certified = name in CERTIFIED
        assert named(display, name).look == ("certified" if is_certified else "seen")
        color = palette.CERTIFIED if is_certified else palette.OBSERVED
        assert to_rgba(_drawn(display, name).get_markeredgecolor()) == to_rgba(color)
    assert len({_drawn(display, name).get_marker() for name in methods}) == len(methods)
    assert "blue: xi is certified; vermilion: no guarantee" in _title(display)
    assert set(methods) <= set(legend(display))


def test_titles_say_what_is_known() -> None:
    points = {"a": (0.5, 0.1)}
    plain = ErrorCostDisplay.from_costs(points, slow=(1.0, 0.1), xi=0.02)
    told = ErrorCostDisplay.from_costs(points, slow=(1.0, 0.1), xi=0.02, rows=10_000, delta=0.01)
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
    assert [row[1] for row in display.figure.table().rows] == ["0.0180", "0.0030", "0.0070"]
    assert _points(display, "exact") == [
        [0.005, 0.003],
        [0.01, 0.007],
        [0.02, 0.018],
    ]


def test_error_bars_are_bounds_on_losses_less_bounds_on_gains() -> None:
    display = WAYS["desired"](None)
    b, c = np.array(COUNTS["exact"]).T
    b_low, b_high = binomial_interval(b, 10_000, delta=0.025)
    c_low, c_high = binomial_interval(c, 10_000, delta=0.025)
    expected = np.stack([b_low - c_high, b_high - c_low], axis=1)
    np.testing.assert_array_equal(_bars(display), expected)
    np.testing.assert_allclose(marks(display, Boxes)[0].left, XI, atol=2e-4)
    low, high = display.ax_.get_ylim()
    assert low < expected.min()
    assert high > _bars(display, 1).max()


def test_error_bars_miss_the_true_increase_with_probability_at_most_their_delta() -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(500, [0.08, 0.05, 0.87], size=2000)[:, :2]
    display = DesiredAchievedDisplay.from_counts(
        [0.05] * 2000, {"a": counts}, rows=500, bar_delta=0.1
    )
    lower, upper = _bars(display).T
    assert np.mean((lower > 0.03) | (upper < 0.03)) <= 0.1


def test_no_bars_are_drawn_where_none_are_asked_for() -> None:
    display = DesiredAchievedDisplay.from_counts(XI, COUNTS, rows=10_000, bar_delta=None)
    assert marks(display, Boxes) == []


def test_some_methods_may_have_bars_and_some_increases_may_be_unknown() -> None:
    seen = {"a": [0.01, np.nan], "b": [0.0, -0.01]}
    display = DesiredAchievedDisplay.from_rates(
        [0.01, 0.02], seen, intervals={"b": [(-0.01, 0.01), (-0.02, 0.0)]}
    )
    (bars,) = marks(display, Boxes)
    assert bars.left.tolist() == bars.right.tolist() == [0.01, 0.02]
    assert _bars(display).tolist() == [[-0.01, 0.01], [-0.02, 0.0]]
    assert display._repr_png_()


def test_the_diagonal_spans_all_xi() -> None:
    display = WAYS["desired"](None)
    diagonal = marks(display, Line, "ideal")[0]
    assert diagonal.x.tolist() == diagonal.y.tolist()
    assert diagonal.x[0] < min(XI)
    assert diagonal.x[1] > max(XI)
    assert display.ax_.get_xlim() == tuple(diagonal.x)


def test_no_part_of_the_axes_is_far_from_all_xi() -> None:
    display = DesiredAchievedDisplay.from_rates([0.05, 0.06], {"a": [0.04, 0.05]})
    left, right = display.ax_.get_xlim()
    assert 0.048 < left < 0.05
    assert 0.06 < right < 0.062
    assert display.ax_.get_ylim()[0] > 0.03


def test_a_figure_without_methods_is_drawn() -> None:
    assert ErrorCostDisplay.from_costs({}, slow=(1.0, 0.1), xi=0.1)._repr_png_()
    assert DesiredAchievedDisplay.from_rates([], {})._repr_png_()


def test_many_methods_are_drawn() -> None:
    names = [f"method {place}" for place in range(14)]
    cost = ErrorCostDisplay.from_costs(dict.fromkeys(names, (0.5, 0.1)), slow=(1.0, 0.1), xi=0.1)
    achieved = DesiredAchievedDisplay.from_rates([0.1], {name: [0.1] for name in names})
    for display, count in ((cost, 16), (achieved, 15)):
        assert len(display.ax_.get_legend().get_texts()) == count  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        ({"a": 0.5}, {}, "'a'.*a cost and an error"),
        ({"a": (0.0, 0.1)}, {}, "'a'.*cost above 0"),
        ({"a": (0.5, 8.1)}, {}, "'a'.*error from 0 to 1"),
        ({"a": (np.inf, 0.1)}, {}, "'a'"),
        ({"a": (0.5, 0.1)}, {"slow": (1, -0.1)}, "'slow'"),
        ({"a": (0.5, 0.1)}, {"xi": 1.0}, "xi=1.0"),
        ({"a": (0.5, 0.1)}, {"certified": ["b"]}, "'b' is not among the methods.*'a'"),
        ({"a": (0.5, 0.1)}, {"trade_off": ([0.1, 0.2], [0.1])}, "trade_off"),
    ],
)
def test_a_wrong_error_or_cost_is_refused(
    points: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        ErrorCostDisplay.from_costs(points, **{"slow": (1, 0.1), "xi": 0.02, **options})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DesiredAchievedDisplay.from_rates([0.1, 1.5], {}), "xi=1.5"),
        (lambda: DesiredAchievedDisplay.from_rates([0.1], {"a": [0.1, 0.2]}), "'a'.*for each xi"),
        (
            lambda: DesiredAchievedDisplay.from_rates(
                [0.1], {"a": [0.1]}, intervals={"b": [[0, 1]]}
            ),
            "'b' is not among",
        ),
        (
            lambda: DesiredAchievedDisplay.from_rates([0.1], {"a": [0.1]}, intervals={"a": [0, 1]}),
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
def test_a_wrong_increase_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make()

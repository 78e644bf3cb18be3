"""Figures as data: axes, marks, and the tables of their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from pacbound.figure import (
    Axis,
    Boxes,
    Column,
    Dots,
    Figure,
    Level,
    Line,
    Panel,
    Steps,
    selected,
    short_number,
    titled,
)


@pytest.mark.parametrize(
    "axis",
    [
        Axis("a", 0, 1),
        Axis("a", 0.99871, 0.99876, percent=True),
        Axis("a", -0.01, 0.002),
        Axis("a", 0.0371, 0.0374),
        Axis("a", -3, 1e6),
        Axis("a", 0, 1e-9),
        Axis("a", 0, 3, whole=True),
        Axis("a", 0, 1e9, whole=True),
        Axis("a", 1e-6, 3e3, log=True),
        Axis("a", 30, 170, log=True),
        Axis("a", 3, 4, log=True),
        Axis("a", 1e-300, 1e300, log=True),
    ],
)
def test_an_axis_has_two_to_ten_different_ticks_within_its_ends(axis: Axis) -> None:
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 10
    assert axis.low <= min(ticks)
    assert max(ticks) <= axis.high
    assert len({axis.written(tick) for tick in ticks}) == len(ticks)


def test_an_axis_of_counts_has_whole_numbers_only() -> None:
    for high in (1.08, 3, 12.9, 26, 240):
        assert all(tick == round(tick) for tick in Axis("a", 0, high, whole=True).ticks())


@pytest.mark.parametrize("values", [[], [np.nan], [0.0, 0.0], [1.0], [0.5, np.inf]])
@pytest.mark.parametrize("log", [False, True])
def test_an_axis_around_any_values_has_a_length(values: list[float], log: bool) -> None:
    axis = Axis.around("a", values, within=(0.0, 1.0), log=log)
    assert axis.low < axis.high


def test_an_axis_around_values_shows_them_and_not_zero() -> None:
    axis = Axis.around("a", [0.95, 0.99], within=(0.0, 1.0))
    assert 0.9 < axis.low < 0.95
    assert 0.99 < axis.high <= 1.0


def test_zero_stands_at_the_low_end_of_a_logarithmic_axis() -> None:
    share = Axis("a", 0.1, 10, log=True).share([0.0, -1.0, 1.0, 10.0, np.nan])
    assert share[:4].tolist() == [0.0, 0.0, 0.5, 1.0]
    assert np.isnan(share[4])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Axis("a", 1, 1),
        lambda: Axis("a", 0, np.inf),
        lambda: Axis("a", 0, 1, log=True),
        lambda: Line([1, 2], [1], "seen"),
        lambda: Steps([2, 1], [0, 0], "seen"),
        lambda: Boxes([0], [1], [0, 1], [1, 1], "seen"),
        lambda: Figure("", "", Axis("a", 0, 1), [], [Column("a", [1]), Column("b", [1, 2])]),
    ],
)
def test_what_cannot_be_drawn_is_refused_when_it_is_made(make: object) -> None:
    with pytest.raises(ValueError, match=r"expected|differ"):
        make()  # type: ignore[operator]


def test_steps_hold_up_to_their_place_or_from_it() -> None:
    x, y = [1.0, 2.0, 4.0], [9.0, 8.0, 7.0]
    before = np.transpose(Steps(x, y, "seen").corners()).tolist()
    assert before == [[1, 9], [1, 8], [2, 8], [2, 7], [4, 7]]
    after = np.transpose(Steps(x, y, "seen", holds="from").corners()).tolist()
    assert after == [[1, 9], [2, 9], [2, 8], [4, 8], [4, 7]]


def test_marks_keep_numbers_as_arrays_that_cannot_be_changed() -> None:
    given = np.array([1.0, 2.0])
    dots = Dots(given, given, "seen")
    given[0] = 7
    assert dots.x.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        dots.x[0] = 7
    assert Dots(1, 2, "seen").x.tolist() == [1.0]


def _figure(rows: int, kept: list[int]) -> Figure:
    return Figure("", "", Axis("a", 0, 1), [], [Column("a", np.arange(rows), "count")], kept)


def test_a_table_keeps_the_ends_and_the_rows_around_the_claim() -> None:
    table = _figure(65536, [40001]).table(10)
    shown = [int(row[0].replace(",", "")) for row in table.rows]
    assert {0, 40000, 40001, 40002, 65535} <= set(shown)
    assert shown == sorted(shown)
    assert len(shown) <= 13
    assert (table.of, table.selection) == (65536, f"{len(shown)} of 65,536 steps")


@pytest.mark.parametrize(("rows", "kept"), [(0, []), (1, [0]), (5, [4]), (3, [-1]), (3, [7])])
def test_a_small_table_has_every_row(rows: int, kept: list[int]) -> None:
    table = _figure(rows, kept).table(10)
    assert [int(row[0]) for row in table.rows] == list(range(rows))
    assert table.selection == ""


def test_a_selection_keeps_what_it_is_asked_for() -> None:
    places = selected(1000, 10, [556])
    assert {0, 556, 999} <= set(places)
    assert len(places) == 11


def test_a_logarithmic_axis_over_many_powers_has_some_of_them() -> None:
    assert Axis("", 1e-3, 2e5, log=True).ticks() == [1e-3, 1e-1, 1e1, 1e3, 1e5]


def test_a_table_of_no_rows_has_the_claim_alone() -> None:
    assert selected(100, 0, [5]) == [5]


def test_bounds_in_a_table_are_rounded_to_the_safe_side() -> None:
    # As a float this is a little above 0.1235, and times 10,000 it is 1235 exactly.
    value = float(np.nextafter(0.1235, 1))
    for number in (value, float(np.nextafter(0.1235, 0)), 0.12345, 0.0, 1.0):
        low = Column("a", [number], "at least").cell(0)
        high = Column("a", [number], "at most").cell(0)
        assert float(low) <= number <= float(high)
        assert float(high) - float(low) <= 1.0001e-4
        assert len(low) == len(high) == 6
    assert Column("a", [value], "at most").cell(0) == "0.1236"


def test_a_missing_number_is_said_in_words() -> None:
    assert Column("a", [np.nan]).cell(0) == "none there"
    assert Column("a", [np.nan], "count", "cannot pass").cell(0) == "cannot pass"
    assert Column("a", [np.inf], "at most").cell(0) == "inf"


def test_a_legend_has_each_name_once_and_leaves_out_marks_without_one() -> None:
    marks = [Level(0.1, "certified", "xi"), Level(0.2, "seen"), Level(0.3, "seen", "xi")]
    figure = Figure("", "", Axis("a", 0, 1), [Panel(Axis("b", 0, 1), marks)] * 2)
    assert [mark.name for mark in figure.legend] == ["xi"]


def test_short_numbers_are_short_and_titles_of_groups_too() -> None:
    shown = {
        0.25: "0.25", 750: "750", 1500: "1,500", 10_000: "10,000", 99_999: "99,999",
        250_000: "250k", 2.5e6: "2.5M", -4e9: "-4G", 1e-5: "1e-05", 1e300: "1e+300", -0.05: "-0.05",
    }  # fmt: skip
    assert {value: short_number(value) for value in shown} == shown
    assert titled("Recall", None) == "Recall"
    assert len(titled("Recall", "x" * 10_000)) < 140

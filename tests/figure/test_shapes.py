"""Each shape of picture shows what was seen and what is certified, and nothing that is not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.figure.conftest import SHAPES, shares

from pacbound.figure import Boxes, Dots, Figure, Level, Line, Steps, Upright

REFUSED = [name for name in SHAPES if "refused" in name or "no positives" in name]


def _marks(figure: Figure, kind: type) -> list[object]:
    return [mark for panel in figure.panels for mark in panel.marks if isinstance(mark, kind)]


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_has_no_certified_threshold_or_dot(name: str) -> None:
    marks = [mark for kind in (Upright, Dots) for mark in _marks(SHAPES[name], kind)]
    assert not [mark for mark in marks if mark.look == "certified"]  # type: ignore[attr-defined]


def test_a_share_ends_where_no_rows_are_left() -> None:
    (recall, flagged) = _marks(SHAPES["share"], Steps)
    assert isinstance(recall, Steps)
    assert isinstance(flagged, Steps)
    assert recall.x.tolist() == [0.0, 0.2, 0.5, 0.9]
    assert recall.y.tolist() == [1.0, 1.0, 0.95, 0.6]
    assert flagged.y.min() > 0


def test_what_is_certified_is_what_was_asked_at_the_threshold_and_not_the_curve() -> None:
    (dot,) = _marks(SHAPES["share"], Dots)
    (level,) = _marks(SHAPES["share"], Level)
    assert isinstance(dot, Dots)
    assert isinstance(level, Level)
    assert (dot.x.tolist(), dot.y.tolist()) == ([0.5], [level.y])


def test_axes_show_the_thresholds_near_what_was_asked() -> None:
    # Recall is 1 up to 0.5, falls to 0.6 at 0.54, and to 0 at 1.
    thresholds = np.linspace(0, 1, 1001)
    recall = np.interp(thresholds, [0, 0.5, 0.54, 1], [1, 1, 0.6, 0])
    figure = shares(thresholds, recall, 1 - thresholds, 0.505)
    assert 0.4 < figure.x.low < 0.505
    assert 0.53 < figure.x.high < 0.7
    assert figure.panels[0].y.low > 0.4


@pytest.mark.parametrize("name", SHAPES)
def test_certified_marks_lie_within_their_axes(name: str) -> None:
    figure = SHAPES[name]
    for panel in figure.panels:
        for mark in panel.marks:
            if mark.look != "certified":
                continue
            match mark:
                case Level():
                    assert panel.y.low <= mark.y <= panel.y.high
                case Upright():
                    assert figure.x.low <= mark.x <= figure.x.high
                case Dots() | Line():
                    inside = (mark.y >= panel.y.low) & (mark.y <= panel.y.high)
                    assert (inside | np.isnan(mark.y)).all()
                case Boxes():
                    assert panel.y.low <= mark.low.min()
                    assert mark.high.max() <= panel.y.high
                    assert figure.x.low <= mark.left.min()
                    assert mark.right.max() <= figure.x.high


def test_bins_without_rows_are_shown_between_bins_with_rows() -> None:
    unknown, certified = _marks(SHAPES["bins"], Boxes)
    assert isinstance(unknown, Boxes)
    assert isinstance(certified, Boxes)
    assert (unknown.look, unknown.left.tolist()) == ("unknown", [0.4])
    assert certified.left.tolist() == [0.2, pytest.approx(0.6), 0.8]
    table = SHAPES["bins"].table()
    assert table.head == ["Bin", "Rows", "Right", "Share right", "At least", "At most"]
    assert table.rows[0] == ["0.2 to 0.4", "10", "3", "0.3000", "0.0500", "0.7000"]


def test_several_fast_models_have_a_panel_and_columns_of_their_own() -> None:
    assert len(SHAPES["walk"].panels) == 1
    assert [mark.name for mark in SHAPES["walk, two fast models"].panels[1].marks] == [
        "fast 1 answers",
        "fast 2 answers",
    ]
    four = SHAPES["walk, four fast models"]
    assert len(four.panels) == 1
    assert four.table().head[1:5] == [f"Exit at fast {number}" for number in (1, 2, 3, 4)]


def test_evidence_of_zero_stands_on_a_logarithmic_axis() -> None:
    (line,) = _marks(SHAPES["evidence, zero"], Steps)
    assert isinstance(line, Steps)
    assert line.y.min() > 0
    assert SHAPES["evidence, zero"].table().rows == [["1", "0"]]

"""Figures by matplotlib: never through pyplot, and always within the axes that were given."""

from __future__ import annotations

import io
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.products import standing_for

from pacbound import (
    calibrate,
    certify_abstention,
    certify_rate,
    certify_recall,
    certify_together,
)
from pacbound.calibration.reliability import induced_reliability, reliability
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.report import plot

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

CONFIDENCE = np.linspace(0.3, 1.0, 200)
CORRECT = np.arange(200) % 4 > 0
CERTIFICATE = calibrate(CONFIDENCE, CORRECT, delta=0.05, n_bins=10)
INTERVALS = CERTIFICATE.interval(CONFIDENCE)

SHOWN: dict[str, Any] = {
    "certificate": CERTIFICATE,
    "intervals": induced_reliability(INTERVALS, CERTIFICATE.estimate(CONFIDENCE), CORRECT),
    "confidences": reliability(CONFIDENCE, CORRECT),
    "recall": certify_recall(CONFIDENCE, CORRECT, target=0.9, delta=0.05),
    "risk": certify_abstention(CONFIDENCE, CORRECT, xi=0.4, delta=0.05),
}
WAYS: dict[str, Any] = {name: partial(plot, shown) for name, shown in SHOWN.items()}

PROGRAM = """
import sys
import matplotlib
# Reading "backend" makes matplotlib choose one, for which it loads pyplot.
names = [name for name in matplotlib.rcParams if name != "backend"]
settings = lambda: {name: matplotlib.rcParams[name] for name in names}
before = settings()
from pacbound import calibrate
certificate = calibrate([0.2, 0.9], [False, True], delta=0.1)
certificate.plot().savefig(sys.argv[1] + "/a.svg")
certificate.plot().savefig(sys.argv[1] + "/b.png")
assert "matplotlib.pyplot" not in sys.modules
assert settings() == before
"""


@pytest.fixture(params=standing_for(WAYS, ["certificate", "risk"], rest="slow"))
def draw(request: pytest.FixtureRequest) -> Any:
    return WAYS[request.param]


@pytest.fixture(params=WAYS, scope="module")
def drawn(request: pytest.FixtureRequest) -> Any:
    """On a figure of its own, once for all tests that only look at it."""
    canvas = WAYS[request.param]()
    canvas.canvas.draw()
    return canvas


@pytest.mark.slow
def test_figures_never_load_pyplot_and_leave_the_settings_alone(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM, str(tmp_path)], check=True)
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_new_figure_has_an_agg_canvas_and_shows_itself_in_a_notebook(drawn: Any) -> None:
    assert type(drawn.canvas) is FigureCanvasAgg
    assert drawn._repr_png_().startswith(b"\x89PNG")


def test_given_axes_are_drawn_on_and_shown_by_their_owner(draw: Any) -> None:
    figure = Figure()
    ax = figure.subplots()
    assert draw(ax=ax) is figure
    assert figure.axes[0] is ax
    assert not hasattr(figure, "_repr_png_")


def test_a_group_is_drawn_by_its_name_and_a_figure_by_itself() -> None:
    groups = np.where(np.arange(200) % 2, "even", "odd")
    certificate = calibrate(CONFIDENCE, CORRECT, delta=0.05, groups=groups)
    title = certificate.plot(group="odd").axes[0].get_title("left")
    assert title.startswith("Reliability: group odd (n = 200, delta = 0.05)")
    first, _ = certificate.figures()
    assert "group even" in plot(first).axes[0].get_title("left")
    for group, message in [(None, "it has 'even', 'odd'"), ("neither", "is not a group")]:
        with pytest.raises(InvalidValueError, match=message):
            certificate.plot(group=group)
    with pytest.raises(InvalidValueError, match="has no groups"):
        CERTIFICATE.plot(group="even")


def test_what_has_no_figure_is_refused() -> None:
    passed = certify_rate(np.ones(100), target=0.9, delta=0.05)
    both = certify_together({"p": partial(certify_rate, np.ones(100), target=0.9)}, delta=0.05)
    with pytest.raises(InvalidValueError, match="no figure of its own"):
        passed.plot()
    with pytest.raises(InvalidValueError, match="Plot one of those in `inside`"):
        both.plot()
    unknown: Any = "calibration.json"
    with pytest.raises(InvalidTypeError, match="expected a figure, a certificate"):
        plot(unknown)


SMALL, LARGE = (6.4, 4.8), (14.0, 8.0)
LAYOUTS = [
    (layout, size)
    for layout in (None, "constrained", "compressed", "tight")
    for size in (SMALL, (8.0, 6.0), LARGE)
]


@pytest.mark.parametrize(
    ("layout", "size"), standing_for(LAYOUTS, [(None, SMALL), ("constrained", LARGE)])
)
def test_nothing_is_cut_off_or_overlaps(draw: Any, layout: Any, size: tuple[float, float]) -> None:
    figure = Figure(figsize=size, layout=layout)
    FigureCanvasAgg(figure)
    _assert_tidy(draw(ax=figure.subplots()))


def test_nothing_is_cut_off_or_overlaps_on_a_new_figure(drawn: Any) -> None:
    _assert_tidy(drawn)


def test_the_legend_is_no_wider_than_the_axes_of_a_new_figure(drawn: Any) -> None:
    ax = drawn.axes[0]
    assert ax.get_legend().get_window_extent().x1 <= ax.get_window_extent().x1 + 1


def test_neighbours_keep_their_place(draw: Any) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    before = left.get_position().bounds
    draw(ax=right)
    assert left.get_position().bounds == before
    assert all(
        ax.get_position().x0 > left.get_position().x1 for ax in figure.axes if ax is not left
    )


def test_axes_without_a_grid_are_split_within_their_own_place(draw: Any) -> None:
    figure = Figure()
    FigureCanvasAgg(figure)
    draw(ax=figure.add_axes((0.2, 0.3, 0.6, 0.5)))
    boxes = [ax.get_position(original=True) for ax in figure.axes]
    assert min(box.y0 for box in boxes) == pytest.approx(0.3)
    assert max(box.y1 for box in boxes) <= 0.8
    for panel in figure.axes[1:]:
        assert panel.get_position().y1 < figure.axes[0].get_position().y0
    figure.canvas.draw()


def test_subfigures_are_drawn_on_and_the_whole_figure_can_be_saved(draw: Any) -> None:
    figure = Figure(layout="constrained")
    parts: Any = figure.subfigures(1, 2)
    assert draw(ax=parts[1].subplots()) is figure
    assert all(ax.get_figure() is parts[1] for ax in figure.axes)
    figure.savefig(io.BytesIO(), format="svg")


def test_text_is_at_least_nine_points(drawn: Any) -> None:
    texts = [
        text
        for ax in drawn.axes
        for text in ax.findobj(lambda artist: hasattr(artist, "get_fontsize"))
    ]
    assert min(text.get_fontsize() for text in texts) >= 9


@pytest.mark.parametrize("ax", [Figure(), np.array([None]), "axes"])
def test_anything_but_one_axes_is_refused(draw: Any, ax: Any) -> None:
    with pytest.raises(InvalidTypeError, match="expected one matplotlib Axes"):
        draw(ax=ax)


def _assert_tidy(figure: Any) -> None:
    figure.canvas.draw()
    whole, drawn = figure.bbox, figure.get_tightbbox().transformed(figure.dpi_scale_trans)
    assert drawn.x0 >= whole.x0 - 1
    assert drawn.x1 <= whole.x1 + 1
    assert drawn.y0 >= whole.y0 - 1
    assert drawn.y1 <= whole.y1 + 1
    data = figure.axes[0].get_window_extent()
    legend = figure.axes[0].get_legend().get_window_extent()
    assert legend.y0 >= data.y1
    assert figure.axes[0]._left_title.get_window_extent().y0 >= legend.y1 - 1
    for panel in figure.axes[1:]:
        assert panel.get_window_extent().y1 < figure.axes[0].get_window_extent().y0

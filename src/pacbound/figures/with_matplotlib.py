"""A figure by matplotlib, on axes that are passed or on a new figure that pyplot never hears of.

A new figure has an Agg canvas, so it needs no screen, is freed like any object, and saves to every
format that matplotlib knows. No global state is read or written, and matplotlib is loaded when the
first figure is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from io import BytesIO
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pacbound.documents import printable
from pacbound.errors import InvalidTypeError, MissingDependencyError
from pacbound.figure import (
    Axis,
    Band,
    Bars,
    Boxes,
    Dots,
    Figure,
    Flats,
    Floats,
    Level,
    Line,
    Look,
    Mark,
    Note,
    Panel,
    Steps,
    Upright,
)
from pacbound.figures import palette
from pacbound.figures.thinning import thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.legend import Legend

# Inches: the width, a panel of height 1, and what heading and labels take.
_WIDTH, _UNIT, _REST = 8.0, 3.7, 1.9
_COLUMNS: Final = 800
_BETWEEN: Final = 0.06
# Letters of a label that fit beside an inch of axes.
_LETTERS: Final = 10.5
# How a label of several lines finds room beside axes that leave it for one.
_TWO_LINES: Final[dict[str, Any]] = {"labelpad": 0, "fontsize": 9, "linespacing": 1.0}
# Letters of a title that fit into an inch of axes.
_TITLE_LETTERS: Final = 16
# A layout engine, which runs when the figure is drawn, makes axes wider by at least this.
_WIDENED: Final = 1.1

_COLOURS: Final[dict[Look, str]] = {
    "certified": palette.CERTIFIED,
    "seen": palette.OBSERVED,
    "other": palette.OTHER,
    "rows": palette.ROWS,
    "ideal": palette.IDEAL,
    "unknown": palette.UNKNOWN,
    "alarm": palette.IDEAL,
}
_DASHES: Final[dict[Look, str]] = {"other": "-.", "ideal": ":"}
# Shapes of the first, second, … series of one look.
_SHAPES: Final = "osD^v><ph"


def plot(figure: Figure, ax: Axes | None = None) -> Canvas:
    """Draw a figure, and give the matplotlib figure that it stands on.

    A new one shows itself in a notebook. One that was given is shown by its owner.
    """
    canvas: Any = draw(figure, ax)[0].figure.figure
    if ax is None:
        canvas._repr_png_ = partial(_png, canvas)
    return canvas  # type: ignore[no-any-return]


def _png(canvas: Canvas) -> bytes:
    target = BytesIO()
    canvas.savefig(target, format="png")
    return target.getvalue()


def draw(figure: Figure, ax: Axes | None = None) -> list[Axes]:
    """Draw a figure, and give the axes of its panels from top to bottom, the first of them `ax`."""
    axes = _stacked(figure.panels, ax)
    named = {id(mark) for mark in figure.legend}
    for place, panel in zip(axes, figure.panels, strict=True):
        place.grid(visible=True, color=palette.GRID, linewidth=0.8)
        place.set_axisbelow(True)  # behind everything else
        _set_axis(place, "x", figure.x)
        _set_axis(place, "y", panel.y)
        for mark in panel.marks:
            label = _label(mark.name) if id(mark) in named else None
            _draw(place, thinned(mark, figure.x, _COLUMNS), label, panel.y)
    for place in axes[:-1]:
        place.tick_params(axis="x", labelbottom=False)
    axes[-1].set_xlabel(figure.x.label, parse_math=False)
    axes[0].figure.figure.align_ylabels(axes)
    words = [line for part in (figure.title, figure.caption) for line in part.splitlines()]
    _set_heading(axes, "\n".join(map(printable, words)))
    return axes


def _axes_or_new(ax: Any, *, size: tuple[float, float]) -> Axes:
    """`ax` if it is axes, or those of a new figure of so many inches if it is None."""
    try:
        from matplotlib.axes import Axes  # noqa: PLC0415
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingDependencyError.for_extra("matplotlib", "report", "Plotting") from error
    if ax is None:
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        return figure.add_subplot()
    if not isinstance(ax, Axes):
        raise InvalidTypeError.of("ax", ax, "one matplotlib Axes, such as axes[0] of several")
    return ax


def _set_heading(axes: Sequence[Axes], title: str) -> None:
    """Set the title above the first axes and, between both, the legend of all of them."""
    ax = axes[0]
    legend = _legend_above(ax, axes)
    size = legend.prop.get_size_in_points()
    # Above the legend there is room for its distance to the axes and for letters such as p.
    height = legend.get_window_extent().height / ax.figure.dpi * 72 + 0.6 * size
    lines = _wrapped(title, int(ax.get_window_extent().width / ax.figure.dpi * _TITLE_LETTERS))
    # A group's name may hold dollar signs, which are not meant as formulas.
    ax.set_title("\n".join(lines), loc="left", fontsize="medium", pad=height, parse_math=False)
    if ax.figure.get_layout_engine() is None:
        _lower_top(ax, height + 1.4 * size * (len(lines) - 1))


def _legend_above(ax: Axes, sources: Sequence[Axes]) -> Legend:
    """A legend above `ax`, where it covers no data, in as few rows as the width has room for."""
    entries = [source.get_legend_handles_labels() for source in sources]
    handles = [handle for part, _ in entries for handle in part]
    labels = [label for _, part in entries for label in part]
    has_engine = ax.figure.get_layout_engine() is not None
    width = ax.get_window_extent().width * (_WIDENED if has_engine else 1.0)
    for rows in range(1, len(labels) + 2):
        legend = ax.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=max(-(-len(labels) // rows), 1),
            frameon=False,
            borderaxespad=0.2,
            borderpad=0.2,
        )
        if legend.get_window_extent().width <= width:
            break
    return legend


def _wrapped(title: str, letters: int) -> list[str]:
    """The lines of the title, none longer than `letters`, and never broken at an equals sign."""
    parts = (
        wrap(line.replace(" = ", "\xa0=\xa0"), max(letters, 20)) for line in title.splitlines()
    )
    return [line.replace("\xa0", " ") for part in parts for line in part]


def _lower_top(ax: Axes, points: float) -> None:
    """Make room above `ax` within its place, for figures without a layout engine to do so."""
    box = ax.get_position(original=True)
    share = min(0.5, points / 72 * ax.figure.dpi / (box.height * ax.figure.bbox.height))
    heights = (share, 1 - share)
    ax.set_subplotspec(_place_of(ax).subgridspec(2, 1, height_ratios=heights, hspace=0)[1])


def _stacked(panels: Sequence[Panel], ax: Any) -> list[Axes]:
    """Axes for each panel, one above the other, that share their horizontal axis."""
    heights = [panel.height for panel in panels]
    first = _axes_or_new(ax, size=(_WIDTH, _REST + _UNIT * sum(heights)))
    if len(panels) == 1:
        return [first]
    grid = _place_of(first).subgridspec(len(panels), 1, height_ratios=heights, hspace=_BETWEEN)
    first.set_subplotspec(grid[0])
    below = [first.figure.add_subplot(grid[row], sharex=first) for row in range(1, len(panels))]
    return [first, *below]


def _place_of(ax: Axes) -> Any:
    """The place of axes in a grid; axes that stand free on their figure get a grid of one."""
    from matplotlib.gridspec import GridSpec  # noqa: PLC0415 - matplotlib is optional

    if ax.get_subplotspec() is None:
        # The original box: axes with a fixed aspect are lower than their place.
        box = ax.get_position(original=True)
        sides = {"left": box.x0, "right": box.x1, "bottom": box.y0, "top": box.y1}
        ax.set_subplotspec(GridSpec(1, 1, **sides)[0])
    return ax.get_subplotspec()


def _set_axis(ax: Axes, which: str, axis: Axis) -> None:
    tall = ax.get_window_extent().height / ax.figure.dpi
    scale, limits = (ax.set_xscale, ax.set_xlim) if which == "x" else (ax.set_yscale, ax.set_ylim)
    limits(axis.low, axis.high)  # first, since a logarithmic axis must not begin at 0
    if axis.log:
        scale("log")
    ticks = axis.ticks() if which == "x" else axis.ticks(max(2, min(6, round(2 * tall))))
    side = ax.xaxis if which == "x" else ax.yaxis
    side.set_ticks(ticks, [_plain(axis.written(tick)) for tick in ticks])
    side.set_ticks([], minor=True)
    if which == "y":
        label = fill(axis.label, max(8, int(_LETTERS * tall)))
        ax.set_ylabel(label, parse_math=False, **(_TWO_LINES if "\n" in label else {}))


def _draw(ax: Axes, mark: Mark, label: str | None, y: Axis) -> None:
    colour = _COLOURS[mark.look]
    name: dict[str, Any] = {"label": label, "gid": f"{type(mark).__name__} {mark.look}"}
    match mark:
        case Line() | Steps():
            style: dict[str, Any] = {"color": colour, "linewidth": 1.6}
            style["linestyle"] = _DASHES.get(mark.look, "-")
            ax.plot(*mark.corners(), **style, **name)
        case Flats():
            style = {"color": colour, "linewidth": 1.5, "zorder": 2.5}
            ax.hlines(mark.y, mark.left, mark.right, **style, **name)
        case Bars():
            foot = np.full(mark.height.size, y.low)
            _boxes(ax, (mark.left, mark.right, foot, mark.height), mark.look, name)
        case Boxes():
            _boxes(ax, (mark.left, mark.right, mark.low, mark.high), mark.look, name)
        case Band():
            ax.fill_between(mark.x, mark.low, mark.high, color=colour, alpha=0.2, lw=0, **name)
        case Dots():
            _dots(ax, mark, colour, name)
        case Note():
            below: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "top"}
            ax.annotate(_plain(mark.text), (mark.x, mark.y), (0, -7), fontsize="medium", **below)
        case Level():
            dashes = ":" if mark.look == "ideal" else "--"
            ax.axhline(mark.y, color=colour, linestyle=dashes, linewidth=1.4, **name)
        case Upright():
            dashes = "--" if mark.look == "ideal" else "-"
            ax.axvline(mark.x, color=colour, linestyle=dashes, linewidth=1.4, **name)


def _dots(ax: Axes, mark: Dots, colour: str, name: dict[str, Any]) -> None:
    style: dict[str, Any] = {"linestyle": "none", "color": colour, "zorder": 4, "clip_on": False}
    if mark.series:
        shape = _SHAPES[(mark.series - 1) % len(_SHAPES)]
        style |= {"marker": shape, "markersize": 8, "markerfacecolor": "none"}
        style |= {"markeredgewidth": 1.7, "zorder": 3}
    else:
        size = 9 if mark.look in {"certified", "alarm"} else 5 if mark.x.size < 60 else 3
        style |= {"marker": "v" if mark.look == "alarm" else "o", "markersize": size}
        # A white rim keeps a dot apart from the lines that it stands on.
        style |= {"markeredgecolor": "white", "markeredgewidth": 0.8 if size > 5 else 0.0}
    ax.plot(mark.x, mark.y, **style, **name)


def _boxes(
    ax: Axes, sides: tuple[Floats, Floats, Floats, Floats], look: Look, name: dict[str, Any]
) -> None:
    """Boxes, and upright lines where one has no width."""
    from matplotlib.collections import PolyCollection  # noqa: PLC0415 - matplotlib is optional

    left, right, low, high = sides
    thin = left >= right
    colour = _COLOURS[look]
    if not thin.all():
        across = np.stack([left, left, right, right], axis=1)[~thin]
        along = np.stack([low, high, high, low], axis=1)[~thin]
        style: dict[str, Any] = {"facecolors": (colour, 0.25), "edgecolors": (colour, 0.8)}
        if look == "unknown":
            style = {"facecolors": "none", "edgecolors": (colour, 0.45), "hatch": "///"}
        if look == "rows":
            style = {"facecolors": (colour, 0.7), "edgecolors": palette.CERTIFIED}
        corners = list(np.stack([across, along], axis=2))
        ax.add_collection(PolyCollection(corners, linewidths=0.6, **style, **name), autolim=False)
        name = name | {"label": None}
    if thin.any():
        edge = palette.CERTIFIED if look == "rows" else colour
        ax.vlines(left[thin], low[thin], high[thin], color=edge, linewidth=1.4, **name)


def _plain(words: str) -> str:
    """Words that are not read as a formula, and can be seen: a name may hold any character."""
    return printable(words).replace("$", r"\$")


def _label(name: str) -> str:
    """A name in the legend, which leaves out what begins with an underscore."""
    return _plain(f" {name}" if name.startswith("_") else name)

"""Where a figure is drawn: on axes that were given, or on a new figure that pyplot never hears of.

A new figure has an Agg canvas, so it needs no screen, is freed like any object, and saves to every
format that matplotlib knows. Nothing here reads or writes global state; matplotlib is loaded when
the first figure is drawn.
"""

from __future__ import annotations

from io import BytesIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from pacbound.errors import InvalidTypeError, MissingDependencyError
from pacbound.report import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (8.0, 6.5)
"""Inches: 800 pixels wide at matplotlib's own 100 dots per inch."""

_PANEL = 0.22
_KEY = 5
"""Letters that the sample before a legend's label takes."""
_LEGEND_LETTERS, _TITLE_LETTERS = 13, 16
"""Letters that fit into an inch of axes, as wide as they are before a layout engine moves them."""


def axes_for(ax: Any) -> Axes:
    """`ax`, or if it is None the axes of a new figure."""
    try:
        from matplotlib.axes import Axes  # noqa: PLC0415
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingDependencyError.for_extra("matplotlib", "report", "Plotting") from error
    if ax is None:
        figure = Figure(figsize=SIZE, layout="constrained")
        FigureCanvasAgg(figure)
        return figure.add_subplot()
    if not isinstance(ax, Axes):
        raise InvalidTypeError(
            f"ax is of type {type(ax).__name__}: expected one matplotlib Axes, such as axes[0] of "
            "several."
        )
    return ax


def panel_below(ax: Axes) -> Axes:
    """New axes in the lower part of the place of `ax`, which keeps the rest of it; both share their
    horizontal axis.
    """
    spec = ax.get_subplotspec()
    if spec is None:
        box = ax.get_position()
        ax.set_position(
            (
                box.x0,
                box.y0 + 1.1 * _PANEL * box.height,
                box.width,
                (1 - 1.1 * _PANEL) * box.height,
            )
        )
        panel = ax.figure.add_axes((box.x0, box.y0, box.width, _PANEL * box.height), sharex=ax)
    else:
        grid = spec.subgridspec(2, 1, height_ratios=(1 - _PANEL, _PANEL), hspace=0.02)
        ax.set_subplotspec(grid[0])
        panel = ax.figure.add_subplot(grid[1], sharex=ax)
    ax.tick_params(axis="x", labelbottom=False)
    ax.figure.align_ylabels([ax, panel])
    panel.locator_params(axis="y", nbins=3)
    light_grid(panel)
    return panel


def light_grid(ax: Axes) -> None:
    """A grid behind everything else."""
    ax.grid(visible=True, color=palette.GRID, linewidth=0.8)
    ax.set_axisbelow(True)


def headed(ax: Axes, title: str, *, panel: Axes | None = None) -> None:
    """The title, and between it and the axes the legend for `ax` and `panel`, where it covers no
    data.
    """
    width = ax.get_window_extent().width / ax.figure.dpi
    handles, labels = ax.get_legend_handles_labels()
    if panel is not None:
        more_handles, more_labels = panel.get_legend_handles_labels()
        handles, labels = [*handles, *more_handles], [*labels, *more_labels]
    columns = _columns([len(label) for label in labels], int(width * _LEGEND_LETTERS))
    legend = ax.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        borderaxespad=0.2,
        borderpad=0.2,
    )
    size = legend.prop.get_size_in_points()
    legend_height = size * (1.6 * -(-len(labels) // columns) + 0.4)
    lines = _wrapped(title, int(width * _TITLE_LETTERS))
    # A group's name may hold dollar signs, which are not meant as formulas.
    ax.set_title(
        "\n".join(lines), loc="left", fontsize="medium", pad=legend_height, parse_math=False
    )
    if ax.figure.get_layout_engine() is None:
        _lower_top(ax, legend_height + 1.4 * size * (len(lines) - 1))


def png(figure: Figure) -> bytes:
    """The figure as the bytes of a PNG file."""
    target = BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()


def _columns(lengths: list[int], letters: int) -> int:
    """The largest number of columns that a legend with labels of these lengths has room for;
    matplotlib fills them in turn.
    """
    for columns in range(len(lengths), 1, -1):
        if sum(max(part) + _KEY for part in np.array_split(lengths, columns)) <= letters:
            return columns
    return 1


def _wrapped(title: str, letters: int) -> list[str]:
    """The lines of the title, none longer than `letters`, and never broken at an equals sign."""
    parts = (
        wrap(line.replace(" = ", "\xa0=\xa0"), max(letters, 20)) for line in title.splitlines()
    )
    return [line.replace("\xa0", " ") for part in parts for line in part]


def _lower_top(ax: Axes, points: float) -> None:
    """Make room above `ax` within its own place, on a figure without a layout engine that would do
    so.
    """
    share = min(0.5, points / 72 * ax.figure.dpi / ax.get_window_extent().height)
    spec = ax.get_subplotspec()
    if spec is None:
        box = ax.get_position()
        ax.set_position((box.x0, box.y0, box.width, (1 - share) * box.height))
    else:
        ax.set_subplotspec(spec.subgridspec(2, 1, height_ratios=(share, 1 - share), hspace=0)[1])

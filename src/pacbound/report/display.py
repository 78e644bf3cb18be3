"""What every display shares: a figure and its axes, a heading, and the picture for notebooks.

A display draws on axes that were given, or on a new figure that pyplot never hears of. A new figure
has an Agg canvas, so it needs no screen, is freed like any object, and saves to every format that
matplotlib knows. Nothing here reads or writes global state; matplotlib is loaded when the first
figure is drawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from io import BytesIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pacbound.errors import InvalidTypeError, MissingDependencyError
from pacbound.report import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

SIZE = (8.0, 6.5)
"""Inches: 800 pixels wide at matplotlib's own 100 dots per inch."""

_PANEL = 0.22
"""The share of the height that a panel below the axes takes."""
_TITLE_LETTERS = 16
"""Letters of a title that fit into an inch of axes."""
_WIDENED = 1.1
"""A layout engine, which runs when the figure is drawn, makes axes wider by at least this."""


class Display(ABC):
    """A figure of numbers: it has axes, a figure, and a PNG that notebooks show.

    Each kind of display holds its numbers as attributes and draws them in `_draw`.

    Attributes
    ----------
    ax_
        The axes drawn on, once `plot` was called.
    figure_
        Their figure. Where no axes were given it is a new one that pyplot does not know: save it
        with `display.figure_.savefig(path)`.
    """

    ax_: Axes
    figure_: Figure
    _owns_figure = False

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw, and set `ax_` and `figure_`.

        Parameters
        ----------
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        Display
            The display itself.

        Raises
        ------
        InvalidTypeError
            If `ax` is not a matplotlib Axes.
        MissingDependencyError
            If matplotlib is not installed.
        """
        self._draw(self._start(ax))
        return self

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw the numbers on `ax`."""

    def _start(self, ax: Any) -> Axes:
        """Set `ax_` and `figure_` to `ax` and its figure, or to new ones if `ax` is None."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure.figure
        self._owns_figure = ax is None
        return self.ax_

    def _repr_png_(self) -> bytes | None:
        """The figure for notebooks; None if it was drawn on given axes, whose owner shows them."""
        if not self._owns_figure:
            return None
        target = BytesIO()
        self.figure_.savefig(target, format="png")
        return target.getvalue()


def panel_below(ax: Axes) -> Axes:
    """New axes in the lower part of the place of `ax`; both share their horizontal axis."""
    spec = ax.get_subplotspec()
    if spec is None:
        box = ax.get_position(original=True)
        kept = 1 - 1.1 * _PANEL
        ax.set_position((box.x0, box.y1 - kept * box.height, box.width, kept * box.height))
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
    """Draw a grid behind everything else."""
    ax.grid(visible=True, color=palette.GRID, linewidth=0.8)
    ax.set_axisbelow(True)


def limits(values: Any, *, room: float = 0.08, least: float = 0.01) -> tuple[float, float]:
    """Ends of an axis that show the finite `values`, with a share of `room` on both sides.

    Values that differ by less than `least` get that much room, so that an axis never has length 0.
    """
    finite = np.ravel(np.asarray(values, dtype=np.float64))
    finite = finite[np.isfinite(finite)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    aside = max(room * (high - low), (least - (high - low)) / 2)
    return low - aside, high + aside


def set_heading(
    ax: Axes, title: str, *, panel: Axes | None = None, panels: Sequence[Axes] = ()
) -> None:
    """Set the title and, between it and the axes, the legend of `ax` and of the panels below it."""
    legend = _legend_above(ax, [ax, *([] if panel is None else [panel]), *panels])
    size = legend.prop.get_size_in_points()
    # Above the legend there is room for its distance to the axes and for letters such as p.
    height = legend.get_window_extent().height / ax.figure.dpi * 72 + 0.6 * size
    lines = _wrapped(title, int(ax.get_window_extent().width / ax.figure.dpi * _TITLE_LETTERS))
    # A group's name may hold dollar signs, which are not meant as formulas.
    ax.set_title("\n".join(lines), loc="left", fontsize="medium", pad=height, parse_math=False)
    if ax.figure.get_layout_engine() is None:
        _lower_top(ax, height + 1.4 * size * (len(lines) - 1))


def axes_or_new(ax: Any, *, size: tuple[float, float] = SIZE) -> Axes:
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
        raise InvalidTypeError(
            f"ax is of type {type(ax).__name__}: expected one matplotlib Axes, such as axes[0] of "
            "several."
        )
    return ax


def _legend_above(ax: Axes, sources: list[Axes]) -> Legend:
    """A legend above `ax`, where it covers no data, in as few rows as the width has room for."""
    entries = [source.get_legend_handles_labels() for source in sources]
    handles = [handle for part, _ in entries for handle in part]
    labels = [label for _, part in entries for label in part]
    has_engine = ax.figure.get_layout_engine() is not None
    width = ax.get_window_extent().width * (_WIDENED if has_engine else 1.0)
    for rows in range(1, len(labels) + 1):
        legend = ax.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=-(-len(labels) // rows),
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
    # The original box: axes with a fixed aspect are lower than their place.
    box, spec = ax.get_position(original=True), ax.get_subplotspec()
    share = min(0.5, points / 72 * ax.figure.dpi / (box.height * ax.figure.bbox.height))
    if spec is None:
        ax.set_position((box.x0, box.y0, box.width, (1 - share) * box.height))
    else:
        ax.set_subplotspec(spec.subgridspec(2, 1, height_ratios=(share, 1 - share), hspace=0)[1])

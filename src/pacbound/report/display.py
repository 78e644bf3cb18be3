"""What every display shares: its axes, its figure, and the picture for notebooks.

A display holds what it shows as a `pacbound.figure.Figure`, and matplotlib draws that on axes that
were given, or on a new figure that pyplot never hears of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import TYPE_CHECKING, Self

from pacbound.figure import Figure
from pacbound.report.with_matplotlib import draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


class Picture(ABC):
    """What can be drawn by matplotlib, and shows itself in a notebook.

    Attributes
    ----------
    axes_
        The axes drawn on, one for each panel, once `plot` was called.
    ax_
        The first of them.
    figure_
        Their figure. Where no axes were given it is a new one that pyplot does not know: save it
        with `display.figure_.savefig(path)`.
    """

    axes_: list[Axes]
    ax_: Axes
    figure_: Canvas
    _owns_figure = False

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw, and set `axes_`, `ax_` and `figure_`.

        Parameters
        ----------
        ax
            The axes whose place the picture takes; by default those of a new figure.

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
        self.axes_ = self._draw(ax)
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure.figure
        self._owns_figure = ax is None
        return self

    @abstractmethod
    def _draw(self, ax: Axes | None) -> list[Axes]:
        """Draw in the place of `ax`, and say on which axes."""

    def _repr_png_(self) -> bytes | None:
        """The figure for notebooks; None if it was drawn on given axes, whose owner shows them."""
        if not self._owns_figure:
            return None
        target = BytesIO()
        self.figure_.savefig(target, format="png")
        return target.getvalue()


class Display(Picture):
    """A figure of numbers.

    Parameters
    ----------
    figure
        What is shown: `figure.panels` hold the marks, `figure.table()` the numbers in words.
    """

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def _draw(self, ax: Axes | None) -> list[Axes]:
        return draw(self.figure, ax)

"""Error against cost: what ways to choose an exit threshold buy, and whether they keep the error
that was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.report import palette
from pacbound.report.canvas import axes_for, headed, light_grid, png
from pacbound.stats.arguments import real_number, tolerated_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

CAPTION = "Points are descriptive; blue: xi is certified; vermilion: no guarantee"
MARKERS = "osD^v><ph"


class ErrorCostDisplay:
    """The error of cascades against their cost, as a share of the slow model's, and the error that
    was asked for.

    Each method is a marker: blue if its threshold is certified, vermilion if it has no guarantee.
    The dotted line is the desired error, that of the slow model plus `xi`, and a method above it
    has lost more. The points are what was seen in test rows and descriptive: what a certificate
    holds is `xi` for the population, so that luck in the test rows may put its point above the
    line.

    `plot` sets `ax_` and `figure_`. Where no `ax` is given the figure is a new one that pyplot does
    not know: save it with `display.figure_.savefig(path)`; in a notebook the display shows itself.

    Parameters
    ----------
    points
        The cost, as a share of the slow model's, and the error of each method, by its name.
    slow_error
        The slow model's error on the same rows.
    xi
        The increase in error that was allowed.
    certified
        The names of the methods whose thresholds are certified.
    trade_off
        Costs and errors over all thresholds, as two columns, drawn as a curve.
    rows, delta
        The number of test rows, and the certificates' failure probability, for the title.

    Examples
    --------
    >>> seen = {"certified": (0.4, 0.08), "by hand": (0.3, 0.1)}
    >>> display = ErrorCostDisplay(seen, slow_error=0.07, xi=0.02, certified=["certified"])
    >>> display.plot().figure_.savefig("error-cost.png")
    >>> round(display.desired_error, 4)
    0.09
    """

    def __init__(
        self,
        points: Mapping[str, tuple[float, float]],
        *,
        slow_error: float,
        xi: float,
        certified: Collection[str] = (),
        trade_off: tuple[Any, Any] | None = None,
        rows: int | None = None,
        delta: float | None = None,
    ) -> None:
        self.points = {name: _point(value, name) for name, value in points.items()}
        self.slow_error = _point((1.0, slow_error), "slow_error")[1]
        self.xi = tolerated_rate(xi)
        self.certified = known_names(certified, self.points)
        self.trade_off = None if trade_off is None else _curve(trade_off)
        self.rows = rows
        self.delta = delta
        self.ax_: Axes
        self.figure_: Figure
        self._own_figure = False

    @classmethod
    def from_costs(
        cls,
        points: Mapping[str, tuple[float, float]],
        *,
        slow: tuple[float, float],
        xi: float,
        certified: Collection[str] = (),
        trade_off: tuple[Any, Any] | None = None,
        rows: int | None = None,
        delta: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw methods by their (cost, error), with costs in any unit: operations, seconds, money.
        Descriptive.

        `slow` is the cost and the error of the slow model alone, which all costs are divided by.

        Examples
        --------
        >>> display = ErrorCostDisplay.from_costs(
        ...     {"certified": (150, 0.08)}, slow=(300, 0.07), xi=0.02, certified=["certified"]
        ... )
        >>> display.points
        {'certified': (0.5, 0.08)}
        """
        unit, slow_error = _point(slow, "slow")
        relative = {
            name: (_point(value, name)[0] / unit, value[1]) for name, value in points.items()
        }
        curve = (
            None
            if trade_off is None
            else (np.asarray(trade_off[0], dtype=np.float64) / unit, trade_off[1])
        )
        display = cls(
            relative,
            slow_error=slow_error,
            xi=xi,
            certified=certified,
            trade_off=curve,
            rows=rows,
            delta=delta,
        )
        return display.plot(ax)

    @property
    def desired_error(self) -> float:
        """The slow model's error plus `xi`."""
        return self.slow_error + self.xi

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        self._own_figure = ax is None
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure.figure
        light_grid(self.ax_)
        if self.trade_off is not None:
            self.ax_.plot(
                *self.trade_off,
                color=palette.UNKNOWN,
                linewidth=1,
                label="all thresholds",
                gid="trade-off",
            )
        self.ax_.axhline(
            self.desired_error,
            color=palette.IDEAL,
            linestyle=":",
            label="desired error: slow + xi",
            gid="desired",
        )
        self._draw_point("slow model alone", 1.0, self.slow_error, color=palette.IDEAL, marker="*")
        for (name, (cost, error)), marker in zip(self.points.items(), cycle(MARKERS), strict=False):
            color = palette.CERTIFIED if name in self.certified else palette.OBSERVED
            self._draw_point(name, cost, error, color=color, marker=marker)
        drawn = np.concatenate([np.ravel(line.get_xdata()) for line in self.ax_.lines])
        self.ax_.set_xlim(0.0, 1.05 * float(np.nanmax(drawn)))
        self.ax_.set(xlabel="Cost (share of the slow model's)", ylabel="Error (share wrong)")
        self.ax_.margins(y=0.12)
        headed(self.ax_, self._title())
        return self

    def _repr_png_(self) -> bytes | None:
        """The figure for notebooks, unless it was drawn on given axes: whoever made those shows
        them.
        """
        return png(self.figure_) if self._own_figure else None

    def _draw_point(self, name: str, cost: float, error: float, *, color: str, marker: str) -> None:
        # Hollow, so that points in the same place are all seen.
        self.ax_.plot(
            [cost],
            [error],
            linestyle="none",
            marker=marker,
            markersize=11 if marker == "*" else 9,
            markerfacecolor="none",
            markeredgecolor=color,
            markeredgewidth=2,
            label=name,
            gid=name,
            zorder=3,
        )

    def _title(self) -> str:
        return f"Error against cost: xi = {self.xi:g}{facts(self.rows, self.delta)}\n{CAPTION}"


def facts(rows: int | None, delta: float | None) -> str:
    """What is known of `rows` and `delta`, to go on in a title."""
    return ("" if delta is None else f", delta = {delta:g}") + (
        "" if rows is None else f", {rows:,} test rows"
    )


def known_names(certified: Collection[str], methods: Mapping[str, Any]) -> frozenset[str]:
    """`certified`, if all of them are methods."""
    names = frozenset([certified] if isinstance(certified, str) else certified)
    unknown = sorted(names - set(methods))
    if unknown:
        listed = ", ".join(map(repr, methods))
        raise InvalidValueError(
            f"{unknown[0]!r} is not among the methods: expected one of {listed}."
        )
    return names


def _point(value: tuple[float, float], name: str) -> tuple[float, float]:
    try:
        cost, error = value
    except (TypeError, ValueError):
        raise InvalidValueError(f"{name!r} has {value!r}: expected a cost and an error.") from None
    cost, error = (
        real_number(cost, f"cost of {name}", "a cost"),
        real_number(error, f"error of {name}", "an error rate"),
    )
    if not (0.0 < cost < np.inf and 0.0 <= error <= 1.0):
        raise InvalidValueError(
            f"{name!r} is at cost {cost} and error {error}: expected a cost above 0 and an error "
            "from 0 to 1."
        )
    return cost, error


def _curve(trade_off: tuple[Any, Any]) -> tuple[Floats, Floats]:
    cost, error = (np.asarray(column, dtype=np.float64) for column in trade_off)
    if cost.shape != error.shape or cost.ndim != 1:
        raise InvalidValueError(
            f"trade_off has columns of shape {cost.shape} and {error.shape}: expected a cost for "
            "each error."
        )
    return cost, error

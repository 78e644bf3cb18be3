"""What methods buy at one `xi`: error against cost (cascades), success against safety (shields).

Both figures show one point for each way to choose a threshold, and a dotted line for what was asked
for. Points are what test data showed and are descriptive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.report import palette
from pacbound.report.display import Display, light_grid, limits, set_heading
from pacbound.stats.arguments import (
    failure_probability,
    probabilities,
    real_number,
    tolerated_rate,
    whole_number,
    whole_numbers,
)
from pacbound.stats.binomial import binomial_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

CAPTION = "Points are descriptive; blue: xi is certified; vermilion: no guarantee"
_MARKERS = "osD^v><ph"


class ErrorCostDisplay(Display):
    """The error of cascades against their cost, and the error that was asked for.

    Each method is a marker: blue if its threshold is certified, vermilion if it has no guarantee.
    Costs are shares of the slow model's. The dotted line is the desired error, that of the slow
    model plus `xi`; a method above it has lost more. The points are what test rows showed, and are
    descriptive: a certificate holds `xi` for the population, so bad luck in the test rows may put
    its point above the line.

    The axes end a little beyond the points, so a trade-off curve is shown where the points are.
    `plot` sets `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`. In a
    notebook the display shows itself.

    Parameters
    ----------
    points
        The cost, as a share of the slow model's, and the error of each method, by its name.
    slow_error
        The slow model's error on the same rows.
    xi
        The increase in error that was allowed, 0 <= xi < 1.
    certified
        The names of the methods whose thresholds are certified.
    trade_off
        Costs and errors over all thresholds, as two columns, drawn as a curve.
    rows, delta
        The number of test rows, and the certificates' failure probability, for the title.

    Raises
    ------
    InvalidValueError
        If a cost is not above 0 or an error not a rate; if `xi` is not in [0, 1); if a certified
        name is not among the points; if the columns of `trade_off` differ in length.

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
        self.points = {name: _cost_and_error(value, name) for name, value in points.items()}
        self.slow_error = _cost_and_error((1.0, slow_error), "slow_error")[1]
        self.xi = tolerated_rate(xi)
        self.certified = known_names(certified, self.points)
        self.trade_off = None if trade_off is None else _curve(trade_off)
        self.rows = rows
        self.delta = delta

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
        """Draw methods with costs in any unit: operations, seconds, money. Descriptive.

        Parameters
        ----------
        points
            The cost and the error of each method, by its name.
        slow
            The cost and the error of the slow model alone. All costs are divided by its cost.
        xi, certified, trade_off, rows, delta
            As for the class; the costs of `trade_off` are in the same unit.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        ErrorCostDisplay
            The display, drawn.

        Raises
        ------
        InvalidValueError
            As for the class.

        Examples
        --------
        >>> display = ErrorCostDisplay.from_costs(
        ...     {"certified": (150, 0.08)}, slow=(300, 0.07), xi=0.02, certified=["certified"]
        ... )
        >>> display.points
        {'certified': (0.5, 0.08)}
        """
        unit, slow_error = _cost_and_error(slow, "slow")
        in_unit = {name: _cost_and_error(value, name) for name, value in points.items()}
        curve = None if trade_off is None else _curve(trade_off)
        return cls(
            {name: (cost / unit, error) for name, (cost, error) in in_unit.items()},
            slow_error=slow_error,
            xi=xi,
            certified=certified,
            trade_off=None if curve is None else (curve[0] / unit, curve[1]),
            rows=rows,
            delta=delta,
        ).plot(ax)

    @property
    def desired_error(self) -> float:
        """The slow model's error plus `xi`."""
        return self.slow_error + self.xi

    def _draw(self, ax: Axes) -> None:
        light_grid(ax)
        if self.trade_off is not None:
            style: dict[str, Any] = {"color": palette.UNKNOWN, "linewidth": 1}
            ax.plot(*self.trade_off, label="all thresholds", gid="trade-off", **style)
        style = {"color": palette.IDEAL, "linestyle": ":", "gid": "desired"}
        ax.axhline(self.desired_error, label="desired error: slow + xi", **style)
        slow = (1.0, self.slow_error)
        _draw_point(ax, "slow model alone", slow, color=palette.IDEAL, marker="*", size=11)
        for name, marker, color in styles_of(self.points, self.certified):
            _draw_point(ax, name, self.points[name], color=color, marker=marker)
        costs, errors = zip(slow, *self.points.values(), strict=True)
        ax.set_xlim(*limits(costs, least=0.1))
        ax.set_ylim(*limits([*errors, self.desired_error], room=0.12))
        ax.set(xlabel="Cost (share of the slow model's)", ylabel="Error (share wrong)")
        facts = known_facts(self.delta, self.rows, "test rows")
        set_heading(ax, f"Error against cost: xi = {self.xi:g}{facts}\n{CAPTION}")


class SuccessSafetyDisplay(Display):
    """The success rate of shields against their safety rate, and the safety that was asked for.

    Each method is a marker: blue if its threshold is certified, vermilion if it has no guarantee.
    The dotted line is the desired safety, 1 - `xi`; a method to the left of it was unsafe more
    often. Higher is more successful. The points are what test rollouts showed, and are descriptive:
    a certificate holds `xi` for the population, so bad luck in the test rollouts may put its point
    to the left.

    `plot` sets `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`. In a
    notebook the display shows itself.

    Parameters
    ----------
    points
        The safety rate and the success rate of each method, by its name.
    xi
        The share of the rollouts that was allowed to be unsafe, 0 <= xi < 1.
    intervals
        Error bars of some or all methods: ((lower, upper) of safety, (lower, upper) of success).
    certified
        The names of the methods whose thresholds are certified.
    rollouts, delta
        The number of test rollouts, and the certificates' failure probability, for the title.

    Raises
    ------
    InvalidValueError
        If a number is not a rate; if `xi` is not in [0, 1); if a name in `certified` or `intervals`
        is not among the points.

    Examples
    --------
    >>> seen = {"certified": (0.93, 0.4), "by hand": (0.8, 0.5)}
    >>> display = SuccessSafetyDisplay(seen, xi=0.1, certified=["certified"])
    >>> display.plot().figure_.savefig("success-safety.png")
    >>> display.desired_safety
    0.9
    """

    def __init__(
        self,
        points: Mapping[str, tuple[float, float]],
        *,
        xi: float,
        intervals: Mapping[str, Any] | None = None,
        certified: Collection[str] = (),
        rollouts: int | None = None,
        delta: float | None = None,
    ) -> None:
        self.points = {name: _safety_and_success(value, name) for name, value in points.items()}
        self.xi = tolerated_rate(xi)
        bars = intervals or {}
        known_names(tuple(bars), self.points)
        self.intervals = {name: _ends(value, name) for name, value in bars.items()}
        self.certified = known_names(certified, self.points)
        self.rollouts = rollouts
        self.delta = delta

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, tuple[int, int]],
        *,
        rollouts: int,
        xi: float,
        bar_delta: float | None = 0.05,
        certified: Collection[str] = (),
        delta: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw methods by how many of the test rollouts were unsafe, and how many successful.

        The thresholds must come from other rollouts. Each error bar is then an exact interval for
        the method's true rate that fails with probability at most `bar_delta`.

        Parameters
        ----------
        counts
            How many rollouts were unsafe and how many successful, for each method by its name. No
            rollout is both.
        rollouts
            The number of test rollouts, the same for every method.
        xi, certified, delta
            As for the class.
        bar_delta
            The failure probability of each error bar; None draws no bars.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        SuccessSafetyDisplay
            The display, drawn.

        Raises
        ------
        InvalidValueError
            If counts are negative, or unsafe and successful rollouts are more than `rollouts`; if
            `bar_delta` is not between 0 and 1.

        Examples
        --------
        >>> counts = {"certified": (70, 400)}
        >>> display = SuccessSafetyDisplay.from_counts(counts, rollouts=1000, xi=0.1)
        >>> display.points["certified"], display.intervals["certified"].round(3).tolist()
        ((0.93, 0.4), [[0.912, 0.945], [0.369, 0.431]])
        """
        total = whole_number(rollouts, "rollouts", least=1)
        pairs = {name: _safe_and_successful(value, total, name) for name, value in counts.items()}
        bars = None
        if bar_delta is not None:
            level = failure_probability(bar_delta, "bar_delta")
            bars = {
                name: np.transpose(binomial_interval(np.array(pair), total, delta=level))
                for name, pair in pairs.items()
            }
        points = {name: (safe / total, good / total) for name, (safe, good) in pairs.items()}
        return cls(
            points, xi=xi, intervals=bars, certified=certified, rollouts=total, delta=delta
        ).plot(ax)

    @property
    def desired_safety(self) -> float:
        """One minus `xi`."""
        return 1.0 - self.xi

    def _draw(self, ax: Axes) -> None:
        light_grid(ax)
        style: dict[str, Any] = {"color": palette.IDEAL, "linestyle": ":", "gid": "desired"}
        ax.axvline(self.desired_safety, label="desired safety: 1 - xi", **style)
        for name, marker, color in styles_of(self.points, self.certified):
            _draw_point(ax, name, self.points[name], color=color, marker=marker)
            self._draw_bars(ax, name, color)
        safety, success = ([point[axis] for point in self.points.values()] for axis in (0, 1))
        ends = list(self.intervals.values())
        left, _ = limits([*safety, *np.ravel([end[0] for end in ends]), self.desired_safety])
        # Nothing is safer than safe: the room to the right of 1 is for the marker only.
        ax.set_xlim(left, 1.0 + 0.04 * (1.0 - left))
        ax.set_ylim(*limits([*success, *np.ravel([end[1] for end in ends])]))
        ax.set(
            xlabel="Safety rate (share of rollouts that stay safe)",
            ylabel="Success rate (share that reach the goal)",
        )
        facts = known_facts(self.delta, self.rollouts, "test rollouts")
        set_heading(ax, f"Success against safety: xi = {self.xi:g}{facts}\n{CAPTION}")

    def _draw_bars(self, ax: Axes, name: str, color: str) -> None:
        if name not in self.intervals:
            return
        (safety, success), (across, up) = self.points[name], self.intervals[name]
        # Above the hollow marker, so that a bar shorter than the marker is seen too.
        style: dict[str, Any] = {"color": color, "linewidth": 1.4, "zorder": 3.5}
        ax.hlines(success, *across, **style, gid=f"{name}: safety bar")
        ax.vlines(safety, *up, **style, gid=f"{name}: success bar")


def styles_of(
    methods: Collection[str], certified: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """The name, the marker and the colour of each method: blue if certified, or else vermilion."""
    for name, marker in zip(methods, cycle(_MARKERS), strict=False):
        yield name, marker, palette.CERTIFIED if name in certified else palette.OBSERVED


def known_names(names: Collection[str], methods: Collection[str]) -> frozenset[str]:
    """`names` as a set, if all of them are methods."""
    given = frozenset([names] if isinstance(names, str) else names)
    unknown = sorted(given - set(methods))
    if unknown:
        listed = ", ".join(map(repr, methods))
        raise InvalidValueError(
            f"{unknown[0]!r} is not among the methods: expected one of {listed}."
        )
    return given


def known_facts(delta: float | None, count: int | None, counted: str) -> str:
    """What is known of `delta` and of the number of test data, to go on in a title."""
    told = "" if delta is None else f", delta = {delta:g}"
    return told + ("" if count is None else f", {count:,} {counted}")


def _draw_point(
    ax: Axes, name: str, point: tuple[float, float], *, color: str, marker: str, size: float = 9
) -> None:
    # Hollow, so that points in the same place are all seen.
    ax.plot(
        *([value] for value in point),
        linestyle="none",
        marker=marker,
        markersize=size,
        markerfacecolor="none",
        markeredgecolor=color,
        markeredgewidth=1.8,
        label=name,
        gid=name,
        zorder=3,
    )


def _cost_and_error(value: tuple[float, float], name: str) -> tuple[float, float]:
    try:
        cost, error = value
    except (TypeError, ValueError):
        raise InvalidValueError(f"{name!r} has {value!r}: expected a cost and an error.") from None
    cost = real_number(cost, f"cost of {name}", "a cost")
    error = real_number(error, f"error of {name}", "an error rate")
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


def _safety_and_success(value: Any, name: str) -> tuple[float, float]:
    rates = probabilities(value, f"rates of {name}")
    if rates.shape != (2,):
        raise InvalidValueError(
            f"{name!r} has {value!r}: expected a safety rate and a success rate."
        )
    return float(rates[0]), float(rates[1])


def _ends(value: Any, name: str) -> Floats:
    ends = probabilities(value, f"intervals of {name}")
    if ends.shape != (2, 2):
        raise InvalidValueError(
            f"intervals of {name!r} have shape {ends.shape}: expected (2, 2), the ends for safety "
            "and those for success."
        )
    return ends


def _safe_and_successful(value: Any, rollouts: int, name: str) -> tuple[int, int]:
    """How many rollouts were safe and how many successful."""
    counts = whole_numbers(value, f"counts of {name}")
    if counts.shape != (2,) or counts.sum() > rollouts:
        raise InvalidValueError(
            f"counts of {name!r} are {value!r}: expected how many of {rollouts} rollouts were "
            "unsafe and how many successful, none both."
        )
    return rollouts - int(counts[0]), int(counts[1])

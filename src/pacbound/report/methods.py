"""What methods buy at one `xi`: error against cost, success against safety; and what they achieved
against what was desired as `xi` varies.

Each way to choose a threshold is a method: blue where `xi` is certified, vermilion where there is
no guarantee. What is drawn is what test data showed, and is descriptive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.figure import (
    Axis,
    Boxes,
    Column,
    Dots,
    Figure,
    Flats,
    Floats,
    Level,
    Line,
    Look,
    Mark,
    Panel,
    Upright,
)
from pacbound.report.display import Display
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

Masks = dict[str, NDArray[np.bool_]]
ByMethod = dict[str, Floats]

UNIT: Final = (0.0, 1.0)
CAPTION: Final = "Points are descriptive; blue: xi is certified; vermilion: no guarantee"
_APART: Final = 0.007
"""How far apart the error bars of two methods stand at the same place, as a share of the axis."""


class ErrorCostDisplay(Display):
    """The error of cascades against their cost, and the error that was asked for.

    Each method is a marker: blue if its threshold is certified, vermilion if it has no guarantee.
    Costs are shares of the slow model's. The dotted line is the desired error, that of the slow
    model plus `xi`; a method above it has lost more. The points are what test rows showed, and are
    descriptive: a certificate holds `xi` for the population, so bad luck in the test rows may put
    its point above the line.

    The axes end a little beyond the points, so a trade-off curve is shown where the points are.
    `plot` sets `axes_`, `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

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
        super().__init__(self._figure())

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

    def _figure(self) -> Figure:
        marks: list[Mark] = []
        if self.trade_off is not None:
            marks.append(Line(*self.trade_off, "unknown", "all thresholds"))
        marks.append(Level(self.desired_error, "ideal", "desired error: slow + xi"))
        marks.append(Dots(1.0, self.slow_error, "ideal", "slow model alone"))
        marks += _method_dots(self.points, self.certified)
        costs, errors = np.transpose([(1.0, self.slow_error), *self.points.values()])
        heights = [*errors, self.desired_error]
        facts = known_facts(self.delta, self.rows, "test rows")
        return Figure(
            f"Error against cost: xi = {self.xi:g}{facts}",
            CAPTION,
            Axis.around("Cost (share of the slow model's)", costs, room=0.08, percent=True),
            [Panel(Axis.around("Error (share wrong)", heights, room=0.12, percent=True), marks)],
            _point_columns(self.points, "Cost", "Error"),
        )


class SuccessSafetyDisplay(Display):
    """The success rate of shields against their safety rate, and the safety that was asked for.

    Each method is a marker: blue if its threshold is certified, vermilion if it has no guarantee.
    The dotted line is the desired safety, 1 - `xi`; a method to the left of it was unsafe more
    often. Higher is more successful. The points are what test rollouts showed, and are descriptive:
    a certificate holds `xi` for the population, so bad luck in the test rollouts may put its point
    to the left.

    `plot` sets `axes_`, `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

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
        super().__init__(self._figure())

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

    def _figure(self) -> Figure:
        marks: list[Mark] = [Upright(self.desired_safety, "ideal", "desired safety: 1 - xi")]
        marks += _method_dots(self.points, self.certified)
        for name, ((least, most), (low, high)) in self.intervals.items():
            (across, up), look = self.points[name], _look(name, self.certified)
            marks.append(Flats(least, most, up, look))
            marks.append(Boxes(across, across, low, high, look))
        points = np.reshape([*self.points.values()], (-1, 2))
        bars = np.reshape([*self.intervals.values()], (-1, 2, 2))
        safety = [*points[:, 0], *bars[:, 0].flat, self.desired_safety, 1.0]
        success = [*points[:, 1], *bars[:, 1].flat]
        facts = known_facts(self.delta, self.rollouts, "test rollouts")
        labels = (
            "Safety rate (share of rollouts that stay safe)",
            "Success rate (share that reach the goal)",
        )
        return Figure(
            f"Success against safety: xi = {self.xi:g}{facts}",
            CAPTION,
            Axis.around(labels[0], safety, within=(-1.0, 1.0), percent=True),
            [Panel(Axis.around(labels[1], success, percent=True), marks)],
            _point_columns(self.points, "Safety", "Success"),
        )


class DesiredAchievedDisplay(Display):
    """The increase in error that cascades achieved, against the `xi` that each was asked to keep.

    On or below the diagonal a method has lost no more than was allowed. Lines are blue where
    thresholds are certified and vermilion where they have no guarantee. What was achieved is
    descriptive: a certificate holds `xi` for the population, for each `xi` alone and if it was
    chosen beforehand, so bad luck in the test rows may put a point above the diagonal.

    `plot` sets `axes_`, `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

    Parameters
    ----------
    xi
        The increases allowed, each 0 <= xi < 1.
    achieved
        The increases seen by each method, by its name: one for each `xi`, NaN where there is none.
    intervals
        Error bars of some or all methods: (number of `xi`, 2) lower and upper ends.
    certified
        The names of the methods whose thresholds are certified.
    rows, delta
        The number of test rows, and the certificates' failure probability, for the title.

    Raises
    ------
    InvalidValueError
        If an `xi` is not in [0, 1); if a method does not have a number, or two ends, for each `xi`;
        if a name in `certified` or `intervals` is not among the methods.

    Examples
    --------
    >>> seen = {"certified": [0.006, 0.014], "by hand": [0.02, 0.021]}
    >>> display = DesiredAchievedDisplay([0.01, 0.02], seen, certified=["certified"])
    >>> display.plot().figure_.savefig("desired-achieved.png")
    >>> display.exceeds["by hand"].tolist()
    [True, True]
    """

    def __init__(
        self,
        xi: Any,
        achieved: Mapping[str, Any],
        *,
        intervals: Mapping[str, Any] | None = None,
        certified: Collection[str] = (),
        rows: int | None = None,
        delta: float | None = None,
    ) -> None:
        self.xi = _allowed(xi)
        self.achieved, self.intervals = _by_method(achieved, intervals, len(self.xi))
        self.certified = known_names(certified, self.achieved)
        self.rows = rows
        self.delta = delta
        facts = known_facts(self.delta, self.rows, "test rows")
        figure = _achieved_by_desired(
            self.xi,
            self.achieved,
            self.intervals,
            self.certified,
            title=f"Desired and achieved error increase{facts}",
            labels=(
                "Desired error increase xi (share of rows)",
                "Achieved error increase (share of rows)",
            ),
        )
        super().__init__(figure)

    @classmethod
    def from_counts(
        cls,
        xi: Any,
        counts: Mapping[str, Any],
        *,
        rows: int,
        bar_delta: float | None = 0.05,
        certified: Collection[str] = (),
        delta: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the increases (b - c) / `rows` of counts on test rows, with error bars.

        The thresholds must come from other rows. Each error bar is then an interval for the
        method's true increase that fails with probability at most `bar_delta`: the bounds on b less
        those on c, each at half of it.

        Parameters
        ----------
        xi
            The increases allowed.
        counts
            (number of `xi`, 2) counts of each method, by its name: b rows that only the slow model
            gets right, c rows that only the cascade gets right.
        rows
            The number of test rows.
        bar_delta
            The failure probability of each error bar; None draws no bars.
        certified, delta
            As for the class.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        DesiredAchievedDisplay
            The display, drawn.

        Raises
        ------
        InvalidValueError
            If counts are negative, b + c is more than `rows`, or there is not a pair for each `xi`;
            if `bar_delta` is not between 0 and 1.

        Examples
        --------
        >>> counts = {"certified": [(90, 30), (180, 40)]}
        >>> display = DesiredAchievedDisplay.from_counts([0.01, 0.02], counts, rows=10_000)
        >>> display.achieved["certified"].tolist(), display.intervals["certified"].round(4).tolist()
        ([0.006, 0.014], [[0.0025, 0.0094], [0.0095, 0.0185]])
        """
        total = whole_number(rows, "rows", least=1)
        pairs = {name: _pairs(values, total, name) for name, values in counts.items()}
        achieved = {name: (pair[:, 0] - pair[:, 1]) / total for name, pair in pairs.items()}
        bars = None
        if bar_delta is not None:
            level = failure_probability(bar_delta, "bar_delta") / 2
            bars = {name: _difference(pair, total, level) for name, pair in pairs.items()}
        return cls(xi, achieved, intervals=bars, certified=certified, rows=total, delta=delta).plot(
            ax
        )

    @property
    def exceeds(self) -> Masks:
        """Where each method lost more on the test rows than it was allowed; descriptive."""
        return {name: values > self.xi for name, values in self.achieved.items()}


class DesiredSafetyDisplay(Display):
    """The safety rate that shields achieved in test rollouts, against the desired one, 1 - `xi`.

    On or above the diagonal a method was as safe as it should be. Lines are blue where thresholds
    are certified and vermilion where they have no guarantee. What was achieved is descriptive: a
    certificate holds `xi` for the population, for each `xi` alone and if it was chosen beforehand,
    so bad luck in the test rollouts may put a point below the diagonal.

    `plot` sets `axes_`, `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

    Parameters
    ----------
    xi
        The shares of unsafe rollouts that were allowed, each 0 <= xi < 1.
    achieved
        The safety rates of each method, by its name: one for each `xi`, NaN where there is none.
    intervals
        Error bars of some or all methods: (number of `xi`, 2) lower and upper ends.
    certified
        The names of the methods whose thresholds are certified.
    rollouts, delta
        The number of test rollouts, and the certificates' failure probability, for the title.

    Raises
    ------
    InvalidValueError
        If an `xi` is not in [0, 1); if a method does not have a rate, or two ends, from 0 to 1 for
        each `xi`; if a name in `certified` or `intervals` is not among the methods.

    Examples
    --------
    >>> seen = {"certified": [0.98, 0.93], "by hand": [0.95, 0.95]}
    >>> display = DesiredSafetyDisplay([0.03, 0.1], seen, certified=["certified"])
    >>> display.plot().figure_.savefig("desired-safety.png")
    >>> display.falls_short["by hand"].tolist()
    [True, False]
    """

    def __init__(
        self,
        xi: Any,
        achieved: Mapping[str, Any],
        *,
        intervals: Mapping[str, Any] | None = None,
        certified: Collection[str] = (),
        rollouts: int | None = None,
        delta: float | None = None,
    ) -> None:
        self.xi = _allowed(xi)
        self.achieved, self.intervals = _by_method(achieved, intervals, len(self.xi))
        _require_rates(self.achieved)
        _require_rates(self.intervals)
        self.certified = known_names(certified, self.achieved)
        self.rollouts = rollouts
        self.delta = delta
        facts = known_facts(self.delta, self.rollouts, "test rollouts")
        figure = _achieved_by_desired(
            self.desired,
            self.achieved,
            self.intervals,
            self.certified,
            title=f"Desired and achieved safety{facts}",
            labels=(
                "Desired safety rate, 1 - xi",
                "Achieved safety rate (share of rollouts that stay safe)",
            ),
        )
        super().__init__(figure)

    @classmethod
    def from_counts(
        cls,
        xi: Any,
        unsafe: Mapping[str, Any],
        *,
        rollouts: int,
        bar_delta: float | None = 0.05,
        certified: Collection[str] = (),
        delta: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw safety rates from counts of unsafe test rollouts, with error bars.

        The thresholds must come from other rollouts. Each error bar is then an exact interval for
        the method's true safety rate that fails with probability at most `bar_delta`.

        Parameters
        ----------
        xi
            The shares of unsafe rollouts that were allowed.
        unsafe
            How many test rollouts were unsafe at each `xi`, for each method by its name.
        rollouts
            The number of test rollouts.
        bar_delta
            The failure probability of each error bar; None draws no bars.
        certified, delta
            As for the class.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        DesiredSafetyDisplay
            The display, drawn.

        Raises
        ------
        InvalidValueError
            If a count is negative or more than `rollouts`, or there is not one for each `xi`; if
            `bar_delta` is not between 0 and 1.

        Examples
        --------
        >>> unsafe = {"certified": [20, 70]}
        >>> display = DesiredSafetyDisplay.from_counts([0.03, 0.1], unsafe, rollouts=1000)
        >>> display.achieved["certified"].tolist(), display.intervals["certified"].round(3).tolist()
        ([0.98, 0.93], [[0.969, 0.988], [0.912, 0.945]])
        """
        total = whole_number(rollouts, "rollouts", least=1)
        safe = {name: total - _at_most(values, total, name) for name, values in unsafe.items()}
        achieved = {name: values / total for name, values in safe.items()}
        bars = None
        if bar_delta is not None:
            level = failure_probability(bar_delta, "bar_delta")
            bars = {
                name: np.stack(binomial_interval(values, total, delta=level), axis=1)
                for name, values in safe.items()
            }
        return cls(
            xi, achieved, intervals=bars, certified=certified, rollouts=total, delta=delta
        ).plot(ax)

    @property
    def desired(self) -> Floats:
        """One minus each `xi`."""
        return np.asarray(1.0 - self.xi)

    @property
    def falls_short(self) -> Masks:
        """Where each method was less safe in the test rollouts than it should be; descriptive."""
        return {name: values < self.desired for name, values in self.achieved.items()}


def _achieved_by_desired(
    desired: Floats,
    achieved: ByMethod,
    intervals: ByMethod,
    certified: frozenset[str],
    *,
    title: str,
    labels: tuple[str, str],
) -> Figure:
    """A line with error bars for what each method achieved, and the diagonal."""
    x = Axis.around(labels[0], desired, room=0.08, within=UNIT, percent=True)
    marks: list[Mark] = [Line([x.low, x.high], [x.low, x.high], "ideal", "achieved = desired")]
    order = np.argsort(desired, kind="stable")
    middle = (len(intervals) - 1) / 2
    for series, (name, values) in enumerate(achieved.items(), start=1):
        look, at = _look(name, certified), desired[order]
        marks.append(Line(at, values[order], look, series=series))
        marks.append(Dots(at, values[order], look, name, series=series))
        if name in intervals:
            aside = _APART * (x.high - x.low) * (list(intervals).index(name) - middle)
            low, high = intervals[name].T
            marks.append(Boxes(desired + aside, desired + aside, low, high, look))
    flat = [np.ravel(part) for part in (*achieved.values(), *intervals.values())]
    y = Axis.around(labels[1], np.concatenate([[x.low, x.high], *flat]), percent=True)
    columns = [Column("Desired", desired), *(Column(*method) for method in achieved.items())]
    return Figure(title, CAPTION, x, [Panel(y, marks)], columns)


def _method_dots(
    points: Mapping[str, tuple[float, float]], certified: Collection[str]
) -> Iterator[Mark]:
    for series, (name, point) in enumerate(points.items(), start=1):
        yield Dots(*point, _look(name, certified), name, series=series)


def _look(name: str, certified: Collection[str]) -> Look:
    return "certified" if name in certified else "seen"


def _point_columns(points: Mapping[str, tuple[float, float]], across: str, up: str) -> list[Column]:
    values = np.reshape([*points.values()], (-1, 2))
    return [
        Column("Method", list(points), "text"),
        Column(across, values[:, 0]),
        Column(up, values[:, 1]),
    ]


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


def _allowed(xi: Any) -> Floats:
    return np.array([tolerated_rate(value) for value in np.ravel(xi).tolist()])


def _by_method(
    achieved: Mapping[str, Any], intervals: Mapping[str, Any] | None, count: int
) -> tuple[ByMethod, ByMethod]:
    """The numbers of each method, with one row for each of `count` values of xi."""
    bars = intervals or {}
    known_names(tuple(bars), achieved)
    return (
        {name: _shaped(values, (count,), name) for name, values in achieved.items()},
        {name: _shaped(ends, (count, 2), name) for name, ends in bars.items()},
    )


def _shaped(values: Any, shape: tuple[int, ...], name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InvalidValueError(
            f"{name!r} has numbers of shape {array.shape}: expected {shape}, a row for each xi."
        )
    return array


def _require_rates(by_method: ByMethod) -> None:
    for name, values in by_method.items():
        outside = values[(values < 0) | (values > 1)]
        if outside.size:
            raise InvalidValueError(
                f"{name!r} holds {outside[0]:g}: expected safety rates from 0 to 1."
            )


def _pairs(values: Any, rows: int, name: str) -> NDArray[np.int64]:
    pairs = whole_numbers(values, f"counts of {name}")
    if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs.sum(axis=1) > rows).any():
        raise InvalidValueError(
            f"counts of {name!r}: expected pairs (b, c), one for each xi, with b + c at most "
            f"{rows} rows."
        )
    return pairs


def _difference(pairs: NDArray[np.int64], rows: int, level: float) -> Floats:
    """An interval for P(only slow right) - P(only fast right), each bounded at `level`."""
    lower, upper = binomial_interval(pairs, rows, delta=level)
    return np.stack([lower[:, 0] - upper[:, 1], upper[:, 0] - lower[:, 1]], axis=1)


def _at_most(values: Any, rollouts: int, name: str) -> NDArray[np.int64]:
    counts = whole_numbers(values, f"unsafe of {name}")
    if counts.ndim != 1 or (counts > rollouts).any():
        raise InvalidValueError(
            f"unsafe of {name!r}: expected a number from 0 to {rollouts} rollouts for each xi."
        )
    return counts

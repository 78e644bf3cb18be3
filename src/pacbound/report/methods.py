"""What methods buy at one `xi`: error against cost, success against safety; and what they achieved
against what was desired as `xi` varies.

Each way to choose a threshold is a method: blue where `xi` is certified, vermilion where there is
no guarantee. What is drawn is what test data showed, and is descriptive: a certificate holds `xi`
for the population, so bad luck in the test data may put its point on the wrong side of a line.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack

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
from pacbound.report.with_matplotlib import Display
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

ByMethod = dict[str, Floats]

UNIT: Final = (0.0, 1.0)
CAPTION: Final = "Points are descriptive; blue: xi is certified; vermilion: no guarantee"
# How far apart the error bars of two methods stand at the same place, as a share of the axis.
_APART: Final = 0.007


class MethodOptions(TypedDict, total=False):
    """What displays of methods take beside their numbers.

    Attributes
    ----------
    certified
        The names of the methods whose thresholds are certified.
    delta
        The failure probability of these certificates, for the title.
    ax
        The axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> seen = {"certified": [0.006, 0.014], "by hand": [0.02, 0.021]}
    >>> told: MethodOptions = {"certified": ["certified"], "delta": 0.01}
    >>> DesiredAchievedDisplay.from_rates([0.01, 0.02], seen, **told).figure.title
    'Desired and achieved error increase, delta = 0.01'
    """

    certified: Collection[str]
    delta: float | None
    ax: Axes | None


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
    figure
        What is shown; `from_costs` makes it.

    Examples
    --------
    >>> seen = {"certified": (0.4, 0.08), "by hand": (0.3, 0.1)}
    >>> display = ErrorCostDisplay.from_costs(
    ...     seen, slow=(1.0, 0.07), xi=0.02, certified=["certified"]
    ... )
    >>> display.figure_.savefig("error-cost.png")
    """

    @classmethod
    def from_costs(
        cls,
        points: Mapping[str, tuple[float, float]],
        *,
        slow: tuple[float, float],
        xi: float,
        trade_off: tuple[Any, Any] | None = None,
        rows: int | None = None,
        **options: Unpack[MethodOptions],
    ) -> Self:
        """Draw methods with costs in any unit: operations, seconds, money. Descriptive.

        Parameters
        ----------
        points
            The cost and the error of each method, by its name.
        slow
            The cost and the error of the slow model alone. All costs are divided by its cost.
        xi
            The increase in error that was allowed, 0 <= xi < 1.
        trade_off
            Costs and errors over all thresholds, as two columns, drawn as a curve.
        rows
            The number of test rows, for the title.
        **options
            `certified`, `delta` and `ax`, as `MethodOptions` describes them.

        Returns
        -------
        ErrorCostDisplay
            The display, drawn.

        Raises
        ------
        InvalidValueError
            If a cost is not above 0 or an error not a rate; if `xi` is not in [0, 1); if a
            certified name is not among the points; if the columns of `trade_off` differ in length.

        Examples
        --------
        >>> display = ErrorCostDisplay.from_costs(
        ...     {"certified": (150, 0.08)}, slow=(300, 0.07), xi=0.02, certified=["certified"]
        ... )
        >>> display.figure.table().rows
        [['slow model alone', '1.0000', '0.0700'], ['certified', '0.5000', '0.0800']]
        """
        unit, slow_error = _cost_and_error(slow, "slow")
        desired = slow_error + tolerated_rate(xi)
        found = {name: _cost_and_error(point, name) / (unit, 1) for name, point in points.items()}
        marks: list[Mark] = [] if trade_off is None else [_curve(trade_off, unit)]
        marks.append(Level(desired, "ideal", "desired error: slow + xi"))
        marks.append(Dots(1.0, slow_error, "ideal", "slow model alone"))
        marks += _method_dots(found, options)
        everyone = {"slow model alone": np.array([1.0, slow_error])} | found
        costs, errors = np.transpose([*everyone.values()])
        heights = [*errors, desired]
        figure = Figure(
            f"Error against cost: xi = {xi:g}{_facts(options, rows, 'test rows')}",
            CAPTION,
            Axis.around("Cost (share of the slow model's)", costs, room=0.08, percent=True),
            [Panel(Axis.around("Error (share wrong)", heights, room=0.12, percent=True), marks)],
            _point_columns(everyone, "Cost", "Error"),
        )
        return cls(figure).plot(options.get("ax"))


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
    figure
        What is shown; the `from_...` methods make it.

    Examples
    --------
    >>> seen = {"certified": (0.93, 0.4), "by hand": (0.8, 0.5)}
    >>> display = SuccessSafetyDisplay.from_rates(seen, xi=0.1, certified=["certified"])
    >>> display.figure_.savefig("success-safety.png")
    """

    @classmethod
    def from_rates(
        cls,
        points: Mapping[str, tuple[float, float]],
        *,
        xi: float,
        intervals: Mapping[str, Any] | None = None,
        rollouts: int | None = None,
        **options: Unpack[MethodOptions],
    ) -> Self:
        """Draw methods by their rates.

        Parameters
        ----------
        points
            The safety rate and the success rate of each method, by its name.
        xi
            The share of the rollouts that was allowed to be unsafe, 0 <= xi < 1.
        intervals
            Error bars of some or all methods: ((lower, upper) of safety, (lower, upper) of
            success).
        rollouts
            The number of test rollouts, for the title.
        **options
            `certified`, `delta` and `ax`, as `MethodOptions` describes them.

        Returns
        -------
        SuccessSafetyDisplay
            The display, drawn.

        Raises
        ------
        InvalidValueError
            If a number is not a rate; if `xi` is not in [0, 1); if a name in `certified` or
            `intervals` is not among the points.

        Examples
        --------
        >>> display = SuccessSafetyDisplay.from_rates({"by hand": (0.8, 0.5)}, xi=0.1)
        >>> display.figure.legend[0].name, display.figure.legend[0].x
        ('desired safety: 1 - xi', 0.9)
        """
        desired = 1.0 - tolerated_rate(xi)
        expected = "a safety rate and a success rate, from 0 to 1"
        found = {name: _rates(point, (2,), name, expected) for name, point in points.items()}
        known_names(intervals or (), found)
        expected = "(2, 2) rates, the ends for safety and those for success"
        bars = {name: _rates(ends, (2, 2), name, expected) for name, ends in _given(intervals)}
        marks: list[Mark] = [Upright(desired, "ideal", "desired safety: 1 - xi")]
        marks += _method_dots(found, options)
        for name, ((least, most), (low, high)) in bars.items():
            (across, up), look = found[name], _look(name, options)
            marks.append(Flats(least, most, up, look))
            marks.append(Boxes(across, across, low, high, look))
        ends = np.concatenate([*(np.reshape(point, (2, 1)) for point in found.values()),
                               *bars.values(), [[desired], [np.nan]]], axis=1)  # fmt: skip
        x = Axis.around(
            "Safety rate (share of rollouts that stay safe)",
            [*ends[0], 1.0],
            within=(-1.0, 1.0),
            percent=True,
        )
        y = Axis.around("Success rate (share that reach the goal)", ends[1], percent=True)
        figure = Figure(
            f"Success against safety: xi = {xi:g}{_facts(options, rollouts, 'test rollouts')}",
            CAPTION,
            x,
            [Panel(y, marks)],
            _point_columns(found, "Safety", "Success"),
        )
        return cls(figure).plot(options.get("ax"))

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, tuple[int, int]],
        *,
        rollouts: int,
        xi: float,
        bar_delta: float | None = 0.05,
        **options: Unpack[MethodOptions],
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
        xi
            The share of the rollouts that was allowed to be unsafe, 0 <= xi < 1.
        bar_delta
            The failure probability of each error bar; None draws no bars.
        **options
            `certified`, `delta` and `ax`, as `MethodOptions` describes them.

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
        >>> display.figure.table().rows
        [['certified', '0.9300', '0.4000']]
        """
        total = whole_number(rollouts, "rollouts", least=1)
        expected = f"how many of {total} rollouts were unsafe and how many successful, none both"
        good = {}
        for name, values in counts.items():
            unsafe, successes = _counts(values, (2,), total, name, expected)
            good[name] = np.array([total - unsafe, successes])
        rates: Any = {name: pair / total for name, pair in good.items()}
        bars = _bars(good, total, bar_delta)
        return cls.from_rates(rates, xi=xi, intervals=bars, rollouts=total, **options)


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
    figure
        What is shown; the `from_...` methods make it.

    Examples
    --------
    >>> seen = {"certified": [0.006, 0.014], "by hand": [0.02, 0.021]}
    >>> display = DesiredAchievedDisplay.from_rates([0.01, 0.02], seen, certified=["certified"])
    >>> display.figure_.savefig("desired-achieved.png")
    """

    @classmethod
    def from_rates(
        cls,
        xi: Any,
        achieved: Mapping[str, Any],
        *,
        intervals: Mapping[str, Any] | None = None,
        rows: int | None = None,
        **options: Unpack[MethodOptions],
    ) -> Self:
        """Draw the increases that were seen.

        Parameters
        ----------
        xi
            The increases allowed, each 0 <= xi < 1.
        achieved
            The increases seen by each method, by its name: one for each `xi`, NaN where there is
            none.
        intervals
            Error bars of some or all methods: (number of `xi`, 2) lower and upper ends.
        rows
            The number of test rows, for the title.
        **options
            `certified`, `delta` and `ax`, as `MethodOptions` describes them.

        Returns
        -------
        DesiredAchievedDisplay
            The display, drawn.

        Raises
        ------
        InvalidValueError
            If an `xi` is not in [0, 1); if a method does not have a number, or two ends, for each
            `xi`; if a name in `certified` or `intervals` is not among the methods.

        Examples
        --------
        >>> seen = {"certified": [0.006, 0.014]}
        >>> DesiredAchievedDisplay.from_rates([0.01, 0.02], seen).figure.table().rows
        [['0.0100', '0.0060'], ['0.0200', '0.0140']]
        """
        figure = _achieved_by_desired(
            _allowed(xi),
            (achieved, intervals),
            f"Desired and achieved error increase{_facts(options, rows, 'test rows')}",
            "Desired error increase xi (share of rows)",
            "Achieved error increase (share of rows)",
            options,
        )
        return cls(figure).plot(options.get("ax"))

    @classmethod
    def from_counts(
        cls,
        xi: Any,
        counts: Mapping[str, Any],
        *,
        rows: int,
        bar_delta: float | None = 0.05,
        **options: Unpack[MethodOptions],
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
        **options
            `certified`, `delta` and `ax`, as `MethodOptions` describes them.

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
        >>> display.figure.table().rows
        [['0.0100', '0.0060'], ['0.0200', '0.0140']]
        """
        total = whole_number(rows, "rows", least=1)
        shape = np.size(xi), 2
        expected = f"pairs (b, c), one for each xi, with b + c at most {total} rows"
        pairs = {name: _counts(b_c, shape, total, name, expected) for name, b_c in counts.items()}
        achieved = {name: (pair[:, 0] - pair[:, 1]) / total for name, pair in pairs.items()}
        halves = _bars(pairs, total, bar_delta, parts=2)
        bars = {
            name: np.stack([ends[:, 0, 0] - ends[:, 1, 1], ends[:, 0, 1] - ends[:, 1, 0]], axis=1)
            for name, ends in halves.items()
        }
        return cls.from_rates(xi, achieved, intervals=bars, rows=total, **options)


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
    figure
        What is shown; the `from_...` methods make it.

    Examples
    --------
    >>> seen = {"certified": [0.98, 0.93], "by hand": [0.95, 0.95]}
    >>> display = DesiredSafetyDisplay.from_rates([0.03, 0.1], seen, certified=["certified"])
    >>> display.figure_.savefig("desired-safety.png")
    """

    @classmethod
    def from_rates(
        cls,
        xi: Any,
        achieved: Mapping[str, Any],
        *,
        intervals: Mapping[str, Any] | None = None,
        rollouts: int | None = None,
        **options: Unpack[MethodOptions],
    ) -> Self:
        """Draw the safety rates that were seen.

        Parameters
        ----------
        xi
            The shares of unsafe rollouts that were allowed, each 0 <= xi < 1.
        achieved
            The safety rates of each method, by its name: one for each `xi`, NaN where there is
            none.
        intervals
            Error bars of some or all methods: (number of `xi`, 2) lower and upper ends.
        rollouts
            The number of test rollouts, for the title.
        **options
            `certified`, `delta` and `ax`, as `MethodOptions` describes them.

        Returns
        -------
        DesiredSafetyDisplay
            The display, drawn.

        Raises
        ------
        InvalidValueError
            If an `xi` is not in [0, 1); if a method does not have a rate, or two ends, from 0 to 1
            for each `xi`; if a name in `certified` or `intervals` is not among the methods.

        Examples
        --------
        >>> seen = {"certified": [0.98, 0.93]}
        >>> DesiredSafetyDisplay.from_rates([0.03, 0.1], seen).figure.table().rows
        [['0.9700', '0.9800'], ['0.9000', '0.9300']]
        """
        for name, values in (*achieved.items(), *_given(intervals)):
            given = np.ravel(np.asarray(values, dtype=np.float64))
            outside = given[(given < 0) | (given > 1)]
            if outside.size:
                raise InvalidValueError(
                    f"{name!r} holds {outside[0]:g}: expected safety rates from 0 to 1."
                )
        figure = _achieved_by_desired(
            1.0 - _allowed(xi),
            (achieved, intervals),
            f"Desired and achieved safety{_facts(options, rollouts, 'test rollouts')}",
            "Desired safety rate, 1 - xi",
            "Achieved safety rate (share of rollouts that stay safe)",
            options,
        )
        return cls(figure).plot(options.get("ax"))

    @classmethod
    def from_counts(
        cls,
        xi: Any,
        unsafe: Mapping[str, Any],
        *,
        rollouts: int,
        bar_delta: float | None = 0.05,
        **options: Unpack[MethodOptions],
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
        **options
            `certified`, `delta` and `ax`, as `MethodOptions` describes them.

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
        >>> display.figure.table().rows
        [['0.9700', '0.9800'], ['0.9000', '0.9300']]
        """
        total = whole_number(rollouts, "rollouts", least=1)
        expected = f"a number from 0 to {total} rollouts for each xi"
        safe = {}
        for name, values in unsafe.items():
            column = np.reshape(values, (-1, 1))
            lost = _counts(column, (np.size(xi), 1), total, name, expected)
            safe[name] = total - lost[:, 0]
        achieved = {name: count / total for name, count in safe.items()}
        bars = _bars(safe, total, bar_delta)
        return cls.from_rates(xi, achieved, intervals=bars, rollouts=total, **options)


def _achieved_by_desired(
    desired: Floats,
    seen: tuple[Mapping[str, Any], Mapping[str, Any] | None],
    title: str,
    across: str,
    up: str,
    options: MethodOptions,
) -> Figure:
    """A line with error bars for what each method achieved, and the diagonal."""
    count = desired.size
    achieved, intervals = (
        {name: _shaped(values, shape, name) for name, values in _given(part)}
        for part, shape in zip(seen, ((count,), (count, 2)), strict=True)
    )
    known_names(intervals, achieved)
    known_names(options.get("certified", ()), achieved)
    x = Axis.around(across, desired, room=0.08, within=UNIT, percent=True)
    marks: list[Mark] = [Line([x.low, x.high], [x.low, x.high], "ideal", "achieved = desired")]
    order = np.argsort(desired, kind="stable")
    middle = (len(intervals) - 1) / 2
    for series, (name, values) in enumerate(achieved.items(), start=1):
        look, at = _look(name, options), desired[order]
        marks.append(Line(at, values[order], look, series=series))
        marks.append(Dots(at, values[order], look, name, series=series))
        if name in intervals:
            aside = _APART * (x.high - x.low) * (list(intervals).index(name) - middle)
            low, high = intervals[name].T
            marks.append(Boxes(desired + aside, desired + aside, low, high, look))
    flat = [np.ravel(part) for part in (*achieved.values(), *intervals.values())]
    y = Axis.around(up, np.concatenate([[x.low, x.high], *flat]), percent=True)
    columns = [Column("Desired", desired), *(Column(*method) for method in achieved.items())]
    return Figure(title, CAPTION, x, [Panel(y, marks)], columns)


def _method_dots(points: ByMethod, options: MethodOptions) -> list[Mark]:
    known_names(options.get("certified", ()), points)
    return [
        Dots(point[0], point[1], _look(name, options), name, series)
        for series, (name, point) in enumerate(points.items(), start=1)
    ]


def _look(name: str, options: MethodOptions) -> Look:
    certified = options.get("certified", ())
    return (
        "certified"
        if name in ([certified] if isinstance(certified, str) else certified)
        else "seen"
    )


def _facts(options: MethodOptions, count: int | None, counted: str) -> str:
    """What is known of `delta` and of the number of test data, to go on in a title."""
    delta = options.get("delta")
    told = "" if delta is None else f", delta = {delta:g}"
    return told + ("" if count is None else f", {count:,} {counted}")


def _point_columns(points: ByMethod, across: str, up: str) -> list[Column]:
    values = np.reshape([*points.values()], (-1, 2))
    names = Column("Method", list(points), "text")
    return [names, Column(across, values[:, 0]), Column(up, values[:, 1])]


def known_names(names: Collection[str], methods: Collection[str]) -> None:
    """Raise if one of the names is not that of a method."""
    unknown = sorted({*([names] if isinstance(names, str) else names)} - set(methods))
    if unknown:
        listed = ", ".join(map(repr, methods))
        raise InvalidValueError(
            f"{unknown[0]!r} is not among the methods: expected one of {listed}."
        )


def _given(by_method: Mapping[str, Any] | None) -> Any:
    return () if by_method is None else by_method.items()


def _allowed(xi: Any) -> Floats:
    return np.array([tolerated_rate(value) for value in np.ravel(xi).tolist()])


def _cost_and_error(value: tuple[float, float], name: str) -> Floats:
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
    return np.array([cost, error])


def _curve(trade_off: tuple[Any, Any], unit: float) -> Line:
    cost, error = (np.asarray(column, dtype=np.float64) for column in trade_off)
    if cost.shape != error.shape or cost.ndim != 1:
        raise InvalidValueError(
            f"trade_off has columns of shape {cost.shape} and {error.shape}: expected a cost for "
            "each error."
        )
    return Line(cost / unit, error, "unknown", "all thresholds")


def _shaped(values: Any, shape: tuple[int, ...], name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InvalidValueError(
            f"{name!r} has numbers of shape {array.shape}: expected {shape}, a row for each xi."
        )
    return array


def _rates(values: Any, shape: tuple[int, ...], name: str, expected: str) -> Floats:
    rates = probabilities(values, f"rates of {name}")
    if rates.shape != shape:
        raise InvalidValueError(f"{name!r} has {values!r}: expected {expected}.")
    return rates


def _counts(
    values: Any, shape: tuple[int, ...], total: int, name: str, expected: str
) -> NDArray[np.int64]:
    """Counts of this shape, of which those in the last dimension are together at most `total`."""
    counts = whole_numbers(values, f"counts of {name}")
    if counts.shape != shape or (counts.sum(axis=-1) > total).any():
        raise InvalidValueError(f"counts of {name!r} are {values!r}: expected {expected}.")
    return counts


def _bars(
    counts: Mapping[str, NDArray[np.int64]], total: int, delta: float | None, *, parts: int = 1
) -> ByMethod:
    """The ends of an exact interval for each count of `total`; none if `delta` is None."""
    if delta is None:
        return {}
    level = failure_probability(delta, "bar_delta") / parts
    return {
        name: np.stack(binomial_interval(count, total, delta=level), axis=-1)
        for name, count in counts.items()
    }

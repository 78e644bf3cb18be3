"""Desired against achieved as `xi` varies: the error increase of cascades, the safety of shields.

Each method is a line through what it achieved on test data at each `xi`, with error bars. On the
diagonal a method achieved exactly what was asked of it. What was achieved is descriptive.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.report import palette
from pacbound.report.display import Display, light_grid, limits, set_heading
from pacbound.report.trade_offs import CAPTION, known_facts, known_names, styles_of
from pacbound.stats.arguments import (
    failure_probability,
    tolerated_rate,
    whole_number,
    whole_numbers,
)
from pacbound.stats.binomial import binomial_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Masks = dict[str, NDArray[np.bool_]]
ByMethod = dict[str, Floats]

_LINES = ("-", "--", "-.", (0, (6, 2, 1, 2, 1, 2)))
_APART = 3.0
"""Points between the error bars of two methods at the same place."""


class DesiredAchievedDisplay(Display):
    """The increase in error that cascades achieved, against the `xi` that each was asked to keep.

    On or below the diagonal a method has lost no more than was allowed. Lines are blue where
    thresholds are certified and vermilion where they have no guarantee. What was achieved is
    descriptive: a certificate holds `xi` for the population, for each `xi` alone and if it was
    chosen beforehand, so bad luck in the test rows may put a point above the diagonal.

    `plot` sets `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`. In a
    notebook the display shows itself.

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

    def _draw(self, ax: Axes) -> None:
        _draw_achieved(ax, self.xi, self.achieved, self.intervals, self.certified)
        ax.set(
            xlabel="Desired error increase xi (share of rows)",
            ylabel="Achieved error increase (share of rows)",
        )
        facts = known_facts(self.delta, self.rows, "test rows")
        set_heading(ax, f"Desired and achieved error increase{facts}\n{CAPTION}")


class DesiredSafetyDisplay(Display):
    """The safety rate that shields achieved in test rollouts, against the desired one, 1 - `xi`.

    On or above the diagonal a method was as safe as it should be. Lines are blue where thresholds
    are certified and vermilion where they have no guarantee. What was achieved is descriptive: a
    certificate holds `xi` for the population, for each `xi` alone and if it was chosen beforehand,
    so bad luck in the test rollouts may put a point below the diagonal.

    `plot` sets `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`. In a
    notebook the display shows itself.

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

    def _draw(self, ax: Axes) -> None:
        _draw_achieved(ax, self.desired, self.achieved, self.intervals, self.certified)
        ax.set(
            xlabel="Desired safety rate, 1 - xi",
            ylabel="Achieved safety rate (share of rollouts that stay safe)",
        )
        facts = known_facts(self.delta, self.rollouts, "test rollouts")
        set_heading(ax, f"Desired and achieved safety{facts}\n{CAPTION}")


def _draw_achieved(
    ax: Axes, desired: Floats, achieved: ByMethod, intervals: ByMethod, certified: frozenset[str]
) -> None:
    """Draw what each method `achieved` at each `desired` place, and the diagonal."""
    light_grid(ax)
    ends = np.clip(limits(desired), 0.0, 1.0)
    style: dict[str, Any] = {"color": palette.IDEAL, "linestyle": ":", "gid": "desired"}
    ax.plot(ends, ends, label="achieved = desired", **style)
    order = np.argsort(desired, kind="stable")
    places = {name: place for place, name in enumerate(intervals)}
    for (name, marker, color), line in zip(
        styles_of(achieved, certified), cycle(_LINES), strict=False
    ):
        ax.plot(
            desired[order],
            achieved[name][order],
            color=color,
            linestyle=line,
            linewidth=1,
            marker=marker,
            markersize=7,
            markerfacecolor="none",
            markeredgewidth=1.6,
            label=name,
            gid=name,
            zorder=3,
            clip_on=False,
        )
        if name in intervals:
            aside = _APART * (places[name] - (len(intervals) - 1) / 2)
            style = {"color": color, "linewidth": 1.3, "gid": f"{name}: bars"}
            _draw_bars(ax, desired, intervals[name], aside=aside, **style)
    ax.set_xlim(*ends)
    ax.set_ylim(*limits([*ends, *_flat(achieved), *_flat(intervals)], room=0.05))


def _draw_bars(ax: Axes, desired: Floats, ends: Floats, *, aside: float, **style: Any) -> None:
    """Draw intervals, moved `aside` by some points lest those of other methods cover them."""
    from matplotlib.transforms import offset_copy  # noqa: PLC0415 - matplotlib is optional

    moved = offset_copy(ax.transData, ax.figure.figure, x=aside, units="points")
    ax.vlines(desired, *ends.T, transform=moved, **style)


def _flat(by_method: ByMethod) -> list[float]:
    return [float(value) for values in by_method.values() for value in np.ravel(values)]


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

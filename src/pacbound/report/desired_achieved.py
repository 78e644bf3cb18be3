"""Desired against achieved: the error increase that was allowed, and the one that test rows saw, as
xi varies.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.report.achieved_lines import draw_achieved
from pacbound.report.canvas import axes_for, headed, light_grid, png
from pacbound.report.error_cost import CAPTION, facts, known_names
from pacbound.stats.arguments import (
    failure_probability,
    tolerated_rate,
    whole_number,
    whole_numbers,
)
from pacbound.stats.binomial import binomial_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


class DesiredAchievedDisplay:
    """The increase in error that methods achieved on test rows, against the `xi` that each was
    asked to keep.

    On or below the diagonal a method has lost no more than was allowed. Lines are blue where
    thresholds are certified and vermilion where they have no guarantee. What was achieved is
    descriptive: a certificate holds `xi` for the population, for each `xi` alone and if it was
    chosen beforehand, and luck in the test rows may put a point above the diagonal.

    `plot` sets `ax_` and `figure_`. Where no `ax` is given the figure is a new one that pyplot does
    not know: save it with `display.figure_.savefig(path)`; in a notebook the display shows itself.

    Parameters
    ----------
    xi
        The increases allowed.
    achieved
        The increases seen by each method, by its name: one for each `xi`, NaN where there is none.
    intervals
        Error bars of some or all methods: (number of `xi`, 2) lower and upper ends.
    certified
        The names of the methods whose thresholds are certified.
    rows, delta
        The number of test rows, and the certificates' failure probability, for the title.

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
        self.xi = np.array([tolerated_rate(value) for value in np.ravel(xi).tolist()])
        self.achieved = {
            name: _shaped(values, self.xi.shape, name) for name, values in achieved.items()
        }
        bars = intervals or {}
        known_names(tuple(bars), self.achieved)
        self.intervals = {
            name: _shaped(ends, (len(self.xi), 2), name) for name, ends in bars.items()
        }
        self.certified = known_names(certified, self.achieved)
        self.rows = rows
        self.delta = delta
        self.ax_: Axes
        self.figure_: Figure
        self._own_figure = False

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
        """Draw (b - c) / `rows`, from (number of `xi`, 2) counts: b rows that only the slow model
        gets right, c only the cascade.

        The thresholds must come from other rows. Each error bar is then an interval for the
        method's true increase that fails with probability at most `bar_delta`: the bounds on b less
        those on c, each at half of it; None draws no bars.

        Examples
        --------
        >>> pairs = {"certified": [(90, 30), (180, 40)]}
        >>> display = DesiredAchievedDisplay.from_counts([0.01, 0.02], pairs, rows=10_000)
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
    def exceeds(self) -> dict[str, NDArray[np.bool_]]:
        """Where each method lost more on the test rows than it was allowed; descriptive."""
        return {name: values > self.xi for name, values in self.achieved.items()}

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        self._own_figure = ax is None
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure.figure
        light_grid(self.ax_)
        ends = np.array([0.0, 1.06 * float(self.xi.max(initial=0.01))])
        draw_achieved(
            self.ax_, self.xi, self.achieved, self.intervals, certified=self.certified, ends=ends
        )
        self.ax_.set(
            xlabel="Desired error increase xi (share of rows)",
            ylabel="Achieved error increase (share of rows)",
        )
        headed(self.ax_, self._title())
        return self

    def _repr_png_(self) -> bytes | None:
        """The figure for notebooks, unless it was drawn on given axes: whoever made those shows
        them.
        """
        return png(self.figure_) if self._own_figure else None

    def _title(self) -> str:
        return f"Desired and achieved error increase{facts(self.rows, self.delta)}\n{CAPTION}"


def _shaped(values: Any, shape: tuple[int, ...], name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InvalidValueError(
            f"{name!r} has numbers of shape {array.shape}: expected {shape}, a row for each xi."
        )
    return array


def _pairs(values: Any, rows: int, name: str) -> NDArray[np.int64]:
    pairs = whole_numbers(values, f"counts of {name}")
    if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs.sum(axis=1) > rows).any():
        raise InvalidValueError(
            f"counts of {name!r} are no pairs (b, c) for each xi with b + c at most {rows} rows."
        )
    return pairs


def _difference(pairs: NDArray[np.int64], rows: int, level: float) -> Floats:
    """An interval for P(only slow right) - P(only fast right), each bounded at `level`."""
    lower, upper = binomial_interval(pairs, rows, delta=level)
    return np.stack([lower[:, 0] - upper[:, 1], upper[:, 0] - lower[:, 1]], axis=1)

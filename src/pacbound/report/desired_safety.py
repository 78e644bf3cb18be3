"""Desired against achieved safety: the safety rate that was asked for, and the one that test
rollouts saw, as xi varies.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.report.achieved_lines import draw_achieved
from pacbound.report.canvas import axes_for, headed, light_grid, png
from pacbound.report.error_cost import CAPTION, known_names
from pacbound.report.success_safety import about
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


class DesiredSafetyDisplay:
    """The safety rate that shields achieved in test rollouts, against the desired one, 1 - `xi`.

    On or above the diagonal a method was as safe as it should be. Lines are blue where thresholds
    are certified and vermilion where they have no guarantee. What was achieved is descriptive: a
    certificate holds `xi` for the population, for each `xi` alone and if it was chosen beforehand,
    and luck in the test rollouts may put a point below the diagonal.

    `plot` sets `ax_` and `figure_`. Where no `ax` is given the figure is a new one that pyplot does
    not know: save it with `display.figure_.savefig(path)`; in a notebook the display shows itself.

    Parameters
    ----------
    xi
        The shares of unsafe rollouts that were allowed.
    achieved
        The safety rates of each method, by its name: one for each `xi`, NaN where there is none.
    intervals
        Error bars of some or all methods: (number of `xi`, 2) lower and upper ends.
    certified
        The names of the methods whose thresholds are certified.
    rollouts, delta
        The number of test rollouts, and the certificates' failure probability, for the title.

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
        self.rollouts = rollouts
        self.delta = delta
        self.ax_: Axes
        self.figure_: Figure
        self._own_figure = False

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
        """Draw safety rates, from how many of the test `rollouts` were `unsafe` under each method
        at each `xi`.

        The thresholds must come from other rollouts. Each error bar is then an exact interval for
        the method's true safety rate that fails with probability at most `bar_delta`; None draws no
        bars.

        Examples
        --------
        >>> unsafe = {"certified": [20, 70]}
        >>> display = DesiredSafetyDisplay.from_counts([0.03, 0.1], unsafe, rollouts=1000)
        >>> display.achieved["certified"].tolist(), display.intervals["certified"].round(3).tolist()
        ([0.98, 0.93], [[0.969, 0.988], [0.912, 0.945]])
        """
        total = whole_number(rollouts, "rollouts", least=1)
        safe = {name: total - _at_most(values, total, name) for name, values in unsafe.items()}
        bars = None
        if bar_delta is not None:
            level = failure_probability(bar_delta, "bar_delta")
            bars = {
                name: np.stack(binomial_interval(values, total, delta=level), axis=1)
                for name, values in safe.items()
            }
        achieved = {name: values / total for name, values in safe.items()}
        return cls(
            xi, achieved, intervals=bars, certified=certified, rollouts=total, delta=delta
        ).plot(ax)

    @property
    def desired(self) -> Floats:
        """One minus each `xi`."""
        return np.asarray(1.0 - self.xi)

    @property
    def falls_short(self) -> dict[str, NDArray[np.bool_]]:
        """Where each method was less safe in the test rollouts than it should be; descriptive."""
        return {name: values < self.desired for name, values in self.achieved.items()}

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        self._own_figure = ax is None
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure.figure
        light_grid(self.ax_)
        ends = np.array([1.0 - 1.1 * float(self.xi.max(initial=0.01)), 1.0])
        draw_achieved(
            self.ax_,
            self.desired,
            self.achieved,
            self.intervals,
            certified=self.certified,
            ends=ends,
        )
        self.ax_.set(
            xlabel="Desired safety rate, 1 - xi",
            ylabel="Achieved safety rate (share of rollouts that stay safe)",
        )
        headed(
            self.ax_, f"Desired and achieved safety{about(self.rollouts, self.delta)}\n{CAPTION}"
        )
        return self

    def _repr_png_(self) -> bytes | None:
        """The figure for notebooks, unless it was drawn on given axes: whoever made those shows
        them.
        """
        return png(self.figure_) if self._own_figure else None


def _shaped(values: Any, shape: tuple[int, ...], name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape or ((array < 0) | (array > 1)).any():
        raise InvalidValueError(
            f"{name!r} has numbers of shape {array.shape}: expected {shape}, rates from 0 to 1 for "
            "each xi."
        )
    return array


def _at_most(values: Any, rollouts: int, name: str) -> NDArray[np.int64]:
    counts = whole_numbers(values, f"unsafe of {name}")
    if counts.ndim != 1 or (counts > rollouts).any():
        raise InvalidValueError(
            f"unsafe of {name!r}: expected a number from 0 to {rollouts} rollouts for each xi."
        )
    return counts

"""Success against safety: what ways to choose a shield's threshold buy, and whether they keep the
safety that was asked for.
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
from pacbound.report.error_cost import CAPTION, MARKERS, known_names
from pacbound.stats.arguments import (
    failure_probability,
    probabilities,
    tolerated_rate,
    whole_number,
    whole_numbers,
)
from pacbound.stats.binomial import binomial_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


class SuccessSafetyDisplay:
    """The success rate of shields against their safety rate, and the safety that was asked for.

    Each method is a marker: blue if its threshold is certified, vermilion if it has no guarantee.
    The dotted line is the desired safety, 1 - `xi`, and a method to the left of it was unsafe more
    often. Higher is more successful. The points are what was seen in test rollouts and descriptive:
    a certificate holds `xi` for the population, and luck may put its point to the left.

    `plot` sets `ax_` and `figure_`. Where no `ax` is given the figure is a new one that pyplot does
    not know: save it with `display.figure_.savefig(path)`; in a notebook the display shows itself.

    Parameters
    ----------
    points
        The safety rate and the success rate of each method, by its name.
    xi
        The share of the rollouts that was allowed to be unsafe.
    intervals
        Error bars of some or all methods: ((lower, upper) of safety, (lower, upper) of success).
    certified
        The names of the methods whose thresholds are certified.
    rollouts, delta
        The number of test rollouts, and the certificates' failure probability, for the title.

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
        self.points = {name: _pair(value, name) for name, value in points.items()}
        self.xi = tolerated_rate(xi)
        bars = intervals or {}
        known_names(tuple(bars), self.points)
        self.intervals = {name: _ends(value, name) for name, value in bars.items()}
        self.certified = known_names(certified, self.points)
        self.rollouts = rollouts
        self.delta = delta
        self.ax_: Axes
        self.figure_: Figure
        self._own_figure = False

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
        """Draw methods by how many of the `rollouts` were unsafe, and how many successful.

        The thresholds must come from other rollouts. Each error bar is then an exact interval for
        the method's true rate that fails with probability at most `bar_delta`; None draws no bars.

        Examples
        --------
        >>> display = SuccessSafetyDisplay.from_counts(
        ...     {"certified": (70, 400)}, rollouts=1000, xi=0.1, certified=["certified"]
        ... )
        >>> display.points["certified"], display.intervals["certified"].round(3).tolist()
        ((0.93, 0.4), [[0.912, 0.945], [0.369, 0.431]])
        """
        total = whole_number(rollouts, "rollouts", least=1)
        pairs = {name: _counted(value, total, name) for name, value in counts.items()}
        points = {
            name: (safe / total, successes / total) for name, (safe, successes) in pairs.items()
        }
        bars = None
        if bar_delta is not None:
            level = failure_probability(bar_delta, "bar_delta")
            bars = {
                name: np.transpose(binomial_interval(np.array(pair), total, delta=level))
                for name, pair in pairs.items()
            }
        return cls(
            points, xi=xi, intervals=bars, certified=certified, rollouts=total, delta=delta
        ).plot(ax)

    @property
    def desired_safety(self) -> float:
        """One minus `xi`."""
        return 1.0 - self.xi

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        self._own_figure = ax is None
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure.figure
        light_grid(self.ax_)
        self.ax_.axvline(
            self.desired_safety,
            color=palette.IDEAL,
            linestyle=":",
            label="desired safety: 1 - xi",
            gid="desired",
        )
        for name, marker in zip(self.points, cycle(MARKERS), strict=False):
            self._draw_bars(name)
            self._draw_point(name, marker)
        self.ax_.margins(0.12)
        left, _ = self.ax_.get_xlim()
        # Nothing is safer than safe: room to the right of it is for the marker only.
        self.ax_.set_xlim(left, 1.0 + 0.04 * (1.0 - left))
        self.ax_.set_ylim(bottom=0.0)
        self.ax_.set(
            xlabel="Safety rate (share of rollouts that stay safe)",
            ylabel="Success rate (share that reach the goal)",
        )
        headed(self.ax_, self._title())
        return self

    def _repr_png_(self) -> bytes | None:
        """The figure for notebooks, unless it was drawn on given axes: whoever made those shows
        them.
        """
        return png(self.figure_) if self._own_figure else None

    def _draw_point(self, name: str, marker: str) -> None:
        safety, success = self.points[name]
        self.ax_.plot(
            [safety],
            [success],
            linestyle="none",
            marker=marker,
            markersize=9,
            markerfacecolor="white",
            markeredgecolor=self._color(name),
            markeredgewidth=1.8,
            label=name,
            gid=name,
            zorder=3,
        )

    def _draw_bars(self, name: str) -> None:
        if name not in self.intervals:
            return
        (safety, success), (across, up) = self.points[name], self.intervals[name]
        style: dict[str, Any] = {"color": self._color(name), "linewidth": 1.2, "alpha": 0.75}
        self.ax_.hlines(success, *across, **style, gid=f"{name}: safety bar")
        self.ax_.vlines(safety, *up, **style, gid=f"{name}: success bar")

    def _color(self, name: str) -> str:
        return palette.CERTIFIED if name in self.certified else palette.OBSERVED

    def _title(self) -> str:
        return (
            f"Success against safety: xi = {self.xi:g}{about(self.rollouts, self.delta)}\n{CAPTION}"
        )


def about(rollouts: int | None, delta: float | None) -> str:
    """What is known of `rollouts` and `delta`, to go on in a title."""
    told = "" if delta is None else f", delta = {delta:g}"
    return told + ("" if rollouts is None else f", {rollouts:,} test rollouts")


def _pair(value: Any, name: str) -> tuple[float, float]:
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


def _counted(value: Any, rollouts: int, name: str) -> tuple[int, int]:
    """How many rollouts were safe and how many successful."""
    counts = whole_numbers(value, f"counts of {name}")
    if counts.shape != (2,) or counts.sum() > rollouts:
        raise InvalidValueError(
            f"counts of {name!r} are {value!r}: expected how many of {rollouts} rollouts were "
            "unsafe and how many successful, none both."
        )
    return rollouts - int(counts[0]), int(counts[1])

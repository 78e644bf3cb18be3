"""What methods buy at one `xi`, error against cost and success against safety, and what they
achieved against what was desired as `xi` varies.

Blue is a method whose thresholds are certified, vermilion one without a guarantee. Points are what
test data showed: bad luck there may put a certified point on the wrong side of a line.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import palette
from pacbound import binomial_interval

Array = NDArray[Any]

BAR_DELTA = 0.05
SHAPES = "osD^v><ph"
DASHES = ("-", "--", "-.", (0, (6, 2, 1, 2, 1, 2)))
CAPTION = "Points are descriptive; blue: xi is certified; vermilion: no guarantee"
# How far apart the error bars of two methods stand, as a share of the axis.
APART = 0.007


def error_against_cost(
    ax: Any,
    points: Mapping[str, tuple[float, float]],
    *,
    slow_error: float,
    xi: float,
    trade_off: tuple[Array, Array],
    certified: Collection[str],
    delta: float,
) -> None:
    """The cost of each method, as a share of the slow model's, and its error; the curve of all
    thresholds, and the error that was asked for."""
    desired = slow_error + xi
    ax.plot(*trade_off, color=palette.UNKNOWN, linewidth=1.6, label="all thresholds")
    ax.axhline(desired, color=palette.IDEAL, linestyle=":", label="desired error: slow + xi")
    ax.plot(1.0, slow_error, "o", color=palette.IDEAL, label="slow model alone")
    _dots(ax, points, certified)
    costs, errors = np.transpose([*points.values()])
    _percent(ax.xaxis, "Cost (share of the slow model's)")
    _percent(ax.yaxis, "Error (share wrong)")
    ax.set_xlim(min(costs) - 0.06, max(1.0, *costs) + 0.04)
    ax.set_ylim(*_around([slow_error, desired, *errors]))
    _head(ax, f"Error against cost: xi = {xi:g}, delta = {delta:g}")


def success_against_safety(
    ax: Any,
    counts: Mapping[str, tuple[int, int]],
    *,
    rollouts: int,
    xi: float,
    certified: Collection[str],
    delta: float,
) -> None:
    """Rates of counts of unsafe and of successful test rollouts, with exact intervals."""
    ax.axvline(1 - xi, color=palette.IDEAL, linestyle="--", label="desired safety: 1 - xi")
    good = {name: (rollouts - unsafe, success) for name, (unsafe, success) in counts.items()}
    points = {name: (safe / rollouts, well / rollouts) for name, (safe, well) in good.items()}
    ends = {name: _bar(np.array(pair), rollouts) for name, pair in good.items()}
    for name, bars in ends.items():
        (across, up), colour = points[name], _colour(name, certified)
        ax.hlines(up, *bars[0], color=colour, linewidth=1.5)
        ax.vlines(across, *bars[1], color=colour, linewidth=1.4)
    _dots(ax, points, certified)
    _percent(ax.xaxis, "Safety rate (share of rollouts that stay safe)")
    _percent(ax.yaxis, "Success rate (share that reach the goal)")
    ax.set_xlim(_around([1 - xi, 1.0, *(end for bars in ends.values() for end in bars[0])])[0], 1.0)
    ax.set_ylim(*_around([bars[1] for bars in ends.values()]))
    _head(ax, f"Success against safety: xi = {xi:g}, delta = {delta:g}, {rollouts:,} test rollouts")


def increase_against_desired(
    ax: Any,
    xi: Sequence[float],
    counts: Mapping[str, Sequence[tuple[int, int]]],
    *,
    rows: int,
    certified: Collection[str],
    delta: float,
) -> None:
    """Increases (b - c) / `rows` in error. A bar is the bounds on b less those on c, each at half
    of its failure probability."""
    achieved, bars = {}, {}
    for name, pairs in counts.items():
        lost = np.array(pairs)
        (low_b, high_b), (low_c, high_c) = _bar(lost, rows, parts=2).transpose(1, 2, 0)
        achieved[name] = (lost[:, 0] - lost[:, 1]) / rows
        bars[name] = np.stack([low_b - high_c, high_b - low_c])
    _achieved(ax, np.array(xi), achieved, bars, certified)
    _percent(ax.xaxis, "Desired error increase xi (share of rows)")
    _percent(ax.yaxis, "Achieved error increase (share of rows)")
    ax.set_xlim(left=min(xi) - 0.08 * max(xi))
    _head(ax, f"Desired and achieved error increase, delta = {delta:g}, {rows:,} test rows")


def safety_against_desired(
    ax: Any,
    xi: Sequence[float],
    unsafe: Mapping[str, Sequence[int]],
    *,
    rollouts: int,
    certified: Collection[str],
    delta: float,
) -> None:
    """Safety rates of counts of unsafe test rollouts, with exact intervals."""
    safe = {name: rollouts - np.array(count) for name, count in unsafe.items()}
    bars = {name: _bar(count, rollouts).T for name, count in safe.items()}
    rates = {name: count / rollouts for name, count in safe.items()}
    _achieved(ax, 1 - np.array(xi), rates, bars, certified)
    _percent(ax.xaxis, "Desired safety rate, 1 - xi")
    _percent(ax.yaxis, "Achieved safety rate (share of rollouts that stay safe)")
    _head(ax, f"Desired and achieved safety, delta = {delta:g}, {rollouts:,} test rollouts")


def _achieved(
    ax: Any,
    desired: Array,
    achieved: Mapping[str, Array],
    bars: Mapping[str, Array],
    certified: Collection[str],
) -> None:
    """A line with error bars for what each method achieved, and the diagonal."""
    low, high = _around(desired)
    ax.plot([low, high], [low, high], ":", color=palette.IDEAL, label="achieved = desired")
    order = np.argsort(desired)
    for place, (name, values) in enumerate(achieved.items()):
        colour = _colour(name, certified)
        dashes: Any = DASHES[place % len(DASHES)]
        ax.plot(desired[order], values[order], color=colour, linestyle=dashes, linewidth=1.1)
        ax.plot(desired, values, color=colour, label=name, **_hollow(place))
        aside = APART * (high - low) * (place - (len(achieved) - 1) / 2)
        ax.vlines(desired + aside, *bars[name], color=colour, linewidth=1.4)
    ax.set_xlim(low, high)


def _dots(ax: Any, points: Mapping[str, tuple[float, float]], certified: Collection[str]) -> None:
    for place, (name, point) in enumerate(points.items()):
        ax.plot(*point, color=_colour(name, certified), label=name, **_hollow(place))


def _hollow(place: int) -> dict[str, Any]:
    shape = SHAPES[place % len(SHAPES)]
    return {
        "linestyle": "none",
        "marker": shape,
        "markersize": 8,
        "markerfacecolor": "none",
        "markeredgewidth": 1.7,
    }


def _colour(name: str, certified: Collection[str]) -> str:
    return palette.CERTIFIED if name in certified else palette.OBSERVED


def _bar(counts: Array, total: int, *, parts: int = 1) -> Array:
    """The ends of an exact interval for the rate of each count, in the last dimension."""
    return np.stack(binomial_interval(counts, total, delta=BAR_DELTA / parts), axis=-1)


def _around(values: Any) -> tuple[float, float]:
    low, high = float(np.min(values)), float(np.max(values))
    room = 0.08 * (high - low) or 0.01
    return low - room, high + room


def _percent(axis: Any, label: str) -> None:
    axis.set_label_text(label)
    axis.set_major_formatter(lambda value, _: f"{100 * value:.10g}%")


def _head(ax: Any, title: str) -> None:
    """The title, and between it and the axes a legend, where it covers no data."""
    palette.light_grid(ax)
    entries = len(ax.get_legend_handles_labels()[1])
    legend = ax.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=-(-entries // 3), frameon=False
    )
    height = legend.get_window_extent().height / ax.figure.dpi * 72
    ax.set_title(f"{title}\n{CAPTION}", loc="left", fontsize="medium", pad=height + 9)

"""What happens at each threshold on a score: shares, rates, and what is certified.

Lines are what was seen. What is certified is the level that was asked for, at the upright line. An
axis shows the thresholds at which something changes near that level, and not all from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.figure import (
    Axis,
    Column,
    Dots,
    Figure,
    Floats,
    Level,
    Look,
    Mark,
    Panel,
    Steps,
    Upright,
)
from pacbound.figures import Curve, Named, finite

# Rates are shown up to so many times what was asked for.
_TIMES: Final = 5.0
# The height of a panel below the first.
_BELOW: Final = 0.4
UNIT: Final = (0.0, 1.0)
# A share among fewer rows than this is mostly chance, and is not drawn.
FEW: Final = 30


def share_by_threshold(
    thresholds: Any,
    curves: Sequence[Curve],
    *,
    title: str,
    caption: str,
    asked: Named,
    certified: Named | None = None,
    across: str = "Threshold",
) -> Figure:
    """Shares of rows whose score reaches a threshold: recall, false alarms, prediction sets.

    Parameters
    ----------
    thresholds
        The scores that occur, in either order.
    curves
        The share at each threshold. The claim is about the first; the others have panels of their
        own below it.
    title, caption
        As for `Figure`.
    asked
        The share that was asked for, with the words of the legend: `Named(0.95, "target 0.95")`.
    certified
        The certified threshold: `Named(0.42, "flag from 0.42 on")`; None, or infinite, for a
        refusal.
    across
        The words of the horizontal axis.

    Returns
    -------
    Figure
        A panel for each curve, and the numbers at each threshold.

    Examples
    --------
    >>> recall = Curve("positives flagged", [1.0, 0.96, 0.5], "Recall (share of positives)")
    >>> flagged = Curve("rows flagged", [1.0, 0.4, 0.2], "Flagged")
    >>> figure = share_by_threshold(
    ...     [0.1, 0.4, 0.9],
    ...     [recall, flagged],
    ...     title="Recall by threshold",
    ...     caption="What is certified is the target, at the upright line.",
    ...     asked=Named(0.9, "target 0.9"),
    ...     certified=Named(0.4, "flag from 0.4 on"),
    ... )
    >>> figure.table().rows[1]
    ['0.4', '0.9600', '0.4000']
    """
    order = np.argsort(np.asarray(thresholds, dtype=np.float64), kind="stable")
    places = np.asarray(thresholds, dtype=np.float64)[order]
    limit = finite(certified)
    x = _axis_near(places, curves[0].heights[order], asked.value, limit, across)
    panels = []
    for number, curve in enumerate(curves):
        line = _line(places, curve.heights[order], curve.name, "rows" if number else "seen")
        near = UNIT if number else _near(asked.value)
        y = _heights_in_sight(curve.label, [line], x, near, () if number else (asked.value,))
        marks: list[Mark] = [] if np.isnan(line.y).all() else [line]
        if not number:
            marks.append(Level(asked.value, "certified", asked.name))
        if limit is not None:
            marks.append(Upright(limit.value, "certified", "" if number else limit.name))
        if limit is not None and not number:
            marks.append(Dots(limit.value, asked.value, "certified"))
        panels.append(Panel(y, marks, _BELOW if number else 1.0))
    columns = [Column("Threshold", places, "exact"), *(_sorted(curve, order) for curve in curves)]
    return Figure(title, caption, x, panels, columns, _reached(places, limit))


def rate_by_coverage(
    thresholds: Any,
    coverage: Curve,
    rate: Curve,
    *,
    rows: int,
    title: str,
    caption: str,
    asked: Named,
    certified: Named | None = None,
) -> Figure:
    """The rate among the rows that reach a threshold, as the threshold falls: abstention.

    Parameters
    ----------
    thresholds
        The scores that occur, falling.
    coverage
        The share of the rows that reach each threshold.
    rate
        The share of these that is wrong, or right.
    rows
        How many rows there are. A rate among very few of them is mostly chance and is not drawn.
    title, caption
        As for `Figure`.
    asked
        The rate that was asked for: `Named(0.05, "xi = 0.05")`.
    certified
        The certified threshold; None, or infinite, for a refusal.

    Returns
    -------
    Figure
        The curve, the level asked for, a dot at the certified threshold, and the numbers.

    Examples
    --------
    >>> figure = rate_by_coverage(
    ...     [0.9, 0.8, 0.5],
    ...     Curve("coverage", [0.4, 0.7, 1.0], "Coverage (share of rows answered)"),
    ...     Curve("risk", [0.01, 0.03, 0.2], "Risk (share of answers wrong)"),
    ...     rows=1000,
    ...     title="Risk against coverage",
    ...     caption="What is certified at the dot is the dashed line.",
    ...     asked=Named(0.05, "xi = 0.05"),
    ...     certified=Named(0.8, "answer from 0.8 on"),
    ... )
    >>> figure.table().rows[1]
    ['0.8', '0.7000', '0.0300']
    """
    falling = np.asarray(thresholds, dtype=np.float64)
    x, y = coverage.heights, rate.heights
    limit = finite(certified)
    place = -1 if limit is None else int(np.count_nonzero(falling >= limit.value)) - 1
    shown = x * rows >= min(FEW, rows / 100)
    marks: list[Mark] = []
    if shown.any():
        marks.append(
            Steps(x[shown], y[shown], "seen", f"{rate.name}, as seen (no guarantee)", "from")
        )
        if shown.sum() == 1:
            marks.append(Dots(x[shown], y[shown], "seen"))
    marks.append(Level(asked.value, "certified", asked.name))
    if limit is not None and place >= 0:
        shown[place] = True
        marks.append(Dots(x[place], y[place], "certified", limit.name))
    across = Axis.around(coverage.label, x[shown], within=UNIT, percent=True)
    up = Axis.around(rate.label, [*y[shown], asked.value], within=UNIT, percent=True)
    columns = [Column("Threshold", falling, "exact"), coverage.column, rate.column]
    return Figure(title, caption, across, [Panel(up, marks)], columns, [place])


def _line(places: Floats, heights: Floats, name: str, look: Look) -> Steps:
    """Up to the lowest score every row reaches the threshold: the line begins at 0."""
    # Beyond the highest score no row is left, and the line ends.
    before = places[:1] > 0
    x = np.concatenate([np.zeros(before.sum()), places])
    y = np.concatenate([heights[:1][before], heights])
    seen = "as seen (no guarantee)" if look == "seen" else "as seen"
    return Steps(x, y, look, f"{name}, {seen}")


def _near(asked: float) -> tuple[float, float]:
    """The shares that are shown: up to five times as far from 0, or from 1, as what was asked."""
    aside = max(_TIMES * min(asked, 1 - asked), 0.02)
    return (1 - aside, 1.0) if asked > 0.5 else (0.0, min(aside, 1.0))


def _axis_near(
    places: Floats, heights: Floats, asked: float, limit: Named | None, label: str
) -> Axis:
    """The thresholds at which the share is near what was asked for, and changes."""
    low, high = _near(asked)
    # Where a share is almost 0 or 1 nothing happens that could be seen.
    still = 0.02 * min(asked, 1 - asked)
    changing = (heights >= low) & (heights <= high) & (heights > still) & (heights < 1 - still)
    return _axis_over(places, changing, () if limit is None else (limit.value,), label)


def _axis_over(
    places: Floats, chosen: NDArray[np.bool_], ends: Sequence[float], label: str
) -> Axis:
    """An axis over the chosen places and those beside them; over all if that is too few."""
    at = np.flatnonzero(chosen)
    shown = places[max(at[0] - 1, 0) : at[-1] + 2] if at.size else np.append(0.0, places)
    return _within_unit([*shown, *ends], label)


def _within_unit(places: Sequence[float], label: str) -> Axis:
    """An axis over the places; a single one is shown among all scores."""
    if not np.ptp(places) > 0:
        return Axis(label, *UNIT)
    return Axis.around(label, places, within=UNIT)


def _heights_in_sight(
    label: str,
    lines: Sequence[Steps],
    x: Axis,
    near: tuple[float, float],
    levels: Sequence[float],
) -> Axis:
    """An axis for the parts of lines that are in sight and near, and for what was asked."""
    seen = []
    for line in lines:
        across, up = line.corners()
        held = np.searchsorted(line.x, [x.low, x.high])  # what holds at both ends of the axis
        inside = up[(across >= x.low) & (across <= x.high)]
        edge = line.y[np.minimum(held, line.y.size - 1)] if line.y.size else line.y
        seen += np.clip(np.concatenate([inside, edge]), *near).tolist()
    return Axis.around(label, [*seen, *levels], within=UNIT, percent=True)


def _reached(places: Floats, limit: Named | None) -> list[int]:
    """The row of the lowest score that reaches the threshold."""
    return [] if limit is None else [int(np.searchsorted(places, limit.value))]


def _sorted(curve: Curve, order: NDArray[np.int64]) -> Column:
    column = curve.column
    return Column(column.name, curve.heights[order], column.written)

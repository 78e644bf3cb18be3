"""A rate against the share of rows that it is about: wrong answers against rows answered."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pacbound.figure import Axis, Column, Dots, Figure, Level, Mark, Panel, Steps
from pacbound.figures.named import Curve, Named, finite

FEW: Final = 30
"""The share of wrong ones among fewer answers than this is mostly chance, and is not drawn."""
UNIT: Final = (0.0, 1.0)


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
        marks.append(Steps(x[shown], y[shown], "seen", _seen(rate), "from"))
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


def _seen(rate: Curve) -> str:
    return f"{rate.name}, as seen (no guarantee)"

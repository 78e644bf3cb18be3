"""Certified intervals of bins of confidence, the shares that were seen, and the share of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pacbound.figure import (
    Axis,
    Bars,
    Boxes,
    Column,
    Dots,
    Figure,
    Flats,
    Floats,
    Line,
    Mark,
    Panel,
)

UNIT = (0.0, 1.0)
_CERTIFIED = {
    "both": "certified interval",
    "lower": "certified lower end",
    "upper": "certified upper end",
}


@dataclass(frozen=True, eq=False)
class Bins:
    """What is known of each bin, as columns of equal length.

    Parameters
    ----------
    begin, end
        Where each bin begins and ends; equal for a bin that holds a single score.
    trials, successes
        How many rows fell into it, and how many of them were right.
    lower, upper
        The certified interval for its accuracy.
    names
        What the table calls each bin; by default its ends.
    """

    begin: Any
    end: Any
    trials: Any
    successes: Any
    lower: Any
    upper: Any
    names: Sequence[str] | None = None


def intervals_by_bin(
    bins: Bins,
    *,
    title: str = "Reliability",
    caption: str | None = None,
    across: str = "Confidence (0 to 1)",
    up: str = "Accuracy (share right)",
    side: Literal["both", "lower", "upper"] = "both",
) -> Figure:
    """A box for each bin, as high as its certified interval, and below it the share of the rows.

    Parameters
    ----------
    bins
        The bins, in order.
    title, caption
        As for `Figure`; by default the caption says how many bins hold rows.
    across, up
        The words of both axes.
    side
        Which ends of the intervals are certified.

    Returns
    -------
    Figure
        The intervals, and the numbers of each bin that holds rows.

    Examples
    --------
    >>> bins = Bins([0.0, 0.5], [0.5, 1.0], [0, 100], [0, 90], [0.0, 0.8256], [1.0, 0.9511])
    >>> intervals_by_bin(bins).table().rows
    [['0.5 to 1', '100', '90', '0.9000', '0.8256', '0.9511']]
    """
    begin, end, trials, successes, lower, upper = (
        np.asarray(column, dtype=np.float64)
        for column in (
            bins.begin, bins.end, bins.trials, bins.successes, bins.lower, bins.upper
        )
    )  # fmt: skip
    seen = trials > 0
    share = np.divide(successes, trials, out=np.full(trials.shape, np.nan), where=seen)
    x = axis_over_bins(begin[seen], end[seen], across)
    unknown = ~seen & (end > x.low) & (begin < x.high)
    marks: list[Mark] = []
    if unknown.any():
        sides, ends = (begin[unknown], end[unknown]), (lower[unknown], upper[unknown])
        marks.append(Boxes(*sides, *ends, "unknown", "no rows: nothing is known"))
    marks.append(Line([x.low, x.high], [x.low, x.high], "ideal", "confidence equals accuracy"))
    if seen.any():
        sides, ends = (begin[seen], end[seen]), (lower[seen], upper[seen])
        marks.append(Boxes(*sides, *ends, "certified", _CERTIFIED[side]))
        for edge, open_side in zip(ends, ("upper", "lower"), strict=True):
            if side != open_side:
                marks.append(Flats(*sides, edge, "certified"))
        wide = seen & (begin < end)
        marks.append(Flats(begin[wide], end[wide], share[wide], "seen"))
        middle = (begin[seen] + end[seen]) / 2
        marks.append(Dots(middle, share[seen], "seen", "share right, as seen (no guarantee)"))
    y = Axis.around(up, [*lower[seen], *upper[seen], x.low, x.high], within=UNIT, percent=True)
    panels = [Panel(y, marks)]
    if seen.any():
        panels.append(row_shares_below(begin[seen], end[seen], trials[seen] / trials.sum()))
    at = np.flatnonzero(seen).tolist()
    names = bins.names or [f"{a:.4g} to {b:.4g}" for a, b in zip(begin, end, strict=True)]
    columns = [
        Column("Bin", [names[place] for place in at], "text"),
        Column("Rows", trials[seen], "count"),
        Column("Right", successes[seen], "count"),
        Column("Share right", share[seen]),
        Column("At least", lower[seen], "at least"),
        Column("At most", upper[seen], "at most"),
    ]
    return Figure(title, caption or _caption(seen, trials), x, panels, columns)


def row_shares_below(begin: Floats, end: Floats, shares: Floats) -> Panel:
    """A panel with the share of the rows in each bin."""
    foot = Axis.around("Rows", [0.0, *shares], within=UNIT, percent=True)
    return Panel(foot, [Bars(begin, end, shares, "rows", "share of the rows in each bin")], 0.35)


def axis_over_bins(begin: Floats, end: Floats, label: str) -> Axis:
    """From the first bin with rows to the last, exactly, and over all if none has rows."""
    low, high = (float(begin.min()), float(end.max())) if begin.size else UNIT
    if low == high:
        low, high = max(low - 0.05, 0.0), min(high + 0.05, 1.0)
    return Axis(label, low, high)


def _caption(seen: Any, trials: Floats) -> str:
    bins = f"{int(seen.sum())} of {seen.size} bins hold rows, {int(trials.sum()):,} in all."
    if not seen.any():
        return f"No bin holds rows: nothing is known. {bins}"
    return f"Each box is a bin, as high as the certified interval for its accuracy. {bins}"

"""Certified intervals of bins of confidence, the shares that were seen, and the share of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
    certified: str = "certified interval",
    row_shares: bool = True,
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
    certified
        What the legend calls the boxes: "certified lower end" where only one end is certified.
    row_shares
        Whether the share of the rows is drawn; not where rows were chosen per bin, which makes
        their number say nothing.

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
    x = _across(begin, end, seen, across)
    shown = (end > x.low) & (begin < x.high)
    unknown = shown & ~seen & (begin < end)
    wide = seen & (begin < end)
    marks: list[Mark] = []
    if unknown.any():
        ends = lower[unknown], upper[unknown]
        marks.append(
            Boxes(begin[unknown], end[unknown], *ends, "unknown", "no rows: nothing is known")
        )
    marks.append(Line([x.low, x.high], [x.low, x.high], "ideal", "confidence equals accuracy"))
    if seen.any():
        ends = lower[seen], upper[seen]
        marks.append(Boxes(begin[seen], end[seen], *ends, "certified", certified))
        marks.append(Flats(begin[wide], end[wide], share[wide], "seen"))
        middle = (begin[seen] + end[seen]) / 2
        marks.append(Dots(middle, share[seen], "seen", "share right, as seen (no guarantee)"))
    y = Axis.around(up, [*lower[seen], *upper[seen], x.low, x.high], within=UNIT, percent=True)
    panels = [Panel(y, marks)]
    if row_shares and seen.any():
        rows = trials[seen] / trials.sum()
        foot = Axis.around("Rows", [0.0, *rows], within=UNIT, percent=True)
        bars = Bars(begin[seen], end[seen], rows, "rows", "share of the rows in each bin")
        panels.append(Panel(foot, [bars], 0.35))
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


def _across(begin: Floats, end: Floats, seen: Any, label: str) -> Axis:
    """From the first bin with rows to the last, exactly, and over all if none has rows."""
    low, high = UNIT
    if seen.any():
        low, high = float(begin[seen].min()), float(end[seen].max())
    if low == high:
        low, high = max(low - 0.05, 0.0), min(high + 0.05, 1.0)
    return Axis(label, low, high)


def _caption(seen: Any, trials: Floats) -> str:
    bins = f"{int(seen.sum())} of {seen.size} bins hold rows, {int(trials.sum()):,} in all."
    if not seen.any():
        return f"No bin holds rows: nothing is known. {bins}"
    return f"Each box is a bin, as high as the certified interval for its accuracy. {bins}"

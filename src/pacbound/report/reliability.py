"""The reliability diagram of what was claimed for held-out rows, as in the paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pacbound.calibration.reliability import ReliabilityBins
from pacbound.figure import (
    Axis,
    Boxes,
    Column,
    Dots,
    Figure,
    Flats,
    Level,
    Line,
    Mark,
    Panel,
)
from pacbound.figures.bins import (
    axis_over_bins,
    row_shares_below,
)


def claims_by_accuracy(bins: ReliabilityBins) -> Figure:
    """Claims at the height of the accuracy of their rows: a level line for an interval, a dot for a
    number. Descriptive: that intervals cross the diagonal is not certified.
    """
    count = len(bins.edges) - 1
    begin, end = bins.edges[:-1], bins.edges[1:]
    trials, lower, upper = bins.trials[:count], bins.lower[:count], bins.upper[:count]
    share, seen = bins.accuracy[:count], trials > 0
    wide, single = seen & (lower < upper), seen & (lower >= upper)
    without = int(bins.trials[count:].sum())
    claimed = np.concatenate([lower[seen], upper[seen]])
    label = "Confidence (claimed; below: estimated)" if wide.any() else "Confidence (0 to 1)"
    x = axis_over_bins(np.append(begin[seen], claimed), np.append(end[seen], claimed), label)
    marks: list[Mark] = [Line([x.low, x.high], [x.low, x.high], "ideal", "claimed equals accuracy")]
    if wide.any():
        ends = lower[wide], upper[wide], share[wide]
        marks.append(Flats(*ends, "certified", "claimed interval"))
    if single.any():
        marks.append(Line(lower[single], share[single], "seen"))
        marks.append(Dots(lower[single], share[single], "seen", "claimed confidence"))
    if without:
        rows = f"no estimate: {without:,} row{'s' if without > 1 else ''}"
        marks.append(Level(float(bins.accuracy[count]), "unknown", rows))
    y = Axis.around("Accuracy (share right)", [*bins.accuracy, x.low, x.high], percent=True)
    below = row_shares_below(begin[seen], end[seen], trials[seen] / bins.trials.sum())
    if not seen.all():
        empty = begin[~seen], end[~seen], np.zeros((~seen).sum())
        gaps = Boxes(*empty, np.full((~seen).sum(), below.y.high), "unknown", "no rows")
        below = replace(below, marks=[*below.marks, gaps])
    columns = [
        Column("Bin", [f"{a:.4g} to {b:.4g}" for a, b in zip(begin, end, strict=True)], "text"),
        Column("Rows", trials, "count"),
        Column("Share right", share),
        Column("Claimed from", lower),
        Column("Claimed to", upper),
    ]
    words = _described(bins, points=not wide.any())
    return Figure(*words, x, [Panel(y, marks), below], columns)


def _described(bins: ReliabilityBins, *, points: bool) -> tuple[str, str]:
    """The title and the caption."""
    least, most = bins.averaged(bins.nearest), bins.averaged(bins.farthest)
    of = "Reliability" if points else "Reliability of intervals"
    error = (
        f"Calibration error {least:.4f}"
        if points
        else f"Induced calibration error [{least:.4f}, {most:.4f}]"
    )
    return (
        f"{of}: n = {int(bins.trials.sum()):,}, {len(bins.edges) - 1} bins",
        f"{error}. Descriptive: nothing here is certified.",
    )

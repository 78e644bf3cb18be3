"""Drawing bins: what is certified for each, what was claimed for each, and how many rows each has.

Every cell of a certificate is drawn that a score can fall into. One without rows is hatched from 0
to 1, which is its interval. A cell that holds a single value of the score, as equal-mass bins have,
is a vertical line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacbound.calibration.reliability import ReliabilityBins
from pacbound.claims.calibration_certificate import CalibrationBins
from pacbound.procedures.calibration import Side
from pacbound.report import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_CERTIFIED: dict[Side, str] = {
    "both": "certified interval",
    "lower": "certified lower end",
    "upper": "certified upper end",
}


def draw_certified_bins(ax: Axes, bins: CalibrationBins, *, side: Side) -> None:
    """Draw a box over each bin, as high as its interval, and the observed shares."""
    seen, point = bins.trials > 0, single_values(bins)
    _draw_unknown(ax, bins, ~seen & ~unreachable(bins), point)
    _draw_intervals(ax, bins, seen, point, side)
    _draw_shares(ax, bins, seen, point)


def draw_claimed_bins(ax: Axes, bins: ReliabilityBins) -> None:
    """Draw what was claimed for each bin at the height of its accuracy: the paper's diagram.

    A claimed interval is horizontal, a single claimed number a dot. Rows without an estimate are a
    line of their own.
    """
    without = np.arange(len(bins)) == len(bins.edges) - 1
    seen = (bins.trials > 0) & ~without
    span = seen & (bins.lower < bins.upper)
    dot = seen & ~span
    if span.any():
        _draw_spans(ax, bins, span)
    if dot.any():
        ax.plot(
            bins.lower[dot],
            bins.accuracy[dot],
            color=palette.OBSERVED,
            linestyle=":",
            marker="o",
            label="claimed confidence",
            gid="claim dots",
        )
    if bins.trials[without].any():
        rows = int(bins.trials[without][0])
        ax.hlines(
            bins.accuracy[without],
            bins.lower[without],
            bins.upper[without],
            color=palette.UNKNOWN,
            linestyle="--",
            label=f"no estimate: {rows:,} row{'s' if rows > 1 else ''}",
            gid="claims without estimate",
        )


def draw_row_shares(ax: Axes, bins: CalibrationBins | ReliabilityBins) -> None:
    """Draw the share of the rows in each bin: a bar over an extent, a line over a single value.

    Claimed bins without rows are hatched here, for a bar of height 0 looks like a very low one.
    """
    if isinstance(bins, ReliabilityBins):
        begin, end = bins.edges[:-1], bins.edges[1:]
    else:
        begin, end = bins.begin, bins.end
    # Rows without an estimate come after the last bin. They have no place on the axis; the legend
    # counts them.
    trials = bins.trials[: len(begin)]
    shares = trials / max(1, int(bins.trials.sum()))
    point = begin == end
    bars = _rectangles(begin[~point], end[~point], np.zeros((~point).sum()), shares[~point])
    blue = palette.CERTIFIED
    _add_boxes(ax, bars, facecolors=palette.ROWS, edgecolors=blue, linewidths=0.5, gid="rows")
    name = "rows at one score"
    ax.vlines(begin[point], 0, shares[point], color=blue, linewidth=1.5, gid=name)
    ax.set_ylim(0, 1.05 * float(shares.max()) or 1.0)
    empty = trials == 0
    if isinstance(bins, ReliabilityBins) and empty.any():
        whole_height = _rectangles(
            begin[empty], end[empty], np.zeros(empty.sum()), np.ones(empty.sum())
        )
        _hatch(ax, whole_height, label="no rows", transform=ax.get_xaxis_transform())


def single_values(bins: CalibrationBins) -> Mask:
    """The cells that hold one value of the score."""
    return np.asarray(bins.begin == bins.end)


def unreachable(bins: CalibrationBins) -> Mask:
    """The cells that no score can fall into: below an edge at 0, and above an edge at 1."""
    outside = np.zeros(len(bins), dtype=bool)
    outside[[0, -1]] = single_values(bins)[[0, -1]]
    return outside


def _draw_unknown(ax: Axes, bins: CalibrationBins, unknown: Mask, point: Mask) -> None:
    boxes, lines = unknown & ~point, unknown & point
    if boxes.any():
        _hatch(ax, _intervals_as_boxes(bins, boxes), label="no rows: [0, 1]")
    if lines.any():
        style = {"color": palette.UNKNOWN, "linewidth": 1, "linestyle": ":"}
        _draw_lines(ax, bins, lines, label="no rows, single score", gid="unknown values", **style)


def _draw_intervals(ax: Axes, bins: CalibrationBins, seen: Mask, point: Mask, side: Side) -> None:
    boxes, lines = seen & ~point, seen & point
    blue = palette.CERTIFIED
    if boxes.any():
        style = {"facecolors": (blue, 0.25), "edgecolors": (blue, 0.6), "linewidths": 0.6}
        corners = _intervals_as_boxes(bins, boxes)
        _add_boxes(ax, corners, label=_CERTIFIED[side], gid="intervals", **style)
    if lines.any():
        label = f"{_CERTIFIED[side]}, single score"
        _draw_lines(ax, bins, lines, color=blue, linewidth=1, label=label, gid="interval values")
    for end, open_side in [(bins.lower, "upper"), (bins.upper, "lower")]:
        if side != open_side:
            ax.hlines(end[boxes], bins.begin[boxes], bins.end[boxes], color=blue, linewidth=1.2)
            caps: dict[str, Any] = {"linestyle": "none", "marker": "_", "markersize": 6}
            ax.plot(bins.begin[lines], end[lines], color=blue, **caps)


def _draw_shares(ax: Axes, bins: CalibrationBins, seen: Mask, point: Mask) -> None:
    share, middle = bins.estimate, (bins.begin + bins.end) / 2
    ax.hlines(
        share[seen],
        bins.begin[seen],
        bins.end[seen],
        color=palette.OBSERVED,
        linewidth=1.5,
        gid="shares",
        zorder=2.5,
    )
    for cells, fill, label in [
        (seen & ~point, palette.OBSERVED, "observed share"),
        (seen & point, "white", None),
    ]:
        ax.plot(
            middle[cells],
            share[cells],
            linestyle="none",
            marker="o",
            markersize=5.0 if len(bins) <= 40 else 3.0,
            color=palette.OBSERVED,
            markerfacecolor=fill,
            label=label,
            zorder=2.6,
        )


def _draw_spans(ax: Axes, bins: ReliabilityBins, span: Mask) -> None:
    lower, upper, accuracy = bins.lower[span], bins.upper[span], bins.accuracy[span]
    blue = palette.CERTIFIED
    label = "induced interval"
    ax.hlines(accuracy, lower, upper, color=blue, linewidth=2, label=label, gid="claims")
    caps: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 9}
    for end in (lower, upper):
        ax.plot(end, accuracy, color=blue, markeredgewidth=2, **caps)


def _intervals_as_boxes(bins: CalibrationBins, cells: Mask) -> Floats:
    return _rectangles(bins.begin[cells], bins.end[cells], bins.lower[cells], bins.upper[cells])


def _rectangles(begin: Floats, end: Floats, lower: Floats, upper: Floats) -> Floats:
    """The corners of boxes, as an (n, 4, 2) array."""
    across = np.stack([begin, begin, end, end], axis=1)
    along = np.stack([lower, upper, upper, lower], axis=1)
    return np.stack([across, along], axis=2)


def _add_boxes(ax: Axes, corners: Floats, **style: Any) -> None:
    from matplotlib.collections import PolyCollection  # noqa: PLC0415 - matplotlib is optional

    ax.add_collection(PolyCollection(list(corners), **style), autolim=False)


def _hatch(ax: Axes, corners: Floats, **style: Any) -> None:
    """Boxes in light hatching: nothing is known there."""
    light = {"facecolors": "none", "edgecolors": palette.UNKNOWN, "linewidths": 0.5, "alpha": 0.45}
    _add_boxes(ax, corners, hatch="///", gid="unknown", **light, **style)


def _draw_lines(ax: Axes, bins: CalibrationBins, cells: Mask, **style: Any) -> None:
    ax.vlines(bins.begin[cells], bins.lower[cells], bins.upper[cells], **style)

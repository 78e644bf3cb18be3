"""Drawing the bins of a calibration certificate: a box over each bin's extent, as high as its
certified interval.

Every cell is drawn that a score can fall into. One without rows is hatched from 0 to 1, which is
its interval. A cell that is a single value of the score, as equal-mass bins have, is a vertical
line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.calibration import CalibrationBins
from pacbound.procedures.calibration import Side
from pacbound.report import palette
from pacbound.report.boxes import hatch, rectangles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_CERTIFIED = {
    "both": "certified interval",
    "lower": "certified lower end",
    "upper": "certified upper end",
}


def draw_certified_bins(ax: Axes, bins: CalibrationBins, *, side: Side) -> None:
    """The intervals, the observed shares, and the cells about which nothing is known."""
    seen, point = bins.trials > 0, single_values(bins)
    _draw_unknown(ax, bins, ~seen & ~unreachable(bins), point)
    _draw_intervals(ax, bins, seen, point, side)
    _draw_shares(ax, bins, seen, point)


def single_values(bins: CalibrationBins) -> Mask:
    """The cells that hold one value of the score."""
    return np.asarray(bins.begin == bins.end)


def unreachable(bins: CalibrationBins) -> Mask:
    """The cells that no score can fall into: below an edge at 0 and above one at 1, where edges are
    cells of their own.
    """
    outside = np.zeros(len(bins), dtype=bool)
    outside[[0, -1]] = single_values(bins)[[0, -1]]
    return outside


def _draw_unknown(ax: Axes, bins: CalibrationBins, unknown: Mask, point: Mask) -> None:
    boxes, lines = unknown & ~point, unknown & point
    if boxes.any():
        hatch(
            ax,
            rectangles(bins.begin[boxes], bins.end[boxes], bins.lower[boxes], bins.upper[boxes]),
            label="no rows: [0, 1]",
        )
    if lines.any():
        ax.vlines(
            bins.begin[lines],
            bins.lower[lines],
            bins.upper[lines],
            color=palette.UNKNOWN,
            linewidth=1,
            linestyle=":",
            label="no rows at one score",
            gid="unknown values",
        )


def _draw_intervals(ax: Axes, bins: CalibrationBins, seen: Mask, point: Mask, side: Side) -> None:
    from matplotlib.collections import PolyCollection  # noqa: PLC0415

    boxes, lines = seen & ~point, seen & point
    if boxes.any():
        filled = PolyCollection(
            list(
                rectangles(bins.begin[boxes], bins.end[boxes], bins.lower[boxes], bins.upper[boxes])
            ),
            facecolors=(palette.CERTIFIED, 0.25),
            edgecolors=(palette.CERTIFIED, 0.6),
            linewidths=0.6,
            label=_CERTIFIED[side],
            gid="intervals",
        )
        ax.add_collection(filled, autolim=False)
    if lines.any():
        ax.vlines(
            bins.begin[lines],
            bins.lower[lines],
            bins.upper[lines],
            color=palette.CERTIFIED,
            linewidth=1,
            label="the same at one score",
            gid="interval values",
        )
    for end, open_side in [(bins.lower, "upper"), (bins.upper, "lower")]:
        if side != open_side:
            ax.hlines(
                end[boxes],
                bins.begin[boxes],
                bins.end[boxes],
                color=palette.CERTIFIED,
                linewidth=1.2,
            )
            ax.plot(
                bins.begin[lines],
                end[lines],
                linestyle="none",
                marker="_",
                color=palette.CERTIFIED,
                markersize=6,
            )


def _draw_shares(ax: Axes, bins: CalibrationBins, seen: Mask, point: Mask) -> None:
    share, middle = bins.estimate, (bins.begin + bins.end) / 2
    size = 5.0 if len(bins) <= 40 else 3.0
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
            markersize=size,
            color=palette.OBSERVED,
            markerfacecolor=fill,
            label=label,
            zorder=2.6,
        )

"""Boxes over bins: their corners, the hatch that means no rows, and the bars that say how many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacbound.report import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


def rectangles(begin: Floats, end: Floats, lower: Floats, upper: Floats) -> Floats:
    """The corners of boxes, as an (n, 4, 2) array."""
    across, along = (
        np.stack([begin, begin, end, end], axis=1),
        np.stack([lower, upper, upper, lower], axis=1),
    )
    return np.stack([across, along], axis=2)


def hatch(ax: Axes, corners: Floats, *, label: str, **options: Any) -> None:
    """Boxes in light hatching: nothing is known there."""
    from matplotlib.collections import PolyCollection  # noqa: PLC0415

    boxes = PolyCollection(
        list(corners),
        facecolors="none",
        edgecolors=palette.UNKNOWN,
        linewidths=0.5,
        alpha=0.45,
        hatch="///",
        label=label,
        gid="unknown",
        **options,
    )
    ax.add_collection(boxes, autolim=False)


def draw_rows(ax: Axes, begin: Floats, end: Floats, shares: Floats) -> None:
    """The share of the rows in each cell: bars over extents, and lines over single values."""
    from matplotlib.collections import PolyCollection  # noqa: PLC0415

    point = begin == end
    bars = PolyCollection(
        list(rectangles(begin[~point], end[~point], np.zeros((~point).sum()), shares[~point])),
        facecolors=palette.ROWS,
        edgecolors=palette.CERTIFIED,
        linewidths=0.5,
        gid="rows",
    )
    ax.add_collection(bars, autolim=False)
    ax.vlines(
        begin[point],
        0,
        shares[point],
        color=palette.CERTIFIED,
        linewidth=1.5,
        gid="rows at one score",
    )
    ax.set_ylim(0, 1.05 * float(shares.max()) or 1.0)


def hatch_no_rows(ax: Axes, begin: Floats, end: Floats) -> None:
    """Hatch bins over the whole height of `ax`, for a bar of no rows looks like one of few."""
    if begin.size:
        hatch(
            ax,
            rectangles(begin, end, np.zeros(len(begin)), np.ones(len(begin))),
            label="no rows",
            transform=ax.get_xaxis_transform(),
        )

"""Drawing what was claimed for each bin against what came true: the paper's reliability diagram.

The claim is horizontal, from its lower to its upper end, at the height of the bin's accuracy; a
single number is a dot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pacbound.calibration.reliability import ReliabilityBins
from pacbound.report import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_claimed_bins(ax: Axes, bins: ReliabilityBins) -> None:
    """The claims of the bins that hold rows, and of the rows without an estimate, if any."""
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
        rows, accuracy = int(bins.trials[without][0]), bins.accuracy[without]
        ax.hlines(
            accuracy,
            bins.lower[without],
            bins.upper[without],
            color=palette.UNKNOWN,
            linestyle="--",
            label=f"no estimate: {rows:,} row{'s' if rows > 1 else ''}",
            gid="claims without estimate",
        )


def _draw_spans(ax: Axes, bins: ReliabilityBins, span: NDArray[np.bool_]) -> None:
    lower, upper, accuracy = bins.lower[span], bins.upper[span], bins.accuracy[span]
    ax.hlines(
        accuracy,
        lower,
        upper,
        color=palette.CERTIFIED,
        linewidth=2,
        label="induced interval",
        gid="claims",
    )
    for end in (lower, upper):
        ax.plot(
            end,
            accuracy,
            linestyle="none",
            marker="|",
            color=palette.CERTIFIED,
            markersize=9,
            markeredgewidth=2,
        )

"""What methods achieved against what was desired of them: a line for each, with its error bars, and
the diagonal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pacbound.report import palette
from pacbound.report.error_cost import MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

_LINES = ("-", "--", "-.", (0, (6, 2, 1, 2, 1, 2)))
_APART = 2.5
"""Points between the error bars of two methods at the same place."""


def draw_achieved(
    ax: Axes,
    desired: Floats,
    achieved: Mapping[str, Floats],
    intervals: Mapping[str, Floats],
    *,
    certified: Collection[str],
    ends: Floats,
) -> None:
    """Draw what each method `achieved` at each `desired` place: blue if it is certified, vermilion
    if it has no guarantee.
    """
    ax.plot(
        ends, ends, color=palette.IDEAL, linestyle=":", label="achieved = desired", gid="desired"
    )
    colors = {
        name: palette.CERTIFIED if name in certified else palette.OBSERVED for name in achieved
    }
    order = np.argsort(desired, kind="stable")
    for name, marker, line in zip(achieved, cycle(MARKERS), cycle(_LINES), strict=False):
        ax.plot(
            desired[order],
            achieved[name][order],
            color=colors[name],
            linestyle=line,
            linewidth=1,
            marker=marker,
            markersize=8,
            markerfacecolor="none",
            markeredgewidth=1.8,
            label=name,
            gid=name,
            zorder=3,
            clip_on=False,
        )
    for place, (name, ends_of_bars) in enumerate(intervals.items()):
        aside = _APART * (place - (len(intervals) - 1) / 2)
        _draw_bars(ax, desired, ends_of_bars, color=colors[name], aside=aside, gid=f"{name}: bars")
    ax.set_xlim(*ends)


def _draw_bars(
    ax: Axes, desired: Floats, ends: Floats, *, color: str, aside: float, gid: str
) -> None:
    """The intervals, moved `aside` by some points of the page lest those of other methods cover
    them.
    """
    from matplotlib.transforms import offset_copy  # noqa: PLC0415 - matplotlib is optional

    moved = offset_copy(ax.transData, ax.figure.figure, x=aside, units="points")
    lower, upper = ends.T
    ax.vlines(desired, lower, upper, color=color, linewidth=1, alpha=0.7, transform=moved, gid=gid)
    ax.update_datalim(np.column_stack([np.tile(desired, 2), np.concatenate([lower, upper])]))
    ax.autoscale_view()

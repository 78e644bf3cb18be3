"""The evidence of a monitor over its labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from pacbound.figure import Axis, Column, Dots, Figure, Level, Mark, Panel, Steps

_LEAST: Final = 1e-6
"""Evidence below this is drawn here: how little there is says nothing."""


def evidence_over_time(
    labels: Any,
    evidence: Any,
    *,
    limit: float,
    alarms: Sequence[int] = (),
    title: str = "Evidence over time",
    caption: str | None = None,
) -> Figure:
    """The highest evidence in each stretch of labels, the limit, and the alarms.

    Parameters
    ----------
    labels
        The last label of each stretch, rising.
    evidence
        The highest evidence in it.
    limit
        Where the alarm rings.
    alarms
        The labels at which it rang.
    title, caption
        As for `Figure`; the caption has a default.

    Returns
    -------
    Figure
        The evidence on a logarithmic axis, and its numbers.

    Examples
    --------
    >>> figure = evidence_over_time([100, 200], [0.5, 1500.0], limit=1000, alarms=[190])
    >>> figure.table().rows
    [['100', '0.5'], ['200', '1500']]
    """
    ends, found = np.asarray(labels, np.float64), np.asarray(evidence, np.float64)
    shown = np.maximum(found, _LEAST)
    marks: list[Mark] = []
    if ends.size:
        x, y = np.append(0.0, ends), np.append(shown, shown[-1])
        marks.append(Steps(x, y, "seen", "evidence (highest in each stretch)", "from"))
    marks.append(Level(limit, "certified", f"the alarm rings at {limit:,.4g}"))
    if len(alarms):
        many = "an alarm" if len(alarms) == 1 else f"{len(alarms):,} alarms"
        marks.append(Dots(alarms, np.full(len(alarms), limit), "alarm", many))
    last = max([1.0, *ends[-1:], *alarms])
    up = Axis.around("Evidence against the claim", [1.0, *shown, limit], log=True)
    columns = [
        Column("Up to label", ends, "count"),
        Column("Highest evidence", [f"{value:.4g}" for value in found], "text"),
    ]
    kept = [int(np.nanargmax(found))] if np.isfinite(found).any() else []
    across = Axis("Labels", 0.0, 1.03 * last, whole=True)
    return Figure(title, caption or _CAPTION, across, [Panel(up, marks)], columns, kept)


_CAPTION: Final = (
    "Evidence rises where losses come more often than the claim allows. That it stays low proves "
    "nothing."
)

"""What the same counts would give at another value of what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pacbound.figure import Axis, Column, Dots, Figure, Line, Mark, Panel, Spans


def outcome_by_dial(
    values: Any,
    low: Any,
    high: Any,
    *,
    dial: str,
    outcome: str,
    own: float | None = None,
    percent: bool = False,
    columns: Sequence[Column] = (),
) -> Figure:
    """What a stricter or looser claim would cost.

    Parameters
    ----------
    values
        What could have been asked, such as values of xi.
    low, high
        The ends between which the outcome lies there; NaN where nothing would be certified.
    dial
        What is turned: "xi".
    outcome
        What it costs or brings, the words of the vertical axis: "Rows that exit early".
    own
        The value that this certificate was asked for.
    percent
        Whether the outcome is a share.
    columns
        The table; by default the values and the ends.

    Returns
    -------
    Figure
        The outcome at each value, with a dot at the certificate's own.

    Examples
    --------
    >>> figure = outcome_by_dial(
    ...     [0.01, 0.02], [0.3, 0.5], [0.3, 0.5], dial="xi", outcome="Rows answered", own=0.02
    ... )
    >>> figure.title, figure.legend[-1].name
    ('Rows answered against xi', 'xi of this certificate')
    """
    x, least, most = (np.asarray(part, dtype=np.float64) for part in (values, low, high))
    order = np.argsort(x, kind="stable")
    middle = (least + most) / 2
    marks: list[Mark] = []
    if (least < most).any():
        marks.append(Spans(x, least, most, "seen", "anywhere between these ends"))
    marks.append(Line(x[order], middle[order], "seen", "from the same counts (no guarantee)"))
    marks.append(Dots(x, middle, "seen"))
    at = np.flatnonzero((x == own) & np.isfinite(middle)) if own is not None else np.arange(0)
    if at.size:
        marks.append(Dots(x[at], middle[at], "certified", f"{dial} of this certificate"))
    given = columns or [
        Column(dial, x, "exact"),
        Column("At least", least, "at least", "nothing certified"),
        Column("At most", most, "at most", "nothing certified"),
    ]
    return Figure(
        f"{outcome} against {dial}",
        f"What the same counts would give at another {dial}. It must be chosen before the labels "
        "are seen: a point picked here carries no guarantee.",
        Axis.around(dial, x),
        [Panel(Axis.around(outcome, [*least, *most], percent=percent), marks)],
        given,
        at.tolist(),
    )

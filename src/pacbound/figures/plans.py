"""Plans: what each planned look may show, and what a larger sample would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pacbound.figure import (
    Axis,
    Band,
    Column,
    Dots,
    Figure,
    Level,
    Line,
    Mark,
    Note,
    Panel,
    Upright,
)
from pacbound.figures.named import Named

_MOST_NAMED: Final = 15
"""Of so many looks the numbers of errors stand beside their points."""
UNIT: Final = (0.0, 1.0)


def errors_by_look(
    labels: Any,
    allowed: Any,
    passed: Any,
    *,
    claimed: float,
    rate: float,
    title: str = "Planned looks",
) -> Figure:
    """How many errors each look may show, and the chance that one has passed by then.

    Parameters
    ----------
    labels
        How many labels each look has, rising.
    allowed
        The largest number of errors with which it passes; below 0 if not even none is few enough.
    passed
        The chance that some look up to this one has passed, if the true rate is `rate`.
    claimed
        The rate that is claimed.
    rate
        The true rate that the chances are for.
    title
        A few words.

    Returns
    -------
    Figure
        Errors as a share of the labels, and below it the chances.

    Examples
    --------
    >>> figure = errors_by_look([100, 500], [-1, 4], [0.0, 0.4], claimed=0.02, rate=0.01)
    >>> figure.table().rows
    [['100', 'cannot pass', '0.0000'], ['500', '4', '0.4000']]
    """
    looks, chances = np.asarray(labels, np.float64), np.asarray(passed, np.float64)
    most = np.asarray(allowed, dtype=np.float64)
    errors = np.where(most >= 0, most, np.nan)
    share = errors / looks
    marks: list[Mark] = [
        Level(claimed, "ideal", f"the rate claimed: {claimed:g}"),
        Line(looks, share, "certified", "the look passes at or below"),
        Dots(looks, share, "certified"),
    ]
    if looks.size <= _MOST_NAMED:
        marks += [
            Note(look, up, f"{count:,.0f}", below=True)
            for look, up, count in zip(looks, share, errors, strict=True)
            if np.isfinite(up)
        ]
    below: list[Mark] = [
        Line(looks, chances, "seen"),
        Dots(looks, chances, "seen", f"passed if the rate is {rate:g}"),
    ]
    return Figure(
        title,
        f"Each number is how many errors a look may show. The lower panel is the chance that a "
        f"look has passed by then, if the true rate is {rate:g}; that part is no guarantee.",
        Axis.around("Labels", looks, whole=True),
        [
            Panel(
                Axis.around(
                    "Errors per label", [*share, claimed], room=0.15, within=UNIT, percent=True
                ),
                marks,
            ),
            Panel(Axis("Passed", -0.08, 1.08, percent=True), below, 0.4),
        ],
        [
            Column("Labels", looks, "count"),
            Column("Errors allowed", errors, "count", "cannot pass"),
            Column("Chance to have passed", chances),
        ],
    )


@dataclass(frozen=True, eq=False)
class Forecast:
    """What samples of several sizes would give, estimated from a pilot.

    Parameters
    ----------
    rows
        The sizes.
    value, low, high
        The average over the draws, and the ends of their middle eight tenths; NaN for none.
    reached
        The share of the draws that were certified and met the goal.
    """

    rows: Any
    value: Any
    low: Any
    high: Any
    reached: Any


def outcome_by_rows(
    forecast: Forecast,
    *,
    outcome: str,
    title: str,
    goal: Named | None = None,
    needed: Named | None = None,
    power: float | None = None,
    unit: str = "rows",
) -> Figure:
    """What a larger sample would give, as a pilot lets one expect; an estimate throughout.

    Parameters
    ----------
    forecast
        The sizes and what they would give.
    outcome
        What is gained, the words of the vertical axis: "Mean width".
    title
        A few words.
    goal
        What should be reached: `Named(0.1, "goal")`.
    needed
        The size that is enough: `Named(2000, "about 2,000 rows are enough")`.
    power
        The share of the draws that should reach the goal.
    unit
        What is counted: rows, rollouts.

    Returns
    -------
    Figure
        The average with a band, and below it the share of the draws that reached the goal.

    Examples
    --------
    >>> forecast = Forecast([100, 1000], [0.3, 0.1], [0.25, 0.09], [0.4, 0.12], [0.0, 0.9])
    >>> outcome_by_rows(forecast, outcome="Mean width", title="Plan").table().rows[1]
    ['1,000', '0.1000', '0.0900', '0.1200', '0.9000']
    """
    rows, value, low, high, reached = (
        np.asarray(part, dtype=np.float64)
        for part in (forecast.rows, forecast.value, forecast.low, forecast.high, forecast.reached)
    )
    marks: list[Mark] = [
        Band(rows, low, high, "seen", "10 to 90 % of the draws"),
        Line(rows, value, "seen", "average"),
        Dots(rows, value, "seen"),
    ]
    below: list[Mark] = [Line(rows, reached, "seen"), Dots(rows, reached, "seen")]
    if goal is not None:
        marks.append(Level(goal.value, "ideal", goal.name))
    if power is not None:
        below.append(Level(power, "ideal", f"{100 * power:g} % of the draws"))
    if needed is not None:
        marks.append(Upright(needed.value, "ideal", needed.name))
        below.append(Upright(needed.value, "ideal"))
    goals = [] if goal is None else [goal.value]
    sizes = [*rows, *([] if needed is None else [needed.value])]
    kept = [] if needed is None else [int(np.searchsorted(rows, needed.value))]
    return Figure(
        title,
        "Estimated by resampling a pilot; nothing here is guaranteed. The lower panel is the share "
        f"of the draws that {'met the goal' if goal else 'were certified'}.",
        Axis.around(unit.capitalize(), sizes, log=True, whole=True),
        [
            Panel(Axis.around(outcome, [*low, *high, *value, *goals]), marks),
            Panel(Axis("Enough" if goal else "Certified", -0.08, 1.08, percent=True), below, 0.4),
        ],
        _columns(unit, outcome, rows, [value, low, high, reached]),
        kept,
    )


def _columns(unit: str, outcome: str, rows: Any, parts: Sequence[Any]) -> list[Column]:
    names = (outcome, "10 % of draws below", "90 % of draws below", "Draws that reached it")
    shares = [Column(name, part, "share", "none") for name, part in zip(names, parts, strict=True)]
    return [Column(unit.capitalize(), rows, "count"), *shares]

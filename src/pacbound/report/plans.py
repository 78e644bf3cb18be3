"""Figures of plans: what each planned look may show, and what a larger sample would give."""

from __future__ import annotations

from typing import Final

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
from pacbound.planning import PilotPlan
from pacbound.stats.looks import PlannedLooks

# Of so many looks the numbers of errors stand beside their points.
_MOST_NAMED: Final = 15
# The ends of an axis of chances: dots at 0 and 1 are seen whole.
_CHANCE: Final = (-0.08, 1.08)


def errors_by_look(plan: PlannedLooks, rate: float) -> Figure:
    """How many errors each look may show, and the chance that one has passed by then if the true
    rate is `rate`.
    """
    looks, chances = np.array(plan.looks, np.float64), np.cumsum(plan.passing(rate))
    most = np.array(plan.largest_errors, dtype=np.float64)
    errors = np.where(most >= 0, most, np.nan)
    share = errors / looks
    marks: list[Mark] = [
        Level(plan.xi, "ideal", f"the rate claimed: {plan.xi:g}"),
        Line(looks, share, "certified", "the look passes at or below"),
        Dots(looks, share, "certified"),
    ]
    if looks.size <= _MOST_NAMED:
        marks += [
            Note(look, up, f"{count:,.0f}")
            for look, up, count in zip(looks, share, errors, strict=True)
            if np.isfinite(up)
        ]
    below: list[Mark] = [
        Line(looks, chances, "seen"),
        Dots(looks, chances, "seen", f"passed if the rate is {rate:g} (no guarantee)"),
    ]
    heights = [*share, plan.xi]
    up = Axis.around("Errors per label", heights, room=0.15, within=(0.0, 1.0), percent=True)
    return Figure(
        f"{looks.size:,} planned looks: a rate of at most {plan.xi:g}, all together at delta = "
        f"{plan.delta:g}",
        "Each number is how many errors a look may show. Below: the chance that a look has passed "
        "by then.",
        Axis.around("Labels", looks, whole=True),
        [Panel(up, marks), Panel(Axis("Passed", *_CHANCE, percent=True), below, 0.4)],
        [
            Column("Labels", looks, "count"),
            Column("Errors allowed", errors, "count", "cannot pass"),
            Column("Chance to have passed", chances),
        ],
    )


def outcome_by_rows(plan: PilotPlan) -> Figure:
    """What larger samples would give, as a pilot lets one expect; an estimate throughout."""
    rows, value, low, high, reached = np.transpose(
        [(one.rows, one.value, one.low, one.high, one.reached) for one in plan.points]
    )
    outcome = plan.measure.capitalize()
    marks: list[Mark] = [
        Band(rows, low, high, "seen", "10 to 90 % of the draws"),
        Line(rows, value, "seen", "average"),
        Dots(rows, value, "seen"),
    ]
    below: list[Mark] = [Line(rows, reached, "seen"), Dots(rows, reached, "seen")]
    heights, sizes = [*low, *high, *value], list(rows)
    if plan.goal is not None:
        marks.append(Level(plan.goal, "ideal", "goal"))
        heights.append(plan.goal)
    if plan.aims:
        below.append(Level(plan.power, "ideal", f"{100 * plan.power:g} % of the draws"))
    if plan.needed is not None:
        sizes.append(plan.needed.rows)
        name = f"about {plan.needed.rows:,} {plan.unit} are enough"
        marks.append(Upright(plan.needed.rows, "ideal", name))
        below.append(Upright(plan.needed.rows, "ideal"))
    enough = "Enough" if plan.goal is not None else "Certified"
    shares = (outcome, "10 % of draws below", "90 % of draws below", "Draws that reached it")
    columns = zip(shares, (value, low, high, reached), strict=True)
    return Figure(
        f"Plan for {plan.subject}: {plan.claim}",
        f"Estimated from a pilot of {plan.pilot_rows:,} {plan.unit}; nothing here is guaranteed",
        Axis.around(plan.unit.capitalize(), sizes, log=True, whole=True),
        [
            Panel(Axis.around(outcome, heights), marks),
            Panel(Axis(enough, *_CHANCE, percent=True), below, 0.4),
        ],
        [
            Column(plan.unit.capitalize(), rows, "count"),
            *(Column(name, part, "share", "none") for name, part in columns),
        ],
    )

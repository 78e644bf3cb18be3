"""Displays of plans: what each planned look may show, and what a larger sample would give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

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
from pacbound.report.with_matplotlib import Display
from pacbound.stats.looks import PlannedLooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of so many looks the numbers of errors stand beside their points.
_MOST_NAMED: Final = 15
# The ends of an axis of chances: dots at 0 and 1 are seen whole.
_CHANCE: Final = (-0.08, 1.08)


class LooksDisplay(Display):
    """Planned looks: the largest share of errors with which each passes, below the rate claimed.

    A look that fails even without errors has no point. The panel below shows, if the true rate
    is `rate`, the chance that some look up to this one has passed; that part is not guaranteed.

    `plot` sets `axes_`, `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

    Parameters
    ----------
    figure
        What is shown; `from_plan` makes it.

    Examples
    --------
    >>> from pacbound import planned_looks
    >>> plan = planned_looks(0.02, delta=0.01, looks=range(240, 2401, 240))
    >>> LooksDisplay.from_plan(plan).figure_.savefig("looks.png")
    """

    @classmethod
    def from_plan(
        cls, plan: PlannedLooks, *, rate: float | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw planned looks.

        Parameters
        ----------
        plan
            What `planned_looks` gave.
        rate
            The true rate of errors for the panel; half of the rate claimed if left out.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        LooksDisplay
            The display, drawn.

        Raises
        ------
        InvalidValueError
            If `rate` is not a rate.

        Examples
        --------
        >>> from pacbound import planned_looks
        >>> plan = planned_looks(0.02, delta=0.01, looks=[100, 1000, 2000])
        >>> LooksDisplay.from_plan(plan, rate=0.01).figure.table().rows
        [['100', 'cannot pass', '0.0000'], ['1,000', '9', '0.4573'], ['2,000', '24', '0.8552']]
        """
        return cls(errors_by_look(plan, plan.xi / 2 if rate is None else rate)).plot(ax)


class PlanDisplay(Display):
    """A plan from a pilot: what is likely to be gained by more rows; an estimate throughout.

    The line is the average over the draws, the band holds the middle eight tenths of them. A dotted
    line is the goal, and an upright one the size that was found to be enough. The panel below shows
    the share of the draws that were certified and met the goal.

    `plot` sets `axes_`, `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

    Parameters
    ----------
    figure
        What is shown; `from_plan` makes it.

    Examples
    --------
    >>> from pacbound import Tally, plan_from_pilot
    >>> pilot = Tally.count("calibration", [0.6, 0.9] * 50, [0, 1] * 50)
    >>> plan = plan_from_pilot(pilot, delta=0.05, sizes=[100, 1000], goal=0.1)
    >>> PlanDisplay.from_plan(plan).figure_.savefig("plan.png")
    """

    @classmethod
    def from_plan(cls, plan: PilotPlan, *, ax: Axes | None = None) -> Self:
        """Draw a plan.

        Parameters
        ----------
        plan
            What `plan_from_pilot` gave.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        PlanDisplay
            The display, drawn.

        Examples
        --------
        >>> from pacbound import Tally, plan_from_pilot
        >>> pilot = Tally.count("calibration", [0.6, 0.9] * 50, [0, 1] * 50)
        >>> plan = plan_from_pilot(pilot, delta=0.05, sizes=[100, 1000])
        >>> PlanDisplay.from_plan(plan).ax_.get_ylabel()
        'Mean width'
        """
        return cls(outcome_by_rows(plan)).plot(ax)


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
            Note(look, up, f"{count:,.0f}", below=True)
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

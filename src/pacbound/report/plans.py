"""What a larger sample would give, as a pilot lets one expect: a curve over the number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pacbound.planning import PilotPlan
from pacbound.report import palette
from pacbound.report.display import Display, light_grid, limits, panel_below, set_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PlanDisplay(Display):
    """A plan from a pilot: what is likely to be gained by more rows; an estimate throughout.

    The line is the average over the draws, the band holds the middle eight tenths of them. A dotted
    line is the goal, and a vertical one the size that was found to be enough. The panel below shows
    the share of the draws that were certified and met the goal.

    `plot` sets `ax_`, `panel_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

    Parameters
    ----------
    plan
        What `plan_from_pilot` gave.

    Examples
    --------
    >>> from pacbound import Tally, plan_from_pilot
    >>> pilot = Tally.count("calibration", [0.6, 0.9] * 50, [0, 1] * 50)
    >>> plan = plan_from_pilot(pilot, delta=0.05, sizes=[100, 1000], goal=0.1)
    >>> PlanDisplay.from_plan(plan).figure_.savefig("plan.png")
    """

    panel_: Axes

    def __init__(self, plan: PilotPlan) -> None:
        self.plan = plan

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
        return cls(plan).plot(ax)

    def _draw(self, ax: Axes) -> None:
        plan = self.plan
        self.panel_ = panel = panel_below(ax)
        light_grid(ax)
        rows = [point.rows for point in plan.points]
        style: dict[str, Any] = {"color": palette.OBSERVED, "marker": "o", "markersize": 4}
        low, high = [point.low for point in plan.points], [point.high for point in plan.points]
        label = "10 to 90 % of the draws"
        ax.fill_between(
            rows, low, high, color=palette.OBSERVED, alpha=0.18, linewidth=0, label=label
        )
        ax.plot(rows, [point.value for point in plan.points], label="average", gid="value", **style)
        panel.plot(rows, [point.reached for point in plan.points], gid="reached", **style)
        self._draw_goal(ax, panel)
        ax.set_xscale("log")
        ticks = _ticks(min(rows), max(rows))
        panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        panel.minorticks_off()
        ax.set_ylim(*limits([*low, *high, *([] if plan.goal is None else [plan.goal])]))
        panel.set_ylim(-0.08, 1.08)
        ax.set(ylabel=plan.measure.capitalize())
        panel.set(xlabel=plan.unit.capitalize(), ylabel="Enough" if plan.goal else "Certified")
        set_heading(
            ax,
            f"Plan for {plan.subject}: {plan.claim}\nEstimated from a pilot of "
            f"{plan.pilot_rows:,} {plan.unit}; nothing here is guaranteed",
        )

    def _draw_goal(self, ax: Axes, panel: Axes) -> None:
        style: dict[str, Any] = {"color": palette.IDEAL, "linestyle": ":"}
        if self.plan.goal is not None:
            ax.axhline(self.plan.goal, label="goal", gid="goal", **style)
        if self.plan.aims:
            panel.axhline(self.plan.power, gid="power", **style)
        if self.plan.needed is not None:
            style = {"color": palette.UNKNOWN, "linestyle": "--", "linewidth": 1}
            label = f"about {self.plan.needed.rows:,} {self.plan.unit} are enough"
            ax.axvline(self.plan.needed.rows, label=label, gid="needed", **style)
            panel.axvline(self.plan.needed.rows, **style)


def _ticks(least: int, most: int) -> list[int]:
    """1, 2 and 5 times powers of ten from `least` to `most`; over many powers, only the powers."""
    powers = [10**digits for digits in range(len(str(most)))]
    steps = (1, 2, 5) if most < 1000 * least else (1,)
    ticks = [step * power for power in powers for step in steps if least <= step * power <= most]
    return ticks or [least]

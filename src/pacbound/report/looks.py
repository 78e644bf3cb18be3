"""Planned looks at a growing sample: what each may show, and when one is likely to pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from pacbound.report import palette
from pacbound.report.display import Display, light_grid, limits, panel_below, set_heading
from pacbound.stats.looks import PlannedLooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LooksDisplay(Display):
    """Planned looks: the largest share of errors with which each passes, below the rate claimed.

    A look that fails even without errors has no point. The panel below shows, if the true rate
    is `rate`, the chance that some look up to this one has passed; that part is not guaranteed.

    `plot` sets `ax_`, `panel_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

    Parameters
    ----------
    plan
        What `planned_looks` gave.
    rate
        The true rate of errors for the panel; half of the rate claimed if left out.

    Examples
    --------
    >>> from pacbound import planned_looks
    >>> plan = planned_looks(0.02, delta=0.01, looks=range(240, 2401, 240))
    >>> LooksDisplay.from_plan(plan).figure_.savefig("looks.png")
    """

    panel_: Axes

    def __init__(self, plan: PlannedLooks, *, rate: float | None = None) -> None:
        self.plan = plan
        self.rate = plan.xi / 2 if rate is None else rate
        self.passed = np.cumsum(plan.passing(self.rate))

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
        >>> plan = planned_looks(0.02, delta=0.01, looks=[500, 1000, 2000])
        >>> LooksDisplay.from_plan(plan, rate=0.01).passed.round(2).tolist()
        [0.12, 0.47, 0.86]
        """
        return cls(plan, rate=rate).plot(ax)

    def _draw(self, ax: Axes) -> None:
        plan = self.plan
        self.panel_ = panel = panel_below(ax)
        light_grid(ax)
        looks, most = np.array(plan.looks), np.array(plan.largest_errors, dtype=np.float64)
        allowed = np.where(most >= 0, most, np.nan) / looks
        ax.axhline(
            plan.xi, color=palette.IDEAL, linestyle=":", label="the rate claimed", gid="claimed"
        )
        ax.plot(
            looks,
            allowed,
            "o-",
            color=palette.CERTIFIED,
            markersize=5,
            label="the look passes at or below",
            gid="allowed",
        )
        for look, share, errors in zip(looks, allowed, plan.largest_errors, strict=True):
            if errors >= 0 and len(looks) <= _MOST_NAMED:
                ax.annotate(
                    f"{errors:,}",
                    (look, share),
                    (0, -6),
                    textcoords="offset points",
                    ha="center",
                    va="top",
                    fontsize="small",
                )
        panel.plot(looks, self.passed, "o-", color=palette.OBSERVED, markersize=4, gid="passed")
        ax.set_ylim(*limits([*allowed, plan.xi], room=0.15, least=plan.xi / 2))
        panel.set_ylim(-0.08, 1.08)
        ax.set(ylabel="Errors, as a share of the labels")
        panel.set(xlabel="Labels", ylabel=f"Passed\nat {self.rate:g}")
        set_heading(
            ax,
            f"{len(looks):,} planned looks: a rate of at most {plan.xi:g}, all together at delta = "
            f"{plan.delta:g}",
        )


_MOST_NAMED = 15
"""Of so many looks the numbers of errors stand beside their points."""

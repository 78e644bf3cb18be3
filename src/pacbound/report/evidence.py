"""The evidence of a monitor over its labels, and the limit at which the alarm rings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.monitor import Monitor
from pacbound.report import palette
from pacbound.report.display import Display, light_grid, set_heading
from pacbound.stats.arguments import real_number, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class EvidenceDisplay(Display):
    """The evidence against a claim over the labels, with the limit and the alarms.

    The line is the highest evidence in each stretch of labels, so no peak is lost. It rises where
    losses come more often than is allowed. That it stays low proves nothing.

    `plot` sets `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`. In a
    notebook the display shows itself.

    Parameters
    ----------
    labels
        The label with which each stretch ends, rising.
    evidence
        The highest evidence in each stretch, from 0.
    limit
        The evidence at which the alarm rings, above 0.
    alarms
        The labels at which it rang.
    claimed
        What is watched and promised, for the title.

    Raises
    ------
    InvalidValueError
        If there are no labels, they do not rise, there is not one evidence for each, or a number
        is out of its range.

    Examples
    --------
    >>> display = EvidenceDisplay([100, 200, 300], [1.2, 0.8, 1500.0], limit=1000, alarms=[290])
    >>> display.plot().figure_.savefig("evidence.png")
    """

    def __init__(
        self,
        labels: Any,
        evidence: Any,
        *,
        limit: float,
        alarms: Sequence[int] = (),
        claimed: str = "",
    ) -> None:
        self.labels = whole_numbers(labels, "labels", least=1)
        self.evidence = _evidence(evidence, self.labels)
        self.limit = real_number(limit, "limit", "a limit")
        self.alarms = (
            whole_numbers(list(alarms), "alarms") if len(alarms) else np.empty(0, np.int64)
        )
        self.claimed = claimed
        if not 0.0 < self.limit < np.inf:
            raise InvalidValueError(f"limit={limit} is not a limit: expected a number above 0.")

    @classmethod
    def from_monitor(cls, monitor: Monitor, *, ax: Axes | None = None) -> Self:
        """Draw what a monitor has seen so far.

        Parameters
        ----------
        monitor
            The monitor. It must have seen a label.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        EvidenceDisplay
            The display, drawn.

        Raises
        ------
        InvalidTypeError
            If it is not a monitor.
        InvalidValueError
            If it has seen no label.

        Examples
        --------
        >>> from pacbound import Monitor, certify_shield
        >>> certificate = certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
        >>> monitor = Monitor(certificate, delta=1e-3)
        >>> _ = monitor.update([False] * 600 + [True] * 10)
        >>> EvidenceDisplay.from_monitor(monitor).alarms.tolist()
        [604]
        """
        if not isinstance(monitor, Monitor):
            raise InvalidTypeError(
                f"monitor is of type {type(monitor).__name__}: expected a Monitor."
            )
        labels, evidence = monitor.history
        claimed = (
            f"Monitor of a {monitor.certificate.kind} certificate, {monitor.labels:,} labels\n"
            f"delta = {monitor.delta:g}, false alarms: {monitor.false_alarms}"
        )
        alarms = [alarm.label for alarm in monitor.alarms]
        display = cls(labels, evidence, limit=monitor.limit, alarms=alarms, claimed=claimed)
        return display.plot(ax)

    def _draw(self, ax: Axes) -> None:
        shown = np.maximum(self.evidence, np.finfo(np.float64).tiny)
        starts = np.concatenate([[0], self.labels[:-1]])
        ax.stairs(
            shown,
            np.append(starts, self.labels[-1]),
            baseline=None,
            color=palette.OBSERVED,
            linewidth=1.6,
            label="evidence (highest in each stretch)",
        )
        ax.axhline(
            self.limit, color=palette.CERTIFIED, linestyle="--", label=f"limit {self.limit:,.4g}"
        )
        if self.alarms.size:
            ax.plot(
                self.alarms,
                np.full(self.alarms.size, self.limit),
                linestyle="none",
                marker="v",
                markersize=9,
                color=palette.IDEAL,
                label="alarm",
                zorder=4,
            )
        ax.set_yscale("log")
        least, most = float(shown.min()), max(float(shown.max()), self.limit)
        ax.set_ylim(least / 2, most * 3)
        # An alarm at the last label must not lie on the edge.
        ax.set_xlim(0, 1.03 * int(self.labels[-1]))
        ax.set(xlabel="Labels", ylabel="Evidence against the claim")
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        ax.locator_params(axis="x", nbins=6)
        light_grid(ax)
        set_heading(ax, self.claimed)


def _evidence(values: Any, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    evidence = np.asarray(values, dtype=np.float64)
    if not labels.size or labels.ndim != 1 or evidence.shape != labels.shape:
        raise InvalidValueError(
            f"labels of shape {labels.shape} and evidence of shape {evidence.shape}: expected one "
            "number for each stretch of labels, and at least one."
        )
    if (np.diff(labels) <= 0).any() or not ((evidence >= 0) & (evidence < np.inf)).all():
        raise InvalidValueError("labels do not rise, or evidence is not a number from 0.")
    return evidence

"""The evidence of a monitor over its labels, and the limit at which the alarm rings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.figure import Axis, Column, Dots, Figure, Level, Mark, Panel, Steps
from pacbound.monitor import Monitor
from pacbound.report.with_matplotlib import Display
from pacbound.says import share
from pacbound.stats.arguments import real_number, whole_numbers
from pacbound.tally.questions import with_article

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Evidence below this is drawn here: how little there is says nothing.
_LEAST: Final = 1e-6
_CAPTION: Final = (
    "Evidence rises where losses come more often than the claim allows. That it stays low proves "
    "nothing."
)


class EvidenceDisplay(Display):
    """The evidence against a claim over the labels, with the limit and the alarms.

    The line is the highest evidence in each stretch of labels, so no peak is lost. It rises where
    losses come more often than is allowed. That it stays low proves nothing.

    `plot` sets `axes_`, `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

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
        claimed: str = "Evidence over time",
    ) -> None:
        ends, found = whole_numbers(labels, "labels", least=1), np.asarray(evidence, np.float64)
        if not ends.size or ends.ndim != 1 or found.shape != ends.shape:
            raise InvalidValueError(
                f"labels of shape {ends.shape} and evidence of shape {found.shape}: expected one "
                "number for each stretch of labels, and at least one."
            )
        if (np.diff(ends) <= 0).any() or not ((found >= 0) & (found < np.inf)).all():
            raise InvalidValueError("labels do not rise, or evidence is not a number from 0.")
        if not 0.0 < real_number(limit, "limit", "a limit") < np.inf:
            raise InvalidValueError(f"limit={limit} is not a limit: expected a number above 0.")
        rung = whole_numbers(list(alarms), "alarms").tolist() if len(alarms) else []
        super().__init__(evidence_over_time(ends, found, limit=limit, alarms=rung, title=claimed))

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
        >>> EvidenceDisplay.from_monitor(monitor).figure.legend[-1].name
        'an alarm'
        """
        if not isinstance(monitor, Monitor):
            raise InvalidTypeError.of("monitor", monitor, "a Monitor")
        promised = f"false alarms: {monitor.false_alarms}"
        if monitor.false_alarms == "ever":
            promised = f"the chance of any false alarm is at most {share(monitor.delta, 'up').text}"
        kind = with_article(monitor.certificate.kind)
        claimed = f"Monitor of {kind} certificate, {monitor.labels:,} labels; {promised}"
        alarms = [alarm.label for alarm in monitor.alarms]
        display = cls(*monitor.history, limit=monitor.limit, alarms=alarms, claimed=claimed)
        return display.plot(ax)


def evidence_over_time(
    labels: Any, evidence: Any, *, limit: float, alarms: Sequence[int] = (), title: str
) -> Figure:
    """The highest evidence in each stretch of labels, the limit, and the alarms."""
    ends, found = np.asarray(labels, np.float64), np.asarray(evidence, np.float64)
    shown = np.maximum(found, _LEAST)
    marks: list[Mark] = [
        Steps(
            np.append(0.0, ends),
            np.append(shown, shown[-1:]),
            "seen",
            "evidence (highest in each stretch)",
            "from",
        ),
        Level(limit, "certified", f"the alarm rings at {limit:,.4g}"),
    ]
    if alarms:
        many = "an alarm" if len(alarms) == 1 else f"{len(alarms):,} alarms"
        marks.append(Dots(alarms, np.full(len(alarms), limit), "alarm", many))
    columns = [
        Column("Up to label", ends, "count"),
        Column("Highest evidence", [f"{value:.4g}" for value in found], "text"),
    ]
    return Figure(
        title,
        _CAPTION,
        Axis("Labels", 0.0, 1.03 * max([*ends[-1:], *alarms]), whole=True),
        [Panel(Axis.around("Evidence against the claim", [1.0, *shown, limit], log=True), marks)],
        columns,
        [int(found.argmax())],
    )

"""The evidence of a monitor over its labels, and the limit at which the alarm rings."""

from __future__ import annotations

from typing import Final

import numpy as np

from pacbound.errors import InvalidValueError
from pacbound.figure import Axis, Column, Dots, Figure, Level, Mark, Panel, Steps
from pacbound.monitor import Monitor
from pacbound.says import share
from pacbound.tally.questions import with_article

# Evidence below this is drawn here: how little there is says nothing.
_LEAST: Final = 1e-6
_CAPTION: Final = (
    "Evidence rises where losses come more often than the claim allows. That it stays low proves "
    "nothing."
)


def evidence_over_time(monitor: Monitor) -> Figure:
    """The highest evidence in each stretch of labels, so that no peak is lost, the limit, and the
    alarms.
    """
    if not monitor.labels:
        raise InvalidValueError("This monitor has seen no label: there is no evidence to draw.")
    ends, found = (np.asarray(part, np.float64) for part in monitor.history)
    shown = np.maximum(found, _LEAST)
    marks: list[Mark] = [
        Steps(
            np.append(0.0, ends),
            np.append(shown, shown[-1:]),
            "seen",
            "evidence (highest in each stretch)",
            "from",
        ),
        Level(monitor.limit, "certified", f"the alarm rings at {monitor.limit:,.4g}"),
    ]
    alarms = [alarm.label for alarm in monitor.alarms]
    if alarms:
        many = "an alarm" if len(alarms) == 1 else f"{len(alarms):,} alarms"
        marks.append(Dots(alarms, np.full(len(alarms), monitor.limit), "alarm", many))
    promised = f"false alarms: {monitor.false_alarms}"
    if monitor.false_alarms == "ever":
        promised = f"the chance of any false alarm is at most {share(monitor.delta, 'up').text}"
    kind = with_article(monitor.certificate.kind)
    heights = [1.0, *shown, monitor.limit]
    return Figure(
        f"Monitor of {kind} certificate, {monitor.labels:,} labels; {promised}",
        _CAPTION,
        Axis("Labels", 0.0, 1.03 * max([*ends[-1:], *alarms]), whole=True),
        [Panel(Axis.around("Evidence against the claim", heights, log=True), marks)],
        [
            Column("Up to label", ends, "count"),
            Column("Highest evidence", [f"{value:.4g}" for value in found], "text"),
        ],
        [int(found.argmax())],
    )

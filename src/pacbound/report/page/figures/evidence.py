"""The evidence of a monitor over its labels."""

from __future__ import annotations

import numpy as np

from pacbound.monitor import Monitor
from pacbound.report.page.chart import Chart, ChartAxis, ChartFigure, Legend, selected

_LEAST = 1e-6
"""Evidence below this is drawn here: how little there is says nothing."""


def evidence(monitor: Monitor, *, rows: int) -> ChartFigure | None:
    """The highest evidence in each stretch of labels; None before the first label."""
    labels, found = monitor.history
    if not labels.size:
        return None
    shown = np.maximum(found, _LEAST)
    chart = Chart(
        ChartAxis("Labels", 0, 1.03 * int(labels[-1])),
        ChartAxis(
            "Evidence against the claim",
            float(min(shown.min(), 1.0)) / 2,
            3 * max(float(shown.max()), monitor.limit),
            log=True,
        ),
    )
    chart.steps([0, *labels], [*shown, shown[-1]], "seen")
    chart.level(monitor.limit, "certified dashed")
    legend = [
        Legend("seen", "evidence (highest in each stretch)"),
        Legend("certified dashed", f"the alarm rings at {monitor.limit:,.4g}"),
    ]
    if monitor.alarms:
        rung = [alarm.label for alarm in monitor.alarms]
        chart.dots(rung, [monitor.limit] * len(rung), "alarm-dot", radius=5)
        legend.append(Legend("alarm-dot", "an alarm", "dot"))
    places = selected(labels.size, rows, int(found.argmax()))
    return ChartFigure(
        "Evidence over time",
        "Evidence rises where losses come more often than the claim allows. That it stays low "
        "proves nothing.",
        [chart],
        legend,
        ["Up to label", "Highest evidence"],
        [[f"{labels[at]:,}", f"{found[at]:.4g}"] for at in places],
        None if len(places) == labels.size else int(labels.size),
    )

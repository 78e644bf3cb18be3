"""Negatives and positives that raise an alarm, by the threshold of a claim about false alarms."""

from __future__ import annotations

import numpy as np

from pacbound.certificate.document import exact
from pacbound.certificate.false_alarms import FalseAlarmCertificate
from pacbound.report.page.chart import Chart, ChartAxis, ChartFigure, Legend, percent, selected
from pacbound.report.page.figures.recall import falling


def false_alarms(certificate: FalseAlarmCertificate, *, rows: int) -> ChartFigure:
    """Both curves, with `rows` of their points as numbers."""
    curve = certificate.alarm_curve()
    chart = Chart(
        ChartAxis("Threshold", 0, 1), ChartAxis("Share that raises an alarm", 0, 1, written=percent)
    )
    # From the lowest threshold up: below the lowest score all rows raise an alarm.
    thresholds = np.concatenate([[0.0], curve.thresholds[::-1], [1.0]])
    false, found = (
        np.concatenate([[1.0], part[::-1], [0.0]]) for part in (curve.false_alarms, curve.found)
    )
    legend = []
    if certificate.positives:
        chart.line(*falling(thresholds, found), "flagged")
        legend.append(Legend("flagged", "positives, as seen"))
    if certificate.negatives:
        chart.line(*falling(thresholds, false), "seen")
        legend.insert(0, Legend("seen", "negatives, as seen (no guarantee)"))
    chart.level(certificate.xi, "certified dashed")
    legend.append(Legend("certified dashed", f"xi {exact(certificate.xi)}"))
    if certificate.certified:
        chart.upright(certificate.threshold, "certified")
        legend.append(Legend("certified", f"alarms from {certificate.threshold!r} on"))
    place = int(np.count_nonzero(curve.thresholds >= certificate.threshold)) - 1
    places = selected(curve.thresholds.size, rows, place)
    return ChartFigure(
        "False alarms against the threshold",
        "A row raises an alarm if its score reaches the threshold. The curves are what was seen; "
        "what is certified is xi, at the upright line and above. It says nothing of positives "
        "that are missed."
        if certificate.certified
        else "A row raises an alarm if its score reaches the threshold. None is certified.",
        [chart],
        legend,
        ["Threshold", "Negatives with an alarm", "Positives with an alarm"],
        [
            [
                repr(float(curve.thresholds[at])),
                *(
                    "none there" if np.isnan(part[at]) else f"{part[at]:.4f}"
                    for part in (curve.false_alarms, curve.found)
                ),
            ]
            for at in places
        ],
        None if len(places) == curve.thresholds.size else int(curve.thresholds.size),
    )

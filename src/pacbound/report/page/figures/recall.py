"""Positives found and rows flagged, by the threshold of a recall certificate."""

from __future__ import annotations

import numpy as np

from pacbound.certificate.document import exact
from pacbound.certificate.recall import RecallCertificate
from pacbound.report.page.chart import Chart, ChartAxis, ChartFigure, Legend, percent, selected


def recall(certificate: RecallCertificate, *, rows: int) -> ChartFigure:
    """Both curves, with `rows` of their points as numbers."""
    curve = certificate.recall_curve()
    chart = Chart(ChartAxis("Threshold", 0, 1), ChartAxis("Share", 0, 1, written=percent))
    # From the lowest threshold up: below the lowest score all rows are flagged.
    thresholds = np.concatenate([[0.0], curve.thresholds[::-1], [1.0]])
    found, flagged = (
        np.concatenate([[1.0], part[::-1], [0.0]]) for part in (curve.recall, curve.flagged)
    )
    chart.line(*falling(thresholds, flagged), "flagged")
    legend = [Legend("flagged", "rows flagged, as seen")]
    if certificate.positives:
        chart.line(*falling(thresholds, found), "seen")
        legend.insert(0, Legend("seen", "positives flagged, as seen (no guarantee)"))
    chart.level(certificate.target, "certified dashed")
    legend.append(Legend("certified dashed", f"target {exact(certificate.target)}"))
    if certificate.certified:
        chart.upright(certificate.threshold, "certified")
        legend.append(Legend("certified", f"flag from {certificate.threshold!r} on"))
    place = int(np.count_nonzero(curve.thresholds >= certificate.threshold)) - 1
    places = selected(curve.thresholds.size, rows, place)
    return ChartFigure(
        "Recall against the threshold",
        "A row is flagged if its score reaches the threshold. The curves are what was seen; what "
        "is certified is the target, at the upright line."
        if certificate.certified
        else "A row is flagged if its score reaches the threshold. No threshold is certified.",
        [chart],
        legend,
        ["Threshold", "Positives flagged", "Rows flagged"],
        [
            [
                repr(float(curve.thresholds[at])),
                "none there" if np.isnan(curve.recall[at]) else f"{curve.recall[at]:.4f}",
                f"{curve.flagged[at]:.4f}",
            ]
            for at in places
        ],
        None if len(places) == curve.thresholds.size else int(curve.thresholds.size),
    )


def falling(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a line that has each height from the point before up to its own."""
    return np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]

"""The search of a shield certificate: unsafe rollouts missed, by the threshold."""

from __future__ import annotations

import numpy as np

from pacbound.certificate.shield import ShieldCertificate
from pacbound.procedures.shield import TOP
from pacbound.report.page.chart import Chart, ChartAxis, ChartFigure, Legend, selected


def search(certificate: ShieldCertificate, *, rows: int) -> ChartFigure | None:
    """How many unsafe rollouts stay unnoticed below each threshold; None if no threshold above 0
    was tried.
    """
    cells, misses = certificate.cells, certificate.misses
    if not (cells > 0).any():
        return None
    # A threshold just above a cell misses what lies in it.
    thresholds = np.concatenate([[0.0], np.maximum(cells, 0) / TOP])
    missed = np.concatenate([[0], misses])
    if np.isinf(certificate.threshold) and certificate.threshold > 0:
        thresholds, missed = np.append(thresholds, 1.0), np.append(missed, misses[-1])
    highest = max(int(misses[-1]), certificate.allowed, 1)
    chart = Chart(
        ChartAxis("Threshold on the danger", 0, max(0.05, min(1.0, 1.05 * float(thresholds[-1])))),
        ChartAxis("Unsafe rollouts missed", 0, 1.08 * highest),
    )
    chart.steps(thresholds, missed, "seen")
    legend = [Legend("seen", "missed below the threshold, as seen")]
    if certificate.allowed >= 0:
        chart.level(certificate.allowed, "certified dashed")
        legend.append(Legend("certified dashed", f"{certificate.allowed:,} may be missed"))
    if np.isfinite(certificate.threshold):
        chart.upright(certificate.threshold, "certified")
        legend.append(Legend("certified", f"the shield fires from {certificate.threshold!r} on"))
    places = selected(cells.size, rows)
    return ChartFigure(
        "Unsafe rollouts missed against the threshold",
        "The search ends at the first danger at which more would be missed than may be; the "
        "certificate holds no counts beyond it.",
        [chart],
        legend,
        ["Danger up to", "Unsafe rollouts missed"],
        [
            [
                "lost at the start" if cells[at] < 0 else repr(float(cells[at] / TOP)),
                f"{misses[at]:,}",
            ]
            for at in places
        ],
        None if len(places) == cells.size else int(cells.size),
    )

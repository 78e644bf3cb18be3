"""Risk against coverage of an abstention certificate."""

from __future__ import annotations

import numpy as np

from pacbound.certificate.abstention import AbstentionCertificate
from pacbound.certificate.document import exact
from pacbound.report.page.chart import (
    Chart,
    ChartAxis,
    ChartFigure,
    Legend,
    from_zero,
    percent,
    selected,
)
from pacbound.report.page.markup import in_short
from pacbound.report.risk_coverage import FEW


def risk_coverage(
    certificate: AbstentionCertificate, group: str | None, *, rows: int
) -> ChartFigure:
    """The curve of one table, with `rows` of its points as numbers."""
    curve = certificate.risk_coverage(group)
    own = next(table for table in certificate.tables if table.group == group)
    shown = curve.coverage * own.rows >= min(FEW, own.rows / 100)
    place = int(np.count_nonzero(curve.thresholds >= own.limit)) - 1
    coverage, risk = curve.coverage[shown], curve.risk[shown]
    chart = Chart(
        ChartAxis("Coverage (share of rows answered)", *from_zero(coverage), written=percent),
        ChartAxis(
            "Risk (share of answers wrong)", *from_zero([*risk, certificate.xi]), written=percent
        ),
    )
    chart.steps(coverage, risk, "seen")
    chart.level(certificate.xi, "certified dashed")
    legend = [
        Legend("seen", "seen in these rows (no guarantee)"),
        Legend("certified dashed", f"xi = {exact(certificate.xi)}"),
    ]
    if place >= 0:
        chart.dots(curve.coverage[place], curve.risk[place], "certified-dot", radius=5)
        legend.append(Legend("certified-dot", f"answer from {own.limit!r} on", "dot"))
    places = selected(curve.thresholds.size, rows, place)
    return ChartFigure(
        "Risk against coverage" + ("" if group is None else f": {in_short(group)}"),
        "As the threshold falls, more rows are answered. No point of the curve is certified; what "
        "is certified at the dot is the dashed line."
        if place >= 0
        else "As the threshold falls, more rows are answered. No threshold is certified.",
        [chart],
        legend,
        ["Threshold", "Coverage", "Risk"],
        [
            [
                repr(float(curve.thresholds[at])),
                f"{curve.coverage[at]:.4f}",
                f"{curve.risk[at]:.4f}",
            ]
            for at in places
        ],
        None if len(places) == curve.thresholds.size else int(curve.thresholds.size),
    )

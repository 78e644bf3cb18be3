"""The sample of a batch certificate: disagreements found, in the order of the scores."""

from __future__ import annotations

import numpy as np

from pacbound.certificate.batch import BatchCertificate
from pacbound.report.page.chart import Chart, ChartAxis, ChartFigure, Legend, selected


def sample(certificate: BatchCertificate, *, rows: int) -> ChartFigure | None:
    """The disagreements of the last look that was taken; None if nothing was sampled."""
    if not certificate.disagreements:
        return None
    ranks, allowed = (
        certificate.disagreements[-1],
        certificate.allowed[len(certificate.disagreements) - 1],
    )
    found = np.arange(1, ranks.size + 1)
    end = max(certificate.scored, 1)
    chart = Chart(
        ChartAxis("Records, the highest score first", 0, end),
        ChartAxis("Sampled disagreements", 0, 1.08 * max(ranks.size, allowed, 1)),
    )
    last = ranks.size or 0
    chart.steps([0, *ranks, certificate.scored], [0, *found, last], "seen")
    legend = [Legend("seen", "found in the sample up to there")]
    if allowed >= 0:
        chart.level(allowed, "certified dashed")
        legend.append(Legend("certified dashed", f"{allowed:,} allowed"))
    chart.upright(certificate.stop, "certified")
    legend.append(Legend("certified", f"the first {certificate.stop:,} records may be kept"))
    places = selected(ranks.size, rows)
    return ChartFigure(
        "Disagreements in the sample",
        "Records stand in the order of their scores. Those before the disagreement that is one "
        "too many keep the fast answer, unless they were sampled.",
        [chart],
        legend,
        ["Disagreement", "Place of the record"],
        [[f"{at + 1:,}", f"{ranks[at]:,}"] for at in places],
        None if len(places) == ranks.size else int(ranks.size),
    )

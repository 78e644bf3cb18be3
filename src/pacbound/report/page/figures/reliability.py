"""The reliability diagram of a calibration certificate: an interval for each bin."""

from __future__ import annotations

import numpy as np

from pacbound.certificate.calibration import CalibrationBins, CalibrationCertificate
from pacbound.certificate.calibration_words import cell_name, rounded_down, rounded_up
from pacbound.report.bins import single_values, unreachable
from pacbound.report.page.chart import Chart, ChartAxis, ChartFigure, Legend, from_zero, percent
from pacbound.report.page.markup import in_short


def reliability(
    certificate: CalibrationCertificate, group: str | None, *, rows: int
) -> ChartFigure:
    """The bins of one table; its numbers are those of the first `rows` bins that hold any."""
    bins = certificate.tables[group]
    # Where rows were chosen per bin, how many a bin has says nothing.
    is_drawn_by_bin = certificate.draw is not None and certificate.draw.by == "strata"
    seen = np.flatnonzero(bins.trials > 0)
    shown = seen[:rows].tolist()
    across = "Probability" if certificate.scope == "all-labels" else "Confidence"
    charts = [_intervals(bins, f"{across} (0 to 1)")]
    legend = [
        Legend("box", "certified interval", "box"),
        Legend("seen", "share right, as seen (no guarantee)"),
        Legend("ideal", "confidence equals accuracy"),
    ]
    if (bins.trials == 0).any():
        legend.append(Legend("unknown", "no rows: nothing is known", "box"))
    if not is_drawn_by_bin:
        charts.append(_shares(bins))
        legend.append(Legend("rows", "share of the rows", "box"))
    return ChartFigure(
        "Reliability" if group is None else f"Reliability: {in_short(group)}",
        f"Each box is a bin, as high as the certified interval for its accuracy. "
        f"{seen.size} of {len(bins)} bins hold rows, {int(bins.trials.sum()):,} in all.",
        charts,
        legend,
        ["Bin", "Rows", "Right", "Share right", "At least", "At most"],
        [
            [
                cell_name(certificate, cell),
                f"{bins.trials[cell]:,}",
                f"{bins.successes[cell]:,}",
                f"{bins.estimate[cell]:.4f}",
                rounded_down(bins.lower[cell]),
                rounded_up(bins.upper[cell]),
            ]
            for cell in shown
        ],
        None if len(shown) == seen.size else int(seen.size),
    )


def _intervals(bins: CalibrationBins, across: str) -> Chart:
    chart = Chart(ChartAxis(across, 0, 1), ChartAxis("Accuracy (share right)", 0, 1))
    seen, point = bins.trials > 0, single_values(bins)
    wide, alone = seen & ~point, seen & point
    unknown = ~seen & ~unreachable(bins) & ~point
    for cells, class_ in ((unknown, "unknown"), (wide, "box")):
        ends = bins.begin[cells], bins.end[cells]
        chart.boxes(*ends, bins.lower[cells], bins.upper[cells], class_)
    chart.spans(bins.begin[alone], bins.lower[alone], bins.upper[alone], "certified")
    chart.line([0, 1], [0, 1], "ideal")
    chart.flats(bins.begin[wide], bins.end[wide], bins.estimate[wide], "seen")
    middle = (bins.begin + bins.end) / 2
    chart.dots(middle[seen], bins.estimate[seen], "seen-dot", radius=2.5)
    return chart


def _shares(bins: CalibrationBins) -> Chart:
    shares = bins.trials / max(1, int(bins.trials.sum()))
    point = single_values(bins)
    up = ChartAxis("Rows", *from_zero([0, *shares]), written=percent)
    chart = Chart(ChartAxis("Share of the rows in each bin", 0, 1), up, height=130)
    wide = (bins.trials > 0) & ~point
    chart.boxes(bins.begin[wide], bins.end[wide], 0 * shares[wide], shares[wide], "rows")
    chart.spans(bins.begin[point], 0 * shares[point], shares[point], "certified")
    return chart

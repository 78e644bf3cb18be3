"""What a stricter or looser xi would cost, from the values of an explorer."""

from __future__ import annotations

from pacbound.certificate.document import exact
from pacbound.report.display import limits
from pacbound.report.page.chart import Chart, ChartAxis, ChartFigure, Legend, number, percent
from pacbound.report.page.explorer.grid import Explorer


def trade_off(explorer: Explorer) -> list[ChartFigure]:
    """The trade-off at the certificate's own delta, if there is one to be drawn."""
    way, (own, level) = explorer.explorable, explorer.own
    readings = [row[level] for row in explorer.readings]
    told = [
        (value, *reading.drawn)
        for value, reading in zip(explorer.dial, readings, strict=True)
        if value is not None and reading.drawn is not None
    ]
    if len(told) < 2:
        return []
    values, low, high = zip(*told, strict=True)
    is_share = way.drawn.startswith(("Rows", "Positives"))
    across = ChartAxis(f"{way.dial}", *limits(values, least=1e-9))
    up = ChartAxis(way.drawn, *limits([*low, *high]), written=percent if is_share else number)
    chart = Chart(across, up)
    chart.spans(values, low, high, "seen-span")
    middle = [(least + most) / 2 for least, most in zip(low, high, strict=True)]
    chart.line(values, middle, "seen")
    chart.dots(values, middle, "seen-dot")
    mine = explorer.dial[own]
    at = values.index(mine) if mine in values else None
    legend = [Legend("seen", f"at delta = {exact(explorer.deltas[level])} (descriptive)")]
    if any(least < most for least, most in zip(low, high, strict=True)):
        legend.append(Legend("seen-span", "anywhere between these ends"))
    if at is not None:
        chart.dots(values[at], middle[at], "certified-dot", radius=5)
        legend.append(Legend("certified-dot", f"{way.dial} of this certificate", "dot"))
    title = f"{way.drawn} against {way.dial}"
    return [
        ChartFigure(
            title,
            f"What the same counts would give at another {way.dial}. It must be chosen before the "
            "labels are seen: a point picked here carries no guarantee.",
            [chart],
            legend,
            [str(way.dial), "Verdict", *way.names],
            [
                [exact(value), reading.verdict, *reading.values]
                for value, reading in zip(explorer.dial, readings, strict=True)
                if value is not None
            ],
        )
    ]

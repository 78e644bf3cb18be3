"""What a stricter or looser xi would cost, from the values of an explorer."""

from __future__ import annotations

import numpy as np

from pacbound.figure import Axis, Column, Dots, Figure, Line, Mark, Panel, Spans
from pacbound.report.page.explorer.grid import Explorer
from pacbound.says import exact


def trade_off(explorer: Explorer) -> Figure | None:
    """What a stricter or looser claim would cost at the certificate's own delta, if there is a
    trade-off to be drawn.
    """
    way, (own, level) = explorer.explorable, explorer.own
    tried = [
        (value, row[level])
        for value, row in zip(explorer.dial, explorer.readings, strict=True)
        if value is not None
    ]
    ends = [reading.drawn or (np.nan, np.nan) for _, reading in tried]
    if sum(reading.drawn is not None for _, reading in tried) < 2:
        return None
    x, (low, high) = np.array([value for value, _ in tried]), np.transpose(ends)
    middle, mine = (low + high) / 2, x == explorer.dial[own]
    order = np.argsort(x)
    marks: list[Mark] = []
    if (low < high).any():
        marks.append(Spans(x, low, high, "seen", "anywhere between these ends"))
    name = f"at delta = {exact(explorer.deltas[level])} (no guarantee)"
    marks.append(Line(x[order], middle[order], "seen", name))
    marks.append(Dots(x, middle, "seen"))
    if np.isfinite(middle[mine]).any():
        marks.append(Dots(x[mine], middle[mine], "certified", f"{way.dial} of this certificate"))
    is_share = way.drawn.startswith(("Rows", "Positives"))
    words = [[exact(value), reading.verdict, *reading.values] for value, reading in tried]
    columns = zip([str(way.dial), "Verdict", *way.names], zip(*words, strict=True), strict=True)
    return Figure(
        f"{way.drawn} against {way.dial}",
        f"What the same counts would give at another {way.dial}. It must be chosen before the "
        "labels are seen: a point picked here carries no guarantee.",
        Axis.around(str(way.dial), x),
        [Panel(Axis.around(way.drawn, [*low, *high], percent=is_share), marks)],
        [Column(name, values, "text") for name, values in columns],
    )

"""Accuracy among the rows whose confidence reaches a threshold, and the share of such rows.

The band lies between answering by the lower ends of certified intervals and by the upper ends: the
paper's green area. No point of it is certified.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments import palette

Array = NDArray[Any]

THRESHOLDS = np.arange(101) / 100
# A curve ends where fewer rows are answered: beyond it, accuracy is mostly chance.
FEW = 30


def curve(scores: Array, correct: Array) -> tuple[Array, Array]:
    """At each threshold the accuracy, NaN where few rows are answered, and the share of rows that
    are."""
    reached = scores >= THRESHOLDS[:, None]
    answered = reached.sum(axis=1)
    accuracy = (reached & correct).sum(axis=1) / np.maximum(answered, 1)
    enough = answered >= min(FEW, scores.size / 100)
    return np.where(enough, accuracy, np.nan), answered / scores.size


def drawn(confidence: Array, intervals: Array, correct: Array, *, delta: float) -> Figure:
    """The curve of the confidences, the band of the intervals, and below both their coverage."""
    figure = Figure(figsize=(8, 6), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 0.35))
    lower, upper = (curve(ends, correct) for ends in intervals.T)
    near, far = lower[0], upper[0]
    above.fill_between(
        THRESHOLDS, near, far, step="pre", color=palette.BAND, alpha=0.2, lw=0, label="between both"
    )
    shown: dict[str, tuple[tuple[Array, Array], str, str]] = {
        "by lower ends": (lower, palette.BAND, "--"),
        "by upper ends": (upper, palette.BAND, "-."),
        "by confidence": (curve(confidence, correct), palette.OBSERVED, "-"),
    }
    for name, ((accuracy, coverage), colour, dashes) in shown.items():
        style: dict[str, Any] = {"color": colour, "linestyle": dashes, "where": "pre"}
        above.step(THRESHOLDS, accuracy, label=name, **style)
        below.step(THRESHOLDS, np.where(coverage > 0, coverage, np.nan), **style)
        last = np.flatnonzero(np.isfinite(accuracy))[-1]
        above.plot(THRESHOLDS[last], accuracy[last], "o", color=colour, markersize=4)
    every = [THRESHOLDS[coverage == 1][-1] for (_, coverage), _, _ in shown.values()]
    above.set_xlim(min(*every, 0.9), 1.0)
    above.set_ylabel("Accuracy (share right)")
    below.set(xlabel="Confidence threshold t (0 to 1)", ylabel="Coverage")
    for ax in (above, below):
        palette.light_grid(ax)
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.10g}%")
    above.legend(loc="lower right", frameon=False)
    words = f"Accuracy of rows that reach t: n = {correct.size:,}, delta = {delta:g}"
    above.set_title(f"{words}\nDescriptive: no point is certified.", loc="left", fontsize="medium")
    return figure

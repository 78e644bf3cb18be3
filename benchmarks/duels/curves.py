"""The figure of small samples: what each method gets on average, by the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.duels.duel import Row
from benchmarks.duels.small_samples import KINDS, METHODS, SIZES

_OURS = "#0072B2"
_THEIRS = ("#D55E00", "#E69F00", "#009E73", "#CC79A7")
_TITLES = {
    "abstention": "abstention: share of rows answered",
    "replacement": "replacement: how often shown",
    "rate": "rate of errors: how often shown",
    "sets": "sets: labels in a set (fewer is better)",
}


def draw(rows: Sequence[Row], file: BinaryIO) -> None:
    """Write the figure to `file`, as PNG: one panel for each claim."""
    figure = Figure(figsize=(10, 7), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 2).ravel()
    for ax, kind in zip(panels, KINDS, strict=True):
        _panel(ax, kind, [row["methods"] for row in rows if row["kind"] == kind])
    figure.savefig(file, format="png", dpi=100, metadata={"Software": None})


def _panel(ax: Any, kind: str, cells: Sequence[Any]) -> None:
    """A method that breaks its promise in some cell is dotted."""
    colours = dict(zip(METHODS[kind][1:], _THEIRS, strict=False))
    for method in (*METHODS[kind][1:], "before", "pacbound"):
        found = [cell[method] for cell in cells if method in cell]
        if not found:
            continue
        broken = any(p < 0.01 for each in found for p in each["p"])
        own = method in ("before", "pacbound")
        ax.plot(
            SIZES,
            np.mean([each["value"] for each in found], axis=0),
            {"before": "o--", "pacbound": "o-"}.get(method, "s:" if broken else "s-"),
            color=_OURS if own else colours[method],
            markersize=4 if own else 6,
            markerfacecolor=None if own else "none",
            zorder=2 if own else 3,
            alpha=0.6 if method == "before" else 1.0,
            linewidth=2 if method == "pacbound" else 1.2,
            label=f"pacbound {method}"
            if method == "before"
            else method + " (promise broken)" * broken,
        )
    ax.set_xscale("log")
    ax.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
    ax.minorticks_off()
    ax.set_title(_TITLES[kind], loc="left", fontsize=10)
    ax.grid(color="#eeeeee")
    ax.set_axisbelow(True)
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)

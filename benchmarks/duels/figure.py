"""The figure of the duels: saved labels of experts against the size of PAC Labels' sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from benchmarks.duels.duel import Row

_OURS, _THEIRS, _PALE = "#0072B2", "#D55E00", "#999999"


def draw(rows: Sequence[Row], file: BinaryIO) -> None:
    """Write the figure to `file`, as PNG: one panel for each table."""
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(rows), squeeze=False)[0]
    for ax, row in zip(panels, rows, strict=True):
        _panel(ax, row)
    panels[0].set_ylabel("labels saved")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(file, format="png", dpi=150, metadata={"Software": None})


def _panel(ax: Any, row: Row) -> None:
    for bound, style, colour, label in (
        ("betting", "o-", _THEIRS, "PAC Labels"),
        ("normal", "s:", _PALE, "PAC Labels, normal bound (asymptotic)"),
    ):
        found = [one for one in row["theirs"] if one["bound"] == bound]
        _curve(ax, row, found, style, color=colour, label=label)
    broken = [one for one in row["theirs"] if one["p"] < 0.01]
    _curve(ax, row, broken, "x", color="black", label="wrong too often")
    ax.axhline(row["ours"]["saved"], color=_OURS, label="pacbound")
    ax.axhline(row["needed"], color="black", linestyle="--", linewidth=0.8, label="possible")
    ax.set_title(f"{row['name']}, N = {row['records']:,}")
    ax.set_xlabel("K / N")
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _curve(ax: Any, row: Row, found: Sequence[Row], style: str, **how: Any) -> None:
    shares = [one["K"] / row["records"] for one in found]
    ax.plot(shares, [one["saved"] for one in found], style, markersize=4, **how)

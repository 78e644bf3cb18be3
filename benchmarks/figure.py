"""The figure of the benchmarks: growth of time and memory with the rows, every ratio to a peer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.row import Row, Unit

_OURS, _THEIRS = "#0072B2", "#D55E00"


def draw(rows: Sequence[Row], file: BinaryIO) -> None:
    """Write the figure to `file`, as PNG."""
    labelled = [row for row in rows if row.label is not None and row.ratio is not None]
    figure = Figure(figsize=(11, max(5.0, 0.22 * len(labelled))), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplot_mosaic([["time", "ratios"], ["memory", "ratios"]], width_ratios=[1, 1.2])
    _growth(axes["time"], rows, "s", "seconds, whole process", 1.0)
    _growth(axes["memory"], rows, "bytes", "peak resident memory, MB", 1e6)
    axes["memory"].set_ylim(bottom=0)
    axes["time"].set_yscale("log")
    _ratios(axes["ratios"], labelled)
    figure.savefig(file, format="png", dpi=150, metadata={"Software": None})


def _growth(ax: Any, rows: Sequence[Row], unit: Unit, title: str, scale: float) -> None:
    points = [row for row in rows if row.size is not None and row.unit == unit]
    sizes = [row.size for row in points]
    ax.plot(
        sizes, [row.ours / scale for row in points], "o-", color=_OURS, label="pacbound calibrate"
    )
    ax.plot(
        sizes,
        [(row.theirs or 0.0) / scale for row in points],
        "s--",
        color=_THEIRS,
        label="DuckDB, bare query",
    )
    ax.set_xscale("log")
    ax.set_xlabel("rows of the Parquet file")
    ax.set_ylabel(title)
    ax.legend(frameon=False)


def _ratios(ax: Any, rows: Sequence[Row]) -> None:
    ratios = [1.0 if row.ratio is None else row.ratio for row in rows]
    colours = [_OURS if ratio <= 1.0 else _THEIRS for ratio in ratios]
    ax.barh(range(len(rows)), [ratio - 1.0 for ratio in ratios], left=1.0, color=colours)
    ax.axvline(1.0, color="black", linewidth=0.8)
    ax.set_xscale("log")
    ax.set_yticks(range(len(rows)), [str(row.label).replace("_", "-") for row in rows], fontsize=7)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel("ratio to the peer (below 1, pacbound is better)")

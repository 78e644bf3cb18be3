"""The figure of the benchmarks: growth of time and memory with the rows, every ratio to a peer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, BinaryIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.row import Row, Unit

_OURS, _THEIRS = "#0072B2", "#D55E00"
_SHORT = {
    " float32 probabilities (PACCalibrator.fit)": "",
    ": rise of the peak resident memory, in a process of its own": ", memory",
    ": peak resident memory": ", memory",
    ", whole process": "",
    ", exit after 9 of 27 blocks": "",
    ", processor time, median of 21 processes": "",
    ", delta = 0.01 for all together": "",
    ", xi = 0.05, delta = 0.01": "",
}


def draw(rows: Sequence[Row], file: BinaryIO) -> None:
    """Write the figure to `file`, as PNG."""
    drawn = bars(rows)
    height = 3.2 + max(1.5, 0.17 * len(drawn))
    figure = Figure(figsize=(11, height), layout="constrained")
    FigureCanvasAgg(figure)
    parts: Any = figure.subfigures(2, 1, height_ratios=[3.0, height - 3.0])
    above, below = parts
    time, memory = above.subplots(1, 2)
    _growth(time, rows, "s", "seconds, whole process", 1.0)
    _growth(memory, rows, "bytes", "peak resident memory, MB", 1e6)
    memory.set_ylim(bottom=0)
    time.set_yscale("log")
    _ratios(below.add_subplot(), drawn)
    figure.savefig(file, format="png", dpi=110, metadata={"Software": None})


def bars(rows: Sequence[Row]) -> list[tuple[str, float]]:
    """Every ratio with its name, the best first: none is left out."""
    found, before = [], ""
    for row in rows:
        work = row.work.replace("the same", before, 1)
        before = before if row.work.startswith("the same") else row.work
        if row.ratio is not None:
            found.append((row.label or _shortened(work, str(row.peer)), row.ratio))
    return sorted(found, key=lambda bar: bar[1])


def _shortened(work: str, peer: str) -> str:
    """A name that fits beside its bar: without versions, and without what the page says."""
    for long, short in _SHORT.items():
        work = work.replace(long, short)
    peer = re.sub(r" \d+(\.\d+)+", "", peer)
    peer = re.sub(r" [A-Z]\w+\([^)]*\)(\.fit)?", "", peer)
    return f"{work}: {peer}"


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
    ax.margins(0.08)
    ax.set_ylabel(title)
    ax.legend(frameon=False)


def _ratios(ax: Any, bars: Sequence[tuple[str, float]]) -> None:
    # A peak that does not rise has the ratio 0, which a logarithm cannot show.
    least = 0.5 * min((ratio for _, ratio in bars if ratio > 0), default=1.0)
    ratios = [max(ratio, least) for _, ratio in bars]
    colours = [_OURS if ratio <= 1.0 else _THEIRS for ratio in ratios]
    ax.barh(range(len(bars)), [ratio - 1.0 for ratio in ratios], left=1.0, color=colours)
    for place, (_, ratio) in enumerate(bars):
        ends = (max(ratio, least), place), (3 if ratio > 1 else -3, 0)
        side = "left" if ratio > 1 else "right"
        ax.annotate(
            f"{ratio:.2g}", *ends, textcoords="offset points", ha=side, va="center", fontsize=6
        )
    ax.axvline(1.0, color="black", linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xlim(least / 2, 2 * max([1.0, *ratios]))
    ax.set_yticks(range(len(bars)), [name.replace("_", "-") for name, _ in bars], fontsize=6.5)
    ax.set_ylim(len(bars) - 0.5, -0.5)
    ax.set_xlabel("ratio to the peer (below 1, pacbound is better)")

"""How fast the command line calibrates from CSV; its memory does not grow with the file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import inputs
from benchmarks.processes import Cost, cost_of
from benchmarks.row import Bar, Row
from benchmarks.sizes import Sizes

_PART = 500_000
_CODE = """
import sys
from pacbound.cli import main
columns = ["--confidence", "score", "--correct", "right"]
sys.argv = ["pacbound", "calibrate", {path!r}, *columns, "--delta", "0.01"]
main()
"""


def rows(sizes: Sizes) -> Iterator[Row]:
    costs: dict[int, Cost] = {}
    small, large = sizes.csv
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes.csv:
            path = Path(folder) / f"{size}.csv"
            _write(path, size)
            runs = [cost_of(_CODE.format(path=str(path))) for _ in range(min(3, sizes.rounds))]
            costs[size] = min(runs, key=lambda cost: cost.seconds)
            yield Row(
                f"pacbound calibrate, CSV of {size:,} rows, whole process",
                size / costs[size].seconds,
                "rows/s",
            )
            path.unlink()
    yield Row(
        f"the same: peak resident memory, {large:,} rows",
        costs[large].peak,
        "bytes",
        f"{small:,} rows",
        costs[small].peak,
        Bar(1.25, "ratio", "flat: at most 1.25"),
    )


def _write(path: Path, size: int) -> None:
    part = min(_PART, size)
    confidence, correct = inputs.confidences(part)
    lines = "".join(
        f"{score:.6f},{int(right)}\n"
        for score, right in zip(confidence.tolist(), correct.tolist(), strict=True)
    )
    with path.open("w", encoding="utf-8") as file:
        file.write("score,right\n")
        for _ in range(size // part):
            file.write(lines)

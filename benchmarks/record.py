"""Where the measurements go: `benchmarks/results.json`, and from it a table that the page
`docs/benchmarks.md` includes, `benchmarks/results.md`, and the figure of that page."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import figure
from benchmarks.row import HEADINGS, Bar, Row
from pacbound import __version__
from pacbound.atomic_files import atomic_file

RESULTS = Path("benchmarks/results.json")
TABLE = Path("benchmarks/results.md")
FIGURE = Path("docs/figures/benchmarks.png")
_PACKAGES = (
    "numpy",
    "scipy",
    "pyarrow",
    "netcal",
    "uncertainty-calibration",
    "MAPIE",
    "scikit-learn",
    "torch",
    "torchmetrics",
    "relplot",
    "duckdb",
    "polars",
    "pyspark",
)


def conditions() -> dict[str, str | int | None]:
    """What the times depend on, as far as it can be said without naming a machine."""
    versions: dict[str, str | int | None] = {
        "pacbound": __version__,
        "python": platform.python_version(),
    }
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        **versions,
    }


def write(rows: Sequence[Row], root: Path) -> None:
    """Write the record, the table and the figure below `root`, the root of the repository."""
    record = {
        "command": "python -m benchmarks",
        "conditions": conditions(),
        "rows": [{**asdict(row), "ratio": row.ratio, "met": row.met} for row in rows],
    }
    _write(root / RESULTS, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    write_page(root)


def write_page(root: Path) -> None:
    """Write the table and the figure again, from the record."""
    record = json.loads((root / RESULTS).read_text(encoding="utf-8"))
    rows = [row_of(kept) for kept in record["rows"]]
    _write(root / TABLE, f"{_markdown(rows)}\n{_measured_on(record['conditions'])}\n")
    with atomic_file(root / FIGURE) as file:
        figure.draw(rows, file)


def replaced(rows: Sequence[Row], order: Sequence[str | None], root: Path) -> list[Row]:
    """The rows of the record, in the `order` of their questions, with `rows` in place of those of
    the same questions."""
    record = json.loads((root / RESULTS).read_text(encoding="utf-8"))
    new = {row.question for row in rows}
    old = (row_of(kept) for kept in record["rows"])
    every = [*(row for row in old if row.question not in new), *rows]
    return sorted(every, key=lambda row: order.index(row.question))


def row_of(kept: dict[str, Any]) -> Row:
    values = {field.name: kept[field.name] for field in fields(Row)}
    return Row(**{**values, "bar": values["bar"] and Bar(**values["bar"])})


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode("utf-8"))


def _markdown(rows: Sequence[Row]) -> str:
    lines = [HEADINGS, ("---",) * len(HEADINGS), *(row.cells() for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _measured_on(facts: dict[str, Any]) -> str:
    packages = ", ".join(
        f"{name} {facts[name]}" for name in ("python", *_PACKAGES) if facts[name] is not None
    )
    return (
        f"Measured with pacbound {facts['pacbound']} on {facts['cores']} {facts['architecture']} "
        f"cores: {packages}."
    )

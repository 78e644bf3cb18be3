"""Where the measurements go: the terminal, `benchmarks/results.json`, and the table in `docs/benchmarks.md`."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.row import HEADINGS, Row
from pacbound import __version__

RESULTS = Path("benchmarks/results.json")
PAGE = Path("docs/benchmarks.md")
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"

_PACKAGES = ("numpy", "scipy", "pyarrow", "netcal", "torch", "torchmetrics")


def conditions() -> dict[str, str | int | None]:
    """What the times depend on, as far as it can be said without naming a machine."""
    versions: dict[str, str | int | None] = {"pacbound": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return {"cores": os.cpu_count(), "architecture": platform.machine(), "system": platform.system(), **versions}


def write(rows: Sequence[Row]) -> None:
    """Write both files."""
    record = {
        "command": "python -m benchmarks",
        "conditions": conditions(),
        "rows": [{**asdict(row), "ratio": row.ratio, "met": row.met} for row in rows],
    }
    RESULTS.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{_markdown(rows)}\n{_measured_on()}\n\n{END}{after}", encoding="utf-8")


def _markdown(rows: Sequence[Row]) -> str:
    lines = [HEADINGS, ("---",) * len(HEADINGS), *(row.cells() for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _measured_on() -> str:
    facts = conditions()
    packages = ", ".join(f"{name} {facts[name]}" for name in ("python", *_PACKAGES) if facts[name] is not None)
    return f"Measured with pacbound {facts['pacbound']} on {facts['cores']} {facts['architecture']} cores: {packages}."

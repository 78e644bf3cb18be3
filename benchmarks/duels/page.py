"""The tables and figures of the duels in `docs/benchmarks.md`, `docs/comparison.md` and README, by
their records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.duels.duel import Duel
from pacbound.atomic_files import atomic_file

FIGURE = Path("docs/figures/duels.png")
SUMMARY = Path("docs/figures/duels_at_a_glance.svg")
SMALL = Path("docs/figures/small_samples.png")
HEADLINE = Path("experiments/results/headline.json")


def results(name: str) -> Path:
    """The file of results of a duel."""
    return Path("benchmarks/duels") / f"{name}.json"


def table(name: str) -> Path:
    """The file with the table of a duel."""
    return results(name).with_suffix(".md")


def load(name: str, root: Path) -> dict[str, Any]:
    """What was measured."""
    document: dict[str, Any] = json.loads((root / results(name)).read_text(encoding="utf-8"))
    return document


def rendered(name: str, duel: Duel, root: Path) -> str:
    """The table of the recorded results of a duel."""
    document = load(name, root)
    packages = ", ".join(f"{package} {number}" for package, number in document["versions"].items())
    return f"{duel.table(document['rows'])}\n\nMade by `{document['command']}` with {packages}.\n"


def write(duels: Mapping[str, Duel], root: Path) -> None:
    """Write the tables, and draw the figures."""
    for name, duel in duels.items():
        with atomic_file(root / table(name)) as file:
            file.write(rendered(name, duel, root).encode("utf-8"))
    # Only figures need matplotlib.
    for path, module, rows in (
        (FIGURE, "figure", load("pac_labels", root)["rows"]),
        (SUMMARY, "summary", summary(root)),
        (SMALL, "curves", load("small_samples", root)["rows"]),
    ):
        picture = BytesIO()
        import_module(f"benchmarks.duels.{module}").draw(rows, picture)
        with atomic_file(root / path) as file:
            file.write(picture.getvalue())


def summary(root: Path) -> Any:
    """What the figure of the README shows."""
    records = {name: load(name, root) for name in ("pac_labels", "bargain", "trust_or_escalate")}
    headline = json.loads((root / HEADLINE).read_text(encoding="utf-8"))
    return import_module("benchmarks.duels.summary").panels(records, headline)

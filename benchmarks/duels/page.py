"""The page of the duels: its tables and its figure follow from the files of results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.duels.duel import Duel
from pacbound.atomic_files import atomic_file

PAGE = Path("docs/duels.md")
FIGURE = Path("docs/figures/duels.png")


def results(name: str) -> Path:
    """The file of results of a duel."""
    return Path("benchmarks/duels") / f"{name}.json"


def load(name: str, root: Path) -> dict[str, Any]:
    """What was measured."""
    document: dict[str, Any] = json.loads((root / results(name)).read_text(encoding="utf-8"))
    return document


def rendered(text: str, duels: Mapping[str, Duel], root: Path) -> str:
    """The page `text` with the tables of the recorded results."""
    for name, duel in duels.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, rest = text.split(begin)
        document = load(name, root)
        packages = ", ".join(
            f"{package} {number}" for package, number in document["versions"].items()
        )
        made = f"Made by `{document['command']}` with {packages}."
        found = f"{begin}\n\n{duel.table(document['rows'])}\n\n{made}\n\n{end}"
        text = before + found + rest.split(end)[1]
    return text


def write(duels: Mapping[str, Duel], root: Path) -> None:
    """Write the tables into the page, and draw the figure."""
    text = rendered((root / PAGE).read_text(encoding="utf-8"), duels, root)
    with atomic_file(root / PAGE) as file:
        file.write(text.encode("utf-8"))
    picture = BytesIO()
    # Only the figure needs matplotlib.
    import_module("benchmarks.duels.figure").draw(load("pac_labels", root)["rows"], picture)
    with atomic_file(root / FIGURE) as file:
        file.write(picture.getvalue())

"""pacbound against other methods with the same promise: `python -m benchmarks.duels`, from the
repository root.

    python -m benchmarks.duels [NAME ...] [--data FOLDER] [--draws N] [--only CELLS] [--write]

`FOLDER` has the public data that the page names; none of it is in the repository. Without it the
duels use what ships with the package. Seeds are fixed. A draw in which a promise is broken is a
violation, and the number of violations is judged by an exact binomial test. `--write` records what
was measured in `benchmarks/duels/NAME.json`; `--page` writes the tables and the figure of
`docs/benchmarks.md` and `docs/comparison.md` from these files.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np

from benchmarks.duels import (
    bargain,
    graded,
    graded_tables,
    pac_labels,
    page,
    small_samples,
    trust_or_escalate,
)
from benchmarks.duels.duel import Duel, Row
from pacbound import __version__
from pacbound.atomic_files import atomic_file

DUELS: dict[str, Duel] = {
    "pac_labels": pac_labels.DUEL,
    "trust_or_escalate": trust_or_escalate.DUEL,
    "bargain": bargain.DUEL,
    "graded": graded.DUEL,
    "graded_tables": graded_tables.DUEL,
    "small_samples": small_samples.DUEL,
}


def main(arguments: list[str]) -> None:
    options = _options(arguments)
    if options.page:
        page.write(DUELS, Path())
        return
    for name in options.name:
        duel = DUELS[name]
        draws = options.draws or duel.draws
        rows = list(measured(duel, options.data, draws, only=options.only))
        missed = [row["name"] for row in rows if row.get("met") is False]
        print(f"{name}: " + (f"missed: {'; '.join(missed)}." if missed else "every bar is met."))
        if options.write and rows:
            record(name, duel, rows, draws)


def measured(duel: Duel, folder: Path | None, draws: int, *, only: str = "") -> Iterator[Row]:
    """The rows of a duel, printed as they come."""
    for name, measure in duel.cells(folder):
        if name.startswith(only):
            row = measure(draws)
            print(duel.table([row]).splitlines()[-1], flush=True)
            yield row


def record(name: str, duel: Duel, rows: list[Row], draws: int) -> None:
    """Write what was measured to the file of the duel."""
    data = "" if duel.simulated else "--data FOLDER "
    document = {
        "command": f"python -m benchmarks.duels {name} {data}--draws {draws} --write",
        "versions": {
            "pacbound": __version__,
            "numpy": np.__version__,
            **{package: version(package) for package in duel.packages},
        },
        "rows": rows,
    }
    with atomic_file(page.results(name)) as file:
        file.write((json.dumps(document, indent=1) + "\n").encode("utf-8"))


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.duels")
    parser.add_argument(
        "name",
        nargs="*",
        metavar="NAME",
        choices=[[], *DUELS],
        help=f"which duels: {', '.join(DUELS)}; all if left out",
    )
    parser.add_argument("--data", type=Path, help="the folder with the public data")
    parser.add_argument("--draws", type=int, help="seeds of each cell")
    parser.add_argument("--only", default="", help="cells whose name begins so")
    parser.add_argument("--write", action="store_true", help="record the results")
    parser.add_argument("--page", action="store_true", help="only write the page, from the records")
    options = parser.parse_args(arguments)
    options.name = options.name or list(DUELS)
    simulated = all(DUELS[name].simulated for name in options.name)
    if options.write and (options.only or (options.data is None and not simulated)):
        parser.error("--write records whole duels on the public data: pass --data, and no --only.")
    return options


if __name__ == "__main__":
    main(sys.argv[1:])

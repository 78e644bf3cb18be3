"""Measure everything, print it, and record it: `python -m benchmarks`, from the repository root.

With names, such as `python -m benchmarks imports bounds`, only those questions are measured and
nothing is recorded; with `--record` their rows replace those in the record. With `--small`
everything is so small that the figures mean nothing: it shows that the benchmarks run, and records
nothing either. `--page` writes the table and the figure again, from the record of the last run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace

from benchmarks import (
    bounds,
    calibration_error,
    cascade,
    csv_files,
    early_exit,
    imports,
    install_size,
    memory,
    monitor,
    parquet,
    probabilities,
    record,
    thresholds,
    tightness,
)
from benchmarks.processes import ROOT
from benchmarks.row import HEADINGS, Row
from benchmarks.sizes import FULL, SMALL, Sizes

QUESTIONS = {
    "probabilities": probabilities.rows,
    "calibration_error": calibration_error.rows,
    "thresholds": thresholds.rows,
    "tightness": tightness.rows,
    "bounds": bounds.rows,
    "cascade": cascade.rows,
    "early_exit": early_exit.rows,
    "monitor": monitor.rows,
    "parquet": parquet.rows,
    "csv_files": csv_files.rows,
    "memory": memory.rows,
    "imports": imports.rows,
    "install_size": install_size.rows,
}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name", nargs="*", help=f"the questions to measure; all if none: {', '.join(QUESTIONS)}"
    )
    parser.add_argument(
        "--small", action="store_true", help="on so few rows that the figures mean nothing"
    )
    parser.add_argument(
        "--page", action="store_true", help="only write table and figure again, from the record"
    )
    parser.add_argument(
        "--record", action="store_true", help="replace what is recorded of the named questions"
    )
    options = parser.parse_args(arguments)
    if options.page:
        record.write_page(ROOT)
        return
    small, names = options.small, options.name
    unknown = sorted(set(names) - QUESTIONS.keys())
    if unknown:
        parser.error(
            f"there is no benchmark {', '.join(unknown)}: expected some of {', '.join(QUESTIONS)}"
        )
    _print(HEADINGS)
    rows = list(measured(names or list(QUESTIONS), SMALL if small else FULL))
    if small:
        return
    missed = [row.work for row in rows if row.met is False]
    print("\nEvery bar is met." if not missed else f"\nMissed: {'; '.join(missed)}.")
    if options.record and names:
        rows = record.replaced(rows, list(QUESTIONS), ROOT)
    if options.record or not names:
        record.write(rows, ROOT)
        print(f"Written to {record.RESULTS}, {record.TABLE} and {record.FIGURE}.")


def measured(names: list[str], sizes: Sizes) -> Iterator[Row]:
    """The rows of the questions `names`, printed as they come."""
    for name in names:
        for row in QUESTIONS[name](sizes):
            _print(row.cells())
            yield replace(row, question=name)


def _print(cells: tuple[str, ...]) -> None:
    widths = (70, 16, 62, 7, 26, 3)
    print(
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip(),
        flush=True,
    )


if __name__ == "__main__":
    main(sys.argv[1:])

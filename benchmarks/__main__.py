"""Measure everything, print it, and record it: `python -m benchmarks`, from the repository root.

With names, such as `python -m benchmarks imports bounds`, only those questions are measured and nothing is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks import bounds, calibration_error, cascade, csv_files, early_exit, imports, probabilities, record
from benchmarks.row import HEADINGS, Row

QUESTIONS = {
    "probabilities": probabilities.rows,
    "bounds": bounds.rows,
    "cascade": cascade.rows,
    "early_exit": early_exit.rows,
    "calibration_error": calibration_error.rows,
    "imports": imports.rows,
    "csv_files": csv_files.rows,
}


def main(names: list[str]) -> None:
    unknown = sorted(set(names) - QUESTIONS.keys())
    if unknown:
        sys.exit(f"There is no benchmark {', '.join(unknown)}: expected some of {', '.join(QUESTIONS)}.")
    _print(HEADINGS)
    rows = list(_measured(names or list(QUESTIONS)))
    missed = [row.work for row in rows if row.met is False]
    print("\nEvery bar is met." if not missed else f"\nMissed: {'; '.join(missed)}.")
    if not names:
        record.write(rows)
        print(f"Written to {record.RESULTS} and {record.PAGE}.")


def _measured(names: list[str]) -> Iterator[Row]:
    for name in names:
        for row in QUESTIONS[name]():
            _print(row.cells())
            yield row


def _print(cells: tuple[str, ...]) -> None:
    widths = (70, 16, 62, 7, 26, 3)
    print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

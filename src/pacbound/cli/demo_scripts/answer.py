"""Whoever labels, or the slow model: fill in a column of the rows that were asked for.

python answer.py ask.csv label=label             what a person would say
python answer.py ask.csv answer=prediction_slow  what the slow model would say
"""

import csv
import sys
from pathlib import Path


def fill_in(path: Path, column: str, known: str) -> int:
    """Fill in `column` with what is `known` of each row, and return how many rows there are."""
    answers: dict[str, str] = {}
    for name in ("held.csv", "future.csv"):
        with Path(name).open(newline="") as file:
            answers |= {row["id"]: row[known] for row in csv.DictReader(file)}
    with path.open(newline="") as file:
        rows = [{**row, column: answers[row["id"]]} for row in csv.DictReader(file)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0] if rows else [column], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


if __name__ == "__main__":
    target, said = sys.argv[1:]
    count = fill_in(Path(target), *said.split("="))
    sys.stdout.write(f"{count:,} rows of {target} are filled in.\n")

"""Two `pacbound label` at once: both wait for their turn, and no label is lost."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.commands import MODELS, ROWS, write_folder

from pacbound.file_locks import locked

LABEL = ("label", ROWS, *MODELS, "--session", "s.json")
BEGIN = (*LABEL, "--xi", "0.1", "--delta", "0.1", "--ask", "ask.csv", "--count", "30")


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from pacbound.cli import main; main()", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_two_at_once_lose_no_label(tmp_path: Path) -> None:
    write_folder(tmp_path)
    begun = start(tmp_path, *BEGIN)
    assert begun.communicate(timeout=120)[1] == ""
    assert begun.returncode in (0, 3)
    with (tmp_path / ROWS).open(newline="") as file:
        truth = [row["y"] for row in csv.DictReader(file)]
    with (tmp_path / "ask.csv").open(newline="") as file:
        asked = list(csv.DictReader(file))
    assert len(asked) >= 10
    for place, name in enumerate(("mine.csv", "yours.csv")):
        with (tmp_path / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, [*asked[0]])
            writer.writeheader()
            for row in asked[place::2]:
                writer.writerow(row | {"label": truth[int(row["pac_row"])]})
    # Both are let in at the same moment, when each has said that it waits.
    with locked(tmp_path / "s.json", wait=False):
        both = [start(tmp_path, *LABEL, "--answers", name) for name in ("mine.csv", "yours.csv")]
        for process in both:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said == "s.json is in use by another process: waiting for it.\n"
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode in (0, 3), errors) == (True, "")
    session = json.loads((tmp_path / "s.json").read_text())
    assert sorted(session["labelled"]) == sorted(int(row["pac_row"]) for row in asked)

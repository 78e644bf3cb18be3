"""`kill -9` at any moment of the commands that ask people and experts: nothing paid is lost.

Each command is repeated as it was until it comes to its end, as a person would; files that were
filled in are never touched, and what comes out is what comes out without a kill.
"""

from __future__ import annotations

import csv
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.forked import Commands

from pacbound import answer_batch, certify_cascade, load_certificate

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX"),
]
N = 600
RNG = np.random.default_rng(5)
SCORE = RNG.beta(4, 1, N).round(4)
TRUTH = RNG.integers(0, 3, N)
FAST = np.where(RNG.random(N) < SCORE, TRUTH, (TRUTH + 1) % 3)
SLOW = np.where(RNG.random(N) < 0.9, TRUTH, (TRUTH + 2) % 3)
KEY = "5f82c2d9cfeb0fa321d7d982f8bd1045"
ROWS = ("rows.csv", "--confidence", "c", "--xi", "0.05", "--delta", "0.1")
KILLS = 3
"""Of each command, before it is left to its end."""


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with Commands() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = (f"{row},{SCORE[row]},{FAST[row]},{SLOW[row]}" for row in range(N))
    (tmp_path / "rows.csv").write_text("\n".join(["text,c,answer,slow", *lines]) + "\n")
    return tmp_path


def _once(commands: Commands, folder: Path, words: tuple[str, ...], within: float | None) -> int:
    """The exit code of a command that is killed after a while, or left to its end."""
    with Path(os.devnull).open("r+") as null:
        begun = commands.begin(folder, words, (null.fileno(),) * 3)
    if within is not None:
        try:
            return begun.wait(within)
        except subprocess.TimeoutExpired:
            begun.send_signal(signal.SIGKILL)
    return begun.wait(60)


def _in_spite_of_kills(commands: Commands, folder: Path, words: tuple[str, ...], out: str) -> int:
    """Repeat a command that is killed again and again, until it ends or has written `out`; returns
    how often it was killed.
    """
    filled = {path: path.read_bytes() for path in folder.glob("ask*.csv")}
    waits = [*(RNG.random(KILLS) * 0.12).tolist(), None]
    for killed, within in enumerate(waits):
        ended = _once(commands, folder, words, within)
        assert ended in (0, 3, -signal.SIGKILL)
        assert all(path.read_bytes() == data for path, data in filled.items())
        if ended != -signal.SIGKILL or (folder / out).exists():
            return killed + (ended == -signal.SIGKILL)
    raise AssertionError("it was left to its end")


def _fill(path: Path, column: str, values: Any) -> int:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert row[column] == ""
        row[column] = str(values[int(row["pac_id"].partition("-")[0])])
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def test_labels_that_were_filled_in_are_kept(commands: Commands, folder: Path) -> None:
    given: tuple[str, ...] = ("cascade", *ROWS, "--prediction", "answer,slow")
    kills = filled = 0
    for look in range(99):
        out = f"ask{look}.csv"
        words = (*given, "--to-label", out, "--count", "100", "-o", "cascade.json")
        kills += _in_spite_of_kills(commands, folder, words, out)
        if not (folder / out).exists():
            break
        filled += _fill(folder / out, "expert_label", TRUTH)
        given += ("--labels", out)
    assert kills
    assert _once(commands, folder, (*given, "-o", "cascade.json"), None) == 0
    found: Any = load_certificate(folder / "cascade.json")
    whole = certify_cascade(SCORE, np.column_stack([FAST, SLOW]), TRUTH, xi=0.05, delta=0.1)
    assert found.thresholds.tolist() == whole.thresholds.tolist()
    assert found.tables[0].labels["labelled"] == filled


def test_answers_that_were_filled_in_are_kept(commands: Commands, folder: Path) -> None:
    given: tuple[str, ...] = ("batch", *ROWS, "--prediction", "answer", "--key", KEY)
    kills = filled = 0
    for step in range(3):
        out = f"ask{step}.csv" if step < 2 else "all.csv"
        words = (*given, "--ask", out) if step < 2 else (*given, "-o", out)
        kills += _in_spite_of_kills(commands, folder, words, out)
        if step < 2:
            filled += _fill(folder / out, "expert_answer", SLOW)
            given = ("batch", "rows.csv", "--take", out)
    assert kills
    assert _once(commands, folder, (*given, "-o", "again.csv"), None) == 0
    found: Any = load_certificate(folder / "again.certificate.json")
    whole: Any = answer_batch(
        SCORE, FAST, SLOW.__getitem__, xi=0.05, delta=0.1, answers=None, key=KEY
    )
    assert found.claim_digest == whole.certificate.claim_digest
    assert found.asked == filled

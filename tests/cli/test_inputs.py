"""Data as people have it: other delimiters, decimal commas, percentages, standard input, and labels
that come back. What goes wrong ends with exit code 2, and nothing is written.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pacbound import calibrate, load_certificate

Run = Callable[..., subprocess.CompletedProcess[str]]

N = 400
RNG = np.random.default_rng(0)
PERCENT = np.round(RNG.beta(6, 1, N) * 100, 1)
LABEL = RNG.integers(0, 3, N)
FAST = np.where(RNG.random(N) < PERCENT / 100, LABEL, (LABEL + 1) % 3)
SLOW = np.where(RNG.random(N) < 0.95, LABEL, (LABEL + 2) % 3)
GERMAN = ("--delimiter", ";", "--decimal", ",", "--scale", 100)


def lines(*columns: Any) -> str:
    rows = zip(*columns, strict=True)
    return "".join(";".join(str(v).replace(".", ",") for v in row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text("c;p;q;y\n" + lines(PERCENT, FAST, SLOW, LABEL))
    (tmp_path / "bare.csv").write_text("c;p;q\n" + lines(PERCENT, FAST, SLOW))
    (tmp_path / "known.csv").write_text("c;p;q;pac_id\n" + lines(PERCENT, FAST, SLOW, range(N)))
    (tmp_path / "back.csv").write_text("y;pac_id\n" + lines(LABEL[::-1], np.arange(N)[::-1]))
    return tmp_path


CERTIFY: dict[str, tuple[Any, ...]] = {
    "calibrate": ("--confidence", "c", "--prediction", "p", "--label", "y", "--delta", 0.05),
    "abstain": (
        "--confidence", "c", "--prediction", "p", "--label", "y", "--xi", 0.3, "--delta", 0.05,
    ),
    "cascade": (
        "--confidence", "c", "--prediction", "p,q", "--label", "y", "--xi", 0.1, "--delta", 0.05,
    ),
}  # fmt: skip


def test_percentages_with_decimal_commas_are_the_fractions_that_they_stand_for(
    pacbound: Run, folder: Path
) -> None:
    pacbound("calibrate", "rows.csv", *CERTIFY["calibrate"], *GERMAN, "-o", "cal.json")
    found = load_certificate(folder / "cal.json")
    assert found.counts_digest == calibrate(PERCENT / 100, FAST == LABEL, delta=0.05).counts_digest
    pacbound("recall", "rows.csv", "--score", "c", "--positive", "p", "--target", 0.9, "--delta",
             0.05, *GERMAN, code=2)  # fmt: skip


def fed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    stream = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stream)


def test_rows_come_in_over_standard_input_in_any_format(
    pacbound: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = CERTIFY["calibrate"]
    wanted = calibrate(PERCENT / 100, FAST == LABEL, delta=0.05).counts_digest
    fed(monkeypatch, (folder / "rows.csv").read_bytes())
    done = pacbound("calibrate", "-", *options, *GERMAN, "--json")
    assert json.loads(done.stdout)["counts_digest"] == wanted
    table = pa.table({"c": PERCENT / 100, "p": FAST, "y": LABEL})
    pq.write_table(table, folder / "rows.parquet")
    fed(monkeypatch, (folder / "rows.parquet").read_bytes())
    done = pacbound("calibrate", "-", *options, "--json")
    assert json.loads(done.stdout)["counts_digest"] == wanted
    rows = "\n".join(map(json.dumps, table.to_pylist()))
    for given in ((), ("--format", "jsonl")):
        fed(monkeypatch, rows.encode())
        done = pacbound("calibrate", "-", *options, *given, "--json")
        assert json.loads(done.stdout)["counts_digest"] == wanted
    fed(monkeypatch, rows.encode())
    pacbound("calibrate", "-", *options, "--format", "csv", "-o", "no.json", code=2)
    fed(monkeypatch, b"")
    assert "empty" in pacbound("calibrate", "-", *options, "-o", "no.json", code=2).stderr
    assert not (folder / "no.json").exists()


def test_applying_reads_standard_input_and_writes_standard_output(
    pacbound: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pacbound("calibrate", "rows.csv", *CERTIFY["calibrate"], *GERMAN, "-o", "cal.json")
    fed(monkeypatch, (folder / "rows.csv").read_bytes())
    done = pacbound("apply", "cal.json", "-", *GERMAN, "-o", "/dev/stdout")
    first, *rows = done.stdout.splitlines()
    assert first == "c;p;q;y;pac_lower;pac_upper;pac_estimate"
    assert len(rows) == N
    assert "." not in done.stdout


BAD: dict[str, tuple[tuple[Any, ...], str]] = {
    "wrong delimiter": (("rows.csv",), r"pass --delimiter ';'"),
    "wrong decimal": (("rows.csv", "--delimiter", ";"), "pass --decimal ,"),
    "no scale": (("rows.csv", "--delimiter", ";", "--decimal", ","), "--scale 100"),
    "no such delimiter": (("rows.csv", "--delimiter", "ab"), "cannot stand between values"),
    "no such decimal": (("rows.csv", "--decimal", "x"), "expected '.' or ','"),
    "no such scale": (("rows.csv", *GERMAN[:4], "--scale", 0), "expected a number above 0"),
    "format without -": (("rows.csv", *GERMAN, "--format", "csv"), "- is not among the files"),
    "- twice": (("-", "-", *GERMAN), "- is named twice"),
    "other labels": (("bare.csv", *GERMAN, "--labels", "rows.csv"), "no column 'pac_id'"),
    "no labels": (("bare.csv", *GERMAN, "--labels", "none.csv"), "none.csv does not exist"),
    "a sheet": (("rows.xlsx",), "is a spreadsheet: save the sheet as CSV"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_ends_with_code_2_and_nothing_written(
    pacbound: Run, folder: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "rows.xlsx").write_bytes(b"PK\x03\x04")
    fed(monkeypatch, b"")
    given, said = BAD[case]
    before = sorted(folder.iterdir())
    done = pacbound("calibrate", *given, *CERTIFY["calibrate"], "-o", "no.json", code=2)
    assert said in done.stderr
    assert sorted(folder.iterdir()) == before


def test_every_verb_that_reads_tables_reads_them_in_any_notation(
    pacbound: Run, folder: Path
) -> None:
    cascade = ("--confidence", "c", "--prediction", "p,q")
    pacbound("cascade", "rows.csv", *CERTIFY["cascade"], "--costs", "1,9", *GERMAN, "-o", "k.json")
    (folder / "fresh.csv").write_text("c;p;q;y\n" + lines(PERCENT[::-1], FAST, SLOW, LABEL))
    pacbound("cost", "k.json", "fresh.csv", "--delta", 0.05, *GERMAN)
    pacbound("apply", "k.json", "fresh.csv", *GERMAN, "-o", "out.csv")
    assert "pac_exit;pac_prediction" in (folder / "out.csv").read_text()
    pacbound("monitor", "k.json", "rows.csv", "--delta", 0.01, *GERMAN)
    pacbound("tally", "cascade", "rows.csv", *cascade, "--label", "y", *GERMAN, "-o", "tally.json")
    roles = ("--column", "confidence=c", "--column", "prediction=p,q", "--column", "label=y")
    pacbound("plan", "pilot", "rows.csv", *roles, "--xi", 0.1, "--delta", 0.05, "--goal", 0.5,
             "--sizes", "200,400", "--draws", 10, *GERMAN)  # fmt: skip
    batch = ("batch", "bare.csv", *GERMAN)
    pacbound(*batch, "--confidence", "c", "--prediction", "p", "--xi", 0.2, "--delta", 0.1,
             "--ask", "first.csv")  # fmt: skip
    header, *asked = (folder / "first.csv").read_text().splitlines()
    assert header == "q;expert_answer;pac_id"
    numbers = [int(line.split(";")[2].partition("-")[0]) for line in asked]
    answers = [
        line.replace(";;", f";{SLOW[row]};") for line, row in zip(asked, numbers, strict=True)
    ]
    (folder / "first.csv").write_text("\n".join([header, *answers]) + "\n")
    pacbound(*batch, "--take", "first.csv", "--ask", "second.csv", "-o", "all.csv")
    pacbound("design", "rows.csv", "--confidence", "c,c", "--prediction", "p,q", "--label", "y",
             "--costs", "1,9", "--xi", 0.1, "--delta", 0.05, *GERMAN)  # fmt: skip

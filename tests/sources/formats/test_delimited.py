"""Delimited text is read as Python's strict reader reads it, or refused: no row and no value is
lost without a word."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

import pytest

from pacbound import Tally
from pacbound.errors import InvalidValueError, PacboundError
from pacbound.sources.fingerprints import Quotes
from pacbound.sources.opening import open_table

pytest.importorskip("duckdb", reason="reading text needs the extra `frames`")

VALUES = ["a", "1", "", '"x"', '"a,b"', '"a""b"', '"a\nb"', '""', ' "x"', 'x"', '"x" ', '"a"b',
          "NULL", " ", "\0", 'a"b"c', '"', '\\"', "#x", '"a\r\nb"', '"\r"', "a\rb", "é", '""a',
          "a,", ",,"]  # fmt: skip


def _text(rng: random.Random) -> str:
    header = rng.choice(["a,b", "a,b,c", '"a",b', "a", "\ufeffa,b"])
    width, end = header.count(",") + 1, rng.choice(["\n", "\r\n", "\r"])
    rows = [",".join(rng.choice(VALUES) for _ in range(width)) for _ in range(rng.randint(1, 4))]
    return end.join([header, *rows, *[""] * rng.randint(0, 2)])


def _rows(path: Path) -> list[list[str]]:
    found: list[list[str]] = []
    for batch in open_table(path).batches():
        columns = [column.to_pylist() for column in batch.record.columns]  # type: ignore[attr-defined]
        found += [list(row) for row in zip(*columns, strict=True)]
    return found


def test_what_is_accepted_has_the_rows_and_values_that_pythons_strict_reader_gives(
    tmp_path: Path,
) -> None:
    rng, path, accepted = random.Random(5), tmp_path / "rows.csv", 0
    for _ in range(250):
        text = _text(rng)
        path.write_text(text, encoding="utf-8", newline="")
        try:
            found = _rows(path)
        except PacboundError:
            continue
        accepted += 1
        _, *rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
        wide = "," in text.splitlines()[0]
        # A blank line is no row, unless there is one column, whose value may be empty.
        assert found == [row or [""] for row in rows if row or not wide], repr(text)
    assert accepted > 50


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('0.9,1,5"\n0.8,1,"x\n0.7,0,y\n', "not closed"),
        ("0.9,1,x\n0.8,0,1,\n", "Expected 3 columns, got 4"),
        ('0.9,1,x\n0.8,0, "y"\n', "spaces stand before a quote"),
        ('0.9,1,x\n0.8,0,"y" \n', "something follows"),
    ],
)
def test_text_that_duckdb_would_read_in_its_own_way_is_refused_whoever_counts(
    rows: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"c,p,y\n{rows}")
    with pytest.raises(InvalidValueError, match=message):
        Tally.count("calibration", data=path, confidence="c", correct="p")
    with pytest.raises(InvalidValueError, match=message):
        Tally.count(
            "calibration",
            data=path,
            confidence="c",
            prediction="p",
            label="y",
            classes=["1", "0", "x"],
        )


def test_a_last_column_that_is_empty_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("c,p,q,y\n0.5,a,b,a\n0.5,b,b,\n0.5,b,a,a\n")
    found = Tally.count("cascade", data=path, confidence="c", prediction=["p", "q"], label="y")
    expected = {"agree": 1, "only_fast": 1, "only_slow": 1, "neither": 0, "unlabelled": 0}
    assert found.totals == expected


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_text_is_as_plain_in_chunks_as_it_is_as_a_whole(size: int) -> None:
    rng = random.Random(size)
    for _ in range(500):
        text = _text(rng).encode()
        whole, parts = Quotes(","), Quotes(",")
        whole.take(text)
        for start in range(0, len(text), size):
            parts.take(text[start : start + size])
        for quotes in (whole, parts):
            quotes.finish()
        assert whole.plain == parts.plain, text

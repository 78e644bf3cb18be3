"""What cannot be counted is refused by its file, its column and its row."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.tally.question_names import question_of
from tests.tally.table_writers import WRITERS

from pacbound import Tally
from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.tally import count as counting


def test_copies_of_a_file_are_refused_by_their_names(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("c,ok\n0.5,1\n")
    with pytest.raises(RepeatedSourceError, match=r"a\.csv and .*b\.csv hold the same bytes"):
        Tally.count("calibration", data=tmp_path, confidence="c", correct="ok")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "feather", "npz"])
def test_a_bad_value_is_named_by_its_file_column_and_row(tmp_path: Path, suffix: str) -> None:
    good, bad = np.full(100, 0.5), np.full(100, 0.5)
    bad[71:73] = 1.5
    for name, scores in (("a", good), ("b", bad), ("c", good + 0.1)):
        WRITERS[f"rows.{suffix}"](
            {"c": scores, "ok": np.arange(100) % 2 == 0}, tmp_path / f"{name}.{suffix}"
        )
    with pytest.raises(InvalidValueError, match=rf"b\.{suffix}: c\[71\] is 1\.5 \(2 such values\)"):
        Tally.count("calibration", data=tmp_path / f"*.{suffix}", confidence="c", correct="ok")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array(["0.5", "0.6"]), "c has type string"),
        (pa.array([0.5, None]), r"c\[1\] is missing \(1 such values\)"),
        (pa.array([0.5, float("nan")]), r"c\[1\] is nan"),
        (pa.array([True, False]), "c has type bool"),
        (pa.array([[0.5], [0.6]]), r"c has type list"),
        (pa.array([None, None]), "c has type null"),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_a_column_whose_type_or_values_are_no_scores_is_refused(
    tmp_path: Path, column: Any, message: str, suffix: str
) -> None:
    WRITERS[f"rows.{suffix}"](
        {"c": column, "ok": pa.array([True, False])}, tmp_path / f"rows.{suffix}"
    )
    with pytest.raises((InvalidValueError, InvalidTypeError), match=rf"rows\.{suffix}: {message}"):
        Tally.count("calibration", data=tmp_path / f"rows.{suffix}", confidence="c", correct="ok")


ROLES_OF_NAN: list[dict[str, Any]] = [
    {"confidence": "x", "correct": "ok"},
    {"confidence": "x", "correct": "ok", "edges": [0, 0.2, 1]},
    {"confidence": "c", "correct": "x"},
    {"confidence": "c", "prediction": "a", "label": "x"},
    {"confidence": "c", "correct": "ok", "groups": "x"},
    {"confidence": ["c"], "prediction": ["a", "x"], "label": "b"},
    {"score": "x", "unsafe": "ok"},
]
# In text, nan may be the name of a group.
NAN = [
    (named, suffix)
    for named in ROLES_OF_NAN
    for suffix in ("parquet", "feather", "npz", "csv", "jsonl")
    if "groups" not in named or suffix not in ("csv", "jsonl")
]


@pytest.mark.parametrize(("named", "suffix"), NAN)
def test_nan_is_refused_whatever_it_stands_for(
    tmp_path: Path, named: dict[str, Any], suffix: str
) -> None:
    """The statistics in a Parquet file leave NaN out: by them, all of x is 1."""
    table = {
        "x": [1.0, np.nan],
        "c": [0.5, 0.5],
        "ok": [True, True],
        "a": [1.0, 2.0],
        "b": [1.0, 3.0],
    }
    WRITERS[f"rows.{suffix}"](
        {name: np.array(values) for name, values in table.items()}, tmp_path / f"rows.{suffix}"
    )
    with pytest.raises((InvalidValueError, InvalidTypeError)):
        Tally.count(question_of(named), data=tmp_path / f"rows.{suffix}", **named)


@pytest.mark.parametrize("suffix", ["parquet", "feather", "npz"])
def test_nan_in_the_place_of_a_label_is_a_label_that_is_missing(
    tmp_path: Path, suffix: str
) -> None:
    table = {"x": [1.0, np.nan], "c": [0.5, 0.5], "a": [1.0, 2.0], "b": [1.0, 3.0]}
    WRITERS[f"rows.{suffix}"](
        {name: np.array(values) for name, values in table.items()}, tmp_path / f"rows.{suffix}"
    )
    found = Tally.count(
        "cascade",
        data=tmp_path / f"rows.{suffix}",
        confidence=["c"],
        prediction=["a", "b"],
        label="x",
    )
    assert (found.totals["agree"], found.totals["unlabelled"]) == (1, 1)


@pytest.mark.parametrize(
    "line",
    ['{"c": 0.5, "ok": true', "[0.5, true]", "0.5", '{"c": 0.5, "c": 0.6, "ok": true}', "null"],
)
def test_a_line_that_is_no_object_with_each_key_once_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "rows.jsonl").write_text(f'{{"c": 0.5, "ok": true}}\n{line}\n')
    with pytest.raises(InvalidValueError, match=r"rows\.jsonl"):
        Tally.count("calibration", data=tmp_path / "rows.jsonl", confidence="c", correct="ok")


def stored(text: bytes) -> bytearray:
    """The text in the format of gzip, not compressed, so that a byte of it can be changed for
    another."""
    return bytearray(gzip.compress(text, compresslevel=0))


@pytest.mark.parametrize(
    ("name", "text"),
    [("rows.csv.gz", b"c,ok\n0.1,1\n"), ("rows.jsonl.gz", b'{"c": 0.1, "ok": 1}\n' * 500)],
)
def test_a_compressed_file_that_its_checksum_does_not_fit_is_refused(
    tmp_path: Path, name: str, text: bytes
) -> None:
    damaged = stored(text)
    damaged[damaged.index(b"0.1") + 2] ^= 8
    assert b"0.9" in damaged
    (tmp_path / name).write_bytes(damaged)
    with pytest.raises(
        InvalidValueError,
        match=rf"{name} is damaged \(CRC check failed.*\)\. Write or copy it again",
    ):
        Tally.count("calibration", data=tmp_path / name, confidence="c", correct="ok")


def replaced(path: Path, text: str) -> None:
    path.with_name("new").write_text(text)
    path.with_name("new").replace(path)


def overwritten(path: Path, text: str) -> None:
    path.write_text(text)
    os.utime(path, ns=(0, 0))


def removed(path: Path, _: str) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [replaced, overwritten, removed])
def test_a_file_that_changes_while_it_is_counted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path, str], None]
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("c,ok\n0.1,1\n")
    count = counting._count_part

    def changing(*arguments: Any) -> None:
        count(*arguments)
        change(path, "c,ok\n0.9,0\n")

    monkeypatch.setattr(counting, "_count_part", changing)
    with pytest.raises(InvalidValueError, match=r"rows\.csv changed while it was counted"):
        Tally.count("calibration", data=path, confidence="c", correct="ok")

"""Labels that come back land on the rows that they are for, or are refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from itertools import product
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from tests.products import standing_for

from pacbound import Tally
from pacbound.errors import InvalidValueError

Columns = dict[str, list[Any]]


def _write_csv(columns: Columns, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _write_lines(columns: Columns, path: Path) -> None:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    plain = [
        {name: str(v) if isinstance(v, float) and v - v != 0 else v for name, v in row.items()}
        for row in rows
    ]
    path.write_text("\n".join(map(json.dumps, plain)))


def _write_npz(columns: Columns, path: Path) -> None:
    arrays: dict[str, Any] = {
        name: np.array([nan if value is None else value for value in values])
        for name, values in columns.items()
    }
    np.savez(path, **arrays)


WRITE: dict[str, Callable[[Columns, Path], None]] = {
    "csv": _write_csv,
    "jsonl": _write_lines,
    "parquet": lambda columns, path: parquet.write_table(pa.table(columns), path),
    "feather": lambda columns, path: feather.write_feather(pa.table(columns), path),
    "npz": _write_npz,
}
CALIBRATION: dict[str, Any] = {"confidence": "c", "prediction": "p", "label": "y"}
CASCADE: dict[str, Any] = {"confidence": ["c"], "prediction": ["p", "q"], "label": "y"}


def stored(columns: Columns, folder: Path, name: str) -> Path:
    path = folder / name
    WRITE[path.suffix[1:]](columns, path)
    return path


def rows(n: int = 40) -> Columns:
    rng = np.random.default_rng(0)
    return {
        "c": rng.random(n).tolist(),
        "p": rng.integers(0, 3, n).tolist(),
        "q": rng.integers(0, 3, n).tolist(),
        "g": [f"k{value}" for value in rng.integers(0, 12, n).tolist()],
        "y": rng.integers(0, 3, n).tolist(),
    }


def without(columns: Columns, *names: str) -> Columns:
    return {name: values for name, values in columns.items() if name not in names}


def bare(columns: Columns) -> Columns:
    """The rows without their labels, with numbers of their own."""
    rows = len(columns["c"])
    return {**without(columns, "y"), "pac_id": list(range(rows))}


def shuffled(columns: Columns, seed: int = 0) -> Columns:
    order = np.random.default_rng(seed).permutation(len(next(iter(columns.values()))))
    return {name: [values[i] for i in order] for name, values in columns.items()}


FORMATS = list(WRITE)
EACH_WITH_THE_NEXT = list(zip(FORMATS, FORMATS[1:] + FORMATS[:1], strict=True))


@pytest.mark.parametrize(
    ("source", "answers"), standing_for(product(FORMATS, FORMATS), EACH_WITH_THE_NEXT)
)
def test_labels_in_any_format_and_order_join_rows_in_any_format(
    source: str, answers: str, tmp_path: Path
) -> None:
    whole = rows()
    wanted = Tally.count(
        "calibration", data=stored(whole, tmp_path, f"whole.{source}"), **CALIBRATION
    )
    path = stored(bare(whole), tmp_path, f"rows.{source}")
    came = shuffled({"pac_id": list(range(40)), "y": whole["y"]})
    back = stored(came, tmp_path, f"back.{answers}")
    assert Tally.count("calibration", data=path, answers=back, **CALIBRATION) == wanted
    # Of a cascade only some labels come back.
    some = {name: values[:25] for name, values in came.items()}
    known = dict(zip(some["pac_id"], some["y"], strict=True))
    partly = [known.get(row, nan) for row in range(40)]
    found = Tally.count(
        "cascade", data=path, answers=stored(some, tmp_path, f"some.{answers}"), **CASCADE
    )
    assert found == Tally.count(
        "cascade",
        confidence=whole["c"],
        prediction=np.column_stack([whole["p"], whole["q"]]),
        label=partly,
    )


@pytest.mark.parametrize(
    "engine", ["duckdb", "polars", pytest.param("spark", marks=pytest.mark.long)]
)
def test_every_engine_joins_labels_by_the_numbers_of_rows(engine: Any, tmp_path: Path) -> None:
    whole = rows()
    numbered = shuffled({**without(whole, "y"), "pac_id": list(range(100, 140))}, seed=1)
    path = stored(numbered, tmp_path, "rows.parquet")
    back = stored({"pac_id": list(range(100, 140)), "y": whole["y"]}, tmp_path, "back.csv")
    found = Tally.count("calibration", data=path, answers=back, engine=engine, **CALIBRATION)
    assert found == Tally.count(
        "calibration", data=stored(whole, tmp_path, "whole.csv"), **CALIBRATION
    )


@pytest.mark.parametrize("make", [pl.DataFrame, lambda c: pl.DataFrame(c).lazy(), pa.table])
def test_frames_join_labels_in_files_and_in_frames(make: Any, tmp_path: Path) -> None:
    whole = rows()
    frame = make(bare(whole))
    back = {"pac_id": list(range(40)), "y": whole["y"]}
    wanted = Tally.count("calibration", data=make(whole), **CALIBRATION)
    for came in (stored(back, tmp_path, "b.csv"), pl.DataFrame(back)):
        assert Tally.count("calibration", data=frame, answers=came, **CALIBRATION) == wanted
    # A rate of its own has no column of scores.
    right = [p == y for p, y in zip(whole["p"], whole["y"], strict=True)]
    came = pl.DataFrame({"pac_id": list(range(40)), "y": right})
    alone = Tally.count("calibration", data=frame, answers=came, correct="y", n_bins=1)
    assert alone == Tally.count("calibration", correct=right, n_bins=1)


def test_several_files_are_numbered_on_and_labels_may_come_in_several(tmp_path: Path) -> None:
    whole = rows()
    parts = [
        stored({name: values[part] for name, values in bare(whole).items()}, tmp_path, name_)
        for name_, part in [("a.csv", slice(0, 15)), ("b.csv", slice(15, 40))]
    ]
    backs = [
        stored({"pac_id": list(range(40))[part], "y": whole["y"][part]}, tmp_path, name)
        for name, part in [("one.csv", slice(0, 22)), ("two.csv", slice(22, 40))]
    ]
    found = Tally.count("calibration", data=parts, answers=backs, **CALIBRATION)
    assert found == Tally.count(
        "calibration", data=stored(whole, tmp_path, "whole.csv"), **CALIBRATION
    )
    # All four files have a part in it, so that none is counted again.
    assert len(found.sources) == 4


def test_labels_that_the_rows_have_already_stay_and_may_not_be_contradicted(
    tmp_path: Path,
) -> None:
    whole = rows()
    partly = {**bare(whole), "y": [y if i % 2 else None for i, y in enumerate(whole["y"])]}
    path = stored(partly, tmp_path, "rows.parquet")
    even = {"pac_id": list(range(0, 40, 2)), "y": whole["y"][::2]}
    wanted = Tally.count("calibration", data=stored(whole, tmp_path, "whole.csv"), **CALIBRATION)
    back = stored(even, tmp_path, "even.csv")
    assert Tally.count("calibration", data=path, answers=back, **CALIBRATION) == wanted
    again = stored({"pac_id": list(range(40)), "y": whole["y"]}, tmp_path, "all.csv")
    assert Tally.count("calibration", data=path, answers=again, **CALIBRATION) == wanted
    other = list(whole["y"])
    other[7] = (other[7] + 1) % 3
    wrong = stored({"pac_id": list(range(40)), "y": other}, tmp_path, "wrong.csv")
    with pytest.raises(InvalidValueError, match=r"another label than .*rows\.parquet for row 7"):
        Tally.count("calibration", data=path, answers=wrong, **CALIBRATION)


REFUSED: dict[str, tuple[Columns, str]] = {
    "contradiction": ({"pac_id": [3, 3], "y": [1, 2]}, r"row 3 twice, once 1 and once 2"),
    "unknown row": ({"pac_id": [3, 40], "y": [1, 1]}, r"answers row 40 .*not in .*rows\.csv"),
    "negative": ({"pac_id": [-1], "y": [1]}, r"pac_id\[0\] is '-1', .* not the id of a row"),
    "fraction": ({"pac_id": [1.5], "y": [1]}, r"pac_id\[0\] is '1.5'"),
    "no number": ({"pac_id": ["x"], "y": [1]}, r"pac_id\[0\] is 'x', which is not the id"),
    "empty number": ({"pac_id": [""], "y": [1]}, r"pac_id\[0\] is ''"),
    "no numbers": ({"row": [1], "y": [1]}, r"no column 'pac_id'"),
    "no labels": ({"pac_id": [1], "label": [1]}, r"no column 'y'"),
    "code for missing": ({"pac_id": [1], "y": ["NA"]}, r"back\.csv: y\[0\] is 'NA'"),
    "another score": ({"pac_id": [1], "y": [1], "c": [0.5]}, r"another 'c' than .* for row 1 "),
    "another prediction": ({"pac_id": [1], "y": [1], "p": [9]}, r"another 'p' than .*other rows"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_answers_that_cannot_be_to_these_rows_are_refused(case: str, tmp_path: Path) -> None:
    came, said = REFUSED[case]
    path = stored(bare(rows()), tmp_path, "rows.csv")
    back = stored(came, tmp_path, "back.csv")
    with pytest.raises(InvalidValueError, match=said):
        Tally.count("cascade", data=path, answers=back, **CASCADE)


def test_a_row_that_was_answered_stands_in_the_table_once(tmp_path: Path) -> None:
    twice = {**without(rows(), "y"), "pac_id": [5] * 40}
    back = stored({"pac_id": [5], "y": [1]}, tmp_path, "back.csv")
    with pytest.raises(InvalidValueError, match="stands there twice"):
        Tally.count("cascade", data=stored(twice, tmp_path, "rows.csv"), answers=back, **CASCADE)

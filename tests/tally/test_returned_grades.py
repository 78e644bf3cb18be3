"""Grades that come back in another table land on the rows that they are for, or are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pacbound import Tally, calibrate, certify_abstention, certify_cascade, certify_replacement
from pacbound.errors import InvalidTypeError, InvalidValueError

ROWS = 60
LEVELS: Any = {"quality_scale": (1, 2, 3, 4, 5), "graded_by": "a judge"}
SCALE: Any = {"quality_scale": (1, 5), "graded_by": "a judge"}


def table() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows, and their grades, which are in another order."""
    rng = np.random.default_rng(1)
    rows = pl.DataFrame(
        {
            "c": rng.random(ROWS),
            "p": rng.integers(0, 3, ROWS),
            "q": rng.integers(0, 3, ROWS),
            "who": [f"row {place}" for place in range(ROWS)],
            "pac_id": np.arange(ROWS),
        }
    )
    back = pl.DataFrame(
        {
            "pac_id": np.arange(ROWS),
            "g": rng.integers(1, 6, ROWS),
            "h": rng.integers(1, 6, ROWS),
            "better": rng.choice(["p", "q", "tie"], ROWS),
        }
    )
    return rows, back.sample(fraction=1.0, shuffle=True, seed=3)


CASES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "calibration": (calibrate, {"confidence": "c", "quality": "g"}, {"delta": 0.1, **LEVELS}),
    "abstention": (
        certify_abstention,
        {"confidence": "c", "quality": "g"},
        {"delta": 0.1, "xi": 0.5, **LEVELS},
    ),
    "cascade": (
        certify_cascade,
        {"confidence": ["c"], "quality": ["g", "h"]},
        {"delta": 0.1, "xi": 0.3, **SCALE},
    ),
    "cascade with predictions": (
        certify_cascade,
        {"confidence": ["c"], "prediction": ["p", "q"], "quality": ["g", "h"]},
        {"delta": 0.1, "xi": 0.3, "row_ids": "who", **SCALE},
    ),
    "preferred": (
        certify_cascade,
        {"confidence": ["c"], "prediction": ["p", "q"], "preferred": "better"},
        {"delta": 0.1, "xi": 0.3},
    ),
    "replacement": (
        certify_replacement,
        {"prediction": ["p", "q"], "quality": ["g", "h"]},
        {"delta": 0.1, "xi": 0.3, **LEVELS},
    ),
}


def written(frame: pl.DataFrame, path: Path) -> Path:
    if path.suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)
    return path


@pytest.mark.parametrize("name", CASES)
def test_grades_of_another_table_give_the_certificate_of_one_table(
    name: str, tmp_path: Path
) -> None:
    verb, columns, asked = CASES[name]
    rows, back = table()
    whole = verb(data=rows.with_columns(back.sort("pac_id").drop("pac_id")), **columns, **asked)
    split = verb(data=rows, answers=back, **columns, **asked)
    assert split.counts_digest == whole.counts_digest
    for rest in ("csv", "parquet"):
        there = written(rows, tmp_path / f"rows.{rest}")
        answers = written(back, tmp_path / f"back.{rest}")
        made = verb(data=there, answers=answers, **columns, **asked)
        assert made.counts_digest == whole.counts_digest
        assert made.verify()


def test_grades_that_did_not_come_back_are_missing_ones() -> None:
    _, columns, asked = CASES["cascade"]
    rows, back = table()
    some = back.filter(pl.col("pac_id") % 3 != 0).with_columns(
        pl.when(pl.col("pac_id") % 3 == 1).then(None).otherwise(pl.col("g")).alias("g")
    )
    whole = rows.with_columns(pac_id=pl.int_range(ROWS)).join(some, on="pac_id", how="left")
    made = certify_cascade(data=rows, answers=some, **columns, **asked)
    same = certify_cascade(data=whole.drop("pac_id"), **columns, **asked)
    assert made.counts_digest == same.counts_digest
    with pytest.raises(InvalidValueError, match="has no answer in the frame of answers"):
        calibrate(data=rows, answers=some, confidence="c", quality="h", delta=0.1, **LEVELS)


def test_grades_of_the_table_are_kept_where_none_came_back() -> None:
    _, columns, asked = CASES["cascade"]
    rows, back = table()
    ordered = back.sort("pac_id")
    even = pl.col("pac_id") % 2 == 0
    half = ordered.with_columns(pl.when(even).then(pl.col(n)).alias(n) for n in ("g", "h"))
    there = rows.with_columns(half["g"], half["h"])
    rest = ordered.filter(~even)
    made = certify_cascade(data=there, answers=rest, **columns, **asked)
    same = certify_cascade(data=rows.with_columns(ordered["g"], ordered["h"]), **columns, **asked)
    assert made.counts_digest == same.counts_digest
    # What came back says something else than the table.
    other = ordered.filter(even).with_columns(g=6 - pl.col("g"))
    with pytest.raises(InvalidValueError, match="says another 'g' than the frame for row"):
        certify_cascade(data=there, answers=other, **columns, **asked)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"g": 6}, "g.* is 6.0 .*expected grades from 1 to 5"),
        ({"g": float("inf")}, "is inf .*expected grades from 1 to 5"),
        ({"pac_id": 99}, "answers row 99 .*which is not in the frame"),
        ({"pac_id": 1}, "answers row 1 twice"),
        ({"pac_id": -1}, "which is not the id of a row"),
    ],
)
def test_grades_that_cannot_be_of_these_rows_are_refused(change: Any, said: str) -> None:
    _, columns, asked = CASES["cascade"]
    rows, back = table()
    ((name, value),) = change.items()
    wrong = back.with_columns(
        pl.when(pl.col("pac_id") == 0).then(value).otherwise(pl.col(name)).alias(name)
    )
    with pytest.raises(InvalidValueError, match=said):
        certify_cascade(data=rows, answers=wrong, **columns, **asked)


def test_text_in_the_place_of_grades_is_refused(tmp_path: Path) -> None:
    _, columns, asked = CASES["cascade"]
    rows, back = table()
    words = back.with_columns(g=pl.lit("good"))
    with pytest.raises((InvalidTypeError, InvalidValueError), match="g"):
        certify_cascade(data=rows, answers=words, **columns, **asked)
    path = written(words, tmp_path / "back.csv")
    with pytest.raises((InvalidTypeError, InvalidValueError), match="good"):
        Tally.count("cascade", data=rows, answers=path, **columns, **SCALE)
    with pytest.raises((InvalidTypeError, InvalidValueError), match="g"):
        certify_cascade(data=rows, answers=back.drop("g"), **columns, **asked)

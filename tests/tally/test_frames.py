"""Frames: which columns stand for what, what is no frame; the rows stay in their engine."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.tally.question_names import question_of

from pacbound import Tally, calibrate, certify_cascade, certify_shield
from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.tally.frames import counting as frame_counts

FRAME = pl.DataFrame({"c": [0.15, 0.95, 0.95], "ok": [True, True, False]})
CORRECT: dict[str, Any] = {"confidence": "c", "correct": "ok"}
COUNTED = Tally.count("calibration", confidence=[0.15, 0.95, 0.95], correct=[True, True, False])


@pytest.mark.parametrize("what", [[0.5, 0.6], {"c": [0.5]}, np.zeros(3), FRAME["c"], 7])
def test_what_is_no_frame_is_refused(what: Any) -> None:
    with pytest.raises(
        InvalidTypeError,
        match=r"is not a frame: expected one of pandas, Polars, PyArrow, DuckDB or PySpark",
    ):
        Tally.count("calibration", data=what, **CORRECT)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"confidence": "c"}, "Pass either correct, or both prediction and label, or"),
        ({"confidence": "c", "correct": "ok", "label": "y"}, "Pass either correct"),
        ({"confidence": "c", "prediction": "p"}, "Pass either correct"),
        ({"confidence": "c", "corect": "ok"}, "has no 'corect'.*Did you mean 'correct'"),
        ({"confidence": "c", "correct": "ok", "labels": "y"}, "Did you mean 'label'"),
        ({"confidence": "c", "correct": ["ok"]}, "are not all names of columns"),
        (
            {"confidence": ["c"], "prediction": ["p"], "label": "y"},
            "1 confidences and 1 predictions are not a cascade",
        ),
        (
            {"confidence": [], "prediction": ["p"], "label": "y"},
            "0 confidences and 1 predictions are not a cascade",
        ),
        ({"score": "c"}, "unsafe is missing: pass its column"),
        ({"score": "c", "unsafe": "ok", "confidence": "c"}, "A table of rollouts has no 'conf"),
    ],
)
def test_columns_that_do_not_belong_together_are_refused(
    columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        Tally.count(question_of(columns), data=FRAME, **columns)


def test_a_column_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(InvalidValueError, match=r"no column 'C'\. Its columns: 'c', 'ok'\."):
        Tally.count("calibration", data=FRAME, confidence="C", correct="ok")


def test_edges_from_the_counted_scores_are_those_of_the_arrays() -> None:
    found = Tally.count("calibration", data=FRAME, **CORRECT, edges="equal-mass", n_bins=2)
    columns: dict[str, Any] = {"confidence": FRAME["c"], "correct": FRAME["ok"]}
    assert found == Tally.count("calibration", **columns, edges="equal-mass", n_bins=2)
    with pytest.raises(InvalidValueError, match="expected a list of numbers, or 'equal-mass'"):
        Tally.count("calibration", data=FRAME, **CORRECT, edges="equal-width")


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows came back from the engine, each time."""
    lengths: list[int] = []

    def collect(frame: Any) -> dict[str, Any]:
        found = original(frame)
        lengths.extend({len(column) for column in found.values()})
        return found

    original = frame_counts.collected
    monkeypatch.setattr(frame_counts, "collected", collect)
    return lengths


def test_a_frame_is_scanned_once_and_only_counts_come_back(collected: list[int]) -> None:
    scanned: list[int] = []

    def seen(part: pl.DataFrame) -> pl.DataFrame:
        scanned.append(part.height)
        return part

    frame = pl.LazyFrame(
        {"c": np.random.default_rng(0).random(50_000), "ok": [True, False] * 25_000}
    )
    counted = Tally.count(
        "calibration", data=frame.map_batches(seen, schema=frame.collect_schema()), **CORRECT
    )
    assert counted.rows == sum(scanned) == 50_000
    assert collected == [40]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([Decimal("0.15"), Decimal("0.35")], type=pa.decimal128(10, 4)), [[2], [6]]),
        (pa.array([1, 0], type=pa.uint8()), [[0], [19]]),
        (
            pa.array([0.15, 0.35], type=pa.float32()),
            [[3], [6]],
        ),  # in float32, 0.15 is a little more
    ],
)
def test_numbers_of_any_type_are_scores(column: Any, expected: list[list[int]]) -> None:
    table = pa.table({"c": column, "ok": [True, True]})
    for frame in (table, pl.DataFrame(table), duckdb.from_arrow(table)):
        assert Tally.count("calibration", data=frame, **CORRECT).cells.tolist() == expected


def test_python_objects_in_pandas_are_what_they_plainly_are() -> None:
    objects = pd.DataFrame({"c": [0.15, 0.95, 0.95], "ok": [True, True, False]}, dtype=object)
    assert Tally.count("calibration", data=objects, **CORRECT) == COUNTED
    with pytest.raises(InvalidValueError, match="ok has 1 missing values"):
        Tally.count(
            "calibration",
            data=pd.DataFrame({"c": [0.5, 0.6], "ok": pd.Series([True, None], dtype=object)}),
            **CORRECT,
        )
    with pytest.raises(InvalidTypeError, match="c has type Object"):
        Tally.count(
            "calibration", data=pd.DataFrame({"c": [0.5, "0.6"], "ok": [True, False]}), **CORRECT
        )


def test_categories_are_their_names() -> None:
    names = pl.Series(["cat", "dog", "cat"], dtype=pl.Categorical)
    frame = FRAME.with_columns(
        p=names, y=pl.Series(["cat", "cat", "cat"], dtype=pl.Enum(["dog", "cat"])), g=names
    )
    counted = Tally.count(
        "calibration", data=frame, confidence="c", prediction="p", label="y", groups="g"
    )
    assert counted == Tally.count(
        "calibration",
        confidence=[0.15, 0.95, 0.95],
        correct=[True, False, True],
        groups=["cat", "dog", "cat"],
    )


def _categories(*values: Any) -> list[Any]:
    """A column of categories in each of the ways that pandas and PyArrow hold one."""
    encoded = pa.array(values).dictionary_encode()
    held = pd.Categorical(values)
    return [held, held.as_ordered(), pd.array(encoded, dtype=pd.ArrowDtype(encoded.type)), encoded]


def _framed(**columns: Any) -> Any:
    return (
        pa.table(columns)
        if any(isinstance(column, pa.Array) for column in columns.values())
        else pd.DataFrame(columns)
    )


@pytest.mark.parametrize(
    ("predictions", "labels", "groups"),
    [
        ([3.0, 4.0], [3, 3], ("3", "4")),
        ([True, False], [1, 1], ("0", "1")),
        ([3, 4], [3.0, 3.0], ("3", "4")),
    ],
)
@pytest.mark.parametrize("way", range(4))
def test_categories_that_are_numbers_are_counted_as_numbers(
    predictions: list[Any], labels: list[Any], groups: tuple[str, ...], way: int
) -> None:
    held = _categories(*predictions)[way]
    counted = Tally.count(
        "calibration",
        data=_framed(c=[0.15, 0.95], p=held, y=_categories(*labels)[way]),
        confidence="c",
        prediction="p",
        label="y",
        groups="p",
    )
    assert counted == Tally.count(
        "calibration", confidence=[0.15, 0.95], correct=[True, False], groups=predictions
    )
    assert counted.groups == groups


ARROW_FRAMES: list[Any] = [
    lambda table: table,
    lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
]


@pytest.mark.parametrize("frame", ARROW_FRAMES)
@pytest.mark.parametrize("dtype", [pa.int64(), pa.uint64()])
def test_integers_that_arrow_rounds_to_no_float_are_compared_with_floats(
    frame: Any, dtype: Any
) -> None:
    table = pa.table(
        {
            "c": [0.1, 0.2, 0.3],
            "p": pa.array([3, 2**60 + 1, 2**53], type=dtype),
            "y": [3.0, 3.0, 2.0**53 - 1],
        }
    )
    counted = Tally.count(
        "calibration", data=frame(table), confidence="c", prediction="p", label="y", unseen_labels=1
    )
    assert counted == Tally.count(
        "calibration", confidence=[0.1, 0.2, 0.3], correct=[True, False, False]
    )


@pytest.mark.parametrize("groups", [[7, 7, 10], [7.0, 7.0, 10.0], ["7", "7", "10"]])
def test_a_group_has_one_name_whatever_its_type(groups: list[Any]) -> None:
    counted = Tally.count(
        "calibration", data=FRAME.with_columns(g=pl.Series(groups)), **CORRECT, groups="g"
    )
    assert counted.groups == ("7", "10")
    assert counted == Tally.count(
        "calibration", confidence=FRAME["c"], correct=FRAME["ok"], groups=groups
    )


def test_a_frame_that_is_counted_again_goes_unnoticed_but_its_tally_does_not() -> None:
    counted = Tally.count("calibration", data=FRAME, **CORRECT)
    assert (counted + Tally.count("calibration", data=FRAME, **CORRECT)).rows == 6
    with pytest.raises(RepeatedSourceError, match="twice"):
        counted + counted


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: calibrate("c", [1, 0, 1], data=FRAME, delta=0.1),
            "correct is of type list beside data=: name its column",
        ),
        (
            lambda: calibrate(**CORRECT, data=FRAME, delta=0.1, groups=[1, 1, 1]),
            "groups is of type list beside data=: name its column",
        ),
        (
            lambda: calibrate(**CORRECT, data=COUNTED, delta=0.1),
            "confidence was passed beside a Tally",
        ),
        (lambda: calibrate(COUNTED, delta=0.1), "pass it as data=, and leave confidence out"),
        (
            lambda: calibrate(data=FRAME, delta=0.1, confidences="c"),  # type: ignore[call-arg]
            "confidences is not an option of this function. Did you mean confidence",
        ),
        (lambda: calibrate(correct="ok", data=FRAME, delta=0.1), "needs 'confidence'"),
        (lambda: calibrate("c", data=FRAME, delta=0.1), "was right is missing"),
        (
            lambda: certify_cascade("c", [[1, 2]], "y", data=FRAME, xi=0.1, delta=0.1),
            "prediction is of type list beside data=",
        ),
        (
            lambda: certify_cascade(data=FRAME, label="y", xi=0.1, delta=0.1),
            "confidence is missing",
        ),
        (
            lambda: certify_shield("c", [1, 0, 1], data=FRAME, xi=0.1, delta=0.1),
            "unsafe is of type list beside data=",
        ),
    ],
)
def test_a_table_and_arrays_are_not_mixed(call: Any, message: str) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        call()


BLOCKED = """
import sys
sys.modules["narwhals"] = None
from pacbound import Tally
from pacbound.errors import MissingDependencyError
try:
    Tally.count("calibration", data=object(), confidence="c", correct="ok")
except MissingDependencyError as error:
    print(error)
"""


def test_without_narwhals_the_error_is_the_command_that_installs_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=True
    )
    assert (
        done.stdout.strip()
        == "Counting dataframes needs narwhals, which is not installed. Run: pip install"
        " 'pacbound[frames]'"
    )


NAN_USES: list[dict[str, Any]] = [
    {"confidence": "nan", "correct": "ok"},
    {"confidence": "nan", "correct": "ok", "edges": [0.0, 0.5, 1.0]},
    {"confidence": "c", "correct": "nan_flag"},
    {"confidence": "c", "prediction": "p", "label": "nan_class"},
    {"score": "nan", "unsafe": "ok"},
]


@pytest.mark.parametrize("columns", NAN_USES)
def test_nan_is_refused_where_the_statistics_of_a_parquet_file_deny_it(
    columns: dict[str, Any], tmp_path: Path
) -> None:
    """DuckDB takes such statistics for the truth about comparisons, and they leave NaN out."""
    rows, odd = np.arange(1000), np.arange(1000) == 7
    table = {
        "c": np.linspace(0.01, 0.99, 1000),
        "nan": np.where(odd, np.nan, np.linspace(0.01, 0.98, 1000)),
        "ok": rows % 2 == 0,
        "always": rows >= 0,
        "nan_flag": np.where(odd, np.nan, 1.0),
        "p": np.ones(1000),
        "other": np.where(odd, 2.0, 1.0),
        "nan_class": np.where(odd, np.nan, 1.0),
    }
    pl.DataFrame(table).write_parquet(tmp_path / "table.parquet", statistics=True)
    with pytest.raises(
        InvalidValueError, match=r"\b1\b.*(missing|no label)|missing \(null or NaN\)"
    ):
        Tally.count(
            question_of(columns),
            data=duckdb.read_parquet(str(tmp_path / "table.parquet")),
            **columns,
        )
    with pytest.raises(InvalidValueError):
        Tally.count(question_of(columns), data=tmp_path / "table.parquet", **columns)

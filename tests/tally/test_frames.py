"""Frames: which columns stand for what, what is no frame; the rows stay in their engine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
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


def test_a_narwhals_frame_is_a_frame() -> None:
    assert Tally.count("calibration", data=nw.from_native(FRAME), **CORRECT) == COUNTED


@pytest.mark.parametrize("engine", ["IBIS", "SQLFRAME", "DASK", "MODIN", "CUDF", "UNKNOWN"])
def test_engines_that_were_never_compared_with_arrays_are_refused(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nw.DataFrame, "implementation", nw.Implementation[engine])
    with pytest.raises(
        InvalidTypeError,
        match=f"A frame of {engine.lower()} is not counted: .* Pass the native frame",
    ):
        Tally.count("calibration", data=FRAME, **CORRECT)


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


def test_names_that_duckdb_takes_for_one_are_refused() -> None:
    relation = duckdb.sql('select 0.1::double as c, 0.9::double as "C", true as ok')
    for name in ("c", "C"):
        with pytest.raises(InvalidValueError, match="columns c, C, which its engine takes for one"):
            Tally.count("calibration", data=relation, confidence=name, correct="ok")
    assert Tally.count(
        "calibration",
        data=pl.DataFrame({"c": [0.1], "C": [0.9], "ok": [True]}),
        confidence="C",
        correct="ok",
    ).cells == [[17]]


@pytest.mark.parametrize("name", ["*", "^a$"])
def test_names_that_polars_takes_for_patterns_are_refused(name: str) -> None:
    frame = pl.DataFrame({"c": [0.1], "a": [0.9], name: [0.5], "ok": [True]})
    with pytest.raises(InvalidValueError, match="means something else to its engine"):
        Tally.count("calibration", data=frame, confidence=name, correct="ok")


def test_a_star_is_no_column_of_duckdb() -> None:
    relation = duckdb.sql('select 0.9::double as c, true as "*"')
    with pytest.raises(InvalidValueError, match="means something else to its engine"):
        Tally.count("calibration", data=relation, confidence="c", correct="*")


def test_two_columns_of_one_name_are_refused() -> None:
    twice = pd.DataFrame([[0.1, 0.9, True]], columns=["c", "c", "ok"])
    with pytest.raises(InvalidValueError, match="several columns of one name"):
        Tally.count("calibration", data=twice, **CORRECT)


def test_edges_from_the_counted_scores_are_those_of_the_arrays() -> None:
    found = Tally.count("calibration", data=FRAME, **CORRECT, edges="equal-mass", n_bins=2)
    columns: dict[str, Any] = {"confidence": FRAME["c"], "correct": FRAME["ok"]}
    assert found == Tally.count("calibration", **columns, edges="equal-mass", n_bins=2)
    with pytest.raises(InvalidValueError, match="expected a list of numbers, or 'equal-mass'"):
        Tally.count("calibration", data=FRAME, **CORRECT, edges="equal-width")


def test_more_edges_than_an_engine_compiles_are_refused() -> None:
    with pytest.raises(
        InvalidValueError, match="edges has 1026 values, too many to be compared inside an engine"
    ):
        Tally.count("calibration", data=FRAME, **CORRECT, edges=np.linspace(0, 1, 1026))


@pytest.mark.parametrize(
    "engine",
    [
        lambda frame: frame,
        lambda frame: frame.lazy(),
        lambda frame: duckdb.from_arrow(frame.to_arrow()),
    ],
)
def test_as_many_edges_as_may_be_are_counted(engine: Any) -> None:
    edges = np.linspace(0, 1, 1025)
    scores = np.concatenate([edges, np.nextafter(edges, 0)[1:], np.nextafter(edges, 1)[:-1]])
    frame = pl.DataFrame({"c": scores, "ok": scores > 0.5})
    expected = Tally.count("calibration", confidence=scores, correct=scores > 0.5, edges=edges)
    assert Tally.count("calibration", data=engine(frame), **CORRECT, edges=edges) == expected


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


def test_bad_values_that_are_all_different_are_not_kept_apart(collected: list[int]) -> None:
    logits = np.random.default_rng(0).normal(0, 5, 10_000)
    with pytest.raises(InvalidValueError, match="look like logits"):
        Tally.count(
            "calibration",
            data=pl.DataFrame({"c": logits, "ok": [True] * 10_000, "g": logits}),
            **CORRECT,
            groups="g",
        )
    assert collected[0] < 50


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


@pytest.mark.parametrize("value", [3, 3.0, True, "a"])
@pytest.mark.parametrize("way", range(4))
def test_a_category_that_is_missing_is_missing(value: Any, way: int) -> None:
    frame = _framed(
        c=[0.15, 0.95], p=_categories(value, value)[way], y=_categories(value, None)[way]
    )
    with pytest.raises(InvalidValueError, match="1 rows have no label in y"):
        Tally.count("calibration", data=frame, confidence="c", prediction="p", label="y")


@pytest.mark.parametrize("way", range(4))
def test_categories_that_are_large_floats_are_no_classes(way: int) -> None:
    frame = _framed(c=[0.15, 0.95], p=_categories(3, 3)[way], y=_categories(3.0, 2.0**60)[way])
    with pytest.raises(InvalidValueError, match="not a whole number"):
        Tally.count("calibration", data=frame, confidence="c", prediction="p", label="y")


ARROW_FRAMES: list[Any] = [
    lambda table: table,
    lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
]


@pytest.mark.parametrize("frame", ARROW_FRAMES)
@pytest.mark.parametrize("dtype", [pa.int64(), pa.uint64()])
def test_integers_that_arrow_rounds_to_no_float_are_refused_as_others_are(
    frame: Any, dtype: Any
) -> None:
    large = pa.array([1, 2**60 + 1], type=dtype)
    with pytest.raises(InvalidValueError, match=r"ok holds 1\.15\S*e\+18 \(1 such values\)"):
        Tally.count("calibration", data=frame(pa.table({"c": [0.1, 0.2], "ok": large})), **CORRECT)
    with pytest.raises(InvalidValueError, match=r"1 above 1 \(the greatest 1\.15\S*e\+18\)"):
        Tally.count(
            "calibration", data=frame(pa.table({"c": large, "ok": [True, True]})), **CORRECT
        )


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


def test_integers_that_only_64_unsigned_bits_hold_are_compared_exactly() -> None:
    table = pa.table(
        {
            "c": [0.5, 0.5, 0.5],
            "p": pa.array([2**63 + 1, 2**53, 7], type=pa.uint64()),
            "y": pa.array([-(2**63) + 1, 2**53 + 1, 7], type=pa.int64()),
        }
    )
    for frame in (table, pl.DataFrame(table), duckdb.from_arrow(table), table.to_pandas()):
        assert Tally.count(
            "calibration", data=frame, confidence="c", prediction="p", label="y", unseen_labels=1
        ).totals == {
            "wrong": 2,
            "right": 1,
        }


def test_a_stream_that_can_be_read_once_is_counted_and_refused_without_an_example() -> None:
    def stream(*scores: float) -> Any:
        table = pa.table({"c": scores, "ok": [True, True, False]})
        return duckdb.from_arrow(
            pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
        )

    assert Tally.count("calibration", data=stream(0.15, 0.95, 0.95), **CORRECT) == COUNTED
    with pytest.raises(InvalidValueError, match=r"1 above 1 .*cannot be read again.*logits"):
        Tally.count("calibration", data=stream(0.15, 0.95, 7.0), **CORRECT)


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


def test_columns_of_a_frame_are_still_arrays() -> None:
    for series in (FRAME["c"], FRAME.to_pandas()["c"], FRAME.to_arrow()["c"]):
        assert (
            calibrate(series, FRAME["ok"], delta=0.1).claim_digest
            == calibrate(data=COUNTED, delta=0.1).claim_digest
        )


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


def test_a_nan_label_is_missing_where_the_statistics_of_a_parquet_file_deny_it(
    tmp_path: Path,
) -> None:
    """Taken for a label, the row would be one on which neither model is right: not a loss."""
    odd = np.arange(1000) == 7
    table = {
        "c": np.linspace(0.01, 0.99, 1000),
        "p": np.ones(1000),
        "other": np.where(odd, 2.0, 1.0),
        "y": np.where(odd, np.nan, 1.0),
    }
    path = tmp_path / "table.parquet"
    pl.DataFrame(table).write_parquet(path, statistics=True)
    named: dict[str, Any] = {"confidence": ["c"], "prediction": ["p", "other"], "label": "y"}
    for found in (
        Tally.count("cascade", data=duckdb.read_parquet(str(path)), **named),
        Tally.count("cascade", data=path, **named),
    ):
        assert (found.totals["agree"], found.totals["unlabelled"]) == (999, 1)


def test_a_stream_with_classes_in_it_is_refused_with_what_to_do() -> None:
    table = pa.table({"c": [0.5, 0.6], "p": [1, 2], "y": [1, 2]})
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    connection = duckdb.connect()
    with pytest.raises(InvalidValueError, match="read only once: load it first"):
        Tally.count(
            "calibration",
            data=connection.from_arrow(stream),
            confidence="c",
            prediction="p",
            label="y",
        )


BROKEN: dict[str, Callable[[], Any]] = {
    "a file that is gone": lambda: pl.scan_parquet("gone.parquet"),
    "a column that is not there": lambda: FRAME.lazy().with_columns(pl.col("gone")),
    "a cast that fails": lambda: FRAME.lazy().with_columns(
        c=pl.lit("x").cast(pl.Float64, strict=True), g=pl.lit("a")
    ),
    "a query of DuckDB that fails": lambda: duckdb.sql("select 'x'::double c, true ok, 'a' g"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_frame_that_cannot_be_computed_is_refused_in_our_own_words(broken: str) -> None:
    frame, certificate = BROKEN[broken](), calibrate([0.5], [True], delta=0.05)
    verbs: list[Callable[[], Any]] = [
        lambda: Tally.count("calibration", data=frame, **CORRECT),
        lambda: Tally.count("calibration", data=frame, **CORRECT, edges="equal-mass"),
        lambda: Tally.count(
            "calibration", data=frame, **CORRECT, clusters="g", row_ids="g", seed=0
        ),
        lambda: certificate.apply(frame, confidence="c"),
    ]
    for verb in verbs:
        with pytest.raises(InvalidValueError, match=r"^The frame cannot be read: "):
            verb()


def test_names_of_columns_that_are_numbers_are_refused_with_the_remedy() -> None:
    frame = pd.DataFrame({0: [0.15, 0.95, 0.95], 1: [True, True, False]})
    remedy = r"rename .* first.*frame\.rename\(columns=str\)"
    columns: Any = {"confidence": 0, "correct": 1}
    with pytest.raises(InvalidTypeError, match=remedy):
        Tally.count("calibration", data=frame, **columns)
    with pytest.raises(InvalidValueError, match=remedy):
        Tally.count("calibration", data=frame, confidence="0", correct="1")
    renamed = frame.rename(columns=str)
    assert Tally.count("calibration", data=renamed, confidence="0", correct="1") == COUNTED
    certificate = calibrate(data=COUNTED, delta=0.05)
    with pytest.raises(InvalidTypeError, match="0 is not the name of a column"):
        certificate.apply(frame, confidence=0)  # type: ignore[arg-type]
    mixed = frame.assign(c=[0.1, 0.2, 0.3])
    assert "pac_lower" in certificate.apply(mixed, confidence="c").columns


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("recall", {"score": "y", "positive": "y"}),
        ("shield", {"score": "y", "unsafe": "y"}),
        ("calibration", {"confidence": "y", "correct": "y"}),
        ("calibration", {"confidence": "y", "prediction": "p", "label": "y"}),
        ("calibration", {"confidence": "y", "quality": "y"}),
        ("cascade", {"confidence": ["c", "y"], "prediction": ["p", "q", "r"], "label": "y"}),
    ],
)
def test_no_outcome_is_its_own_score(kind: str, columns: dict[str, Any]) -> None:
    table = pd.DataFrame({name: [0, 1] for name in "cpqry"})
    with pytest.raises(InvalidValueError, match="both name the column 'y': no outcome may be its"):
        Tally.count(kind, data=table, **columns)

"""Text is compared character by character, also where the engine was told to ignore the case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.products import standing_for

from pacbound import Tally, calibrate

N = 600
PLACE = np.arange(N)
SCORE = PLACE // 2 % 20 / 20
RIGHT = PLACE % 5 > 0
REGION = np.where(PLACE % 2, "eu", "EU")
FAST = np.where(PLACE % 3, "a", "A")
SLOW = np.where(PLACE % 7, "A", "b")
TRUTH = np.where(PLACE % 4, SLOW, np.where(PLACE % 8, "a", "b"))
TEXT = {"region": REGION, "fast": FAST, "slow": SLOW, "truth": TRUTH}
TABLE = pa.table({"c": SCORE, "ok": RIGHT, **TEXT})

Maker = Callable[[pytest.FixtureRequest], Any]


def _duckdb(*, default: bool) -> Any:
    connection = duckdb.connect()
    connection.register("rows", TABLE)
    if default:
        connection.execute("SET default_collation = 'nocase'").fetchall()
        return connection.table("rows")
    text = ", ".join(f"{name} COLLATE nocase AS {name}" for name in TEXT)
    return connection.sql(f"SELECT c, ok, {text} FROM rows")


def _spark(request: pytest.FixtureRequest, collation: str) -> Any:
    spark = request.getfixturevalue("spark")
    from pyspark.sql import functions as F  # noqa: N812

    text = [F.collate(F.col(name), collation).alias(name) for name in TEXT]
    return spark.createDataFrame(TABLE).select("c", "ok", *text)


FRAMES: dict[str, Maker] = {
    "duckdb: columns": lambda _: _duckdb(default=False),
    "duckdb: default": lambda _: _duckdb(default=True),
    "duckdb: enumeration": lambda _: _duckdb(default=True).project(
        "c, ok, " + ", ".join(f"{name}::ENUM('a', 'A', 'b', 'eu', 'EU') AS {name}" for name in TEXT)
    ),
    "polars: categories": lambda _: (
        pl.DataFrame(TABLE).with_columns(pl.col(*TEXT).cast(pl.Categorical)).lazy()
    ),
    "polars: enumeration": lambda _: (
        pl.DataFrame(TABLE)
        .with_columns(pl.col(*TEXT).cast(pl.Enum(["a", "A", "b", "eu", "EU"])))
        .lazy()
    ),
    "pyarrow: dictionaries": lambda _: pa.table(
        {n: TABLE[n].dictionary_encode() if n in TEXT else TABLE[n] for n in TABLE.column_names}
    ),
    "pandas: categories": lambda _: TABLE.to_pandas().astype(dict.fromkeys(TEXT, "category")),
    "spark: UTF8_LCASE": lambda request: _spark(request, "UTF8_LCASE"),
    "spark: UNICODE_CI": lambda request: _spark(request, "UNICODE_CI"),
}


@pytest.fixture(
    params=standing_for(FRAMES, [name for name in FRAMES if "spark" not in name], rest="long")
)
def frame(request: pytest.FixtureRequest) -> Any:
    return FRAMES[request.param](request)


def test_groups_that_differ_in_case_are_two(frame: Any) -> None:
    counted = Tally.count("calibration", data=frame, confidence="c", correct="ok", groups="region")
    assert counted == Tally.count("calibration", confidence=SCORE, correct=RIGHT, groups=REGION)


def test_classes_that_differ_in_case_are_two(frame: Any) -> None:
    classes: dict[str, Any] = {"classes": ["a", "A", "b"]}
    counted = Tally.count(
        "cascade",
        data=frame,
        confidence=["c"],
        prediction=["fast", "slow"],
        label="truth",
        **classes,
    )
    arrays = Tally.count(
        "cascade",
        confidence=SCORE,
        prediction=np.column_stack([FAST, SLOW]),
        label=TRUTH,
        **classes,
    )
    assert counted == arrays
    answers = Tally.count(
        "calibration", data=frame, confidence="c", prediction="fast", label="truth", **classes
    )
    assert answers == Tally.count(
        "calibration", confidence=SCORE, prediction=FAST, label=TRUTH, **classes
    )


def test_clusters_that_differ_in_case_are_two(frame: Any) -> None:
    drawn: dict[str, Any] = {"cluster_bound": N, "seed": 3}
    frame_columns: dict[str, Any] = {"confidence": "c", "correct": "ok", "clusters": "region"}
    counted = Tally.count(
        "calibration", data=_with_ids(frame), **frame_columns, row_ids="id", **drawn
    )
    assert counted.drawn is not None
    arrays = Tally.count(
        "calibration",
        confidence=SCORE,
        correct=RIGHT,
        clusters=REGION,
        row_ids=PLACE,
        **drawn,
    )
    assert counted.totals == arrays.totals


def test_each_row_is_given_what_its_own_group_was_given(frame: Any) -> None:
    certificate = calibrate(SCORE, REGION == "EU", groups=REGION, delta=0.05)
    applied = _rows(certificate.apply(frame, confidence="c", group="region"))
    expected = certificate.interval(SCORE, groups=REGION)
    wanted = {
        (region, score): tuple(ends)
        for region, score, ends in zip(REGION, SCORE, expected.tolist(), strict=True)
    }
    found = {(row["region"], row["c"]): (row["pac_lower"], row["pac_upper"]) for row in applied}
    assert found == wanted
    assert len(applied) == N


def _with_ids(frame: Any) -> Any:
    """The frame with the number of each row, in the order in which the table has them."""
    native = nw.from_native(frame)
    if native.implementation.is_spark_like():
        from pyspark.sql import functions as F  # noqa: N812

        return frame.withColumn("id", F.monotonically_increasing_id())
    if native.implementation.is_duckdb():
        return frame.project("*, row_number() OVER () - 1 AS id")
    return native.lazy().collect().with_row_index("id").to_native()


def _rows(frame: Any) -> list[dict[str, Any]]:
    native = nw.from_native(frame)
    if native.implementation.is_spark_like():
        return [row.asDict() for row in frame.collect()]
    if native.implementation.is_duckdb():
        return list(frame.to_arrow_table().to_pylist())
    return list(native.lazy().collect().to_arrow().to_pylist())

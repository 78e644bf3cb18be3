"""One table, handed over by every engine that can be counted inside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from tests.products import standing_for

Table: TypeAlias = Any
Engine: TypeAlias = Callable[[Table], Any]

FRAMES: dict[str, Engine] = {
    "pandas": lambda table: table.to_pandas(),
    "pandas-nullable": lambda table: table.to_pandas().convert_dtypes(),
    "pandas-pyarrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars-lazy": lambda table: pl.DataFrame(table).lazy(),
    "pyarrow": lambda table: table,
    "duckdb": duckdb.from_arrow,
}


def _write_csv(table: Table, path: Path) -> None:
    # Written with the digits of float32, a score would be another one when it is read as float64.
    doubles = [
        field.with_type(pa.float64()) if field.type == pa.float32() else field
        for field in table.schema
    ]
    csv.write_csv(table.cast(pa.schema(doubles)), path)


FILES: dict[str, Callable[[Table, Path], None]] = {
    "csv": _write_csv,
    "parquet": parquet.write_table,
    "arrow": feather.write_feather,
}
SPARK = pytest.param("pyspark", marks=pytest.mark.long)
IN_MEMORY = standing_for(FRAMES, ["pandas-nullable", "polars-lazy", "duckdb"])


@pytest.fixture(params=[*IN_MEMORY, SPARK])
def frame(request: pytest.FixtureRequest) -> Engine:
    """A function that hands an Arrow table over to an engine."""
    return _handed_to(request)


@pytest.fixture(params=[*IN_MEMORY, SPARK, *FILES])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """The same, and files."""
    return _written_to(tmp_path, request.param) if request.param in FILES else _handed_to(request)


def _handed_to(request: pytest.FixtureRequest) -> Engine:
    if request.param == "pyspark":
        engine: Engine = request.getfixturevalue("spark").createDataFrame
        return engine
    return FRAMES[request.param]


def _written_to(folder: Path, ending: str) -> Engine:
    def write(table: Table) -> Path:
        path = folder / f"table.{ending}"
        FILES[ending](table, path)
        return path

    return write


@pytest.fixture
def spark() -> Any:
    """Spark on two cores of this machine, quiet: the session that is running, or a new one, with
    the settings of tests/spark-defaults.conf.

    Asked for anew by every test, since others may have stopped it. It ends with the process.
    """
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17 or later, and there is none here.")
    sql = pytest.importorskip("pyspark.sql")
    quiet = {"spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}
    return sql.SparkSession.builder.master("local[2]").config(map=quiet).getOrCreate()

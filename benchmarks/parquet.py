"""What it costs to certify from Parquet: how it grows with the rows, against DuckDB's bare query,
and with each engine.

Each command runs in a process of its own, start of Python included, and so does DuckDB's query. Of
the engines only the counting is timed, in a process that has loaded them, against a bare query of
the same engine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from benchmarks import inputs
from benchmarks.processes import Cost, cost_of
from benchmarks.row import Bar, Row
from benchmarks.sizes import Sizes

_PART = 1_000_000
_MUCH = 50_000_000
_COMMAND = """
import sys
from pacbound.cli import main
options = ["--confidence", "c", "--correct", "ok", "--delta", "0.01", "-o", {path!r} + ".json"]
sys.argv = ["pacbound", "calibrate", {path!r}, *options]
main()
"""
_BARE = """
import duckdb
duckdb.sql("select ceil(c*20), ok, count(*) from read_parquet({path!r}) group by 1, 2").fetchall()
"""
_TIMED = """
import time
from pacbound import Tally
{load}
times = []
for work in (ours, theirs, ours, theirs):
    started = time.perf_counter()
    work()
    times.append(time.perf_counter() - started)
print(min(times[::2]), min(times[1::2]))
"""
_ENGINES = {
    "duckdb": (
        """
import duckdb
ours = lambda: Tally.count("calibration", data={path!r}, confidence="c", correct="ok")
query = "select ceil(c*20), ok, count(*) from read_parquet({path!r}) group by 1, 2"
theirs = lambda: duckdb.sql(query).fetchall()
"""
    ),
    "polars": (
        """
import polars as pl
ours = lambda: Tally.count("calibration", "c", "ok", data=pl.scan_parquet({path!r}))
cell = (pl.col("c") * 20).ceil()
theirs = lambda: pl.scan_parquet({path!r}).group_by(cell, "ok").len().collect(engine="streaming")
"""
    ),
    "pyspark": (
        """
import os
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession, functions as F
builder = SparkSession.builder.master("local[*]")
builder = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "2g")
spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
table = spark.read.parquet({path!r})
ours = lambda: Tally.count("calibration", data=table, confidence="c", correct="ok")
theirs = lambda: table.groupBy(F.ceil(table.c * 20), "ok").count().collect()
"""
    ),
}


def rows(sizes: Sizes) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _growth(Path(folder), sizes)
        yield from _engines(Path(folder), sizes.engines)


def _growth(folder: Path, sizes: Sizes) -> Iterator[Row]:
    costs: dict[int, Cost] = {}
    for size in sizes.growth:
        path = folder / f"{size}.parquet"
        write_table(path, size)
        # What a further row costs is a small difference of whole processes: the short ones are run
        # often.
        often = 5 if size == max(sizes.growth) else 15
        ours, theirs = _race(str(path), min(often, sizes.rounds))
        path.unlink()
        costs[size] = ours
        bar = Bar(2.5, "ratio", "at most 2.5") if size > _MUCH else None
        work, peer = (
            f"pacbound calibrate, Parquet of {size:,} rows, whole process",
            f"duckdb {version('duckdb')}, bare query",
        )
        yield Row(work, ours.seconds, "s", peer, theirs.seconds, bar, size=size)
        flat = Bar(1e9, "ours", "under 1 GB") if size > _MUCH else None
        yield Row(
            "the same: peak resident memory",
            ours.peak,
            "bytes",
            peer,
            theirs.peak,
            flat,
            size=size,
        )
    yield _linear(costs)


def _race(path: str, repeats: int) -> tuple[Cost, Cost]:
    rounds = [
        (cost_of(_COMMAND.format(path=path)), cost_of(_BARE.format(path=path)))
        for _ in range(repeats)
    ]
    return min((own for own, _ in rounds), key=_seconds), min(
        (other for _, other in rounds), key=_seconds
    )


def _seconds(cost: Cost) -> float:
    return cost.seconds


def _linear(costs: dict[int, Cost]) -> Row:
    first, middle, last = list(costs)[-3:]
    late = (costs[last].seconds - costs[middle].seconds) / (last - middle)
    # In small files a row costs less than the noise: then there is no ratio.
    early = max(0.0, (costs[middle].seconds - costs[first].seconds) / (middle - first))
    work = f"pacbound calibrate, Parquet: each further row, from {middle:,} to {last:,}"
    return Row(
        work,
        late,
        "s/row",
        f"from {first:,} to {middle:,}",
        early,
        Bar(1.25, "ratio", "linear: at most 1.25"),
    )


def _engines(folder: Path, size: int) -> Iterator[Row]:
    path = folder / f"{size}.parquet"
    write_table(path, size)
    for engine, load in _ENGINES.items():
        if find_spec(engine) is not None:
            printed = cost_of(_TIMED.format(load=load.format(path=str(path)))).printed.split()
            ours, theirs = (size / float(seconds) for seconds in printed[-2:])
            work = f"count a Parquet file of {size:,} rows with {engine}"
            yield Row(work, ours, "rows/s", f"{engine} {version(engine)}, bare query", theirs)


def write_table(path: Path, size: int) -> None:
    """Confidences and whether each was right, in groups of a million rows."""
    schema = pa.schema({"c": pa.float64(), "ok": pa.bool_()})
    with parquet.ParquetWriter(path, schema) as writer:
        for first in range(0, size, _PART):
            confidence, correct = inputs.confidences(min(_PART, size - first), seed=first)
            writer.write_table(pa.table({"c": confidence, "ok": correct}, schema=schema))

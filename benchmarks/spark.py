"""Counting with Spark on a cluster of two executors, against DuckDB on the same Parquet files: how
often the rows are read, how long that takes, and how much memory of the driver it needs.

Each work runs in a process of its own with `local-cluster[2,1,1024]`: two executors of one core, in
Java processes beside the driver. `python -m benchmarks.spark` measures and writes
`benchmarks/spark.json`, with names of works only those; with `--as NAME` the figures go there under
another name, so that those of another version, put first on PYTHONPATH, stand beside them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.record import conditions

RECORD = Path(__file__).with_name("spark.json")
SIZES = (1_000_000, 10_000_000)
_PART = 500_000
WORKS: dict[str, str] = {
    "calibration": "'calibration', 'c0', 'ok'",
    "calibration in 50 groups": "'calibration', 'c0', 'ok', groups='g'",
    "recall": "'recall', 'c0', 'ok'",
    "calibration by classes": "'calibration', 'c0', prediction='p0', label='y'",
    "cascade of 2 models": "'cascade', ['c0'], ['p0', 'slow'], 'y'",
    "cascade of 3 models": "'cascade', ['c0', 'c1'], ['p0', 'p1', 'slow'], 'y'",
    "cascade of 4 models": "'cascade', ['c0', 'c1', 'c2'], ['p0', 'p1', 'p2', 'slow'], 'y'",
    "calibration by clusters": "'calibration', 'c0', 'ok', clusters='patient', row_ids='id'",
    "recall among clusters": (
        "'recall', 'c0', 'ok', clusters='patient', row_ids='id', cluster_bound=20"
    ),
    "calibration by weights": (
        "'calibration', 'c0', 'ok', weights='c1', weight_bound=1, row_ids='id'"
    ),
    "calibration by coins": "'calibration', 'c0', quality='c1', row_ids='id'",
    "a prediction that is an id": "'calibration', 'c0', prediction='id', label='y'",
}
_SPARK = """
import json, os, re, sys, time
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession
from pacbound import Tally
builder = SparkSession.builder.master("local-cluster[2,1,1024]")
settings = {{"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR", "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
            "spark.sql.shuffle.partitions": "4"}}
spark = builder.config(map=settings).getOrCreate()
table = spark.read.parquet({path!r})
table.groupBy("ok").count().collect()
java = spark.sparkContext._gateway.proc.pid
queries = lambda: spark._jsparkSession.sharedState().statusStore().executionsCount()

def peak(process):
    found = re.search(r"VmHWM:\\s+(\\d+)", open(f"/proc/{{process}}/status").read())
    return int(found[1]) * 1024

before, started, said = queries(), time.perf_counter(), "counted"
try:
    Tally.count({work}, data=table)
except Exception as error:
    said = f"{{type(error).__name__}}: {{error}}"[:160]
seconds = time.perf_counter() - started
print(json.dumps({{"seconds": round(seconds, 2), "said": said, "queries": queries() - before,
                  "python_bytes": peak("self"), "java_bytes": peak(java)}}))
spark.stop()
"""
_DUCKDB = """
import json, time
from pacbound import Tally
started, said = time.perf_counter(), "counted"
try:
    Tally.count({work}, data={path!r}, engine="duckdb")
except Exception as error:
    said = f"{{type(error).__name__}}: {{error}}"[:160]
print(json.dumps({{"seconds": round(time.perf_counter() - started, 2), "said": said}}))
"""


def write_tables(folder: Path, rows: int) -> None:
    """Confidences and predictions of four models for labels of 100 classes, in files of half a
    million rows.
    """
    folder.mkdir()
    for first in range(0, rows, _PART):
        rng, n = np.random.default_rng(first), min(_PART, rows - first)
        label = rng.integers(0, 100, n)
        columns: dict[str, Any] = {"y": label, "g": rng.integers(0, 50, n)}
        for model, power in enumerate((0.3, 0.15, 0.08)):
            confidence = rng.random(n) ** 0.3
            right = rng.random(n) < confidence**power
            columns[f"c{model}"] = confidence
            columns[f"p{model}"] = np.where(right, label, rng.integers(0, 100, n))
        slow = np.where(rng.random(n) < 0.97, label, rng.integers(0, 100, n))
        columns |= {"slow": slow, "ok": columns["p0"] == label, "id": np.arange(first, first + n)}
        columns["patient"] = columns["id"] // 20
        parquet.write_table(pa.table(columns), folder / f"part-{first // _PART:03}.parquet")


def measured(folder: Path, rows: int, names: list[str]) -> Iterator[dict[str, Any]]:
    """What each work takes on the tables in `folder`."""
    for name in names:
        work = WORKS[name]
        found = {"work": name, "rows": rows, **_run(_SPARK, folder, work)}
        if "id" not in name and "4 models" not in name:
            found["duckdb_seconds"] = _run(_DUCKDB, folder, work)["seconds"]
        print(json.dumps(found), flush=True)
        yield found


def _run(code: str, folder: Path, work: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", code.format(path=str(folder), work=work)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode or not done.stdout.strip():
        # The driver was ended, by its own memory or from outside.
        last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        return {"seconds": None, "said": f"exit code {done.returncode}: {last[0][:120]}"}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def main(arguments: list[str]) -> None:
    """Measure, print and record."""
    place = arguments.index("--as") if "--as" in arguments else len(arguments)
    name, works = (arguments[place + 1 :] or ["now"])[0], arguments[:place] or list(WORKS)
    with TemporaryDirectory() as folder:
        for rows in SIZES:
            write_tables(Path(folder) / str(rows), rows)
        found = [row for rows in SIZES for row in measured(Path(folder) / str(rows), rows, works)]
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    record |= {"command": "python -m benchmarks.spark", "conditions": conditions(), name: found}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

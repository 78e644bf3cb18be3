"""Counting with Spark on a cluster of two executors, against DuckDB on the same Parquet files: how
often the rows are read, how long that takes, and how much memory of the driver it needs.

Each work runs in a process of its own with `local-cluster[2,1,1024]`: two executors of one core, in
Java processes beside the driver. The driver's Java heap is fixed at 512 MB, half of what Spark
gives it by default: a larger one grows with time, not with what comes back, and a smaller one is
refused. `python -m benchmarks.spark` measures and writes `benchmarks/spark.json` and, for the page
on engines, `benchmarks/spark.md`; with names of works only those:

    --rows 1000000      only tables of so many rows
    --tables FOLDER     where the tables are written, and found again
    --as NAME           the figures go into the record under another name, so that those of another
                        version, put first on PYTHONPATH, stand beside them
    --commit COMMIT     which version that is
    --files 2000        instead: many small files, against `spark.read` alone
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.record import conditions

RECORD = Path(__file__).with_name("spark.json")
TABLE = Path(__file__).with_name("spark.md")
NOTE = (
    "Taken while other work shared the two cores, load being the average of one minute when a work "
    "began: queries, bytes and seconds of CPU hold, the other seconds only say that the work ended."
)
SIZES = (1_000_000, 10_000_000)
_PART = 500_000
_CASCADES = {
    2: "confidence=['c0'], prediction=['p0', 'slow'], label='y'",
    3: "confidence=['c0', 'c1'], prediction=['p0', 'p1', 'slow'], label='y'",
    4: "confidence=['c0', 'c1', 'c2'], prediction=['p0', 'p1', 'p2', 'slow'], label='y'",
}
_IN_32NDS = _CASCADES[4].replace("'c", "'k")
_RISK = "xi=0.2, delta=0.01"
# One seed, so that all engines draw alike.
_DRAWN = "row_ids='id', seed=5320565582172515"
_CLUSTERS = f"clusters='patient', {_DRAWN}"
# A driver that counts nothing: what others hold beyond it is theirs.
IDLE = "an idle driver"
# By name: what is called, with data= in the end.
WORKS: dict[str, str] = {
    IDLE: "dict(work='none'",
    "calibration": "Tally.count('calibration', 'c0', 'ok'",
    "calibration in 50 groups": "Tally.count('calibration', 'c0', 'ok', groups='g'",
    "abstention": f"certify_abstention('c0', 'ok', {_RISK}",
    "recall": "certify_recall('c0', 'ok', target=0.9, delta=0.01",
    "recall of a class": "certify_recall('c0', 'ill', positive_class='yes', target=0.9, delta=0.01",
    "precision": "certify_precision('c0', 'ok', target=0.8, delta=0.01",
    "false alarms": f"certify_false_alarms('c0', 'ok', {_RISK}",
    "shield": f"certify_shield('c0', 'ok', {_RISK}",
    "calibration by classes": "Tally.count('calibration', 'c0', prediction='p0', label='y'",
    "cascade of 2 models": f"Tally.count('cascade', {_CASCADES[2]}",
    "cascade of 3 models": f"Tally.count('cascade', {_CASCADES[3]}",
    "cascade of 4 models": f"Tally.count('cascade', {_CASCADES[4]}",
    "cascade of 4 models in 32nds": f"Tally.count('cascade', {_IN_32NDS}",
    "cascade by grades": "Tally.count('cascade', ['c0'], quality=['c1', 'c2']",
    "cascade by clusters": f"Tally.count('cascade', {_CASCADES[2]}, {_CLUSTERS}",
    "cascade by answers": (
        "Tally.count('cascade', ['c0'], ['p0', 'slow'], 'truth', answers=answers('truth')"
    ),
    "replacement": f"certify_replacement(['slow', 'p0'], 'y', {_RISK}",
    "replacement by grades": f"certify_replacement(quality=['c0', 'c1'], {_RISK}",
    "replacement by clusters": f"certify_replacement(['slow', 'p0'], 'y', {_CLUSTERS}, {_RISK}",
    "judge": f"certify_judge('p0', 'y', 'c0', {_RISK}",
    "sets": f"certify_sets(['c0', 'c1', 'c2'], 'third', {_RISK}",
    "forks": f"certify_forks('rollout', 'lowest', 'highest', 'crashed', {_RISK}",
    "calibration by clusters": f"Tally.count('calibration', 'c0', 'ok', {_CLUSTERS}",
    "recall among clusters": f"Tally.count('recall', 'c0', 'ok', {_CLUSTERS}, cluster_bound=20",
    "calibration by weights": (
        f"Tally.count('calibration', 'c0', 'ok', weights='c1', weight_bound=1, {_DRAWN}"
    ),
    "calibration by grades": "Tally.count('calibration', 'c0', quality='c1'",
    "calibration by answers": (
        "Tally.count('calibration', 'c0', 'right', answers=answers('right')"
    ),
    "calibration in equal-mass bins": "Tally.count('calibration', 'c0', 'ok', edges='equal-mass'",
    "apply": "applied(confidence='c0'",
    "a prediction that is an id": "Tally.count('calibration', 'c0', prediction='id', label='y'",
}
# What DuckDB refuses, or does outside of it.
SPARK_ALONE = (
    IDLE,
    "cascade of 4 models",
    "cascade by answers",
    "calibration by answers",
    "a prediction that is an id",
)
_SPARK = """
import json, os, re, sys, time
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession
from pacbound import *
builder = SparkSession.builder.master("local-cluster[2,1,1024]")
settings = {{"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR", "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
            "spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "4"}}
spark = builder.config(map=settings).getOrCreate()
table = spark.read.parquet({path!r})
table.groupBy("ok").count().collect()
java = spark.sparkContext._gateway.proc.pid
queries = lambda: spark._jsparkSession.sharedState().statusStore().executionsCount()
stages = spark.sparkContext._jsc.sc().statusStore()

def rows_read():
    found, number = 0, 0
    while True:
        try:
            found += stages.lastStageAttempt(number).inputRecords()
        except Exception:
            return found
        number += 1

def peak(process):
    found = re.search(r"VmHWM:\\s+(\\d+)", open(f"/proc/{{process}}/status").read())
    return int(found[1]) * 1024

def cpu():
    processes = {{}}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{{name}}/stat").read().rpartition(")")[2].split()
        except OSError:
            continue
        processes[int(name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    ours = {{os.getpid()}}
    for _ in range(6):
        ours |= {{each for each, (parent, _) in processes.items() if parent in ours}}
    return sum(processes[each][1] for each in ours) / os.sysconf("SC_CLK_TCK")

def answers(name):
    return spark.read.parquet({path!r} + "-" + name)

def applied(data, confidence):
    made = calibrate([0.25, 0.5, 0.75], [True] * 3, delta=0.1)
    made.apply(data, confidence=confidence).agg({{"pac_lower": "max"}}).collect()

before, read, used = queries(), rows_read(), cpu()
started, said = time.perf_counter(), "counted"
try:
    {work}, data=table)
except Exception as error:
    said = f"{{type(error).__name__}}: {{error}}"[:300]
seconds = time.perf_counter() - started
print(json.dumps({{"seconds": round(seconds, 2), "cpu_seconds": round(cpu() - used, 1),
                  "said": said, "queries": queries() - before,
                  "times_read": round((rows_read() - read) / {rows}, 2),
                  "python_bytes": peak("self"), "java_bytes": peak(java)}}))
spark.stop()
"""
_DUCKDB = """
import json, time
import duckdb
from pacbound import *

def applied(data, confidence, engine):
    made = calibrate([0.25, 0.5, 0.75], [True] * 3, delta=0.1)
    rows = duckdb.read_parquet(data + "/*.parquet")
    made.apply(rows, confidence=confidence).max("pac_lower").fetchall()

started, used, said = time.perf_counter(), time.process_time(), "counted"
try:
    {work}, data={path!r}, engine="duckdb")
except Exception as error:
    said = f"{{type(error).__name__}}: {{error}}"[:300]
print(json.dumps({{"duckdb_seconds": round(time.perf_counter() - started, 2),
                  "duckdb_cpu_seconds": round(time.process_time() - used, 1),
                  "duckdb_said": said}}))
"""
# Seconds of CPU for the rows of many files: read by Spark alone, as a frame, and by the name of
# their folder; the first time is left out.
_FILES = """
import json, os, time
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession, functions
from pacbound import *
settings = {{"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR", "spark.sql.shuffle.partitions": "4"}}
spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()

def alone():
    rows = spark.read.parquet({path!r})
    rows.groupBy(functions.ceil(rows.c0 * 20), "ok").count().collect()

def frame():
    Tally.count("calibration", "c0", "ok", data=spark.read.parquet({path!r}))

def folder():
    Tally.count("calibration", "c0", "ok", data={path!r}, engine="spark")

java = spark.sparkContext._gateway.proc.pid

def cpu():
    fields = open(f"/proc/{{java}}/stat").read().rpartition(")")[2].split()
    used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used + time.process_time()

found = {{each.__name__: [] for each in (alone, frame, folder)}}
for _ in range(3):
    for each in (alone, frame, folder):
        started = cpu()
        each()
        found[each.__name__].append(round(cpu() - started, 2))
print(json.dumps({{name: each[1:] for name, each in found.items()}}))
spark.stop()
"""


def write_tables(folder: Path, rows: int, part: int = _PART) -> None:
    """Confidences and predictions of four models for labels of 100 classes, in files of half a
    million rows.
    """
    folder.mkdir(parents=True)
    for first in range(0, rows, part):
        rng, n = np.random.default_rng(first), min(part, rows - first)
        label = rng.integers(0, 100, n)
        columns: dict[str, Any] = {"y": label, "g": rng.integers(0, 50, n)}
        for model, power in enumerate((0.3, 0.15, 0.08)):
            confidence = rng.random(n) ** 0.3
            right = rng.random(n) < confidence**power
            columns[f"c{model}"] = confidence
            columns[f"k{model}"] = np.floor(32 * confidence) / 32
            columns[f"p{model}"] = np.where(right, label, rng.integers(0, 100, n))
        slow = np.where(rng.random(n) < 0.97, label, rng.integers(0, 100, n))
        columns |= {"slow": slow, "ok": columns["p0"] == label, "id": np.arange(first, first + n)}
        columns |= {"patient": columns["id"] // 20, "third": label % 3, "pac_id": columns["id"]}
        columns["ill"] = np.where(columns["ok"], "yes", "no")
        # Two rows for each rollout: one up to a threshold, one from there on.
        upper = columns["id"] % 2 == 1
        fork = np.repeat(rng.integers(1, 2**16, (n + 1) // 2), 2)[:n]
        columns |= {"rollout": columns["id"] // 2, "crashed": upper & (rng.random(n) < 0.1)}
        columns["lowest"] = np.where(upper, fork, 0)
        columns["highest"] = np.where(upper, 2**16 + 1, fork - 1)
        parquet.write_table(pa.table(columns), folder / f"part-{first // part:05}.parquet")


def write_answers(folder: Path) -> None:
    """What comes back to the rows in `folder`: whether each answer of the first model is right, and
    of one row in a hundred the true class.
    """
    rows = parquet.read_table(folder, columns=["pac_id", "ok", "y"])
    few = rows.take(np.arange(0, rows.num_rows, 100))
    for name, came, column in (("right", rows, "ok"), ("truth", few, "y")):
        answers = came.select(["pac_id", column]).rename_columns(["pac_id", name])
        own = folder.with_name(f"{folder.name}-{name}")
        own.mkdir()
        parquet.write_table(answers, own / "answers.parquet")


def measured(folder: Path, rows: int, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What each work takes on the tables in `folder`."""
    for name in names:
        work = WORKS[name]
        load = round(os.getloadavg()[0], 1)
        found = {"work": name, "rows": rows, "load": load, **_run(_SPARK, folder, work, rows)}
        if name not in SPARK_ALONE:
            found |= _run(_DUCKDB, folder, work, rows)
        print(json.dumps(found), flush=True)
        yield found


def _run(code: str, folder: Path, work: str, rows: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", code.format(path=str(folder), work=work, rows=rows)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode or not done.stdout.strip():
        # The driver was ended, by its own memory or from outside.
        last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        return {"seconds": None, "said": f"exit code {done.returncode}: {last[0][:120]}"}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def recorded(name: str, found: Sequence[dict[str, Any]], commit: str | None = None) -> None:
    """Put what was found into the record, in place of what it had of the same work and rows; and
    which commit that was, if it is said.
    """
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    new = {(row.get("work"), row.get("rows")) for row in found}
    others = [row for row in record.get(name, []) if (row.get("work"), row.get("rows")) not in new]
    order = list(WORKS)
    rows = sorted(
        [*others, *found],
        key=lambda row: (
            order.index(row["work"]) if row.get("work") in order else -1,
            row.get("rows", 0),
        ),
    )
    record |= {"command": "python -m benchmarks.spark", "conditions": conditions(), "note": NOTE}
    record[name] = rows
    if commit is not None:
        record["commits"] = {**record.get("commits", {}), name: commit}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    TABLE.write_text(table(record), encoding="utf-8")


def table(record: Mapping[str, Any]) -> str:
    """What the page on engines says of these figures, in brackets what they were before."""
    lines = [
        "| 10^7 rows | times read | CPU, s | seconds | DuckDB: CPU, s | DuckDB: seconds "
        "| driver, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    now, before = (_by_work(record.get(name, []), max(SIZES)) for name in ("now", "before"))
    for work, row in now.items():
        then = before.get(work, {})
        cells = (
            work if row["said"] == "counted" else f"{work}: refused",
            _figure(row, then, "times_read", ".1f"),
            _figure(row, then, "cpu_seconds", ".0f"),
            _figure(row, then, "seconds", ".0f"),
            _figure(row, {}, "duckdb_cpu_seconds", ".1f"),
            _figure(row, {}, "duckdb_seconds", ".1f"),
            f"{driver_bytes(row) / 1e6:.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    busiest = max((row["load"] for row in (*now.values(), *before.values())), default=0)
    commit = record.get("commits", {}).get("before")
    said = (
        f"In brackets: before{'' if commit is None else f', at commit {commit}'}. Rows of answers "
        "are read, too. Seconds were taken beside other work on the two cores, with a load of up "
        f"to {busiest:.0f}: compare those of CPU."
    )
    return "\n".join([*lines, "", said, "", sizing(record), "", *_small_files(record)])


def _figure(row: Mapping[str, Any], then: Mapping[str, Any], name: str, form: str) -> str:
    """A figure of a work, if it has one, and in brackets that of before."""
    if row.get(name) is None:
        return ""
    before = "" if then.get(name) is None else f"{then[name]:{form}}"
    if before and then["said"] != "counted":
        before = "failed"
    return f"{row[name]:{form}}" + f" ({before})" * bool(before)


def sizing(record: Mapping[str, Any]) -> str:
    """How long ten billion rows would take, by arithmetic."""
    rows = _by_work(record.get("now", []), max(SIZES))
    said = [
        f"{1e10 / max(SIZES) * rows[work]['cpu_seconds'] / 64 / 60:.0f} minutes for a {work}"
        for work in (
            "calibration",
            "calibration by clusters",
            "cascade of 2 models",
            "cascade of 3 models",
        )
        if work in rows
    ]
    return (
        "By arithmetic from these seconds of CPU, not measured: on 64 cores 10^10 rows take about "
        f"{', '.join(said)}, if files are read that fast."
    )


def _small_files(record: Mapping[str, Any]) -> list[str]:
    """What many small files cost beside what Spark alone takes to read them."""
    said = []
    for row in record.get("small files", []):
        frame, folder = (
            sorted(np.divide(row[name], row["alone"]).tolist())[len(row["alone"]) // 2]
            for name in ("frame", "folder")
        )
        said.append(
            f"{row['files']:,} small files take {frame:.1f} times what Spark alone takes to read "
            f"them as a frame, and {folder:.1f} times by the name of their folder, where each file "
            "gets a fingerprint (medians)."
        )
    return [*said, ""] if said else []


def _by_work(rows: Sequence[dict[str, Any]], size: int) -> dict[str, dict[str, Any]]:
    return {row["work"]: row for row in rows if row["rows"] == size and row["seconds"] is not None}


def driver_bytes(row: Mapping[str, Any]) -> int:
    """The peak of the driver: Python and Java."""
    return int(row["python_bytes"]) + int(row["java_bytes"])


def main(arguments: Sequence[str]) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark")
    parser.add_argument("works", nargs="*", choices=[[], *WORKS], metavar="WORK")
    parser.add_argument("--rows", type=int, action="append")
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--as", dest="name", default="now")
    parser.add_argument("--commit")
    parser.add_argument("--files", type=int)
    asked = parser.parse_args(arguments)
    with TemporaryDirectory() as scratch:
        folder = asked.tables or Path(scratch)
        if asked.files is not None:
            small = folder / f"files-{asked.files}"
            if not small.exists():
                write_tables(small, asked.files * 100, 100)
            found = {"files": asked.files, "unit": "seconds of CPU", **_run(_FILES, small, "", 0)}
            print(json.dumps(found), flush=True)
            recorded("small files", [found])
            return
        for rows in asked.rows or SIZES:
            if not (folder / str(rows)).exists():
                write_tables(folder / str(rows), rows)
                write_answers(folder / str(rows))
            for row in measured(folder / str(rows), rows, asked.works or list(WORKS)):
                recorded(asked.name, [row], asked.commit)


if __name__ == "__main__":
    main(sys.argv[1:])

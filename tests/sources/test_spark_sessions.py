"""Whose Spark session is ended: the one that was started here, when nobody counts any more."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.products import standing_for

pl = pytest.importorskip("polars", reason="the engine polars needs the extra `polars`")
pytest.importorskip("pyspark", reason="the engine spark needs the extra `spark`")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("java") is None, reason="Spark needs Java, and there is none here."
    ),
]

# Processes of their own, because there is one Spark in each.
COUNT = """
import threading
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pacbound import Tally
from pacbound.sources.engines import spark as engine

NAME = "spark.sql.caseSensitive"

def count():
    counted.append(
        Tally.count("calibration", "c", "ok", data="rows.parquet", engine="spark").rows
    )

def in_threads(number):
    threads = [threading.Thread(target=count) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

counted = []
"""
SCRIPTS = {
    "a session that the user runs, in another thread": """
spark = SparkSession.builder.master("local[1]").getOrCreate()
spark.conf.set(NAME, "false")
in_threads(2)
assert counted == [4, 4], counted
assert spark.range(3).count() == 3
assert spark.conf.get(NAME) == "false"
assert spark.sparkContext.appName != "pacbound"
""",
    "a context that the user runs without a session": """
context = SparkContext("local[1]", "mine")
count()
assert counted == [4]
assert context.parallelize([1, 2, 3]).count() == 3
""",
    "two threads without a session": """
barrier = threading.Barrier(2)
stored = engine._stored

def together(*arguments):
    barrier.wait(timeout=120)
    return stored(*arguments)

engine._stored = together
in_threads(2)
assert counted == [4, 4], counted
assert SparkContext._active_spark_context is None
""",
}


@pytest.mark.parametrize(
    "case",
    standing_for(
        SCRIPTS,
        ["a session that the user runs, in another thread", "two threads without a session"],
    ),
)
def test_only_a_session_that_was_started_here_is_ended(tmp_path: Path, case: str) -> None:
    pl.DataFrame({"c": [0.1, 0.2, 0.8, 0.9], "ok": [False, True, True, True]}).write_parquet(
        tmp_path / "rows.parquet"
    )
    done = subprocess.run(
        [sys.executable, "-c", COUNT + SCRIPTS[case]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr

"""The table of Spark's figures on the page of engines is made of the record, and keeps to what the
page promises.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from benchmarks.spark import IDLE, RECORD, SIZES, TABLE, WORKS, driver_bytes, table

FOUND: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
MOST = 300e6
# What the page names as more than that.
MORE = {
    "calibration in equal-mass bins": "with equal-mass bins, whose scores come back, by {} MB",
    "judge": "with a judge by {} MB",
}
# How often rows are read: three times for a draw, and where it says more. Those of
# answers, which are few in a cascade, are read too.
READ = {"judge": 6, "calibration by answers": 3 + 4, "cascade by answers": 4 + 5 / 100}


def _now(size: int) -> dict[str, Any]:
    return {row["work"]: row for row in FOUND["now"] if row["rows"] == size}


def test_the_table_is_made_of_the_record() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(FOUND)
    assert '--8<-- "benchmarks/spark.md"' in PAGE
    assert all(row["work"] in WORKS for name in ("before", "now") for row in FOUND[name])


def test_a_driver_holds_little_beyond_an_idle_one_or_one_that_counts_a_tenth_of_the_rows() -> None:
    few, rows = _now(min(SIZES)), _now(max(SIZES))
    for work, row in rows.items():
        others = (rows.get(IDLE), few.get(work))
        held = [driver_bytes(other) for other in others if other is not None]
        grown = driver_bytes(row) - max(held) if held else 0
        named = MORE.get(work, "not named").format(round(grown / 1e6))
        assert grown < MOST or named in PAGE, work


def test_rows_are_read_no_more_often_than_the_page_says() -> None:
    for work, row in _now(max(SIZES)).items():
        assert row["times_read"] <= READ.get(work, 3) + 0.01, work


def test_many_small_files_cost_at_most_twice_what_spark_takes_to_read_them() -> None:
    (found,) = FOUND["small files"]
    for name in ("frame", "folder"):
        times = sorted(one / alone for one, alone in zip(found[name], found["alone"], strict=True))
        assert times[len(times) // 2] < 2, name

"""What a row of the benchmarks says of a measurement, and where the rows go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import record
from benchmarks.__main__ import QUESTIONS
from benchmarks.row import Bar, Row

GROWTH = [
    Row("calibrate", 1.0 * size, unit, "duckdb, bare query", 0.5 * size, size=size)
    for size in (100, 1_000)
    for unit in ("s", "bytes")
]


def test_a_ratio_below_one_is_in_our_favour_for_costs_and_for_speeds() -> None:
    assert Row("fit", 1.0, "s", "peer", 4.0).ratio == 0.25
    assert Row("read", 4e6, "rows/s", "peer", 1e6).ratio == 0.25


@pytest.mark.parametrize(("ours", "met"), [(2.5, True), (2.6, False)])
def test_a_bar_is_met_up_to_and_including_its_value(ours: float, met: bool) -> None:
    assert Row("count", ours, "s", "peer", 1.0, Bar(2.5, "ratio", "at most 2.5")).met is met


def test_the_record_the_table_and_the_figure_are_written(tmp_path: Path) -> None:
    for folder in ("benchmarks", "docs/figures"):
        (tmp_path / folder).mkdir(parents=True)
    rows = [*GROWTH, Row("fit", 1.0, "s", "peer", 4.0, label="fit: peer")]
    record.write(rows, tmp_path)
    table = (tmp_path / record.TABLE).read_text(encoding="utf-8")
    assert "| fit | 1 s | peer: 4 s | 0.25 |  |  |" in table
    results = json.loads((tmp_path / record.RESULTS).read_text(encoding="utf-8"))
    assert [row["ratio"] for row in results["rows"]] == [2.0, 2.0, 2.0, 2.0, 0.25]
    assert (tmp_path / record.FIGURE).read_bytes().startswith(b"\x89PNG")


def test_the_table_that_the_page_includes_holds_the_rows_of_the_record() -> None:
    root = Path(__file__).parents[2]
    kept = json.loads((root / record.RESULTS).read_text(encoding="utf-8"))["rows"]
    assert f'--8<-- "{record.TABLE}"' in (root / "docs" / "benchmarks.md").read_text("utf-8")
    told = (root / record.TABLE).read_text(encoding="utf-8")
    lines = [f"| {' | '.join(record.row_of(row).cells())} |" for row in kept]
    assert [line for line in told.splitlines() if line.startswith("| ")][2:] == lines


def test_rows_of_one_question_take_the_place_of_those_in_the_record(tmp_path: Path) -> None:
    for folder in ("benchmarks", "docs/figures"):
        (tmp_path / folder).mkdir(parents=True)
    before = [
        Row("read", 1.0, "s", "peer", 2.0, size=size, question="parquet") for size in (100, 1_000)
    ]
    old = [*GROWTH, Row("infer", 3.0, "s", "ideal", 2.0, question="early_exit"), *before]
    named = [Row(**{**vars(row), "question": row.question or "bounds"}) for row in old]
    record.write(named, tmp_path)
    new = [Row("infer", 2.0, "s", "ideal", 2.0, question="early_exit")] * 2
    rows = record.replaced(new, ["bounds", "early_exit", "parquet"], tmp_path)
    assert rows == [*named[: len(GROWTH)], *new, *before]


def test_every_row_of_the_record_names_its_question() -> None:
    root = Path(__file__).parents[2]
    kept = json.loads((root / record.RESULTS).read_text(encoding="utf-8"))["rows"]
    questions = [row["question"] for row in kept]
    assert list(dict.fromkeys(questions)) == list(QUESTIONS)

"""What the folders of a table stand for is text, and means what the same text means in the rows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pacbound import Tally
from pacbound.errors import InvalidValueError
from pacbound.sources.engines.duckdb import NotPlainError

CLASSES: dict[str, Any] = {"confidence": "c", "prediction": "p", "label": "y"}


def write_csv(rows: list[dict[str, Any]], path: Path) -> None:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines))


def write_lines(rows: list[dict[str, Any]], path: Path) -> None:
    path.write_text("\n".join(map(json.dumps, rows)))


def write_parquet(rows: list[dict[str, Any]], path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


WRITE: dict[str, Callable[[list[dict[str, Any]], Path], None]] = {
    "csv": write_csv,
    "jsonl": write_lines,
    "parquet": write_parquet,
}


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True)
    WRITE[path.suffix[1:]](rows, path)
    return path


def _not_plain(*_: Any) -> None:
    raise NotPlainError


@pytest.fixture(params=["inside", "in order"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether DuckDB counts, or the rows are read in order."""
    chosen: str = request.param
    if chosen == "in order":
        monkeypatch.setattr("pacbound.sources.engines.duckdb._relations", _not_plain)
    return chosen


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("folder", ["y=3.0", "y=3", "y=3."])
def test_a_class_in_the_path_is_the_class_in_the_rows_however_it_is_written(
    tmp_path: Path, suffix: str, folder: str
) -> None:
    path = table(
        tmp_path / folder / f"x.{suffix}",
        [{"c": 0.5, "p": "3"}, {"c": 0.5, "p": "3.00"}, {"c": 0.5, "p": "4"}],
    )
    assert Tally.count("calibration", data=path, **CLASSES).totals == {"wrong": 1, "right": 2}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("y=", "is missing"),
        ("y=%20", "usually a code for a missing value"),
        ("y=nan", "usually a code for a missing value"),
        ("y=__HIVE_DEFAULT_PARTITION__", "is missing"),
    ],
)
def test_nothing_in_the_path_is_no_class(
    tmp_path: Path, suffix: str, folder: str, said: str
) -> None:
    path = table(tmp_path / folder / f"x.{suffix}", [{"c": 0.5, "p": "3"}])
    with pytest.raises(InvalidValueError, match=rf"y\[0\] is .*{said}"):
        Tally.count("calibration", data=path, **CLASSES)

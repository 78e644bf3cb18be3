"""The digest of the names that a draw went by: the same for the same names, whatever holds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from tests.products import standing_for

from pacbound import Tally, calibrate
from pacbound.errors import InvalidValueError
from pacbound.tally.draws import digest_of_names
from pacbound.tally.frames import keyed_rows

RNG = np.random.default_rng(0)
ROWS = 400
PATIENT = RNG.integers(0, 60, size=ROWS)
COLUMNS: dict[str, Any] = {
    "c": RNG.random(ROWS),
    "ok": RNG.random(ROWS) < 0.5,
    "patient": PATIENT,
    "row": np.arange(ROWS),
}
NAMED: Any = {"confidence": "c", "correct": "ok", "clusters": "patient", "row_ids": "row"}
ORDER = RNG.permutation(ROWS)


def of_file(write: Callable[[Path], None], name: str, **reading: Any) -> Callable[[Path], Any]:
    def drawn_by(folder: Path) -> Any:
        write(folder / name)
        made = calibrate(**NAMED, data=str(folder / name), delta=0.1, **reading)
        return made.provenance.drawn_by

    return drawn_by


def of_frame(frame: Any) -> Callable[[Path], Any]:
    return lambda folder: calibrate(**NAMED, data=frame, delta=0.1).provenance.drawn_by


def of_arrays(patient: Any, row: Any) -> Callable[[Path], Any]:
    def drawn_by(folder: Path) -> Any:
        given = COLUMNS["c"], COLUMNS["ok"]
        made = calibrate(*given, delta=0.1, clusters=patient, row_ids=row, seed=7)
        return made.provenance.drawn_by

    return drawn_by


def shuffled_csv(path: Path) -> None:
    pandas.DataFrame(COLUMNS).iloc[ORDER].to_csv(path, index=False)


def parquet(path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table(COLUMNS), path)


HELD: dict[str, Callable[[Path], Any]] = {
    "numbers": of_arrays(PATIENT, COLUMNS["row"]),
    "floats": of_arrays(PATIENT.astype(float), COLUMNS["row"].astype(float)),
    "text": of_arrays(PATIENT.astype(str), COLUMNS["row"].astype(str)),
    "pandas": of_frame(pandas.DataFrame(COLUMNS)),
    "polars": of_frame(polars.LazyFrame(COLUMNS)),
    "pyarrow": of_frame(pyarrow.table(COLUMNS)),
    "duckdb": of_frame(duckdb.from_arrow(pyarrow.table(COLUMNS))),
    "csv": of_file(shuffled_csv, "t.csv"),
    "npz": of_file(lambda path: np.savez(path, **COLUMNS), "t.npz"),
    "parquet, duckdb": of_file(parquet, "t.parquet"),
    "parquet, polars": of_file(parquet, "t.parquet", engine="polars"),
}


@pytest.mark.parametrize("held", HELD)
def test_the_same_names_have_the_same_digest_whatever_holds_them(tmp_path: Path, held: str) -> None:
    found = HELD[held](tmp_path)
    assert sorted(found) == ["cluster", "row_id"]
    assert found == HELD["numbers"](tmp_path)


def weighted(**names: Any) -> Any:
    weights = np.ones(ROWS)
    made = calibrate(
        COLUMNS["c"], COLUMNS["ok"], delta=0.1, weights=weights, weight_bound=2.0, **names, seed=0
    )
    return made.provenance.drawn_by


def test_weights_go_by_row_ids_if_there_are_any() -> None:
    assert weighted() == {}
    assert weighted(row_ids=COLUMNS["row"]) == weighted(row_ids=COLUMNS["row"].astype(str))
    assert weighted(row_ids=COLUMNS["row"]) != weighted(row_ids=COLUMNS["row"] + 1)


def part_of(rows: Any, **options: Any) -> Tally:
    columns = {name: COLUMNS[column][rows] for name, column in NAMED.items()}
    return Tally.count("calibration", **{**columns, "seed": 0, **options})


def test_parts_that_add_up_have_the_digest_of_the_whole(tmp_path: Path) -> None:
    parts = [part_of(place == PATIENT % 2) for place in range(2)]
    parts[0].save(tmp_path / "t.json")
    total = Tally.load(tmp_path / "t.json") + parts[1]
    assert calibrate(data=total, delta=0.1).provenance.drawn_by == HELD["numbers"](tmp_path)


ENOUGH = 2**17
LAZY: dict[str, Callable[[Any], Any]] = {
    "duckdb": duckdb.from_arrow,
    "polars": lambda table: polars.from_arrow(table).lazy(),  # type: ignore[union-attr]
}


@pytest.fixture
def few_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer names may leave an engine than by default: hashing millions takes long."""
    monkeypatch.setattr(keyed_rows, "MOST_NAMES", ENOUGH)


def with_ids(rows: int) -> tuple[dict[str, Any], pyarrow.Table]:
    columns = {"c": np.full(rows, 0.5), "ok": np.ones(rows, dtype=bool), "id": np.arange(rows)}
    return columns, pyarrow.table(columns)


@pytest.mark.usefixtures("few_names")
@pytest.mark.parametrize("engine", standing_for(LAZY, ["duckdb"], rest="long"))
@pytest.mark.parametrize("rows", [ENOUGH, ENOUGH + 1])
def test_only_so_many_ids_leave_their_engine_and_others_are_known_by_their_digest(
    engine: str, rows: int, tmp_path: Path
) -> None:
    columns, table = with_ids(rows)
    inside = Tally.count("calibration", "c", "ok", row_ids="id", data=LAZY[engine](table))
    arrays = Tally.count("calibration", columns["c"], columns["ok"], row_ids=columns["id"])
    assert isinstance(arrays.ids, np.ndarray)
    if rows == ENOUGH:
        assert np.array_equal(inside.ids, arrays.ids)  # type: ignore[arg-type]
        return
    assert inside.ids == digest_of_names(arrays.ids)
    inside.save(tmp_path / "t.json")
    assert Tally.load(tmp_path / "t.json").ids == inside.ids
    one = Tally.count("calibration", [0.5], [True], row_ids=["another"])
    for left, right in ((inside, one), (one, inside)):
        with pytest.raises(InvalidValueError, match="Count all tables together"):
            _ = left + right


@pytest.mark.usefixtures("few_names")
@pytest.mark.parametrize("engine", standing_for(LAZY, ["duckdb"], rest="long"))
def test_a_draw_by_more_names_than_leave_their_engine_is_the_draw_of_the_arrays(
    engine: str,
) -> None:
    columns, table = with_ids(ENOUGH + 1)
    made = calibrate(
        "c", "ok", clusters="id", row_ids="id", data=LAZY[engine](table), delta=0.1, seed=0
    )
    ids = columns["id"]
    arrays = calibrate(columns["c"], columns["ok"], clusters=ids, row_ids=ids, delta=0.1, seed=0)
    assert made.provenance.drawn_by == arrays.provenance.drawn_by
    assert made.bins.trials.tolist() == arrays.bins.trials.tolist()

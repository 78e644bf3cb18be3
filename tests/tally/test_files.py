"""Every format, and every way to lay rows out in files, gives the integers of the arrays."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pytest
from numpy.typing import NDArray
from tests.tally.question_names import question_of
from tests.tally.table_writers import WRITERS, Columns

from pacbound import Tally
from pacbound.sources.fingerprints import file_fingerprint
from pacbound.tally.table import HISTOGRAM

ROWS = 3000
EDGES = np.array([0.0, 0.05, 0.15, 0.3, 0.35, 0.6, 0.7, 1.0])


@pytest.fixture(scope="module")
def columns() -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(0)
    score = np.concatenate(
        [EDGES, np.nextafter(EDGES[:-1], 1), np.nextafter(EDGES[1:], 0), rng.random(ROWS - 22)]
    )
    label = rng.integers(0, 4, ROWS)
    fast, slow = (
        np.where(rng.random(ROWS) < share, label, (label + 1) % 4) for share in (0.7, 0.9)
    )
    unsafe = rng.random(ROWS) < 0.2
    danger = np.where(unsafe & (np.arange(ROWS) % 50 == 0), -np.inf, score)
    return {
        "c": score,
        "ok": rng.random(ROWS) < 0.7,
        "place": np.array(["north", "süd", "1"])[rng.integers(0, 3, ROWS)],
        "y": label,
        "fast": fast,
        "slow": slow,
        "c2": rng.random(ROWS),
        "s": danger,
        "u": unsafe,
        "last": np.where(unsafe, danger, np.nan),
    }


INSIDE = ["rows.csv", "rows.tsv", "rows.csv.gz", "rows.jsonl", "rows.json", "rows.parquet"]

USES: dict[str, tuple[dict[str, Any], Callable[[Columns], Tally]]] = {
    "calibration": (
        {"confidence": "c", "correct": "ok"},
        lambda t: Tally.count("calibration", confidence=t["c"], correct=t["ok"]),
    ),
    "classes": (
        {"confidence": "c", "prediction": "fast", "label": "y", "n_bins": 7},
        lambda t: Tally.count(
            "calibration", confidence=t["c"], correct=t["fast"] == t["y"], n_bins=7
        ),
    ),
    "groups": (
        {"confidence": "c", "correct": "ok", "groups": "place", "edges": [0, 0.15, 0.6, 1]},
        lambda t: Tally.count(
            "calibration",
            confidence=t["c"],
            correct=t["ok"],
            groups=t["place"],
            edges=[0, 0.15, 0.6, 1],
        ),
    ),
    "cascade": (
        {"confidence": ["c"], "prediction": ["fast", "slow"], "label": "y"},
        lambda t: Tally.count(
            "cascade",
            confidence=t["c"],
            prediction=np.column_stack([t["fast"], t["slow"]]),
            label=t["y"],
        ),
    ),
    "cascade of three": (
        {"confidence": ["c", "c2"], "prediction": ["fast", "fast", "slow"], "label": "y"},
        lambda t: Tally.count(
            "cascade",
            confidence=np.column_stack([t["c"], t["c2"]]),
            prediction=np.column_stack([t["fast"], t["fast"], t["slow"]]),
            label=t["y"],
        ),
    ),
    "shield": (
        {"score": "s", "unsafe": "u"},
        lambda t: Tally.count("shield", score=t["s"], unsafe=t["u"]),
    ),
}


@pytest.fixture(scope="module")
def folder(columns: Columns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for name, write in WRITERS.items():
        write(columns, folder / name)
    return folder


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("use", USES)
def test_every_format_gives_the_integers_of_the_arrays(
    columns: Columns, folder: Path, name: str, use: str
) -> None:
    named, count = USES[use]
    tally = Tally.count(question_of(named), data=folder / name, **named)
    assert tally == count(columns)
    told = {name for name in tally.sources if not name.startswith(HISTOGRAM)}
    assert told == {file_fingerprint(folder / name)}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("use", USES)
def test_these_are_counted_inside_duckdb(
    folder: Path, name: str, use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but text that names classes: what names a class is not decided in SQL."""
    if name != "rows.parquet" and {"label", "labels"} & USES[use][0].keys():
        return

    def not_in_order(*_: Any) -> None:
        pytest.fail("the rows were read in order")

    monkeypatch.setattr("pacbound.sources.engines.duckdb.in_order", not_in_order)
    named = USES[use][0]
    Tally.count(question_of(named), data=folder / name, **named)


def test_files_of_several_formats_and_globs_add_up(columns: Columns, tmp_path: Path) -> None:
    parts = np.array_split(np.arange(ROWS), 5)
    for place, (name, part) in enumerate(
        zip(["a.csv", "b.parquet", "c.jsonl", "d.npz", "e.feather"], parts, strict=True)
    ):
        WRITERS[f"rows{Path(name).suffix}"](
            {key: column[part] for key, column in columns.items()}, tmp_path / name
        )
        assert place < 5
    tally = Tally.count(
        "calibration",
        data=[tmp_path / "[a-c].*", tmp_path / "d.npz", tmp_path / "e.feather"],
        confidence="c",
        correct="ok",
    )
    assert tally == USES["calibration"][1](columns)
    assert len(tally.sources) == 5


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "feather"])
def test_the_folders_of_a_partitioned_table_are_a_column(
    columns: Columns, tmp_path: Path, suffix: str
) -> None:
    for place in np.unique(columns["place"]):
        inside = tmp_path / "logs" / f"place={place}"
        inside.mkdir(parents=True)
        part = {
            name: column[columns["place"] == place]
            for name, column in columns.items()
            if name != "place"
        }
        WRITERS[f"rows.{suffix}"](part, inside / f"part-0.{suffix}")
    assert Tally.count("calibration", data=tmp_path / "logs", **USES["groups"][0]) == USES[
        "groups"
    ][1](columns)
    assert Tally.count(
        "calibration", data=str(tmp_path / "logs" / "*" / "*"), **USES["calibration"][0]
    ) == USES["calibration"][1](columns)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "feather", "npz"])
def test_names_that_differ_in_case_or_look_like_sql_are_columns_like_others(
    tmp_path: Path, suffix: str
) -> None:
    awkward = [
        "c",
        "C",
        "c_1",
        'a"b',
        "it's",
        "x.y",
        "); DROP TABLE t; --",
        "größe",
        "a b",
        "value 0",
        "*",
    ]
    scores = {name: np.full(4, (place + 1) / 100) for place, name in enumerate(awkward)}
    path = tmp_path / f'it\'s {{}} %s; "q" [1].{suffix}'
    WRITERS[f"rows.{suffix}"](
        {**scores, "OK": np.array([True] * 4), "ok": np.array([False] * 4)}, path
    )
    for place, name in enumerate(awkward):
        for flag, outcome in (("OK", "right"), ("ok", "wrong")):
            tally = Tally.count("calibration", data=path, confidence=name, correct=flag, n_bins=100)
            assert (tally.cells.tolist(), tally.totals[outcome]) == ([[place]], 4), (name, flag)


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_types_that_hold_the_same_values_count_the_same(tmp_path: Path, suffix: str) -> None:
    scores = pa.array([0.25, 0.5, 1.0])
    expected = Tally.count(
        "calibration", confidence=[0.25, 0.5, 1.0], correct=[1, 0, 1], groups=["a", "b", "a"]
    )
    typed = {
        "c": [
            scores,
            scores.cast(pa.float32()),
            scores.cast(pa.float16()),
            scores.cast(pa.decimal128(5, 3)),
        ],
        "ok": [
            pa.array([True, False, True]),
            pa.array([1, 0, 1], pa.int8()),
            pa.array([1.0, 0.0, 1.0]),
        ],
        "g": [
            pa.array(["a", "b", "a"]),
            pa.array(["a", "b", "a"], pa.large_string()),
            pa.array(["a", "b", "a"]).dictionary_encode(),
        ],
    }
    for role, choices in typed.items():
        for chosen in choices:
            table = {**{name: options[0] for name, options in typed.items()}, role: chosen}
            WRITERS[f"rows.{suffix}"](table, tmp_path / f"rows.{suffix}")
            assert (
                Tally.count(
                    "calibration",
                    data=tmp_path / f"rows.{suffix}",
                    confidence="c",
                    correct="ok",
                    groups="g",
                )
                == expected
            ), chosen.type


@pytest.mark.parametrize(
    "ends",
    ["0.5,1\n\n0.6,0\n", " 0.5 ,\tYES\n0.6,\u00a0No", '"0.5","1"\n"0.6","0"', "0.5,1\n0.6,0"],
)
def test_csv_is_read_however_it_is_written(tmp_path: Path, ends: str) -> None:
    (tmp_path / "rows.csv").write_bytes(f"c,ok\n{ends}".encode())
    assert Tally.count(
        "calibration", data=tmp_path / "rows.csv", confidence="c", correct="ok"
    ) == Tally.count("calibration", confidence=[0.5, 0.6], correct=[1, 0])


@pytest.mark.parametrize(
    "inside", ['"' + "0.9,1,b\n" * 400 + '"', '"\n' + "0.9,1,b\n" * 400 + '0.9,1,"']
)
def test_lines_inside_of_quotes_are_no_rows_in_a_file_of_any_size(
    tmp_path: Path, inside: str
) -> None:
    """A reader of several threads begins in the middle of the file, where it cannot know."""
    (tmp_path / "rows.csv").write_text("c,ok,text\n" + f"0.1,0,{inside}\n" * 5000)
    tally = Tally.count("calibration", data=tmp_path / "rows.csv", confidence="c", correct="ok")
    assert tally.totals == {"wrong": 5000, "right": 0}


@pytest.mark.parametrize("name", WRITERS)
def test_progress_rises_to_no_more_than_all(folder: Path, name: str) -> None:
    shares: list[float] = []
    Tally.count(
        "calibration", data=folder / name, confidence="c", correct="ok", progress=shares.append
    )
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 for share in shares)


def test_reading_installs_nothing_and_leaves_nothing(tmp_path: Path, folder: Path) -> None:
    """In a process of its own, which shares no database with other tests."""
    subprocess.run(
        [sys.executable, "-c", READER, *(str(folder / name) for name in INSIDE)],
        env=os.environ | {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        check=True,
    )
    assert list(tmp_path.iterdir()) == []


READER = """
import sys
from pathlib import Path
from tempfile import gettempdir
from pacbound import Tally

assert gettempdir() == str(Path.home())
for path in sys.argv[1:]:
    Tally.count("calibration", data=path, confidence="c", correct="ok")
"""

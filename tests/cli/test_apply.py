"""`pacbound apply` on every format: rows keep their order and columns what they held."""

import csv
import gzip
import json
import subprocess
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from pacbound import calibrate

Run = Callable[..., subprocess.CompletedProcess[str]]

ROWS = 150_000
"""More than one batch of every reader, and of every writer's row group."""


@pytest.fixture(scope="module")
def table() -> Any:
    rng = np.random.default_rng(0)
    return pa.table({
        "id": np.arange(ROWS),
        "c": rng.random(ROWS).astype(np.float32),
        "text": pa.array([f'a "b", {i}\n' if i % 3 else None for i in range(ROWS)]),
        "place": pa.array(["north", "south"] * (ROWS // 2)).dictionary_encode(),
        "when": pa.array(
            [datetime(2020, 1, 1 + i % 28, 12) for i in range(ROWS)], pa.timestamp("us", "UTC")
        ),
        "money": pa.array([Decimal(i) / 100 for i in range(ROWS)], pa.decimal128(12, 2)),
        "C": np.zeros(ROWS, dtype=np.uint8),
    })  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a certificate in it."""
    calibrate([0.1, 0.5, 0.9] * 50, [0, 1, 1] * 50, delta=0.05, n_bins=4).save(
        tmp_path / "cal.json"
    )
    return tmp_path


def expected(scores: Any) -> Any:
    certificate = calibrate([0.1, 0.5, 0.9] * 50, [0, 1, 1] * 50, delta=0.05, n_bins=4)
    return certificate.interval(np.asarray(scores, dtype=np.float64))


def apply(pacbound: Run, source: str, target: str) -> None:
    done = pacbound("apply", "cal.json", source, "-o", target, "--confidence", "c")
    assert done.stderr == ""


@pytest.mark.parametrize("source", ["rows.parquet", "rows.feather"])
@pytest.mark.parametrize("target", ["out.parquet", "out.feather"])
def test_types_and_order_are_kept(
    pacbound: Run, folder: Path, table: Any, source: str, target: str
) -> None:
    _write(table, folder / source)
    apply(pacbound, source, target)
    out = _read(folder / target)
    # An Arrow file holds one dictionary for all batches, so there the column goes out without.
    plain = (
        table
        if target == "out.parquet"
        else table.set_column(3, "place", table["place"].cast(pa.string()))
    )
    assert out.select(table.schema.names).cast(plain.schema).equals(plain)
    assert [out.schema.field(name).type for name in table.schema.names] == plain.schema.types
    interval = expected(table["c"])
    assert np.array_equal(out["pac_lower"], interval[:, 0])
    assert np.array_equal(out["pac_upper"], interval[:, 1])
    assert out.schema.names == [*table.schema.names, "pac_lower", "pac_upper", "pac_estimate"]


def test_parquet_goes_to_csv(pacbound: Run, folder: Path, table: Any) -> None:
    small = table.slice(0, 1000)
    pq.write_table(small, folder / "rows.parquet")
    apply(pacbound, "rows.parquet", "out.csv")
    with (folder / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["id"]) for row in rows] == list(range(1000))
    assert [np.float32(row["c"]) for row in rows] == small["c"].to_pylist()
    assert [row["text"] or None for row in rows] == small["text"].to_pylist()
    assert [row["place"] for row in rows] == small["place"].to_pylist()
    assert [float(row["pac_lower"]) for row in rows] == expected(small["c"])[:, 0].tolist()


def test_csv_goes_to_parquet_as_the_text_that_it_is(pacbound: Run, folder: Path) -> None:
    (folder / "rows.csv").write_text('c,code\n0.50,007\n"1e-1","a,b"\n')
    apply(pacbound, "rows.csv", "out.parquet")
    out = pq.read_table(folder / "out.parquet").to_pydict()
    assert (out["c"], out["code"]) == (["0.50", "1e-1"], ["007", "a,b"])
    assert out["pac_upper"] == expected([0.5, 0.1])[:, 1].tolist()


def test_json_lines_go_out_as_they_stood_with_keys_added(pacbound: Run, folder: Path) -> None:
    lines = [
        '{"c": 0.50, "n": {"a": [1, 2]}, "big": 12345678901234567890123}',
        '{ "c":1e-1,"text":"\\u00e9 }" }',
    ]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    apply(pacbound, "rows.jsonl", "out.jsonl")
    out = (folder / "out.jsonl").read_text().splitlines()
    assert [
        line.startswith(before[:-1].rstrip()) for line, before in zip(out, lines, strict=True)
    ] == [True, True]
    assert [json.loads(line)["pac_lower"] for line in out] == expected([0.5, 0.1])[:, 0].tolist()


def test_json_goes_to_parquet_with_the_types_that_all_its_values_have(
    pacbound: Run, folder: Path
) -> None:
    rows = [
        {"c": 0.5, "i": 1, "t": True, "s": "2020-01-01", "m": 1},
        {"c": 1, "i": None, "t": False, "s": "x", "m": "one", "late": 2.5},
    ]
    (folder / "rows.json").write_text(json.dumps(rows, indent=1))
    apply(pacbound, "rows.json", "out.parquet")
    out = pq.read_table(folder / "out.parquet")
    assert {field.name: str(field.type) for field in out.schema}.items() >= {
        "c": "double", "i": "int64", "t": "bool", "s": "string", "m": "string", "late": "double"
    }.items()  # fmt: skip
    assert out["m"].to_pylist() == ["1", "one"]
    apply(pacbound, "rows.json", "out.jsonl")
    assert [json.loads(line)["s"] for line in (folder / "out.jsonl").read_text().splitlines()] == [
        "2020-01-01",
        "x",
    ]


def test_parquet_goes_to_json_lines(pacbound: Run, folder: Path) -> None:
    pq.write_table(
        pa.table({"c": [0.5, 0.6], "x": [float("nan"), float("-inf")], "l": [[1], None]}),
        folder / "rows.parquet",
    )
    apply(pacbound, "rows.parquet", "out.jsonl")
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert [(row["c"], row["x"], row["l"]) for row in rows] == [
        (0.5, None, [1]),
        (0.6, "-inf", None),
    ]


def test_compressed_text_is_read(pacbound: Run, folder: Path) -> None:
    (folder / "rows.csv.gz").write_bytes(gzip.compress(b"c,t\n0.5,x\n"))
    apply(pacbound, "rows.csv.gz", "out.csv")
    assert (
        (folder / "out.csv").read_text().startswith("c,t,pac_lower,pac_upper,pac_estimate\n0.5,x,")
    )


def test_files_of_a_glob_go_out_as_one_in_the_order_of_their_names(
    pacbound: Run, folder: Path
) -> None:
    for place in ("2", "10", "1"):
        inside = folder / "logs" / f"part={place}"
        inside.mkdir(parents=True)
        pq.write_table(pa.table({"c": [float(place) / 10]}), inside / "rows.parquet")
    apply(pacbound, "logs", "out.parquet")
    out = pq.read_table(folder / "out.parquet")
    assert (out["c"].to_pylist(), out["part"].to_pylist()) == ([0.1, 1.0, 0.2], ["1", "10", "2"])


@pytest.mark.parametrize(
    ("files", "source", "target", "message"),
    [
        (
            {"a.csv": "c\n0.5\n", "b.csv": "c,d\n0.5,1\n"},
            "[ab].csv",
            "out.csv",
            "not laid out alike",
        ),
        (
            {"a.csv": "c\n0.5\n", "b.jsonl": '{"c": 0.5}'},
            "[ab].*",
            "out.csv",
            "not laid out alike",
        ),
        ({"a.csv": "c\n0.5\n"}, "a.csv", "a.csv", "is where the rows come from"),
        ({"a.csv": "c\n0.5\n"}, "a.csv", "link.csv", "is where the rows come from"),
        ({"a.csv": "c\n0.5\n"}, "a.csv", "out.xlsx", "can be written to .csv"),
        ({"a.csv": "c\n0.5\n"}, "a.csv", "out.npz", "can be written to .csv"),
        ({"a.csv": "c\n"}, "a.csv", "out.csv", "no rows"),
        ({"a.csv": "c\n0.5\nx\n"}, "a.csv", "out.parquet", "a.csv: c[1] is 'x'"),
        ({"a.csv": "c,pac_lower\n0.5,1\n"}, "a.csv", "out.csv", "already has a column"),
        ({"a.csv": "d\n0.5\n"}, "a.csv", "out.csv", "has no column 'c'"),
        ({"a.jsonl": '{"c": 0.5}\n{"c": "x"}\n'}, "a.jsonl", "out.jsonl", "a.jsonl: c[1] is 'x'"),
        (
            {"a.jsonl": '{"c": 0.5}\n{"d": 1}\n'},
            "a.jsonl",
            "out.jsonl",
            "a.jsonl: c[1] is missing",
        ),
    ],
)
def test_what_cannot_go_out_is_refused_and_leaves_nothing(
    pacbound: Run, folder: Path, files: dict[str, str], source: str, target: str, message: str
) -> None:
    for name, content in files.items():
        (folder / name).write_text(content)
    (folder / "link.csv").symlink_to(folder / "a.csv")
    before = sorted(folder.iterdir())
    done = pacbound("apply", "cal.json", source, "-o", target, "--confidence", "c", code=2)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sorted(folder.iterdir()) == before
    assert all((folder / name).read_text() == content for name, content in files.items())


def test_types_that_change_from_file_to_file_do_not_go_into_one(
    pacbound: Run, folder: Path
) -> None:
    pq.write_table(pa.table({"c": [0.5], "x": [1]}), folder / "a.parquet")
    pq.write_table(pa.table({"c": [0.5], "x": ["1"]}), folder / "b.parquet")
    done = pacbound(
        "apply", "cal.json", "*.parquet", "-o", "out.parquet", "--confidence", "c", code=2
    )
    assert "x has type string here and int64" in done.stderr
    assert not (folder / "out.parquet").exists()


def _write(table: Any, path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=40_000)
    else:
        pyarrow.feather.write_feather(table, path, chunksize=40_000)


def _read(path: Path) -> Any:
    return pq.read_table(path) if path.suffix == ".parquet" else pyarrow.feather.read_table(path)

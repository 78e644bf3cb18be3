"""`pacbound apply` on every format: rows keep their order and columns what they held."""

import gzip
import json
import subprocess
import sys
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
    done = pacbound("apply", "cal.json", source, "-o", target, "--column", "confidence=c")
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
        ({"a.csv": "c\n0.5\n"}, "a.csv", "a.csv", "is read as FILE"),
        ({"a.csv": "c\n0.5\n"}, "a.csv", "link.csv", "is read as FILE"),
        ({"a.csv": "c\n0.5\n"}, "a.csv", "out.xlsx", "can be written to .csv"),
        ({"a.csv": "c\n0.5\n"}, "a.csv", "out.npz", "can be written to .csv"),
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
    done = pacbound("apply", "cal.json", source, "-o", target, "--column", "confidence=c", code=2)
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
        "apply", "cal.json", "*.parquet", "-o", "out.parquet", "--column", "confidence=c", code=2
    )
    assert "x has type string here and int64" in done.stderr
    assert not (folder / "out.parquet").exists()


NOTHING = pa.table({"c": pa.array([], pa.float32()), "text": pa.array([], pa.string())})


@pytest.mark.parametrize("source", ["r.csv", "r.tsv", "r.csv.gz", "r.parquet", "r.feather"])
@pytest.mark.parametrize("target", ["out.csv", "out.parquet", "out.feather", "out.jsonl"])
def test_no_rows_give_a_table_with_the_columns_and_no_rows(
    pacbound: Run, folder: Path, source: str, target: str
) -> None:
    if source.endswith((".parquet", ".feather")):
        _write(NOTHING, folder / source)
    else:
        text = ("c\ttext\n" if source.endswith(".tsv") else "c,text\n").encode()
        (folder / source).write_bytes(gzip.compress(text) if source.endswith(".gz") else text)
    done = pacbound("apply", "cal.json", source, "-o", target, "--column", "confidence=c")
    assert done.stdout.startswith(f"0 rows written to {target} with pac_lower")
    names = ["c", "text", "pac_lower", "pac_upper", "pac_estimate"]
    if target == "out.csv":
        assert (folder / target).read_text() == ",".join(names) + "\n"
    elif target == "out.jsonl":
        assert (folder / target).read_bytes() == b""
    else:
        out = _read(folder / target)
        assert (out.num_rows, out.schema.names) == (0, names)
        kept = pa.float32() if source.endswith((".parquet", ".feather")) else pa.string()
        assert out.schema.types == [kept, pa.string(), *[pa.float64()] * 3]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "npz"])
def test_rows_of_groups_that_were_not_certified_get_the_whole_interval_and_are_counted(
    pacbound: Run, tmp_path: Path, suffix: str
) -> None:
    calibrate([0.1, 0.9] * 50, [0, 1] * 50, groups=["a", "b"] * 50, delta=0.05, n_bins=2).save(
        tmp_path / "cal.json"
    )
    rows = pa.table({"c": [0.1, 0.9, 0.9, 0.2], "g": ["a", "new", "b", "newer"]})
    source, target = f"r.{suffix}", f"out.{suffix}"
    _write_any(rows, tmp_path / source)
    options = ("-o", target, "--column", "confidence=c", "--column", "groups=g")
    done = pacbound("apply", "cal.json", source, *options)
    assert done.stdout.splitlines()[1] == (
        "2 rows of 2 groups that were not certified get [0, 1]: 'new', 'newer'."
    )
    lower, upper, estimate = _intervals(tmp_path / target)
    assert (lower[[1, 3]].tolist(), upper[[1, 3]].tolist()) == ([0, 0], [1, 1])
    assert np.isnan(estimate).tolist() == [False, True, False, True]
    assert upper[0] < 0.5 < lower[2]
    found = json.loads(pacbound("apply", "cal.json", source, *options, "--json").stdout)
    assert (found["uncertified_rows"], found["uncertified_groups"]) == (2, ["new", "newer"])
    (tmp_path / target).unlink()
    refused = pacbound("apply", "cal.json", source, *options, "--strict", code=2)
    assert "g[1] is 'new', a group that was not certified" in refused.stderr
    assert not (tmp_path / target).exists()


@pytest.mark.slow
@pytest.mark.parametrize("source", ["r.csv", "r.parquet", "r.npz"])
def test_rows_go_to_standard_output_as_what_they_were_and_the_report_to_stderr(
    pacbound: Run, folder: Path, source: str
) -> None:
    _write_any(pa.table({"c": [0.1, 0.9]}), folder / source)
    pacbound("apply", "cal.json", source, "-o", "/dev/null", "--column", "confidence=c")
    assert Path("/dev/null").is_char_device()
    program = "from pacbound.cli import main; main()"
    arguments = ["apply", "cal.json", source, "-o", "/dev/stdout", "--column", "confidence=c"]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=folder, capture_output=True, check=True
    )
    assert done.stderr.startswith(b"2 rows written to /dev/stdout")
    (folder / f"out{Path(source).suffix}").write_bytes(done.stdout)
    lower, _, _ = _intervals(folder / f"out{Path(source).suffix}")
    assert lower.tolist() == expected([0.1, 0.9])[:, 0].tolist()


def _write_any(table: Any, path: Path) -> None:
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, table.to_pylist())))
    elif path.suffix == ".npz":
        arrays: dict[str, Any] = {
            name: np.array(table[name].to_pylist()) for name in table.schema.names
        }
        np.savez(path, **arrays)
    else:
        _write(table, path)


def _intervals(path: Path) -> list[Any]:
    names = ("pac_lower", "pac_upper", "pac_estimate")
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return [arrays[name] for name in names]
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        return [np.array([row[name] for row in rows], dtype=np.float64) for name in names]
    table = pyarrow.csv.read_csv(path) if path.suffix == ".csv" else _read(path)
    return [np.array(table[name].to_pylist(), dtype=np.float64) for name in names]


def _write(table: Any, path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=40_000)
    else:
        pyarrow.feather.write_feather(table, path, chunksize=40_000)


def _read(path: Path) -> Any:
    return pq.read_table(path) if path.suffix == ".parquet" else pyarrow.feather.read_table(path)

"""A file that cannot be counted or applied to ends in exit code 2, one clear line, and no file left
behind."""

import gzip
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from tests.cli.commands import roles
from tests.products import standing_for

from pacbound import calibrate, certify_cascade

Run = Callable[..., subprocess.CompletedProcess[str]]

FORMATS = ("r.csv", "r.csv.gz", "r.parquet", "r.feather", "r.jsonl", "r.npz")
CLAIM = ("--delta", 0.1, "-o", "out.json")
COMMANDS: dict[str, tuple[object, ...]] = {
    "calibrate": ("calibrate", "FILE", "--confidence", "c", "--correct", "ok", *CLAIM),
    "groups": (
        "calibrate", "FILE", "--confidence", "c", "--correct", "ok", "--groups", "g", *CLAIM,
    ),
    "classes": (
        "calibrate", "FILE", "--confidence", "c", "--prediction", "a", "--label", "y", *CLAIM,
    ),
    "cascade": (
        "cascade", "FILE", "--confidence", "c", "--prediction", "a,b", "--label", "y",
        "--xi", 0.1, *CLAIM,
    ),
    "shield": ("shield", "FILE", "--score", "c", "--unsafe", "ok", "--xi", 0.1, *CLAIM),
    "apply": ("apply", "cal.json", "FILE", "--column", "confidence=c", "-o", "out.SUFFIX"),
    "apply cascade": (
        "apply", "cascade.json", "FILE", *roles(confidence="c", prediction="a,b"),
        "-o", "out.SUFFIX",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    calibrate([0.5] * 50, [1] * 50, delta=0.1).save(folder / "cal.json")
    predictions = [["x", "x"], ["x", "y"]] * 50
    certify_cascade([0.5, 0.9] * 50, predictions, ["x", "y"] * 50, xi=0.2, delta=0.1).save(
        folder / "cascade.json"
    )
    return folder


def rows(n: int = 3000) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, (3, n))
    return {
        "c": rng.random(n),
        "ok": rng.random(n) < 0.5,
        "a": classes[0],
        "b": np.where(rng.random(n) < 0.2, classes[1], classes[2]),
        "y": classes[2],
        "g": classes[0],
    }


def write(table: dict[str, Any], path: Path) -> None:
    match path.suffix:
        case ".csv":
            pyarrow.csv.write_csv(pa.table(table), path)
        case ".gz":
            pyarrow.csv.write_csv(pa.table(table), path.with_suffix(""))
            path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))
            path.with_suffix("").unlink()
        case ".parquet":
            pq.write_table(pa.table(table), path, write_page_checksum=True)
        case ".feather":
            pyarrow.feather.write_feather(pa.table(table), path)
        case ".jsonl":
            path.write_text("\n".join(json.dumps(row) for row in pa.table(table).to_pylist()))
        case ".npz":
            arrays: dict[str, Any] = {name: np.asarray(column) for name, column in table.items()}
            np.savez(path, **arrays)


def cut(name: str) -> Callable[[Path], Path]:
    """A file that ends in the middle of a row."""

    def make(folder: Path) -> Path:
        write(rows(), folder / name)
        whole = (folder / name).read_bytes()
        half = whole[: len(whole) // 2]
        (folder / name).write_bytes(half[: half.rindex(b",")] if name.endswith(".csv") else half)
        return folder / name

    return make


def damaged(name: str) -> Callable[[Path], Path]:
    """A file with its ends intact and something else in the middle."""

    def make(folder: Path) -> Path:
        write(rows(), folder / name)
        whole = bytearray((folder / name).read_bytes())
        inside = slice(len(whole) // 100, len(whole) // 2)
        whole[inside] = bytes(255 - byte for byte in whole[inside])
        (folder / name).write_bytes(whole)
        return folder / name

    return make


def one_bit(name: str) -> Callable[[Path], Path]:
    """A compressed file that reads well, with one digit changed after its checksum was taken."""

    def make(folder: Path) -> Path:
        write(rows(), folder / name)
        stored = bytearray(
            gzip.compress(gzip.decompress((folder / name).read_bytes()), compresslevel=0)
        )
        stored[stored.index(b"\n0.") + 3] ^= 1
        (folder / name).write_bytes(stored)
        return folder / name

    return make


def altered(
    name: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        write(change(rows(50)), folder / name)
        return folder / name

    return make


def content(name: str, text: str | bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder / name

    return make


def renamed(table: dict[str, Any]) -> dict[str, Any]:
    return {f"{name}_of_others": column for name, column in table.items()}


def empty(table: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(column)[:0] for name, column in table.items()}


def mixed(table: dict[str, Any]) -> dict[str, Any]:
    """Text in the last row of every column, in formats that hold text in a column of numbers."""
    return {
        name: [*map(str, np.asarray(column)[:-1].tolist()), ""] for name, column in table.items()
    }


def spoilt(table: dict[str, Any]) -> dict[str, Any]:
    """Nothing in the last row of every column, in formats with types."""
    return {
        name: pa.array([*np.asarray(column)[:-1].tolist(), None]) for name, column in table.items()
    }


def folder_of(suffix: str) -> Callable[[Path], Path]:
    """Two files, one with numbers and one with lists in every column."""

    def make(folder: Path) -> Path:
        inside = folder / f"r.{suffix}"
        inside.mkdir()
        write(rows(50), inside / f"a.{suffix}")
        write({name: pa.array([[1], None]) for name in rows(1)}, inside / f"b.{suffix}")
        return inside

    return make


BAD: dict[str, Callable[[Path], Path]] = {
    **{f"cut {name}": cut(name) for name in FORMATS},
    **{
        f"damaged {name}": damaged(name)
        for name in ("r.parquet", "r.npz", "r.csv.gz", "r.csv", "r.jsonl")
    },
    "one bit of r.csv.gz": one_bit("r.csv.gz"),
    **{
        f"no columns {name}": altered(name, renamed)
        for name in ("r.csv", "r.parquet", "r.feather", "r.jsonl", "r.npz")
    },
    **{
        f"no rows {name}": altered(name, empty)
        for name in ("r.csv", "r.csv.gz", "r.parquet", "r.feather", "r.npz")
    },
    **{f"mixed {name}": altered(name, mixed) for name in ("r.csv", "r.jsonl")},
    **{f"mixed folder of {kind}": folder_of(kind) for kind in ("parquet", "feather", "jsonl")},
    **{f"gaps {name}": altered(name, spoilt) for name in ("r.parquet", "r.feather", "r.jsonl")},
    **{f"nothing in {name}": content(name, "") for name in (*FORMATS, "r.npy")},
    **{f"words in {name}": content(name, "Dear Sir or Madam") for name in FORMATS},
    "header only": content("r.csv", "c,ok,a,b,y,g\n"),
    "not UTF-8": content(
        "r.csv", b"c,ok,a,b,y,g\n0.5,1,1,2,1,\xff\xfe\n0.5,1,\xff,2,1,1\n\xff,1,\xff,1,2,2\n"
    ),
    "ragged": content("r.csv", "c,ok,a,b,y,g\n0.5,1,1,2,1,1\n0.5,1\n"),
    "too long": content("r.csv", "c,ok,a,b,y,g\n0.5,1,1,2,1,1\n0.5,1,1,2,1,1,7\n"),
    "open quote": content("r.csv", 'c,ok,a,b,y,g\n0.5,1,1,2,1,"1\n0.5,1,1,2,1,1\n'),
    "ends of two kinds": content("r.csv", "c,ok,a,b,y,g\n0.5,1,1,2,1,1\r\n0.5,1,1,2,1,1\n"),
    "quote in the middle": content(
        "r.csv", 'c,ok,a,b,y,g\n0.5,1,1,2,1,"1\n0.5,1,1,2,1,"1"\n0.5,1,1,2,1,1\n'
    ),
    "empty object": content("r.jsonl", "{}\n"),
    "a list": content("r.jsonl", '[{"c": 1}, 3]'),
    "missing": lambda folder: folder / "none.parquet",
    "pattern": lambda folder: folder / "*.parquet",
    "address": lambda _: Path("s3://bucket/rows.parquet"),
}  # fmt: skip


APPLYING = ("apply", "apply cascade")
CASES = [
    (bad, command)
    for bad in BAD
    for command in COMMANDS
    if not (command in APPLYING and bad.startswith(("no rows", "header only")))
]
"""A table without rows can be applied to, and gives one without rows: see test_apply."""

WITH_EVERY_COMMAND = (
    "cut r.csv", "damaged r.parquet", "gaps r.parquet", "mixed r.jsonl", "mixed folder of feather",
    "not UTF-8", "nothing in r.npz",
)  # fmt: skip
FEW = [
    (bad, command)
    for bad, command in CASES
    if command in ("calibrate", "apply") or bad in WITH_EVERY_COMMAND
]
"""Files are opened by one reader that counts and one that applies, and each command has columns of
its own that can be bad."""


@pytest.mark.parametrize(("bad", "command"), standing_for(CASES, FEW))
def test_a_bad_file_ends_in_one_clear_line_and_leaves_nothing(
    pacbound: Run, certificates: Path, tmp_path: Path, bad: str, command: str
) -> None:
    for certificate in certificates.iterdir():
        shutil.copy(certificate, tmp_path)
    path = BAD[bad](tmp_path)
    before = sorted(tmp_path.iterdir())
    suffix = "npz" if path.suffix in (".npz", ".npy") else "parquet"
    arguments = [
        path if part == "FILE" else str(part).replace("SUFFIX", suffix)
        for part in COMMANDS[command]
    ]
    done = pacbound(*arguments, code=2)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("error: ")
    assert path.name.replace("*", "") in done.stderr.replace("*", "")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["r.parquet", "r.feather"])
@pytest.mark.parametrize(
    ("command", "column"),
    [("calibrate", "c"), ("calibrate", "ok"), ("shield", "c"), ("shield", "ok"), ("apply", "c")],
)
def test_integers_that_floats_do_not_hold_end_in_one_clear_line(
    pacbound: Run, certificates: Path, tmp_path: Path, name: str, command: str, column: str
) -> None:
    shutil.copy(certificates / "cal.json", tmp_path)
    write({"c": [0], "ok": [1]} | {column: [2**53 + 1]}, tmp_path / name)
    arguments = [
        name if part == "FILE" else str(part).replace("SUFFIX", "parquet")
        for part in COMMANDS[command]
    ]
    done = pacbound(*arguments, code=2)
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1, done.stderr

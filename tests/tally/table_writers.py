"""The same columns written to a file of every format."""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
from numpy.typing import NDArray

Columns = Mapping[str, NDArray[Any]]


def write_csv(columns: Columns, path: Path) -> None:
    pyarrow.csv.write_csv(pa.table(dict(columns)), path)


def write_tsv(columns: Columns, path: Path) -> None:
    pyarrow.csv.write_csv(pa.table(dict(columns)), path, pyarrow.csv.WriteOptions(delimiter="\t"))


def write_gzip(columns: Columns, path: Path) -> None:
    plain = path.with_name("plain.csv")
    write_csv(columns, plain)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()


def objects(columns: Columns) -> list[str]:
    rows = pa.table(dict(columns)).to_pylist()
    return [
        json.dumps({name: value for name, value in row.items() if value is not None})
        for row in rows
    ]


def write_lines(columns: Columns, path: Path) -> None:
    path.write_text("\n".join(objects(columns)) + "\n")


def write_json(columns: Columns, path: Path) -> None:
    path.write_text("[" + ",\n".join(objects(columns)) + "]")


def write_parquet(columns: Columns, path: Path) -> None:
    pq.write_table(pa.table(dict(columns)), path, row_group_size=500)


def write_feather(columns: Columns, path: Path) -> None:
    pyarrow.feather.write_feather(pa.table(dict(columns)), path, chunksize=500)


def write_stream(columns: Columns, path: Path) -> None:
    table = pa.table(dict(columns))
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table, max_chunksize=700)


def write_npz(columns: Columns, path: Path) -> None:
    np.savez(path, **dict[str, Any](columns))


def write_npy(columns: Columns, path: Path) -> None:
    table = np.empty(
        len(columns["c"]), dtype=[(name, column.dtype) for name, column in columns.items()]
    )
    for name, column in columns.items():
        table[name] = column
    np.save(path, table)


WRITERS: dict[str, Callable[[Columns, Path], None]] = {
    "rows.csv": write_csv,
    "rows.tsv": write_tsv,
    "rows.csv.gz": write_gzip,
    "rows.jsonl": write_lines,
    "rows.json": write_json,
    "rows.parquet": write_parquet,
    "rows.feather": write_feather,
    "rows.arrow": write_stream,
    "rows.npz": write_npz,
    "rows.npy": write_npy,
}

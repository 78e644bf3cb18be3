"""Tables going through: their rows read in order and written again with columns added, one batch in
memory at a time, to CSV, Parquet, JSON lines, Arrow or .npz, by the end of the file's name.

Rows keep their order, and columns what they held: types go to Parquet and Arrow as they are, and
text as it stood. The file appears when it is complete, or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from pacbound.atomic_files import as_path, atomic_file, is_stream, refuse_overwriting
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.batches import (
    Added,
    Batch,
    Progress,
    TableFile,
    Write,
    located,
    part_of,
    require_columns,
)
from pacbound.sources.formats.arrays import NpyFile, NpzFile, npz_writer
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.opening import open_tables
from pacbound.sources.paths import FORMATS, SEPARATORS, Paths, format_of

# How rows of a format are written as what they were.
_SAME = {
    "delimited": ".csv",
    "parquet": ".parquet",
    "json": ".jsonl",
    "arrow": ".arrow",
    "npz": ".npz",
    "npy": ".npz",
}

# Opens a file for rows.
Writer: TypeAlias = Callable[[BinaryIO], AbstractContextManager[Write]]

# What becomes of a batch: the rows of it that go out, and the columns that they get.
Change: TypeAlias = Callable[[Batch], tuple[Batch, Added]]


def rewrite(
    source: Paths,
    target: str | os.PathLike[str],
    change: Change,
    *,
    needed: Sequence[str],
    added: Sequence[str],
    may_be_empty: bool = False,
    notation: Notation = PLAIN,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Write the rows of `source` to `target` as `change` has them, and return how many came in and
    how many went out.

    Several files go out as one, in order. All columns go out as they came in. `target` appears when
    it is complete. Tables without rows are refused, unless they `may_be_empty`: then the columns go
    out without rows.
    """
    tables, came, went = open_tables(source, notation), 0, 0
    for table in tables:
        require_columns(table, needed)
        _refuse_taken(table, added)
    refuse_overwriting({"the output": target}, {"the rows": [table.path for table in tables]})
    _require_one_layout(tables)
    writer = _writer_for(as_path(target), tables, notation)
    with atomic_file(target) as file, writer(file) as write:
        for place, table in enumerate(tables):
            for batch in table.batches(
                progress=part_of(progress, place / len(tables), 1 / len(tables))
            ):
                written = _written(write, change, batch, table)
                came, went = came + batch.rows, went + written
        if not came:
            if not may_be_empty:
                raise InvalidValueError(f"{tables[0].path}: no rows, so nothing is written.")
            first: Any = tables[0]
            _written(write, change, first.no_rows(), first)
    return came, went


def _written(write: Write, change: Change, batch: Batch, table: TableFile) -> int:
    """Write what becomes of the batch, say in which file it was if that fails, and return how many
    rows went out.
    """
    with located(table.path):
        rows, columns = change(batch)
        write(rows, columns)
    return rows.rows


def _refuse_taken(table: TableFile, added: Sequence[str]) -> None:
    taken = [name for name in added if name in table.columns]
    if taken:
        raise InvalidValueError(
            f"{table.path} already has a column {taken[0]!r}: rename or drop it."
        )


def write_rows(
    target: str | os.PathLike[str],
    columns: Mapping[str, Sequence[Any]],
    inputs: Sequence[Any],
    notation: Notation = PLAIN,
) -> None:
    """Write columns of values to `target`, in the format of its name; lists, objects and columns of
    several types go out as text. `inputs` may not be overwritten.
    """
    import pyarrow  # noqa: PLC0415

    from pacbound.sources.formats.record_writers import WRITERS  # noqa: PLC0415
    from pacbound.sources.formats.records import RecordRows  # noqa: PLC0415

    refuse_overwriting({"the output": target}, {"the rows": inputs})
    suffix = as_path(target).suffix.lower()
    if suffix not in WRITERS:
        raise InvalidValueError(
            f"{target}: rows can be written to {', '.join(WRITERS)}, by the file's name."
        )
    record = pyarrow.RecordBatch.from_pydict(
        {name: _plain(values) for name, values in columns.items()}
    )
    with atomic_file(target) as file, _record_writer(suffix, notation)(file) as write:
        write(RecordRows(0, record), {})


def _plain(values: Sequence[Any]) -> Any:
    """A column that every format can hold: numbers, truth values, or text."""
    import pyarrow  # noqa: PLC0415

    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 and kinds <= {str, int, float, bool}:
        return pyarrow.array(values, None if kinds else pyarrow.string())
    return pyarrow.array(
        [
            value if value is None or isinstance(value, str) else json.dumps(value, default=str)
            for value in values
        ],
        pyarrow.string(),
    )


def _writer_for(path: Path, tables: Sequence[TableFile], notation: Notation) -> Writer:
    """Delimited text goes out in the notation that it came in."""
    if all(isinstance(table, (NpzFile, NpyFile)) for table in tables):
        _suffix(path, tables, (".npz",))
        return npz_writer
    # Arrays are written without Arrow.
    from pacbound.sources.formats.record_writers import WRITERS  # noqa: PLC0415

    return _record_writer(_suffix(path, tables, tuple(WRITERS)), notation)


def _record_writer(suffix: str, notation: Notation) -> Writer:
    from pacbound.sources.formats.record_writers import WRITERS  # noqa: PLC0415

    if FORMATS[suffix] != "delimited":
        return WRITERS[suffix]
    # A name that ends in .tsv says itself what stands between values.
    said = notation.delimiter if suffix != ".tsv" else None
    separator, decimal = said or SEPARATORS[suffix], notation.decimal or "."
    return partial(WRITERS[suffix], separator=separator, decimal=decimal)


def _suffix(path: Path, tables: Sequence[TableFile], known: Sequence[str]) -> str:
    """The format that rows go out in: by the name of the file; to a device or a pipe whose name
    says nothing, the one that they came in.
    """
    suffix = path.suffix.lower()
    if not suffix and is_stream(path):
        suffix = _SAME[format_of(tables[0].path) or ""]
    if suffix not in known:
        raise InvalidValueError(
            f"{path}: the rows of {tables[0].path.name} can be written to {', '.join(known)}, by "
            "the file's name."
        )
    return suffix


def _require_one_layout(tables: Sequence[TableFile]) -> None:
    first = tables[0]
    for table in tables[1:]:
        same = format_of(table.path) == format_of(first.path)
        if not same or list(table.columns) != list(first.columns):
            one, other = (", ".join(map(repr, found.columns[:20])) for found in (first, table))
            raise InvalidTypeError(
                f"{first.path} and {table.path} are not laid out alike ({one}; {other}), so their "
                "rows do not fit into one file. Write each to its own."
            )

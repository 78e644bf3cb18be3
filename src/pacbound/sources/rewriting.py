"""Tables going through: their rows read in order and written again with columns added, one batch in
memory at a time, to CSV, Parquet, JSON lines, Arrow or .npz, by the end of the file's name.

Rows keep their order, and columns what they held: types go to Parquet and Arrow as they are, and
text as it stood. The file appears when it is complete, or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias

from numpy.typing import NDArray

from pacbound.atomic_files import as_path, atomic_file, is_stream, refuse_overwriting
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.batches import Batch, Progress, TableFile, located, part_of, require_columns
from pacbound.sources.formats.arrays import NpyFile, NpzFile, NpzWriter
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

# The columns that are added to a batch, by their names.
Added = Mapping[str, NDArray[Any]]

# What becomes of a batch: the rows of it that go out, and the columns that they get.
Change: TypeAlias = Callable[[Batch], tuple[Batch, Added]]


class Writer(Protocol):
    """Takes the rows of a new table, batch by batch."""

    def write(self, batch: Any, added: Added) -> None:
        """Write a batch of a source table with columns added."""

    def close(self) -> None:
        """Write what remains."""


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
    with _open_writer(target, tables, notation) as writer:
        for place, table in enumerate(tables):
            for batch in table.batches(
                progress=part_of(progress, place / len(tables), 1 / len(tables))
            ):
                written = _written(writer, change, batch, table)
                came, went = came + batch.rows, went + written
        if not came:
            if not may_be_empty:
                raise InvalidValueError(f"{tables[0].path}: no rows, so nothing is written.")
            first: Any = tables[0]
            _written(writer, change, first.no_rows(), first)
    return came, went


def _written(writer: Writer, change: Change, batch: Batch, table: TableFile) -> int:
    """Write what becomes of the batch, say in which file it was if that fails, and return how many
    rows went out.
    """
    with located(table.path):
        rows, columns = change(batch)
        writer.write(rows, columns)
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
    with atomic_file(target) as file:
        writer = _record_writer(suffix, notation)(file)
        writer.write(RecordRows(0, record), {})
        writer.close()


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


@contextmanager
def _open_writer(
    target: str | os.PathLike[str], tables: Sequence[TableFile], notation: Notation = PLAIN
) -> Iterator[Writer]:
    """A new file that takes the rows of `tables`; it appears at `target` when all went well.

    Delimited text goes out in the notation that it came in.
    """
    path = as_path(target)
    refuse_overwriting({"the output": target}, {"the rows": [table.path for table in tables]})
    _require_one_layout(tables)
    kind = _writer_for(path, tables, notation)
    with atomic_file(target) as file:
        writer = kind(file)
        try:
            yield writer
            writer.close()
        except BaseException:
            # Closed as long as there is a file: Arrow's writers would do it later, and complain.
            # What went wrong is known already.
            with suppress(Exception):
                writer.close()
            raise


def _writer_for(
    path: Path, tables: Sequence[TableFile], notation: Notation
) -> Callable[[BinaryIO], Writer]:
    if all(isinstance(table, (NpzFile, NpyFile)) for table in tables):
        _suffix(path, tables, (".npz",))
        return NpzWriter
    # Arrays are written without Arrow.
    from pacbound.sources.formats.record_writers import WRITERS  # noqa: PLC0415

    return _record_writer(_suffix(path, tables, tuple(WRITERS)), notation)


def _record_writer(suffix: str, notation: Notation) -> Callable[[BinaryIO], Writer]:
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

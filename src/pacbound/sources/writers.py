"""Rows going out again with columns added: to CSV, Parquet, JSON lines, Arrow or .npz, by the end
of the file's name.

Rows keep their order, and columns what they held: types go to Parquet and Arrow as they are, and
text as it stood. The file appears when it is complete, or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from numpy.typing import NDArray

from pacbound.atomic_files import abandon, as_path, atomic_file, is_stream
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.output_files import refuse_overwriting
from pacbound.sources.batches import TableFile
from pacbound.sources.formats.npy import NpyFile
from pacbound.sources.formats.npz import NpzFile, NpzWriter
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.paths import FORMATS, SEPARATORS, format_of

_SAME = {
    "delimited": ".csv",
    "parquet": ".parquet",
    "json": ".jsonl",
    "arrow": ".arrow",
    "npz": ".npz",
    "npy": ".npz",
}
"""How rows of a format are written as what they were."""

Added = Mapping[str, NDArray[Any]]
"""The columns that are added to a batch, by their names."""


class Writer(Protocol):
    """Takes the rows of a new table, batch by batch."""

    def write(self, batch: Any, added: Added) -> None:
        """Write a batch of a source table with columns added."""
        ...

    def close(self) -> None:
        """Write what remains."""
        ...


@contextmanager
def open_writer(
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
            abandon(file)
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
    from pacbound.sources.formats import record_writers  # noqa: PLC0415

    suffix = _suffix(path, tables, tuple(record_writers.WRITERS))
    if FORMATS[suffix] != "delimited":
        return record_writers.WRITERS[suffix]
    # A name that ends in .tsv says itself what stands between values.
    said = notation.delimiter if suffix != ".tsv" else None
    return partial(
        record_writers.WRITERS[suffix],
        separator=said or SEPARATORS[suffix],
        decimal=notation.decimal or ".",
    )


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
        if type(table) is not type(first) or list(table.columns) != list(first.columns):
            one, other = (", ".join(map(repr, found.columns[:20])) for found in (first, table))
            raise InvalidTypeError(
                f"{first.path} and {table.path} are not laid out alike ({one}; {other}), so their "
                "rows do not fit into one file. Write each to its own."
            )

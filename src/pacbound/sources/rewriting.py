"""Tables going through: their rows read in order and written again with columns added, one batch in
memory at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.batches import Batch, Progress, TableFile, part_of, require_columns
from pacbound.sources.formats.npy import NpyFile
from pacbound.sources.formats.npz import NpzFile
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.paths import Paths
from pacbound.sources.tables import open_tables
from pacbound.sources.writers import Added, Writer, open_writer

Change: TypeAlias = Callable[[Batch], tuple[Batch, Added]]
"""What becomes of a batch: the rows of it that go out, and the columns that they get."""


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
    with open_writer(target, tables, notation) as writer:
        for place, table in enumerate(tables):
            for batch in table.batches(
                progress=part_of(progress, place / len(tables), 1 / len(tables))
            ):
                written = _written(writer, change, batch, table)
                came, went = came + batch.rows, went + written
        if not came:
            if not may_be_empty:
                raise InvalidValueError(f"{tables[0].path}: no rows, so nothing is written.")
            _written(writer, change, _no_rows(tables[0]), tables[0])
    return came, went


def _written(writer: Writer, change: Change, batch: Batch, table: TableFile) -> int:
    """Write what becomes of the batch, say in which file it was if that fails, and return how many
    rows went out.
    """
    try:
        rows, columns = change(batch)
        writer.write(rows, columns)
    except (InvalidValueError, InvalidTypeError) as error:
        raise type(error)(f"{table.path}: {error}") from None
    return rows.rows


def _no_rows(table: TableFile) -> Batch:
    """The columns of the table with no rows in them."""
    if isinstance(table, (NpzFile, NpyFile)):
        return table.no_rows()
    # Arrays go out without Arrow.
    import pyarrow  # noqa: PLC0415

    from pacbound.sources.formats.records import RecordRows, with_constants  # noqa: PLC0415

    # Text has no types to keep.
    schema = getattr(
        table, "schema", pyarrow.schema([(name, pyarrow.string()) for name in table.columns])
    )
    columns = [pyarrow.nulls(0, kind) for kind in schema.types]
    record = pyarrow.RecordBatch.from_arrays(columns, schema=schema)
    folders: dict[str, str | None] = {
        name: None for name in table.columns if name not in schema.names
    }
    is_text = not hasattr(table, "schema")
    return RecordRows(0, with_constants(record, folders), is_text=is_text)


def _refuse_taken(table: TableFile, added: Sequence[str]) -> None:
    taken = [name for name in added if name in table.columns]
    if taken:
        raise InvalidValueError(
            f"{table.path} already has a column {taken[0]!r}: rename or drop it."
        )

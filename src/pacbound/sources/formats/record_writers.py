"""Record batches going out to CSV, Parquet, JSON lines and Arrow files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from math import isfinite, isnan
from typing import Any, BinaryIO

import numpy as np
import pyarrow
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError
from pacbound.sources.batches import Added, Write
from pacbound.sources.formats.records import RecordRows

# Rows in a row group of Parquet.
_GROUP = 2**20


@contextmanager
def delimited_writer(file: BinaryIO, *, separator: str, decimal: str = ".") -> Iterator[Write]:
    """Rows as lines of text with a separator, quoted where they must be; numbers that were text
    stay as they stood, and others have the `decimal` sign of these.
    """
    special = f'[{re.escape(separator)}"\r\n]'
    begun = False

    def write(batch: RecordRows, added: Added) -> None:
        nonlocal begun
        record = extended(batch.record, added)
        if not begun:
            names = _quoted(pyarrow.array(record.schema.names, pyarrow.string()), special)
            file.write(separator.join(names.to_pylist()).encode() + b"\n")
            begun = True
        columns = [
            _quoted(_as_text(column, name, decimal), special)
            for name, column in zip(record.schema.names, record.columns, strict=True)
        ]
        joined = pc.binary_join_element_wise(*columns, separator)
        file.write(_joined(pc.binary_join_element_wise(joined, "\n", "")))

    yield write


@contextmanager
def parquet_writer(file: BinaryIO) -> Iterator[Write]:
    """Rows in row groups, every column of the type it came with."""
    writer: Any = None
    held: list[Any] = []

    def flush() -> None:
        if held:
            writer.write_table(pyarrow.Table.from_batches(held), row_group_size=_GROUP)
            held.clear()

    def write(batch: RecordRows, added: Added) -> None:
        nonlocal writer
        record = extended(batch.record, added)
        if writer is None:
            writer = opened.enter_context(pyarrow.parquet.ParquetWriter(file, record.schema))
        held.append(_fitting(record, writer.schema))
        if sum(part.num_rows for part in held) >= _GROUP:
            flush()

    # Closed as long as there is a file: Arrow's writers would do it later, and complain.
    with ExitStack() as opened:
        yield write
        flush()


@contextmanager
def arrow_writer(file: BinaryIO) -> Iterator[Write]:
    """Rows in record batches, as Feather has them; a file of these holds one dictionary, so columns
    go out without theirs.
    """
    schema: Any = None
    writer: Any = None

    def write(batch: RecordRows, added: Added) -> None:
        nonlocal schema, writer
        record = _decoded(extended(batch.record, added))
        if writer is None:
            schema = record.schema
            writer = opened.enter_context(pyarrow.ipc.new_file(file, schema))
        writer.write_batch(_fitting(record, schema))

    with ExitStack() as opened:
        yield write


@contextmanager
def json_writer(file: BinaryIO) -> Iterator[Write]:
    """Rows as JSON objects, one on each line. Where they came as JSON, each line is the one that
    came, with keys added.
    """

    def write(batch: RecordRows, added: Added) -> None:
        if batch.lines is None:
            rows = extended(batch.record, added).to_pylist()
            lines = (json.dumps(_plain(x), default=_spelled, ensure_ascii=False) for x in rows)
            file.write("".join(f"{line}\n" for line in lines).encode())
            return
        # Line breaks in JSON stand between values only; inside text they are written out.
        flat = pc.utf8_rtrim_whitespace(pc.replace_substring_regex(batch.lines, "[\r\n]", " "))
        opened = pc.utf8_slice_codeunits(flat, 0, -1)
        added_text = [
            part
            for name, column in added.items()
            for part in (f", {json.dumps(name)}: ", _as_json(column))
        ]
        file.write(_joined(pc.binary_join_element_wise(opened, *added_text, "}\n", "")))

    yield write


def extended(record: Any, added: Added) -> Any:
    """The record with the columns added at its end."""
    for name, values in added.items():
        record = record.append_column(name, pyarrow.array(values))
    return record


def _fitting(record: Any, schema: Any) -> Any:
    """The record, if its columns have the types of those before it."""
    for name, before, now in zip(schema.names, schema.types, record.schema.types, strict=True):
        if before != now:
            raise InvalidTypeError(
                f"{name} has type {now} here and {before} in the rows before: write each file to "
                "its own."
            )
    return pyarrow.RecordBatch.from_arrays(record.columns, schema=schema)


def _decoded(record: Any) -> Any:
    columns = [
        column.dictionary_decode() if pyarrow.types.is_dictionary(column.type) else column
        for column in record.columns
    ]
    return pyarrow.RecordBatch.from_arrays(columns, names=record.schema.names)


def _as_text(column: Any, name: str, decimal: str) -> Any:
    """A column as text, empty where there is nothing."""
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        text = pc.fill_null(column.cast(pyarrow.string()), "")
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        raise InvalidTypeError(
            f"{name} has type {column.type}, which cannot be written as text: write to .parquet."
        ) from None
    if decimal == "." or not pyarrow.types.is_floating(column.type):
        return text
    return pc.replace_substring(text, ".", decimal)


def _quoted(column: Any, special: str) -> Any:
    """Text in quotes where it holds something `special`."""
    needs = pc.match_substring_regex(column, special)
    if not pc.any(needs).as_py():
        return column
    wrapped = pc.binary_join_element_wise('"', pc.replace_substring(column, '"', '""'), '"', "")
    return pc.if_else(needs, wrapped, column)


def _as_json(column: NDArray[Any]) -> Any:
    """An added column as the text of its values in JSON."""
    if column.dtype.kind in "iu":
        return pyarrow.array(column).cast(pyarrow.string())
    if column.dtype.kind == "f" and not np.isinf(column).any():
        return pc.if_else(np.isnan(column), "null", pyarrow.array(column).cast(pyarrow.string()))
    return pyarrow.array(
        [json.dumps(_plain(value), ensure_ascii=False) for value in column.tolist()],
        pyarrow.string(),
    )


def _joined(lines: Any) -> Any:
    """The bytes of all lines; they are already contiguous."""
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int32)[
        lines.offset : lines.offset + len(lines) + 1
    ]
    return memoryview(lines.buffers()[2])[offsets[0] : offsets[-1]] if len(lines) else b""


def _plain(value: Any) -> Any:
    """The value with null for NaN, and text for what JSON has no word for."""
    if isinstance(value, dict):
        return {name: _plain(inside) for name, inside in value.items()}
    if isinstance(value, list):
        return [_plain(inside) for inside in value]
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else str(value)
    return value


def _spelled(value: Any) -> str:
    if isinstance(value, bytes):
        raise InvalidTypeError("Bytes cannot be written as JSON: write to .parquet.")
    return str(value)


WRITERS: Mapping[str, Callable[..., AbstractContextManager[Write]]] = {
    ".csv": delimited_writer,
    ".txt": delimited_writer,
    ".tsv": delimited_writer,
    ".parquet": parquet_writer,
    ".jsonl": json_writer,
    ".ndjson": json_writer,
    ".arrow": arrow_writer,
    ".feather": arrow_writer,
}

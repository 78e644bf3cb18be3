"""Record batches going out to CSV, Parquet, JSON lines and Arrow files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from math import isfinite, isnan
from typing import Any, BinaryIO

import numpy as np
import pyarrow
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError
from pacbound.sources.formats.records import RecordRows

# Rows in a row group of Parquet.
_GROUP = 2**20


class DelimitedWriter:
    """Rows as lines of text with a separator, quoted where they must be; numbers that were text
    stay as they stood, and others have the `decimal` sign of these.
    """

    def __init__(self, file: BinaryIO, *, separator: str, decimal: str = ".") -> None:
        self._file = file
        self._separator = separator
        self._decimal = decimal
        self._begun = False

    def write(self, batch: RecordRows, added: Mapping[str, NDArray[Any]]) -> None:
        record = extended(batch.record, added)
        if not self._begun:
            names = self._quoted(pyarrow.array(record.schema.names, pyarrow.string()))
            self._file.write(self._separator.join(names.to_pylist()).encode() + b"\n")
            self._begun = True
        columns = [
            self._quoted(self._spelled(column, name))
            for name, column in zip(record.schema.names, record.columns, strict=True)
        ]
        joined = pc.binary_join_element_wise(*columns, self._separator)
        ended = pc.binary_join_element_wise(joined, "\n", "")
        self._file.write(_joined(ended))

    def close(self) -> None:
        """Every line is written."""

    def _spelled(self, column: Any, name: str) -> Any:
        written = _as_text(column, name)
        if self._decimal == "." or not pyarrow.types.is_floating(column.type):
            return written
        return pc.replace_substring(written, ".", self._decimal)

    def _quoted(self, column: Any) -> Any:
        needs = pc.match_substring_regex(column, f'[{re.escape(self._separator)}"\r\n]')
        if not pc.any(needs).as_py():
            return column
        wrapped = pc.binary_join_element_wise('"', pc.replace_substring(column, '"', '""'), '"', "")
        return pc.if_else(needs, wrapped, column)


class ParquetWriter:
    """Rows in row groups, every column of the type it came with."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: Any = None
        self._held: list[Any] = []

    def write(self, batch: RecordRows, added: Mapping[str, NDArray[Any]]) -> None:
        record = extended(batch.record, added)
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._file, record.schema)
        self._held.append(_fitting(record, self._writer.schema))
        if sum(part.num_rows for part in self._held) >= _GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        # What fails to be written is not tried again when the writer is closed.
        held, self._held = self._held, []
        if held:
            self._writer.write_table(pyarrow.Table.from_batches(held), row_group_size=_GROUP)


class ArrowWriter:
    """Rows in record batches, as Feather has them; a file of these holds one dictionary, so columns
    go out without theirs.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._schema: Any = None
        self._writer: Any = None

    def write(self, batch: RecordRows, added: Mapping[str, NDArray[Any]]) -> None:
        record = _decoded(extended(batch.record, added))
        if self._writer is None:
            self._schema = record.schema
            self._writer = pyarrow.ipc.new_file(self._file, self._schema)
        self._writer.write_batch(_fitting(record, self._schema))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class JsonWriter:
    """Rows as JSON objects, one on each line. Where they came as JSON, each line is the one that
    came, with keys added.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, batch: RecordRows, added: Mapping[str, NDArray[Any]]) -> None:
        if batch.lines is None:
            rows = extended(batch.record, added).to_pylist()
            self._file.write(
                "".join(
                    f"{json.dumps(_plain(row), default=_spelled, ensure_ascii=False)}\n"
                    for row in rows
                ).encode()
            )
            return
        # Line breaks in JSON stand between values only; inside text they are written out.
        flat = pc.utf8_rtrim_whitespace(pc.replace_substring_regex(batch.lines, "[\r\n]", " "))
        opened = pc.utf8_slice_codeunits(flat, 0, -1)
        added_text = [
            part
            for name, column in added.items()
            for part in (f", {json.dumps(name)}: ", _as_json(column))
        ]
        self._file.write(_joined(pc.binary_join_element_wise(opened, *added_text, "}\n", "")))

    def close(self) -> None:
        """Every line is written."""


def extended(record: Any, added: Mapping[str, NDArray[Any]]) -> Any:
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


def _as_text(column: Any, name: str) -> Any:
    """A column as text, empty where there is nothing."""
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return pc.fill_null(column.cast(pyarrow.string()), "")
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        raise InvalidTypeError(
            f"{name} has type {column.type}, which cannot be written as text: write to .parquet."
        ) from None


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


WRITERS: Mapping[str, Callable[..., Any]] = {
    ".csv": DelimitedWriter,
    ".txt": DelimitedWriter,
    ".tsv": DelimitedWriter,
    ".parquet": ParquetWriter,
    ".jsonl": JsonWriter,
    ".ndjson": JsonWriter,
    ".arrow": ArrowWriter,
    ".feather": ArrowWriter,
}

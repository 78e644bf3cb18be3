"""Tables in text files with a separator (CSV, TSV), streamed in batches by Arrow.

Every column is read as text, so that what is not asked about goes out exactly as it came in. Numbers are taken from the text
where they are needed, in float64, correctly rounded.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError, MissingDependencyError
from pacbound.sources.files import Progress, require_columns
from pacbound.whole_files import whole_file

try:
    import pyarrow
    import pyarrow.csv
except ImportError:
    raise MissingDependencyError.for_extra("pyarrow", "cli", "Reading CSV") from None

from pacbound.sources import text

_BLOCK = 2**20
"""Arrow reads several blocks ahead, so larger ones would cost memory that grows with the file."""


@dataclass(frozen=True)
class TextBatch:
    """Some consecutive rows, each column as Arrow strings."""

    start: int
    record: Any

    @property
    def rows(self) -> int:
        return int(self.record.num_rows)

    def numbers(self, name: str, *, missing: bool = False) -> NDArray[np.float64]:
        return text.numbers(self._column(name), name, self.start, missing=missing)

    def flags(self, name: str) -> NDArray[np.bool_]:
        return text.flags(self._column(name), name, self.start)

    def names(self, name: str) -> NDArray[Any]:
        return text.names(self._column(name), name, self.start)

    def equal(self, left: str, right: str) -> NDArray[np.bool_]:
        return text.equal(self._column(left), self._column(right), (left, right), self.start)

    def classes(self, name: str) -> NDArray[Any]:
        return text.classes(self._column(name))

    def where(self, chosen: NDArray[np.bool_]) -> TextBatch:
        return TextBatch(self.start, self.record.filter(pyarrow.array(chosen)))

    def _column(self, name: str) -> Any:
        return self.record.column(self.record.schema.get_field_index(name))


class DelimitedFile:
    """A CSV or TSV file with a header, in UTF-8."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._separator = "\t" if path.suffix.lower() == ".tsv" else ","

    @cached_property
    def columns(self) -> Sequence[str]:
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                header = next(csv.reader(file, delimiter=self._separator), None)
        except (UnicodeDecodeError, csv.Error) as error:
            raise InvalidValueError(f"{self.path} is not a text table in UTF-8 ({error}). Save it as CSV in UTF-8.") from None
        if not header:
            raise InvalidValueError(f"{self.path} is empty: expected a header and rows.")
        return header

    def batches(self, columns: Sequence[str] | None = None, *, progress: Progress | None = None) -> Iterator[TextBatch]:
        if columns is not None:
            require_columns(self, columns)
        size = max(1, self.path.stat().st_size)
        with pyarrow.OSFile(str(self.path)) as file:
            try:
                start = 0
                for record in self._reader(file, columns):
                    yield TextBatch(start, record)
                    start += record.num_rows
                    if progress is not None:
                        progress(min(1.0, file.tell() / size))
            except pyarrow.ArrowInvalid as error:
                raise InvalidValueError(
                    f"{self.path} cannot be read as a table: {error}. Was it cut short, or is a separator unquoted?"
                ) from None

    @contextmanager
    def writer(self, path: Path, added: Sequence[str]) -> Iterator[_DelimitedWriter]:
        if path.suffix.lower() not in (".csv", ".tsv", ".txt"):
            raise InvalidValueError(f"{path}: the rows of {self.path.name} can be written to .csv or .tsv only.")
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        with whole_file(path) as file:
            header = pyarrow.array([*self.columns, *added])
            file.write(separator.join(text.quoted(header, separator).to_pylist()).encode() + b"\n")
            yield _DelimitedWriter(file, separator)

    def _reader(self, file: Any, columns: Sequence[str] | None) -> Any:
        return pyarrow.csv.open_csv(
            file,
            read_options=pyarrow.csv.ReadOptions(block_size=_BLOCK),
            parse_options=pyarrow.csv.ParseOptions(delimiter=self._separator, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(self.columns, pyarrow.string()),
                include_columns=None if columns is None else list(columns),
                strings_can_be_null=False,
            ),
        )


class _DelimitedWriter:
    def __init__(self, file: BinaryIO, separator: str) -> None:
        self._file = file
        self._separator = separator

    def write(self, batch: TextBatch, added: Mapping[str, NDArray[Any]]) -> None:
        numbers = [pyarrow.array(values).cast(pyarrow.string()) for values in added.values()]
        strings = [text.quoted(column, self._separator) for column in batch.record.columns]
        self._file.write(text.lines([*strings, *numbers], self._separator))

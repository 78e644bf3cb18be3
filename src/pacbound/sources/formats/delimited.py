"""Tables in text files with a separator (CSV, TSV), read by DuckDB with nothing guessed.

Every column is read as text, so that what is not asked about goes out exactly as it came in.
Numbers are taken from the text where they are needed, in float64, correctly rounded. A row of
another length than the header, a quote that is not closed or bytes that are not UTF-8 are errors: a
reader that mends them loses rows.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pacbound.errors import InvalidValueError
from pacbound.sources.embedded_duckdb import (
    OutOfMemory,
    QueryError,
    connected,
    file_list,
    identifier,
    in_batches,
    literal,
    out_of_memory,
    select,
    share_done,
)
from pacbound.sources.fingerprints import require_sound
from pacbound.sources.formats.stored import StoredTable
from pacbound.sources.notation import PLAIN, Notation, delimiter_hint
from pacbound.sources.paths import SEPARATORS, suffix_of

_ROWS = 2**16
# Buffers of 32 MB, the default, make the memory grow with the file until a few are in flight.
_FIXED = (
    "auto_detect=false, header=true, quote='\"', escape='\"', comment='', strict_mode=true, "
    "null_padding=false, buffer_size=4000000, nullstr=''"
)
_PROBLEMS = {
    "unterminated quote": "a quote is not closed there, or text follows one that is",
    "unicode": "it is not UTF-8. Save it as UTF-8",
    "state machine": (
        "lines end in different ways (\\n and \\r\\n), or a quote stands where none can. Write it "
        "again in one way"
    ),
    "Maximum line size": "a row is longer than 2 MB. Is a quote not closed",
}


class DelimitedFile(StoredTable):
    """A CSV or TSV file with a header, in UTF-8."""

    def __init__(self, path: Path, notation: Notation = PLAIN) -> None:
        super().__init__(path)
        self.decimal = notation.decimal or "."
        self._separator = notation.delimiter or SEPARATORS.get(suffix_of(path), ",")

    @cached_property
    def stored(self) -> Sequence[str]:
        opened = gzip.open if self.path.suffix.lower() == ".gz" else open
        try:
            with opened(self.path, "rt", encoding="utf-8-sig", newline="") as file:
                header = next(csv.reader(file, delimiter=self._separator), None)
        except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidValueError(
                f"{self.path} is not a text table in UTF-8 ({error}). Save it as CSV in UTF-8."
            ) from None
        if not header:
            raise InvalidValueError(f"{self.path} is empty: expected a header and rows.")
        return header

    @property
    def hint(self) -> str | None:
        """What to do if its columns are not the ones that are meant."""
        return delimiter_hint(self.stored, self._separator)

    @property
    def options(self) -> str:
        """How DuckDB is to read it: by place, because it takes C and c for one name."""
        columns = ", ".join(
            f"{literal(self.place_of(place))}: 'VARCHAR'" for place in range(len(self.stored))
        )
        return (
            f"{_FIXED}, allow_quoted_nulls=false, delim={literal(self._separator)}, "
            f"columns={{{columns}}}"
        )

    @staticmethod
    def place_of(place: int) -> str:
        """What a column is called inside DuckDB."""
        return f"c{place}"

    def records(
        self, columns: Sequence[str] | None
    ) -> Iterator[tuple[float, Any, Mapping[str, Any]]]:
        # Counting needs no Arrow.
        from pacbound.sources.formats.records import UnreadableError  # noqa: PLC0415

        # All of them by their places: a name may be there twice.
        stored = self.stored if columns is None else columns
        places = range(len(stored)) if columns is None else map(self.stored.index, stored)
        named = [f"coalesce({identifier(self.place_of(place))}, '')" for place in places]
        wanted = ", ".join(named) or "''"
        require_sound(self.path, separator=self._separator)
        with connected(ordered=True) as connection:
            try:
                # One thread: several begin in the middle, and take lines inside of quotes for rows.
                options = f"hive_partitioning=false, parallel=false, {self.options}"
                query = select(wanted, f"read_csv({file_list([self.path])}, {options})")
                for record in in_batches(connection.sql(query), _ROWS):
                    rows = record.select(range(len(stored))).rename_columns(stored)
                    yield share_done(connection), rows, {"decimal": self.decimal}
            except OutOfMemory as error:
                raise out_of_memory(str(self.path), error) from None
            except (QueryError, *UnreadableError) as error:
                raise InvalidValueError(
                    f"{self.path} cannot be read as a table: {_problem(str(error))}."
                ) from None


def _problem(said: str) -> str:
    line = re.search(r"CSV Error on Line: (\d+)", said)
    where = f"line {line[1]}: " if line else ""
    counts = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said)
    if counts:
        return (
            f"{where}Expected {counts[1]} columns, got {counts[2]}. Is it cut short, or a "
            "separator unquoted? Mend it"
        )
    known = next((words for sign, words in _PROBLEMS.items() if sign in said), None)
    return where + (known or said.splitlines()[0].rstrip("."))

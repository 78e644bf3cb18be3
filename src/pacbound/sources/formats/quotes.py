"""Whether delimited text is so plain that every reader sees the same rows in it.

DuckDB is lenient without a word: it leaves out the rows after a quote that is not closed, if a
literal quote stood before it; it drops separators at the end of a row, however many there are too
many; and it takes spaces beside quotes for nothing. Text in which quotes stand only around whole
values, and in which no row ends with a separator, has none of that. Other text is read once more by
Python's own reader, which is strict.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from typing import TextIO

import numpy as np

from pacbound.errors import InvalidValueError

_QUOTE = ord('"')
_ENDS = b"\r\n"


class Quotes:
    """Takes text in chunks, and knows whether it is plain."""

    def __init__(self, separator: str) -> None:
        self._beside = np.frombuffer(separator.encode() + _ENDS + b'"', dtype=np.uint8)
        self._row_end = re.compile(re.escape(separator.encode()) + rb"[\r\n]")
        self._separator = separator.encode()
        self._seen = 0
        self._last = b"\n"
        self.plain = True

    def take(self, chunk: bytes) -> None:
        """Look at the next bytes."""
        if not self.plain:
            return
        # With the byte before, so that nothing is hidden between two chunks.
        text = self._last + chunk
        self._last = text[-1:]
        if self._row_end.search(text):
            self.plain = False
        elif b'"' in text:
            self._look_at_quotes(text)

    def finish(self) -> None:
        """There are no more bytes."""
        self.take(b"\n")
        self.plain = self.plain and self._seen % 2 == 0

    def _look_at_quotes(self, text: bytes) -> None:
        """Quotes open and close by turns: what stands before the one and after the other?"""
        codes = np.frombuffer(text, dtype=np.uint8)
        places = np.flatnonzero(codes == _QUOTE)
        # The first byte was the last of the chunk before, and counted there if it is a quote: only
        # what comes after it is new.
        opens = places[(self._seen - (places[0] == 0)) % 2 :: 2]
        closes = places[(self._seen - (places[0] == 0) + 1) % 2 :: 2]
        before, after = opens[opens > 0] - 1, closes[closes < len(codes) - 1] + 1
        beside = np.concatenate([codes[before], codes[after]])
        self.plain = bool(np.isin(beside, self._beside).all())
        self._seen += int((places > 0).sum())


def require_same_rows(file: TextIO, separator: str, name: str) -> None:
    """Refuse text whose rows are not all of one length, or that readers take for different rows.

    `file` is opened with `newline=""`; `name` is for the message.
    """
    reader = csv.reader(file, delimiter=separator, strict=True)
    try:
        header = next(reader, [])
        for row in _not_blank(reader):
            if len(row) != len(header):
                raise InvalidValueError(
                    f"{name} cannot be read as a table: line {reader.line_num}: Expected "
                    f"{len(header)} columns, got {len(row)}. Is it cut short, or a separator "
                    "unquoted? Mend it."
                )
            if any(value.startswith(" ") and value.lstrip(" ").startswith('"') for value in row):
                raise InvalidValueError(
                    f"{name}, line {reader.line_num}: spaces stand before a quote, which some "
                    "take for a part of the value and some do not. Write it without them."
                )
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidValueError(
            f"{name} cannot be read as a table: line {reader.line_num}: {error}. A quote is not "
            "closed, or something follows one that is. Mend it, or write the file again."
        ) from None


def _not_blank(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    return (row for row in rows if row)

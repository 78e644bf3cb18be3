"""Whether delimited text is so plain that every reader sees the same rows in it.

DuckDB is lenient without a word: it leaves out the rows after a quote that is not closed, if a
literal quote stood before it; it drops separators at the end of a row, however many there are too
many; and it takes spaces beside quotes for nothing. Text in which quotes stand only around whole
values, and that has no more separators than its rows need, has none of that: rows that are too
short are refused by DuckDB itself. Other text is read once more by Python's own reader, which is
strict.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError

Places = NDArray[np.intp]

_QUOTE, _LINE_FEED, _RETURN = b'"\n\r'


class Quotes:
    """Takes text in chunks, and knows whether it is plain."""

    def __init__(self, separator: str) -> None:
        (self._separator,) = separator.encode()
        self._beside = np.array([self._separator, _LINE_FEED, _RETURN, _QUOTE], dtype=np.uint8)
        self._last = b"\n"
        self._quotes = self._separators = self._rows = 0
        self._width: int | None = None
        self._regular = True

    @property
    def plain(self) -> bool:
        """Whether all quotes are regular, and there are as many separators as the rows need."""
        needed = self._rows * (self._width or 0)
        return self._regular and self._quotes % 2 == 0 and self._separators == needed

    def take(self, chunk: bytes) -> None:
        """Look at the next bytes."""
        if not (self._regular and chunk):
            return
        # With the byte before, so that nothing is hidden between two chunks.
        text = self._last + chunk
        self._last = chunk[-1:]
        codes = np.frombuffer(text, dtype=np.uint8)
        separators = codes == self._separator
        ends = (codes == _LINE_FEED) | (codes == _RETURN)
        if b'"' in text or self._quotes % 2:
            quotes = codes == _QUOTE
            before = self._quotes - int(quotes[0])
            self._look_at_quotes(codes, np.flatnonzero(quotes), before)
            outside = (np.cumsum(quotes) + before) % 2 == 0
            separators &= outside
            ends &= outside
            self._quotes += int(np.count_nonzero(quotes[1:]))
        # A blank line is not a row.
        rows = ends[1:] & ~ends[:-1]
        if self._width is None and rows.any():
            # The header decides.
            first = int(rows.argmax())
            self._width = self._separators + int(np.count_nonzero(separators[1 : first + 1]))
        self._separators += int(np.count_nonzero(separators[1:]))
        self._rows += int(np.count_nonzero(rows))

    def finish(self) -> None:
        """There are no more bytes."""
        self.take(b"\n")

    def _look_at_quotes(self, codes: NDArray[np.uint8], places: Places, before: int) -> None:
        """Quotes open and close by turns: what stands before the one and after the other?"""
        opens, closes = places[before % 2 :: 2], places[(before + 1) % 2 :: 2]
        left, right = opens[opens > 0] - 1, closes[closes < len(codes) - 1] + 1
        beside = np.concatenate([codes[left], codes[right]])
        self._regular = bool(np.isin(beside, self._beside).all())


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

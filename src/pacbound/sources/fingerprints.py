"""The names of files by what is in them: SHA-256 of their bytes, taken beside the work on them.

What is named must be what was worked on: a file that changes meanwhile is refused, and so is a
compressed one that does not hold what its own checksum says, because DuckDB does not look at that.

DuckDB is also lenient with delimited text, without a word: it leaves out the rows after a quote
that is not closed, if a literal quote stood before it; it drops separators at the end of a row,
however many there are too many; and it takes spaces beside quotes for nothing. Text in which quotes
stand only around whole values, and that has no more separators than its rows need, has none of
that: rows that are too short are refused by DuckDB itself. Other text is read once more by Python's
own reader, which is strict.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.paths import SEPARATORS, suffix_of

_CHUNK = 2**20
Places: TypeAlias = NDArray[np.intp]
_QUOTE, _LINE_FEED, _RETURN = b'"\n\r'
_State: TypeAlias = tuple[int, int, int] | None


def file_fingerprint(path: str | os.PathLike[str], *, stop: Event | None = None) -> str:
    """SHA-256 of the bytes of a file: equal for equal files, whatever their names.

    Parameters
    ----------
    path
        The file.
    stop
        Ends the reading early once it is set. What is returned then names nothing.

    Returns
    -------
    str
        "sha256:" and 64 hexadecimal digits.

    Raises
    ------
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> _ = Path("empty.csv").write_bytes(b"")
    >>> file_fingerprint("empty.csv")
    'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
    """
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while (chunk := file.read(_CHUNK)) and not (stop is not None and stop.is_set()):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def require_sound(path: Path, *, separator: str | None = None, stop: Event | None = None) -> None:
    """Refuse damage that whoever reads the rows may not notice.

    That is a file compressed by gzip whose length or checksum is not that of what is in it, and
    delimited text that is not read as it stands: DuckDB leaves out rows and values without a word.
    Its values are separated by `separator`, or by what the file's name says.
    """
    is_packed, usual = path.suffix.lower() == ".gz", SEPARATORS.get(suffix_of(path))
    separator = None if usual is None else separator or usual
    if not is_packed and separator is None:
        return
    quotes = Quotes(separator or ",")
    try:
        with gzip.open(path) if is_packed else path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                if separator is not None:
                    quotes.take(chunk)
                if stop is not None and stop.is_set():
                    return
        if separator is None:
            return
        quotes.finish()
        if not quotes.plain:
            opened = gzip.open if is_packed else open
            with opened(path, "rt", encoding="utf-8-sig", newline="") as text:
                require_same_rows(text, separator, str(path))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidValueError(
            f"{path} is damaged ({str(error).rstrip('.')}). Write or copy it again."
        ) from None


@contextmanager
def fingerprinting(
    paths: Sequence[Path], notation: Notation = PLAIN
) -> Iterator[list[Future[str]]]:
    """The fingerprints to be, in the order of the files; leaving by an error does not wait for
    them.

    A file that was another one at the end than at the beginning is refused.
    """
    stop, before = Event(), [_state(path) for path in paths]
    with ThreadPoolExecutor(1) as pool:
        try:
            yield [pool.submit(_sound_fingerprint, path, notation, stop) for path in paths]
        except Exception:
            stop.set()
            # What went wrong may be no more than that.
            _require_unchanged(paths, before)
            raise
        except BaseException:
            stop.set()
            raise
    _require_unchanged(paths, before)


def _sound_fingerprint(path: Path, notation: Notation, stop: Event) -> str:
    require_sound(path, separator=notation.delimiter, stop=stop)
    return file_fingerprint(path, stop=stop)


def _require_unchanged(paths: Sequence[Path], before: Sequence[_State]) -> None:
    for path, state in zip(paths, before, strict=True):
        if _state(path) != state:
            raise InvalidValueError(
                f"{path} changed while it was counted: which rows were counted is unknown. Count "
                "it again."
            ) from None


def _state(path: Path) -> _State:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


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
        for row in filter(None, reader):  # A blank line is not a row.
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

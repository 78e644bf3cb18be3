"""The answers of an expert that were paid for, in a file that its owner can read and mend.

The first line says what the sample was drawn for, and holds the key that it was drawn by; each line
after it is one row and its answer, `{"row": 14, "answer": "2"}`, with null where the expert has
none for good. Lines are appended, and are on the disk before the next call is made: a process that
is killed loses at most the calls under way. What follows the last line break was cut short and is
dropped. Lines may be sorted, doubled or lost: rows whose line is lost are asked about again. A line
that is damaged, and one that contradicts another, is refused by its number.

The key stands here and nowhere else: whoever draws again after answers were seen, because they did
not please, has had two tries.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from pacbound.atomic_files import as_path
from pacbound.documents import Json, shown
from pacbound.errors import InvalidValueError, UnwritableFileError
from pacbound.file_locks import taken
from pacbound.procedures.batch import KEY_BYTES, is_key
from pacbound.tally.classes import Class

FORMAT: Final = "pacbound-answers 1"

# What the sample was drawn for, as a message calls it.
_DRAWN_FOR: Final = {
    "records": "the number of records",
    "table": "the scores and the fast answers",
    "xi": "xi",
    "delta": "delta",
    "looks": "the number of looks",
    "sample": "the size of the sample",
    "whole_ties": "whether ties are split",
    "classes": "the list of classes",
    "missing": "what stands for a missing answer",
}


class AnswersFile:
    """The file of one batch, open for appending by one process at a time; without a path nothing
    is kept.

    Attributes
    ----------
    key : str
        What the sample follows from: that of the file, or a new one.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, asked: Mapping[str, Json], key: str | None
    ) -> None:
        self.key = key or token_hex(KEY_BYTES)
        self.path, self._file = None if path is None else as_path(path), None
        self._lines: list[bytes] = []
        self._end = 0
        if self.path is None:
            return
        with _explained(self.path):
            self._file = FileIO(self.path, "a+")
        try:
            self._take_up(self.path, self._file, {"format": FORMAT, **asked}, key)
        except BaseException:
            self._file.close()
            raise

    def _take_up(
        self, path: Path, file: FileIO, asked: Mapping[str, Json], key: str | None
    ) -> None:
        if not taken(file, wait=False):
            raise InvalidValueError(
                f"{path} is in use by another process, which pays for the same answers: wait for "
                "it, or end it."
            )
        data = path.read_bytes()
        # What follows the last break was cut short.
        *self._lines, _ = data.split(b"\n")
        self._end = sum(len(line) + 1 for line in self._lines)
        if not data:
            self._write({**asked, "key": self.key})
            return
        header = _header(path, data)
        for name, value in asked.items():
            if name in _DRAWN_FOR and header.get(name) != value:
                was, now = shown(header.get(name)), shown(value)
                beside = "" if name == "table" else f": it was {was} and is {now}"
                raise InvalidValueError(
                    f"{path} is of another batch, as {_DRAWN_FOR[name]} changed{beside}. What the "
                    "sample was drawn for stays: pass the same, or name another file for another "
                    "batch. To draw again for the same records because the answers did not please "
                    "voids the guarantee."
                )
        if key is not None and key != header["key"]:
            raise InvalidValueError(f"{path} has another key than {key}: leave key out.")
        self.key = str(header["key"])

    def read(self) -> Iterator[tuple[int, Class | None, str]]:
        """The rows and answers that it held when it was opened, and where each of them stands."""
        for place, line in enumerate(self._lines[1:], start=2):
            where = f"{self.path}, line {place}"
            if line.strip():
                yield *_entry(line, where), where

    def forget(self) -> None:
        """Keep the lines no longer that it held when it was opened."""
        self._lines = []

    def append(self, answers: Mapping[int, Class | None]) -> None:
        """Write down answers by their rows; they are on the disk when this returns."""
        self._write(*({"row": row, "answer": answer} for row, answer in answers.items()))

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _write(self, *lines: Mapping[str, Json]) -> None:
        if self._file is None or self.path is None or not lines:
            return
        data = b"".join(json.dumps(line, allow_nan=False).encode() + b"\n" for line in lines)
        end = self._end + len(data)
        with _explained(self.path):
            # Half a line may stand there, of a crash or of a disk that was full.
            self._file.truncate(self._end)
            while data:
                data = data[os.write(self._file.fileno(), data) :]
            os.fsync(self._file.fileno())
        self._end = end


def read_header(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """What the batch of the file at `path` is; None if there is no file, or it was never begun."""
    target = as_path(path)
    data = target.read_bytes() if target.is_file() else b""
    return _header(target, data) if data else None


def _header(path: Path, data: bytes) -> dict[str, Any]:
    first, whole, _ = data.partition(b"\n")
    found = _parsed(first) if whole else None
    if found is None or found.get("format") != FORMAT or not is_key(found.get("key")):
        raise InvalidValueError(
            f"{path} is not a file of answers, or its first line, with the key of the sample, was "
            "cut short: restore it, or name another file. If nothing was asked yet, delete it."
        )
    return found


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _entry(line: bytes, where: str) -> tuple[int, Class | None]:
    found = _parsed(line)
    row, answer = (found or {}).get("row"), (found or {}).get("answer")
    sound = type(row) is int and row >= 0 and type(answer) in (int, str, type(None))
    if found is None or set(found) != {"row", "answer"} or not sound:
        raise InvalidValueError(
            f"{where} is damaged: {line[:40].decode('ascii', 'replace')!r}. Expected for example "
            '{"row": 14, "answer": "dog"}. Mend the line, or delete it: its row is asked again.'
        )
    return int(row or 0), answer


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnwritableFileError(
            error.errno, f"the answers cannot be written: {error.strerror}", str(path)
        ) from None

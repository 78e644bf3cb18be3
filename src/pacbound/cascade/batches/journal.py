"""What was paid for, on disk: an append-only file of the slow model's answers.

The first line says which batch it belongs to and holds the key of its permutation; each line after
it holds some rows and their answers. A line is written in one piece and reaches the disk before the
next call is made, so that a process that is killed loses at most the calls under way. A last line
that was cut short is dropped. Whoever takes up a batch again takes up its permutation: a second
one, after answers to the first were seen, would void the guarantee. So would other answers of the
fast model, corrected by what was seen of the slow one's. They may be called by other names only
where the journal says that the names were refused, because the slow model uses none of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from pacbound.documents import Json, shown
from pacbound.errors import InvalidValueError, UnwritableFileError
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.stats.permutations import is_key

try:
    import fcntl
except ImportError:  # Windows has no advisory locks of this kind.
    fcntl = None  # type: ignore[assignment]

FORMAT: Final = "pacbound-batch"
SCHEMA: Final = 1

FIXED: Final = ("rows", "records", "xi", "delta", "sample", "looks", "whole_ties")
"""What the sample was drawn for. Nothing of it may change once answers were seen."""

REFUSED: Final = "refused"
"""In place of a name for the fast model's classes: the slow model uses none of them."""

_NAMED: Final = {
    "rows": "the scores or the fast answers",
    "records": "the number of records",
    "sample": "the size of the sample",
    "looks": "the number of looks",
    "whole_ties": "whether ties are split",
}

Answers = Sequence[int | str | None]


class Journal:
    """The journal of one batch, open for appending; one process at a time."""

    def __init__(self, path: Path, file: int, header: Mapping[str, Json]) -> None:
        self.path = path
        self.header = header
        self._file = file
        self._end = 0
        self._refused = False
        self._entries: list[tuple[list[int], list[int | str | None]]] = []

    @classmethod
    def open(cls, path: str | os.PathLike[str], header: Mapping[str, Json]) -> Self:
        """The journal at `path`, with the header that it already has, or a new one with `header`.

        One that belongs to another batch, or to other limits, is refused, and so is one that
        another process has open.
        """
        target = Path(path)
        try:
            file = os.open(target, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise UnwritableFileError(
                error.errno, f"the journal cannot be written: {error.strerror}", str(target)
            ) from None
        try:
            _lock(file, target)
            journal = cls(target, file, header)
            journal._take_up(header)
        except BaseException:
            os.close(file)
            raise
        return journal

    def entries(self) -> Iterator[tuple[list[int], list[int | str | None]]]:
        """The rows and answers that it held when it was opened."""
        yield from self._entries

    def append(self, rows: Sequence[int], answers: Answers) -> None:
        """Write down what was answered; it is on the disk when this returns."""
        self._write({"rows": list(rows), "answers": list(answers)})
        self._refused = False

    def refuse_names(self) -> None:
        """Write down that the fast answers are not named as the slow model names its own: as long
        as no more answers are kept, the batch may be taken up again under other names.
        """
        if not self._refused:
            self._write({"names": REFUSED})
            self._refused = True

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_up(self, header: Mapping[str, Json]) -> None:
        lines = read_lines(self.path)
        if not lines:
            self._write({"format": FORMAT, "schema": SCHEMA, **header})
            return
        self._end = sum(size for size, _ in lines)
        os.ftruncate(self._file, self._end)
        self.header = lines[0][1]
        _require_same(self.path, self.header, header)
        names = self.header.get("names")
        for place, (_, line) in enumerate(lines[1:], start=2):
            if "names" in line:
                self._refused = line["names"] == REFUSED
                names = names if self._refused else line["names"]
            else:
                self._entries.append(_entry(line, f"{self.path}, line {place}"))
                self._refused = False
        if names != header["names"]:
            self._rename(header["names"])

    def _rename(self, names: Json) -> None:
        """Go on under other names of the fast answers, if those so far were refused."""
        if not self._refused:
            raise InvalidValueError(
                f"{self.path} belongs to another batch: the fast model's answers are not those "
                "that its sample was drawn for. They may not change once answers of the slow model "
                "were seen: pass them as they were, or name another journal for another batch."
            )
        self._write({"names": names})
        self._refused = False

    def _write(self, line: Mapping[str, Json]) -> None:
        data = json.dumps(line, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"
        end = self._end + len(data)
        try:
            # Half a line may stand there, of a disk that was full: this one must not run into it.
            os.ftruncate(self._file, self._end)
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
            self._end = end
        except OSError as error:
            raise UnwritableFileError(
                error.errno, f"the journal cannot be written: {error.strerror}", str(self.path)
            ) from None


def read_header(path: str | os.PathLike[str]) -> Mapping[str, Json] | None:
    """What the journal at `path` belongs to; None if there is none, or it was never begun."""
    if not Path(path).exists():
        return None
    lines = read_lines(Path(path))
    return lines[0][1] if lines else None


def read_lines(path: Path) -> list[tuple[int, dict[str, Json]]]:
    """The whole lines of a journal with their sizes in bytes; one at the end that was cut short is
    left out.
    """
    data = path.read_bytes()
    pieces = data.split(b"\n")
    # What follows the last line break was cut short, or is nothing.
    whole, found = pieces[:-1], list[tuple[int, dict[str, Json]]]()
    for place, piece in enumerate(whole):
        line = None
        with suppress(ValueError, RecursionError):
            line = json.loads(piece)
        if not isinstance(line, dict):
            # A disk that lost power may have kept the length of the last line and not its bytes.
            if place and place == len(whole) - 1 and not pieces[-1] and not piece.strip(b"\0"):
                break
            raise InvalidValueError(
                f"{path} is not a journal of a batch, or is damaged in line {place + 1}: "
                f"{shown(piece[:40].decode('ascii', 'replace'))}. Name another file, or restore it."
            )
        if not place and (line.get("format") != FORMAT or line.get("schema") != SCHEMA):
            raise InvalidValueError(
                f"{path} is not a journal of a batch that this version can read: its format is "
                f"{shown(line.get('format'))}. Name another file."
            )
        if not place and not isinstance(line.get("columns", {}), dict):
            raise InvalidValueError(
                f"{path} is damaged in line 1: its columns are {shown(line['columns'])}. Restore "
                "it."
            )
        found.append((len(piece) + 1, line))
    begun = f'{{"format": "{FORMAT}"'.encode()
    if not found and not begun.startswith(data[: len(begun)]):
        # It would be overwritten.
        raise InvalidValueError(f"{path} is not a journal of a batch. Name another file.")
    return found


def _require_same(path: Path, stored: Mapping[str, Json], wanted: Mapping[str, Json]) -> None:
    for name in FIXED:
        if stored.get(name) != wanted[name]:
            raise InvalidValueError(
                f"{path} belongs to another batch: {_NAMED.get(name, name)} was "
                f"{shown(stored.get(name))} when its sample was drawn and is "
                f"{shown(wanted[name])} now. What was fixed then stays: pass the same, or name "
                "another journal for another batch. To draw again for the same records after "
                "answers were seen voids the guarantee."
            )
    if not is_key(stored.get("key")):
        raise InvalidValueError(f"{path} has lost the key of its permutation: it cannot be used.")


def _entry(line: Mapping[str, Json], where: str) -> tuple[list[int], list[int | str | None]]:
    rows, answers = line.get("rows"), line.get("answers")
    if (
        not isinstance(rows, list)
        or not isinstance(answers, list)
        or len(rows) != len(answers)
        or any(type(row) is not int or not 0 <= row <= LARGEST_COUNT for row in rows)
        or len(set(rows)) != len(rows)
        or any(type(answer) not in (int, str, type(None)) for answer in answers)
    ):
        raise InvalidValueError(
            f"{where} is damaged: expected rows, each once, and as many answers."
        )
    return rows, answers


def _lock(file: int, path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InvalidValueError(
            f"{path} is in use by another process, which pays for the same answers: wait for it, "
            "or end it."
        ) from None

"""What was paid for, on disk: an append-only file of the slow model's answers.

The first line says which batch it belongs to and holds the key of its permutation; each line after
it holds some rows and their answers. A line is written in one piece and reaches the disk before the
next call is made, so that a process that is killed loses at most the calls under way. A last line
that was cut short is dropped. Every line ends with a digest of itself and of the digest before it,
so that a line that was changed, moved or taken out of the middle is found out; a digest is not a
signature.

Whoever takes up a batch again takes up its permutation: a second one, after answers to the first
were seen, would void the guarantee. So a first line that was cut short is refused. Other answers of
the fast model, corrected by what was seen of the slow one's, would void it, too. They may be called
by other names only where the journal says that the names were refused, because the slow model uses
none of them, and where they are few: which rows have equal answers stays fixed, and among many
classes that fixes next to nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Final, NoReturn, Self

from pacbound import documents
from pacbound.atomic_files import as_path
from pacbound.documents import Json, shown
from pacbound.errors import InvalidTypeError, InvalidValueError, UnwritableFileError
from pacbound.file_locks import taken
from pacbound.procedures.batch import is_key
from pacbound.stats.arguments import LARGEST_COUNT

FORMAT: Final = "pacbound-batch"
SCHEMA: Final = 1

# What the sample was drawn for. Nothing of it may change once answers were seen.
FIXED: Final = ("rows", "records", "xi", "delta", "sample", "looks", "whole_ties")

# The last key of every line: SHA-256 of the digest before it and of the rest of the line.
DIGEST: Final = "digest"

# In place of a name for the fast model's classes: the slow model uses none of them.
REFUSED: Final = "refused"

_NAMED: Final = {
    "rows": "the scores or the fast answers",
    "records": "the number of records",
    "sample": "the size of the sample",
    "looks": "the number of looks",
    "whole_ties": "whether ties are split",
}

Answers = Sequence[int | str | None]


class Journal:
    """The journal of one batch, open for appending; one process at a time.

    Attributes
    ----------
    header : dict
        What its first line says: what the batch is, and the key of its sample.
    entries : list
        The rows and answers that it held when it was opened.
    """

    def __init__(self, path: Path, file: FileIO) -> None:
        self.header: Mapping[str, Json] = {}
        self.entries: list[tuple[list[int], list[int | str | None]]] = []
        self._path, self._file, self._end = path, file, 0
        self._digest: str | None = None
        self._refused = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        header: Mapping[str, Json],
        *,
        new_key: Callable[[], str],
        few_names: bool,
    ) -> Self:
        """The journal at `path`, with the header that it already has, or a new one with `header`
        and a new key.

        One that belongs to another batch, or to other limits, is refused, and so is one that
        another process has open. `few_names` says that the fast answers are so few that they may
        be called by other names.
        """
        target = as_path(path)
        key = None if target.exists() else new_key()
        with _explained(target):
            file = FileIO(target, "a+")
        try:
            if not taken(file, wait=False):
                raise InvalidValueError(
                    f"{target} is in use by another process, which pays for the same answers: wait "
                    "for it, or end it."
                )
            journal = cls(target, file)
            if lines := read_lines(target):
                journal._take_up(lines, header, few_names=few_names)
            else:
                journal._begin({**header, "key": key or new_key()})
        except BaseException:
            file.close()
            raise
        return journal

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
        self._file.close()

    def __reduce__(self) -> NoReturn:
        raise InvalidTypeError(
            f"A session with a journal cannot be copied or pickled: only one may write to "
            f"{self._path}. Close it, and make it again with the same journal where you need it: "
            "it goes on where it was."
        )

    def _begin(self, header: Mapping[str, Json]) -> None:
        self.header = header
        try:
            self._write({"format": FORMAT, "schema": SCHEMA, **header})
        except UnwritableFileError:
            # Nothing was asked yet: half a header would only be refused.
            with suppress(OSError):
                self._file.truncate(0)
            raise

    def _take_up(
        self, lines: Sequence[JournalLine], header: Mapping[str, Json], *, few_names: bool
    ) -> None:
        self._end = sum(line.size for line in lines)
        self._digest = lines[-1].digest
        self._file.truncate(self._end)
        self.header = lines[0].said
        _require_same(self._path, self.header, header)
        names = self.header.get("names")
        for place, line in enumerate((each.said for each in lines[1:]), start=2):
            if "names" in line:
                self._refused = line["names"] == REFUSED
                names = names if self._refused else line["names"]
            else:
                self.entries.append(_entry(line, f"{self._path}, line {place}"))
                self._refused = False
        if names != header["names"]:
            self._rename(header["names"], few_names=few_names)

    def _rename(self, names: Json, *, few_names: bool) -> None:
        """Go on under other names of the fast answers, if those so far were refused."""
        if not self._refused or not few_names:
            many = " Only few classes may be named anew." if self._refused else ""
            raise InvalidValueError(
                f"{self._path} belongs to another batch: the fast model's answers are not those "
                "that its sample was drawn for. They may not change once answers of the slow model "
                "were seen: pass them as they were, or name another journal for another batch."
                f"{many}"
            )
        self._write({"names": names})
        self._refused = False

    def _write(self, line: Mapping[str, Json]) -> None:
        digest = _chained(self._digest, line)
        sealed = {**line, DIGEST: digest}
        data = json.dumps(sealed, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"
        end = self._end + len(data)
        if self._file.closed:
            raise InvalidValueError(f"{self._path} was closed: make the session again to go on.")
        with _explained(self._path):
            # Half a line may stand there, of a disk that was full: this one must not run into it.
            self._file.truncate(self._end)
            while data:
                data = data[os.write(self._file.fileno(), data) :]
            os.fsync(self._file.fileno())
        self._end, self._digest = end, digest


def read_header(path: str | os.PathLike[str]) -> Mapping[str, Json] | None:
    """What the journal at `path` belongs to; None if there is none, or it was never begun."""
    if not as_path(path).exists():
        return None
    lines = read_lines(Path(path))
    return lines[0].said if lines else None


@dataclass(frozen=True)
class JournalLine:
    """What a line of a journal says, without its digest, and how many bytes it takes."""

    said: dict[str, Json]
    digest: str
    size: int


def read_lines(path: Path) -> list[JournalLine]:
    """The whole lines of a journal; one at the end that was cut short is left out, and none may
    have been changed.
    """
    data = path.read_bytes()
    # What follows the last line break was cut short, or is nothing.
    *whole, rest = data.split(b"\n")
    found = list[JournalLine]()
    for place, piece in enumerate(whole):
        line = _parsed(piece)
        if line is None:
            # A disk that lost power may have kept the length of the last line and not its bytes.
            if place and place == len(whole) - 1 and not rest and b"\0" in piece:
                break
            raise InvalidValueError(
                f"{path} is not a journal of a batch, or is damaged in line {place + 1}: "
                f"{shown(piece[:40].decode('ascii', 'replace'))}. Name another file, or restore it."
            )
        if not place:
            _require_header(path, line)
        digest, before = line.pop(DIGEST, None), found[-1].digest if found else None
        expected = _chained(before, line)
        if digest != expected:
            raise InvalidValueError(
                f"{path} was changed after it was written: the digest in line {place + 1} is not "
                "that of this line and those before it. Restore an intact copy."
            )
        found.append(JournalLine(line, expected, len(piece) + 1))
    if not found and data:
        raise _headless(path, data)
    return found


def _parsed(piece: bytes) -> dict[str, Json] | None:
    with suppress(ValueError, RecursionError):
        line = json.loads(piece)
        return line if isinstance(line, dict) else None
    return None


def _require_header(path: Path, line: Mapping[str, Json]) -> None:
    if line.get("format") != FORMAT or line.get("schema") != SCHEMA:
        raise InvalidValueError(
            f"{path} is not a journal of a batch that this version can read: its format is "
            f"{shown(line.get('format'))}. Name another file."
        )
    if not isinstance(line.get("columns", {}), dict):
        raise InvalidValueError(
            f"{path} is damaged in line 1: its columns are {shown(line['columns'])}. Restore it."
        )


def _headless(path: Path, data: bytes) -> InvalidValueError:
    """Why a file without a whole line is refused."""
    begun = f'{{"format": "{FORMAT}"'.encode()
    if not begun.startswith(data[: len(begun)]):
        # It would be overwritten.
        return InvalidValueError(f"{path} is not a journal of a batch. Name another file.")
    return InvalidValueError(
        f"{path} is damaged: its first line, with the key of the sample, is cut short. Restore an "
        "intact copy; to draw again after answers were seen voids the guarantee. If nothing was "
        "asked yet, delete the file and begin again."
    )


def _chained(before: str | None, line: Mapping[str, Json]) -> str:
    """The digest of a line that follows another with the digest `before`."""
    return documents.digest([before, dict(line)])


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


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnwritableFileError(
            error.errno, f"the journal cannot be written: {error.strerror}", str(path)
        ) from None

"""A table that comes in over standard input: kept in a temporary file and read as files are, or
delivered line by line.

What is kept is read to its end first, because rows are looked at more than once and named by the
bytes that they came in. The file is removed when the process ends. Rows that are delivered line by
line, from CSV with a heading or from JSON objects, come as they arrive, so that whoever reads them
can act at once. Values are text, as in the files of these formats, and read by the same rules.
"""

from __future__ import annotations

import atexit
import csv
import json
import os
import select
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, BinaryIO, Final, Literal, TypeAlias, get_args

from pacbound import atomic_files
from pacbound.errors import InvalidValueError
from pacbound.sources.batches import require_among
from pacbound.sources.notation import PLAIN, Notation, delimiter_hint

# What stands for it among the names of files.
STANDARD_INPUT: Final = atomic_files.STANDARD_INPUT

# What it may hold; each is the end of a file's name.
Format = Literal["csv", "tsv", "jsonl", "parquet", "arrow", "npz"]

# The wanted values of a row from its line.
_Parse: TypeAlias = Callable[[str], list[str | None]]

# How the formats that are not delimited text begin.
_SIGNS: Final = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"PK\x03\x04": ".npz",
    b"{": ".jsonl",
    b"[": ".json",
}

_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 2**16
# Seconds.
_TURN: Final = 0.5


def standard_input(format: Format | None = None) -> Path:  # noqa: A002
    """The file that keeps what comes in over standard input; in `format`, or in the one that its
    first bytes tell: CSV, if they tell no other.
    """
    if format is not None and format not in get_args(Format):
        raise InvalidValueError(
            f"format={format!r} is not known: expected one of {', '.join(get_args(Format))}."
        )
    source = getattr(sys.stdin, "buffer", None)
    if source is None or sys.stdin.isatty():
        raise InvalidValueError(
            "- stands for standard input, and nothing is fed into it: add < rows.csv, or name a "
            "file."
        )
    folder = mkdtemp(prefix="pacbound-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    draft = Path(folder) / "draft"
    with draft.open("wb") as file:
        while chunk := read_when_there(source):
            file.write(chunk)
    with draft.open("rb") as file:
        suffix = f".{format}" if format is not None else _suffix(file)
        file.seek(0)
        packed = ".gz" if file.read(len(_GZIP)) == _GZIP else ""
    return draft.rename(draft.with_name(f"standard-input{suffix}{packed}"))


def read_when_there(source: Any) -> bytes:
    """The next bytes of an input, as soon as there are some; none at its end.

    A signal that comes just before a read blocks is noticed only after it, so the input is waited
    for in turns.
    """
    try:
        descriptor = source.fileno()
    except OSError:
        # Not an input of the system, as in a test.
        return bytes(source.read(_CHUNK))
    while os.name == "posix" and not select.select([descriptor], [], [], _TURN)[0]:
        pass
    return os.read(descriptor, _CHUNK)


def _suffix(file: BinaryIO) -> str:
    start = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((suffix for sign, suffix in _SIGNS.items() if start.startswith(sign)), ".csv")


def stream_batches(
    read: Callable[[], bytes], columns: Sequence[str], notation: Notation = PLAIN
) -> Iterator[Any]:
    """The rows of a stream in batches, whatever has arrived at a time.

    The first line decides: a stream that begins with `{` is JSON, one object on each line; else it
    is CSV, and its first line names the columns. A row stands on one line.

    Parameters
    ----------
    read
        Gives some bytes as soon as there are any, and none at the end.
    columns
        The columns that are needed.
    notation
        How the rows are written.

    Yields
    ------
    Batch
        Consecutive rows.

    Raises
    ------
    InvalidValueError
        If a line is not a row, or a column is not there. All rows before it were delivered.
    MissingDependencyError
        If PyArrow is not installed.
    """
    # Loaded here, because whoever reads arrays needs no Arrow.
    import pyarrow  # noqa: PLC0415

    from pacbound.sources.formats.records import RecordRows  # noqa: PLC0415

    parse: _Parse | None = None
    start, number = 0, 0
    for lines in _lines(read):
        rows: list[list[str | None]] = []
        problem: InvalidValueError | None = None
        for line in lines:
            number += 1
            try:
                if not line.strip():
                    continue
                if parse is None and not line.lstrip().startswith("{"):
                    parse = _delimited(line, columns, notation)
                    continue
                parse = parse or _objects(columns, notation)
                rows.append(parse(line))
            except (InvalidValueError, ValueError, csv.Error) as error:
                problem = InvalidValueError(f"standard input, line {number}: {error}")
                break
        if rows:
            arrays = [pyarrow.array(column, pyarrow.string()) for column in zip(*rows, strict=True)]
            record = pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))
            yield RecordRows(start, record, is_text=True, decimal=notation.decimal or ".")
            start += len(rows)
        if problem is not None:
            raise problem


def _lines(read: Callable[[], bytes]) -> Iterator[list[str]]:
    """Whole lines, as they arrive."""
    rest, first = b"", True
    while chunk := read():
        *whole, rest = (rest + chunk).split(b"\n")
        if whole:
            if first:
                whole[0], first = whole[0].removeprefix(b"\xef\xbb\xbf"), False
            yield [_text(line) for line in whole]
    if rest:
        yield [_text(rest.removeprefix(b"\xef\xbb\xbf") if first else rest)]


def _text(line: bytes) -> str:
    # What is not UTF-8 cannot be a number, a truth value or a known class, and is refused later.
    return line.removesuffix(b"\r").decode("utf-8", "replace")


def _delimited(heading: str, columns: Sequence[str], notation: Notation) -> _Parse:
    usual = "\t" if "\t" in heading and "," not in heading else ","
    separator = notation.delimiter or usual
    names = _fields(heading, separator)
    require_among("the heading", names, columns, lambda: delimiter_hint(names, separator))
    places = [names.index(name) for name in columns]

    def parse(line: str) -> list[str | None]:
        fields = _fields(line, separator)
        if len(fields) != len(names):
            raise InvalidValueError(
                f"{len(fields)} values where the heading has {len(names)}: expected a row on each "
                "line."
            )
        return [fields[place] for place in places]

    return parse


def _fields(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator, strict=True))


def _objects(columns: Sequence[str], notation: Notation) -> _Parse:
    if notation.is_about_text:
        raise InvalidValueError(
            "delimiter and decimal are about delimited text, and this is JSON: leave them out."
        )

    def parse(line: str) -> list[str | None]:
        # Numbers stay the text that they are: it is read by the one rule for text.
        row = json.loads(
            line, object_pairs_hook=_unique, parse_float=str, parse_int=str, parse_constant=str
        )
        if not isinstance(row, dict):
            raise InvalidValueError("expected one JSON object on each line.")
        return [_value(row.get(name), name) for name in columns]

    return parse


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise InvalidValueError("a key stands there twice.")
    return row


def _value(value: Any, name: str) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        raise InvalidValueError(f"{name} is a list or an object: expected one value.")
    return None if value is None else str(value)

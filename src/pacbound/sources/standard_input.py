"""A table that comes in over standard input: kept in a temporary file, and read as files are.

It is read to its end first, because rows are looked at more than once and named by the bytes that
they came in. The file is removed when the process ends.
"""

from __future__ import annotations

import atexit
import os
import select
import shutil
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, BinaryIO, Final, Literal, get_args

from pacbound import output_files
from pacbound.errors import InvalidValueError

STANDARD_INPUT: Final = output_files.STANDARD_INPUT
"""What stands for it among the names of files."""

Format = Literal["csv", "tsv", "jsonl", "parquet", "arrow", "npz"]
"""What it may hold; each is the end of a file's name."""

_SIGNS: Final = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"PK\x03\x04": ".npz",
    b"{": ".jsonl",
    b"[": ".json",
}
"""How the formats that are not delimited text begin."""

_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 2**16
_TURN: Final = 0.5
"""Seconds."""


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

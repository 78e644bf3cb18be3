"""Tables in files, whatever their format: their columns, their rows in batches, and how rows go out again.

Nothing here knows what the columns mean. A file that cannot be read as a table raises, naming the file and the remedy; an output
file appears when it is complete, or not at all.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError

Progress = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1."""

_CHUNK = 2**20


class Batch(Protocol):
    """Some consecutive rows of a table."""

    @property
    def start(self) -> int:
        """The row of the table that it begins with, counted from 0."""
        ...

    @property
    def rows(self) -> int: ...

    def numbers(self, name: str, *, missing: bool = False) -> NDArray[Any]:
        """A column of numbers, not yet checked to be scores; with `missing`, NaN where there is none."""
        ...

    def flags(self, name: str) -> NDArray[Any]:
        """A column of truth values."""
        ...

    def names(self, name: str) -> NDArray[Any]:
        """A column of names or integers."""
        ...

    def equal(self, left: str, right: str) -> NDArray[np.bool_]:
        """Where two columns hold the same class."""
        ...

    def classes(self, name: str) -> NDArray[Any]:
        """A column of classes, masked or NaN where one is missing."""
        ...

    def where(self, chosen: NDArray[np.bool_]) -> Batch:
        """Only the chosen rows."""
        ...


class Writer(Protocol):
    """Takes the rows of a new table, batch by batch."""

    def write(self, batch: Any, added: Mapping[str, NDArray[Any]]) -> None:
        """Write a batch of the source table with columns added."""
        ...


class TableFile(Protocol):
    """A table in a file."""

    path: Path

    @property
    def columns(self) -> Sequence[str]:
        """The names of its columns."""
        ...

    def batches(self, columns: Sequence[str] | None = None, *, progress: Progress | None = None) -> Iterator[Batch]:
        """Its rows in order, all columns or only some."""
        ...

    def writer(self, path: Path, added: Sequence[str]) -> AbstractContextManager[Writer]:
        """A new file of the same format, with columns added; it appears at `path` when all went well."""
        ...


def open_table(path: str | os.PathLike[str]) -> TableFile:
    """The table in `path`: CSV (.csv, .tsv, .txt) or NumPy arrays (.npz)."""
    # Each format is loaded only when a file asks for it: CSV needs pyarrow, .npz does not.
    from pacbound.sources.delimited import DelimitedFile  # noqa: PLC0415
    from pacbound.sources.npz import NpzFile  # noqa: PLC0415

    file = Path(path)
    text: dict[str, Callable[[Path], TableFile]] = dict.fromkeys((".csv", ".tsv", ".txt"), DelimitedFile)
    readers = {**text, ".npz": NpzFile}
    if not file.exists():
        raise InvalidValueError(f"{file} does not exist. Check the path.")
    if file.is_dir() or file.suffix.lower() not in readers:
        raise InvalidValueError(f"{file} is not a table that can be read here: expected {', '.join(readers)}.")
    return readers[file.suffix.lower()](file)


def require_columns(table: TableFile, names: Sequence[str]) -> None:
    """Refuse columns that the table does not have, or has twice."""
    for name in names:
        times = list(table.columns).count(name)
        if times != 1:
            listed = ", ".join(map(repr, table.columns[:20]))
            problem = "has no column" if times == 0 else f"has {times} columns named"
            raise InvalidValueError(f"{table.path} {problem} {name!r}. Its columns: {listed}.")


def file_fingerprint(path: str | os.PathLike[str]) -> str:
    """SHA-256 of the bytes of a file."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"

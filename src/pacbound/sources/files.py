"""Tables in files, whatever their format: their columns and their rows in batches.

Nothing here knows what the columns mean. A file that cannot be read as a table raises, naming the
file and the remedy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.sources.paths import Paths, expanded, format_of
from pacbound.sources.text_sql import Kind

Progress = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1."""


class Batch(Protocol):
    """Some consecutive rows of a table."""

    @property
    def start(self) -> int:
        """The row of the table that it begins with, counted from 0."""
        ...

    @property
    def rows(self) -> int: ...

    def numbers(self, name: str, *, missing: bool = False) -> NDArray[Any]:
        """A column of numbers, not yet checked to be scores; with `missing`, NaN where there is
        none.
        """
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


@dataclass(frozen=True)
class Wanted:
    """A column of a table, and what it stands for where it is text."""

    column: str
    kind: Kind


class TableFile(Protocol):
    """A table in a file."""

    path: Path

    @property
    def columns(self) -> Sequence[str]:
        """The names of its columns."""
        ...

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None
    ) -> Iterator[Batch]:
        """Its rows in order, all columns or only some."""
        ...


def open_tables(paths: Paths) -> list[TableFile]:
    """The tables in all files that `paths` stand for: files, globs and folders."""
    return [_opened(file) for file in expanded(paths)]


def open_table(path: str | os.PathLike[str]) -> TableFile:
    """The table in one file."""
    tables = open_tables(path)
    if len(tables) > 1:
        raise InvalidValueError(f"{path} stands for {len(tables)} files: expected one.")
    return tables[0]


def part_of(progress: Progress | None, done: float, part: float) -> Progress | None:
    """The progress of a part of the work, after a share `done` of it."""
    return None if progress is None else lambda share: progress(done + part * share)


def require_columns(table: TableFile, names: Sequence[str]) -> None:
    """Refuse columns that the table does not have, or has twice."""
    for name in names:
        times = list(table.columns).count(name)
        if times != 1:
            listed = ", ".join(map(repr, table.columns[:20]))
            problem = "has no column" if times == 0 else f"has {times} columns named"
            raise InvalidValueError(f"{table.path} {problem} {name!r}. Its columns: {listed}.")


def _opened(file: Path) -> TableFile:
    # Each format is loaded only when a file asks for it: what reads it is optional.
    match format_of(file):
        case "delimited":
            from pacbound.sources.delimited import DelimitedFile  # noqa: PLC0415

            return DelimitedFile(file)
        case "parquet":
            from pacbound.sources.parquet import ParquetFile  # noqa: PLC0415

            return ParquetFile(file)
        case "arrow":
            from pacbound.sources.arrow import ArrowFile  # noqa: PLC0415

            return ArrowFile(file)
        case "json":
            from pacbound.sources.json_lines import JsonFile  # noqa: PLC0415

            return JsonFile(file)
        case "npy":
            from pacbound.sources.npy import NpyFile  # noqa: PLC0415

            return NpyFile(file)
        case _:
            from pacbound.sources.npz import NpzFile  # noqa: PLC0415

            return NpzFile(file)

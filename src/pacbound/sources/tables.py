"""Tables in files, whatever their format, opened by the end of the file's name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.batches import TableFile
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.paths import Paths, expanded, format_of


def open_tables(paths: Paths, notation: Notation = PLAIN) -> list[TableFile]:
    """The tables in all files that are meant, each file once and in order.

    Parameters
    ----------
    paths
        A file, a glob, a folder, or several of these.
    notation
        How they are written. Scores are delivered as they are written, not yet divided.

    Returns
    -------
    list of TableFile
        A table for each file. Rows are read when they are asked for.

    Raises
    ------
    InvalidValueError
        If a path stands for no file, or for one that is not a table, or the notation is one of
        delimited text and a file is none.
    RepeatedSourceError
        If a file is named twice.
    MissingDependencyError
        If what reads the format is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> for day in ("monday", "tuesday"):
    ...     np.savez(f"{day}.npz", score=[0.9, 0.4])
    >>> [table.path.name for table in open_tables("*day.npz")]
    ['monday.npz', 'tuesday.npz']
    """
    files = expanded(paths)
    refuse_text_notation(files, notation)
    return [_opened(file, notation) for file in files]


def open_table(path: str | os.PathLike[str], notation: Notation = PLAIN) -> TableFile:
    """The table in one file.

    Parameters
    ----------
    path
        The file.
    notation
        How it is written.

    Returns
    -------
    TableFile
        The table. Rows are read when they are asked for.

    Raises
    ------
    InvalidValueError
        If there is no such file, it is not a table, or the path stands for several files.
    MissingDependencyError
        If what reads the format is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> np.savez("day.npz", score=[0.9, 0.4], right=[True, False])
    >>> list(open_table("day.npz").columns)
    ['score', 'right']
    """
    tables = open_tables(path, notation)
    if len(tables) > 1:
        raise InvalidValueError(f"{path} stands for {len(tables)} files: expected one.")
    return tables[0]


def refuse_text_notation(files: Sequence[Path], notation: Notation) -> None:
    """Refuse to be told how text is written where there is none."""
    other = next((file for file in files if format_of(file) != "delimited"), None)
    if notation.is_about_text and other is not None:
        said = "delimiter" if notation.delimiter is not None else "decimal"
        raise InvalidTypeError(
            f"{said} is about delimited text, and {other} is not: leave --{said} ({said}=) out."
        )


def _opened(file: Path, notation: Notation) -> TableFile:
    # Each format is loaded only when a file asks for it: what reads it is optional.
    match format_of(file):
        case "delimited":
            from pacbound.sources.formats.delimited import DelimitedFile  # noqa: PLC0415

            return DelimitedFile(file, notation)
        case "parquet":
            from pacbound.sources.formats.parquet import ParquetFile  # noqa: PLC0415

            return ParquetFile(file)
        case "arrow":
            from pacbound.sources.formats.arrow import ArrowFile  # noqa: PLC0415

            return ArrowFile(file)
        case "json":
            from pacbound.sources.formats.json_lines import JsonFile  # noqa: PLC0415

            return JsonFile(file)
        case "npy":
            from pacbound.sources.formats.npy import NpyFile  # noqa: PLC0415

            return NpyFile(file)
        case _:
            from pacbound.sources.formats.npz import NpzFile  # noqa: PLC0415

            return NpzFile(file)

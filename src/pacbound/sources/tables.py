"""Tables in files, whatever their format, opened by the end of the file's name."""

from __future__ import annotations

import os
from pathlib import Path

from pacbound.errors import InvalidValueError
from pacbound.sources.batches import TableFile
from pacbound.sources.paths import Paths, expanded, format_of


def open_tables(paths: Paths) -> list[TableFile]:
    """The tables in all files that are meant, each file once and in order.

    Parameters
    ----------
    paths
        A file, a glob, a folder, or several of these.

    Returns
    -------
    list of TableFile
        A table for each file. Rows are read when they are asked for.

    Raises
    ------
    InvalidValueError
        If a path stands for no file, or for one that is not a table.
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
    return [_opened(file) for file in expanded(paths)]


def open_table(path: str | os.PathLike[str]) -> TableFile:
    """The table in one file.

    Parameters
    ----------
    path
        The file.

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
    tables = open_tables(path)
    if len(tables) > 1:
        raise InvalidValueError(f"{path} stands for {len(tables)} files: expected one.")
    return tables[0]


def _opened(file: Path) -> TableFile:
    # Each format is loaded only when a file asks for it: what reads it is optional.
    match format_of(file):
        case "delimited":
            from pacbound.sources.formats.delimited import DelimitedFile  # noqa: PLC0415

            return DelimitedFile(file)
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

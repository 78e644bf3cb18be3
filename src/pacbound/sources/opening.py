"""Opening tables in files: each by the end of its name, to be read in order, or all of them for
counting, by the engine that the user picks: DuckDB, Polars, or Spark.

The rows are the same. DuckDB is embedded, reads all formats and says where a bad value stands;
Polars and Spark hold frames of formats that have types. Every local file counts once, whoever
counts it. What an address stands for on a cluster is left to Spark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, get_args

from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.sources.batches import (
    Engine,
    Part,
    Progress,
    TableFile,
    Wanted,
    in_order,
    part_of,
    require_progress,
)
from pacbound.sources.fingerprints import fingerprinting
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.paths import Paths, as_list, expanded, format_of, partitions_of

_TEXT = ("delimited", "json")
_AMOUNT = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?B|B)", re.IGNORECASE)


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
    _refuse_text_notation(files, notation)
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


@dataclass
class Opened:
    """The rows of all files in parts, and a name for each file once they have been counted.

    Attributes
    ----------
    parts : list of Part
        The rows: as frames that stay in an engine, in batches, or either.
    listed : str
        The first of the files, for messages.
    tables : list of TableFile
        The same rows file by file, to be read in order; none where an engine alone reads them.
    fingerprints : list of str or None
        SHA-256 of each file, once the `with` block is left; None where nothing names the rows,
        because what addresses stand for is not looked at.

    Examples
    --------
    >>> Opened([], "day.csv").fingerprints is None
    True
    """

    parts: list[Part]
    listed: str
    tables: list[TableFile] = field(default_factory=list)
    fingerprints: list[str] | None = field(default=None)


@contextmanager
def opened(
    paths: Paths,
    wanted: Mapping[str, Wanted],
    *,
    notation: Notation = PLAIN,
    engine: Engine = "duckdb",
    master: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Iterator[Opened]:
    """Open files for counting, in a `with` block: the wanted columns of all rows of all files.

    Every local file counts once: the same file or the same bytes twice are refused, and so is a
    file that changes while it is counted.

    Parameters
    ----------
    paths
        A file, a glob, a folder, or several of these.
    wanted
        The columns that are needed, by a key that is free to choose.
    notation
        How the files are written. Scores are delivered as they are written, not yet divided.
    engine
        "duckdb", "polars" or "spark".
    master
        Spark's master.
    memory_limit
        What DuckDB may use, such as "500MB".
    progress
        Called with the share that is done, from 0 to 1.

    Yields
    ------
    Opened
        The rows, and after the block the names of the files.

    Raises
    ------
    InvalidValueError
        If a file cannot be read or changes meanwhile, a column is not there, or an option is not
        known.
    InvalidTypeError
        If an option is one of another engine.
    RepeatedSourceError
        If two files are the same or hold the same bytes.
    MissingDependencyError
        If the engine, or what reads the format, is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> np.savez("day.npz", score=[0.9, 0.4])
    >>> with opened("day.npz", {"confidence": Wanted("score", "number")}) as found:
    ...     rows = [batch.rows for part in found.parts for _, batch in part.batches()]
    >>> rows, len(found.fingerprints)
    ([2], 1)
    """
    _check_engine(engine, master, memory_limit)
    require_progress(progress)
    with ExitStack() as stack:
        if engine == "duckdb":
            tables = open_tables(paths, notation)
            files = [table.path for table in tables]
        else:
            files = _typed_files(engine, as_list(paths))
            _refuse_text_notation(files, notation)
            tables = []
        if not files:
            from pacbound.sources.engines.spark import remote_parts  # noqa: PLC0415

            addresses = [str(path) for path in as_list(paths)]
            yield Opened(stack.enter_context(remote_parts(addresses, master=master)), addresses[0])
            return
        found = Opened([], listed_files(files), tables)
        with fingerprinting(files, notation) as fingerprints:
            found.parts = stack.enter_context(
                _by_duckdb(tables, wanted, memory_limit, progress)
                if engine == "duckdb"
                else _by_engine(engine, files, master)
            )
            yield found
            stack.close()
            found.fingerprints = [fingerprint.result() for fingerprint in fingerprints]
        refuse_copies(files, found.fingerprints, notation)


def _check_engine(engine: str, master: str | None, memory_limit: str | None) -> None:
    if not (isinstance(engine, str) and engine in get_args(Engine)):
        raise InvalidValueError(f"engine={engine!r} is not one of {', '.join(get_args(Engine))}.")
    if master is not None and engine != "spark":
        raise InvalidTypeError(
            f"The master {master} is one of Spark, and the engine is {engine}: pass engine spark "
            "with it."
        )
    if memory_limit is not None and engine != "duckdb":
        raise InvalidTypeError(
            f"memory_limit is DuckDB's, and the engine is {engine}: set the limit of {engine} in "
            "its own way."
        )
    is_text = isinstance(memory_limit, str)
    if memory_limit is not None and not (is_text and _AMOUNT.fullmatch(memory_limit.strip())):
        raise (InvalidValueError if is_text else InvalidTypeError)(
            f"memory_limit={memory_limit!r} is not an amount of memory: expected text such as "
            "'500MB' or '2GB'."
        )


@contextmanager
def _by_duckdb(
    tables: Sequence[TableFile],
    wanted: Mapping[str, Wanted],
    memory_limit: str | None,
    progress: Progress | None,
) -> Iterator[list[Part]]:
    inside = [table for table in tables if format_of(table.path) in (*_TEXT, "parquet")]
    others = [table for table in tables if table not in inside]
    share = len(inside) / len(tables)
    rest = part_of(progress, share, 1 - share)
    more = [Part(batches=partial(in_order, others, wanted, rest))] if others else []
    if not inside:
        yield more
        return
    # Loaded here, because arrays in .npz files need no DuckDB.
    from pacbound.sources.engines.duckdb import parts  # noqa: PLC0415

    first = part_of(progress, 0.0, share)
    with parts(inside, wanted, memory_limit=memory_limit, progress=first) as found:
        yield [*found, *more]


def _by_engine(
    engine: str, files: Sequence[Path], master: str | None
) -> AbstractContextManager[list[Part]]:
    # Each engine is loaded only when it is asked for: all are optional.
    columns = _partitions(files)
    if engine == "polars":
        from pacbound.sources.engines import polars  # noqa: PLC0415

        return polars.parts(files, partitions=columns)
    from pacbound.sources.engines import spark  # noqa: PLC0415

    return spark.parts(files, partitions=columns, master=master)


def _typed_files(engine: str, paths: Sequence[Any]) -> list[Path]:
    """The local files, in formats that have types; none if addresses were named."""
    named = [str(path) for path in paths]
    remote = [path for path in named if "://" in path and not path.startswith("file://")]
    if engine == "polars":
        files = expanded(named)
    elif remote:
        _refuse_text(engine, [Path(path.rstrip("/")) for path in remote])
        if len(remote) < len(named):
            raise InvalidValueError(
                f"{remote[0]} is an address, and others are local files. Count each apart, and add."
            )
        return []
    else:
        from pacbound.sources.engines.spark import local_files  # noqa: PLC0415

        files = local_files(named)
    _refuse_text(engine, files)
    return files


def _refuse_text(engine: str, files: Sequence[Path]) -> None:
    if any(format_of(file) in _TEXT for file in files):
        raise InvalidValueError(
            f"{engine.capitalize()} guesses the types of text, and rows may be lost: count text "
            "files with the engine duckdb (the default), or convert them to Parquet."
        )


def _partitions(files: Sequence[Path]) -> tuple[str, ...]:
    """The columns that the folders of all files stand for; none if they differ."""
    names = {tuple(partitions_of(file)) for file in files}
    return names.pop() if len(names) == 1 else ()


def listed_files(files: Sequence[Path]) -> str:
    """The files for a message: all if they are few."""
    return ", ".join(map(str, files[:3])) + (", …" if len(files) > 3 else "")


def refuse_copies(files: Sequence[Path], fingerprints: Sequence[str], notation: Notation) -> None:
    """Refuse files with the same bytes, by their fingerprints, unless they hold no rows."""
    first: dict[str, Path] = {}
    for file, fingerprint in zip(files, fingerprints, strict=True):
        if fingerprint in first and _holds_rows(file, notation):
            raise RepeatedSourceError(
                f"{first[fingerprint]} and {file} hold the same bytes: counting rows twice voids "
                "every guarantee. Name one."
            )
        first.setdefault(fingerprint, file)


def _holds_rows(file: Path, notation: Notation) -> bool:
    if format_of(file) is None:
        # ORC, whose rows nothing here reads.
        return True
    (table,) = open_tables(file, notation)
    return any(batch.rows for batch in table.batches())


def _refuse_text_notation(files: Sequence[Path], notation: Notation) -> None:
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
        case "parquet" | "arrow":
            from pacbound.sources.formats.typed import TypedFile  # noqa: PLC0415

            return TypedFile(file)
        case "json":
            from pacbound.sources.formats.json_lines import JsonFile  # noqa: PLC0415

            return JsonFile(file)
        case found:
            from pacbound.sources.formats.arrays import NpyFile, NpzFile  # noqa: PLC0415

            return NpyFile(file) if found == "npy" else NpzFile(file)

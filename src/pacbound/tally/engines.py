"""Counting files by the engine that the user picks: DuckDB, which is embedded, Polars, or Spark on
a cluster.

The integers are the same. DuckDB reads all formats and says where a bad value stands; Polars and
Spark count frames, whose rows have no order, of formats that hold types. Local files count once,
whoever counts them; what an address stands for on a cluster is left to Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.sources import Progress, fingerprinting, open_tables
from pacbound.sources.paths import expanded, format_of, partitions_of
from pacbound.tally.file_counts import refuse_copies
from pacbound.tally.files import count
from pacbound.tally.tally import Tally

Engine = Literal["duckdb", "polars", "spark"]


def count_by(
    engine: Engine,
    paths: Sequence[str],
    *,
    master: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
    **columns: Any,
) -> Tally:
    """Count the named columns of files by `engine`; `master` is Spark's, and `memory_limit` is
    DuckDB's.
    """
    if engine not in get_args(Engine):
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
    if engine == "duckdb":
        return count(paths, memory_limit=memory_limit, progress=progress, **columns)
    tally = _by_polars(paths, columns) if engine == "polars" else _by_spark(paths, master, columns)
    if not tally.rows:
        raise InvalidValueError(
            f"{', '.join(paths[:3])}: no rows. A guarantee needs at least one labelled row."
        )
    return tally


def _by_polars(paths: Sequence[str], columns: dict[str, Any]) -> Tally:
    # Each engine is loaded only when it is asked for: all are optional.
    from narwhals.exceptions import NarwhalsError  # noqa: PLC0415

    from pacbound.sources.on_polars import reading, scan  # noqa: PLC0415

    files = expanded(paths)
    _refuse_text("Polars", files)
    with fingerprinting(files) as fingerprints:
        with reading(files, NarwhalsError):
            tally = Tally.from_frame(scan(files, partitions=_partitions(files)), **columns)
        return _from_files(tally, files, [fingerprint.result() for fingerprint in fingerprints])


def _by_spark(paths: Sequence[str], master: str | None, columns: dict[str, Any]) -> Tally:
    from pacbound.sources.on_spark import local_files, local_table, remote_table  # noqa: PLC0415

    remote = [path for path in paths if "://" in path and not path.startswith("file://")]
    _refuse_text("Spark", [Path(path.rstrip("/")) for path in remote])
    if remote:
        if len(remote) < len(paths):
            raise InvalidValueError(
                f"{remote[0]} is an address, and others are local files. Count each apart, and add."
            )
        with remote_table(remote, master=master) as frame:
            return Tally.from_frame(frame, **columns)
    files = local_files(paths)
    _refuse_text("Spark", files)
    with fingerprinting(files) as fingerprints:
        with local_table(files, partitions=_partitions(files), master=master) as frame:
            tally = Tally.from_frame(frame, **columns)
        return _from_files(tally, files, [fingerprint.result() for fingerprint in fingerprints])


def _refuse_text(engine: str, files: Sequence[Path]) -> None:
    if any(format_of(file) in ("delimited", "json") for file in files):
        raise InvalidValueError(
            f"{engine} guesses the types of text, and rows may be lost: count text files with the "
            "engine duckdb (the default), or convert them to Parquet."
        )


def _partitions(files: Sequence[Path]) -> tuple[str, ...]:
    """The columns that the folders of all files stand for; none if the files are not partitioned
    alike.
    """
    names = {tuple(partitions_of(file)) for file in files}
    return names.pop() if len(names) == 1 else ()


def _from_files(tally: Tally, files: Sequence[Path], sources: Sequence[str]) -> Tally:
    """The tally with the fingerprints of its files, of which no two that hold rows may be equal."""
    if len(set(sources)) < len(sources):
        if any(format_of(file) is None for file in files):  # ORC, whose rows nothing here reads
            raise RepeatedSourceError(
                "Two files hold the same bytes: counting rows twice voids every guarantee. Name "
                "one."
            )
        refuse_copies(open_tables(files), sources)
    return replace(tally, sources=frozenset(sources))

"""Counting files by the engine that the user picks: DuckDB, which is embedded, Polars, or Spark on a cluster.

The integers are the same. DuckDB reads all formats and says where a bad value stands; Polars and Spark count frames, whose rows
have no order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import Progress, fingerprinting
from pacbound.sources.paths import expanded
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
    """Count the named columns of files by `engine`; `master` is Spark's, and `memory_limit` is DuckDB's."""
    if engine not in get_args(Engine):
        raise InvalidValueError(f"engine={engine!r} is not one of {', '.join(get_args(Engine))}.")
    if master is not None and engine != "spark":
        raise InvalidTypeError(f"The master {master} is one of Spark, and the engine is {engine}: pass engine spark with it.")
    if memory_limit is not None and engine != "duckdb":
        raise InvalidTypeError(f"memory_limit is DuckDB's, and the engine is {engine}: set the limit of {engine} in its own way.")
    if engine == "duckdb":
        return count(paths, memory_limit=memory_limit, progress=progress, **columns)
    tally = _by_polars(paths, columns) if engine == "polars" else _by_spark(paths, master, columns)
    if not tally.rows:
        raise InvalidValueError(f"{', '.join(paths[:3])}: no rows. A guarantee needs at least one labelled row.")
    return tally


def _by_polars(paths: Sequence[str], columns: dict[str, Any]) -> Tally:
    # Each engine is loaded only when it is asked for: all are optional.
    from narwhals.exceptions import NarwhalsError  # noqa: PLC0415

    from pacbound.sources.on_polars import reading, scan  # noqa: PLC0415

    files = expanded(paths)
    with fingerprinting(files) as fingerprints, reading(files, NarwhalsError):
        tally = Tally.from_frame(scan(files), **columns)
        return replace(tally, sources=frozenset(fingerprint.result() for fingerprint in fingerprints))


def _by_spark(paths: Sequence[str], master: str | None, columns: dict[str, Any]) -> Tally:
    from pacbound.sources.on_spark import table  # noqa: PLC0415

    with table(paths, master=master) as frame:
        return Tally.from_frame(frame, **columns)

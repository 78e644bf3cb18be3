"""Counting the rows of tables in files: inside DuckDB where it can be, and otherwise batch by
batch.

Both give the integers that the arrays would give. Counting inside DuckDB does not say what is wrong
with a file, or may not take it at all. Reading in order does, and has the last word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.sources import Batch, Paths, Progress, TableFile, Wanted, fingerprinting, open_tables
from pacbound.sources.files import part_of
from pacbound.sources.memory import checked_memory
from pacbound.sources.paths import format_of
from pacbound.tally.tally import Tally

_INSIDE = ("delimited", "json", "parquet")
"""The formats that DuckDB reads by itself."""


@dataclass(frozen=True)
class Use:
    """What rows are counted for: the columns by their roles, and how to count a batch of them, a
    frame of them, and none.

    `named` says what the roles are called where a batch is counted, for messages.
    """

    wanted: Mapping[str, Wanted]
    batch: Callable[[Batch], Tally]
    frame: Callable[[Any], Tally]
    nothing: Tally
    named: Mapping[str, str]


def count_tables(
    paths: Paths, use: Use, *, memory_limit: str | None = None, progress: Progress | None = None
) -> Tally:
    """The tally of all rows of all files, with the fingerprint of each file."""
    limit, tables = checked_memory(memory_limit), open_tables(paths)
    inside = [table for table in tables if format_of(table.path) in _INSIDE]
    others = [table for table in tables if format_of(table.path) not in _INSIDE]
    with fingerprinting([table.path for table in tables]) as fingerprints:
        total = use.nothing
        if inside:
            total += _inside(inside, use, limit, part_of(progress, 0.0, len(inside) / len(tables)))
        if others:
            total += _in_order(
                others,
                use,
                part_of(progress, len(inside) / len(tables), len(others) / len(tables)),
            )
        if not total.rows:
            listed = ", ".join(str(table.path) for table in tables[:3]) + (
                ", …" if len(tables) > 3 else ""
            )
            raise InvalidValueError(
                f"{listed}: no rows. A guarantee needs at least one labelled row."
            )
        sources = [fingerprint.result() for fingerprint in fingerprints]
    refuse_copies(tables, sources)
    return replace(total, sources=frozenset(sources))


def _inside(
    tables: Sequence[TableFile], use: Use, memory_limit: str, progress: Progress | None
) -> Tally:
    # Loaded here, because arrays in .npz files need neither DuckDB nor narwhals.
    from pacbound.sources.relation import counted_inside  # noqa: PLC0415

    parts = counted_inside(
        tables, use.wanted, use.frame, memory_limit=memory_limit, progress=progress
    )
    return _in_order(tables, use, progress) if parts is None else sum(parts, start=use.nothing)


def _in_order(tables: Sequence[TableFile], use: Use, progress: Progress | None) -> Tally:
    total = use.nothing
    needed = list(dict.fromkeys(want.column for want in use.wanted.values()))
    for place, table in enumerate(tables):
        for batch in table.batches(
            needed, progress=part_of(progress, place / len(tables), 1 / len(tables))
        ):
            # A batch has no name of its own: the file has.
            total += replace(_located(use, batch, table.path), sources=frozenset())
    return total


def _located(use: Use, batch: Batch, path: Path) -> Tally:
    """Count, and if that fails say in which file, by the columns' own names: inside they go by what
    they are for.
    """
    try:
        return use.batch(batch)
    except (InvalidValueError, InvalidTypeError) as error:
        roles = "|".join(map(re.escape, use.named))
        message = re.sub(
            rf"(?<!\w)({roles})\[", lambda found: f"{use.named[found[1]]}[", str(error)
        )
        raise type(error)(f"{path}: {message}") from None


def refuse_copies(tables: Sequence[TableFile], sources: Sequence[str]) -> None:
    """Refuse files with the same bytes, by their fingerprints."""
    first: dict[str, Path] = {}
    for table, source in zip(tables, sources, strict=True):
        # Two files without rows may well be equal.
        if source in first and any(batch.rows for batch in table.batches()):
            raise RepeatedSourceError(
                f"{first[source]} and {table.path} hold the same bytes: counting rows twice voids "
                "every guarantee. Name one."
            )
        first.setdefault(source, table.path)

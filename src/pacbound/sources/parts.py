"""What a source delivers: rows that stay in an engine as a frame, rows in batches, or either."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pacbound.sources.batches import Batch, Progress, TableFile, Wanted, part_of


class CannotCountError(Exception):
    """The engine could not do what was asked of a frame. Its rows may still be read in order."""


@dataclass(frozen=True)
class Part:
    """Some of the rows.

    A `frame` has the wanted columns under their own names or, where it is `keyed`, under their
    keys. Work on it is done by `run`, which watches over it. `batches` are the same rows in order,
    each with the file that it is from.
    """

    frame: Any = None
    keyed: bool = False
    run: Callable[[Callable[[], Any]], Any] = lambda work: work()
    batches: Callable[[], Iterator[tuple[Path, Batch]]] | None = None


def in_order(
    tables: Sequence[TableFile], wanted: Mapping[str, Wanted], progress: Progress | None
) -> Iterator[tuple[Path, Batch]]:
    """The wanted columns of all tables in batches, one table after the other."""
    needed, share = list(dict.fromkeys(want.column for want in wanted.values())), 1 / len(tables)
    for place, table in enumerate(tables):
        for batch in table.batches(needed, progress=part_of(progress, place * share, share)):
            yield table.path, batch

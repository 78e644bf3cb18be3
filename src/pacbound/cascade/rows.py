"""Rows that come in from files, in order; and those that go out to be answered."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError
from pacbound.sources.batches import (
    Batch,
    Progress,
    chosen_rows,
    in_order,
    located,
    require_progress,
)
from pacbound.sources.fingerprints import fingerprinting
from pacbound.sources.notation import OPTIONS as NOTATION
from pacbound.sources.notation import PLAIN, Notation, refuse_notation
from pacbound.sources.opening import listed_files, open_tables, refuse_copies
from pacbound.sources.paths import Paths
from pacbound.sources.rewriting import rewrite
from pacbound.tally.classes import ClassRule
from pacbound.tally.columns import Rows, Slot, wanted

# What a new column holds, by the numbers of the rows that get it.
Fill = Callable[[NDArray[np.int64]], NDArray[Any]]

# The row options that say what is known of the classes.
CLASSES = ("classes", "missing", "unseen_labels")


@dataclass(frozen=True)
class ReadingOptions:
    """How the rows of a function are read: what is known of their classes, and how files are
    written.
    """

    rule: ClassRule
    notation: Notation
    progress: Progress | None

    @classmethod
    def of(
        cls, rows: Mapping[str, Any], data: Any, known: Iterable[str], what: str
    ) -> ReadingOptions:
        """How rows are read by row options, all of which must be `known`. Those about files need
        files; `what` names the function.
        """
        allowed = [*known, "progress", *NOTATION]
        strange = next((name for name in rows if name not in allowed), None)
        if strange is not None:
            raise InvalidTypeError(
                f"{strange} is not an option of {what}: expected {', '.join(sorted(allowed))}."
            )
        written: Any = {name: rows[name] for name in NOTATION if name in rows}
        if data is None:
            refuse_notation(written)
        require_progress(rows.get("progress"))
        rule = ClassRule.of(
            rows.get("classes"),
            rows.get("missing"),
            rows.get("unseen_labels") or 0.0,
            unrelated_labels=bool(rows.get("unrelated_labels")),
        )
        return cls(rule, Notation.of(**written), rows.get("progress"))


@dataclass(frozen=True)
class RowsRead:
    """The files that rows were read from: as a message lists them, and their fingerprints."""

    listed: str
    fingerprints: tuple[str, ...]


def read_rows(
    paths: Paths,
    slots: Mapping[str, Slot],
    take: Callable[[Rows], None],
    reading: ReadingOptions,
    *,
    copies: bool = False,
) -> RowsRead:
    """Give the rows of files to `take`, in order; what it raises names the file. Files with the
    same bytes are refused unless there may be `copies`: their rows would count twice.
    """
    tables = open_tables(paths, reading.notation)
    files = [table.path for table in tables]
    with fingerprinting(files, reading.notation) as to_be:
        for path, batch in in_order(tables, wanted(slots), reading.progress):
            with located(path):
                take(Rows.of_batch(slots, batch))
        found = tuple(fingerprint.result() for fingerprint in to_be)
    if not copies:
        refuse_copies(files, found, reading.notation)
    return RowsRead(listed_files(files), found)


def rows_asked_for(
    source: Paths,
    target: str | os.PathLike[str],
    rows: NDArray[np.int64],
    *,
    shown: Sequence[str],
    added: Mapping[str, Fill],
    notation: Notation = PLAIN,
) -> None:
    """Write these rows of `source` to `target`, in the order of the table.

    Of its columns those go out that are `shown`, and must be there. `added` columns are filled from
    the numbers of the rows, which go on from file to file.
    """
    asked, done = np.sort(rows), 0

    def change(batch: Batch) -> tuple[Batch, dict[str, NDArray[Any]]]:
        nonlocal done
        chosen = chosen_rows(asked, done, batch.rows)
        numbers = done + np.flatnonzero(chosen)
        done += batch.rows
        return batch.where(chosen).only(shown), {
            name: fill(numbers) for name, fill in added.items()
        }

    rewrite(source, target, change, needed=shown, added=list(added), notation=notation)

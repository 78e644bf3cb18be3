"""Rows that come in from files, in order; and those that go out to be answered or labelled, each
with its number among all rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
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
from pacbound.sources.paths import Paths, format_of
from pacbound.sources.rewriting import rewrite
from pacbound.sources.values import MISSING
from pacbound.tally.classes import ALL_PREDICT, ClassRule, Vocabulary
from pacbound.tally.columns import Rows, Slot, wanted
from pacbound.tally.returned_labels import ROW

Mask = NDArray[np.bool_]

# What a new column holds, by the numbers of the rows that get it.
Fill = Callable[[NDArray[np.int64]], NDArray[Any]]

# The row options that say what is known of the classes.
CLASSES = ("classes", "missing", "unseen_labels")

# The column that takes the label of a row that was asked for.
LABEL = "label"

# The column by which answers are known to be for the rows of a session.
CHECK = "pac_check"


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


def rows_to_label(
    source: Paths,
    target: str | os.PathLike[str],
    *,
    predictions: Sequence[str],
    label: str | None = None,
    notation: Notation = PLAIN,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Write the rows of `source` that need a label to `target`, and return how many of how many
    they are.

    A row needs one if the models do not all predict the same and `label`, where it is named, is
    empty. All others stay in the sample unlabelled: agreement loses nothing against the slow model,
    whatever the truth is. Of the rows written, as many as you like may stay without a label, too:
    each then counts as a loss.
    """

    def needs_label(batch: Batch, _: int) -> Mask:
        differ = _differ(batch, predictions)
        return differ if label is None else differ & _missing(batch, label)

    rows, needing = _numbered(
        source,
        target,
        needs_label,
        needed=[*predictions, *([] if label is None else [label])],
        notation=notation,
        progress=progress,
    )
    return needing, rows


def rows_asked_for(
    source: Paths,
    target: str | os.PathLike[str],
    rows: NDArray[np.int64],
    *,
    shown: Sequence[str] | None = None,
    added: Mapping[str, Fill] | None = None,
    notation: Notation = PLAIN,
) -> None:
    """Write these rows of `source` to `target`, in the order of the table, each with its number.

    Of its columns those go out that are `shown`, and must be there; all without it. `added` columns
    are filled from the numbers of the rows.
    """
    asked = np.sort(rows)
    _numbered(
        source,
        target,
        lambda batch, start: chosen_rows(asked, start, batch.rows),
        needed=shown or (),
        shown=shown,
        added=added or {},
        notation=notation,
    )


def no_label(target: str | os.PathLike[str], *, numbers: bool) -> Fill:
    """The label column of `target` for labels that are not there yet. Where classes are `numbers`
    it has their type in formats that have types.
    """
    nothing = np.nan if numbers and format_of(Path(target)) != "delimited" else ""
    return lambda rows: np.full(len(rows), nothing)


def _numbered(
    source: Paths,
    target: str | os.PathLike[str],
    choose: Callable[[Batch, int], Mask],
    *,
    needed: Sequence[str],
    shown: Sequence[str] | None = None,
    added: Mapping[str, Fill] = MappingProxyType({}),
    notation: Notation,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Write the rows that `choose` picks from a batch and its start, each with its number among all
    rows; return how many came in and how many went out.
    """
    done = 0

    def change(batch: Batch) -> tuple[Batch, dict[str, NDArray[Any]]]:
        nonlocal done
        chosen = choose(batch, done)
        # Numbers go on from file to file.
        numbers = done + np.flatnonzero(chosen)
        done += batch.rows
        filled = {name: fill(numbers) for name, fill in added.items()}
        picked = batch.where(chosen)
        return picked if shown is None else picked.only(shown), {ROW: numbers, **filled}

    return rewrite(
        source,
        target,
        change,
        needed=needed,
        added=[ROW, *added],
        notation=notation,
        progress=progress,
    )


def _differ(batch: Batch, predictions: Sequence[str]) -> Mask:
    vocabulary = Vocabulary(ClassRule())
    rows = Rows.of_batch({name: Slot("class", name) for name in predictions}, batch)
    codes = [rows.classes(name, vocabulary) for name in predictions]
    for name, column in zip(predictions, codes, strict=True):
        rows.refuse_missing(name, column == MISSING, ALL_PREDICT)
    _require_one_type(vocabulary, codes, predictions)
    return np.asarray(np.any([column != codes[-1] for column in codes[:-1]], axis=0))


def _require_one_type(
    vocabulary: Vocabulary, codes: Sequence[NDArray[np.int64]], predictions: Sequence[str]
) -> None:
    kinds = [{type(found) for found in vocabulary.classes(column.tolist())} for column in codes]
    if any(one and other and not one & other for one in kinds for other in kinds):
        raise InvalidTypeError(
            f"{', '.join(predictions)} hold numbers and text, which are never equal: name classes "
            "one way."
        )


def _missing(batch: Batch, label: str) -> Mask:
    codes = Vocabulary(ClassRule()).codes(batch.values(label), label, batch.start)
    return np.asarray(codes == MISSING)

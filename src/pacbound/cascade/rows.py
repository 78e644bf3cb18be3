"""A cascade and the rows of a table: which model answers each, and which rows get a label."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import PLAIN, Batch, Notation, Paths, Progress
from pacbound.sources.paths import format_of
from pacbound.sources.rewriting import rewrite
from pacbound.sources.values import MISSING
from pacbound.tally.classes import ClassRule, Vocabulary
from pacbound.tally.returned_labels import ROW
from pacbound.tally.rows import batch_scores

LABEL = "label"
"""The column that takes the label of a row that was asked for."""


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
    done = 0

    def needing_label(batch: Batch) -> tuple[Batch, dict[str, NDArray[np.int64]]]:
        nonlocal done
        needs = _differ(batch, predictions) & (True if label is None else _missing(batch, label))
        # Numbers go on from file to file.
        numbers = done + np.flatnonzero(needs)
        done += batch.rows
        return batch.where(needs), {ROW: numbers}

    needed = [*predictions, *([] if label is None else [label])]
    rows, needing = rewrite(
        source,
        target,
        needing_label,
        needed=needed,
        added=[ROW],
        notation=notation,
        progress=progress,
    )
    return needing, rows


def rows_asked_for(
    source: Paths,
    target: str | os.PathLike[str],
    rows: NDArray[np.int64],
    *,
    label: str | None = None,
    numbers: bool = False,
    notation: Notation = PLAIN,
    progress: Progress | None = None,
) -> None:
    """Write these rows of `source` to `target`, in the order of the file, with a column for the
    label that is still empty.

    That column is `label` if the file has it, and one is added otherwise. Where classes are
    `numbers` it holds numbers in formats that have types.
    """
    wanted = np.sort(rows)
    has_text = not numbers or format_of(Path(target)) == "delimited"
    empty = np.array("") if has_text else np.array(np.nan)

    def asked_for(batch: Batch) -> tuple[Batch, dict[str, NDArray[Any]]]:
        here = wanted[(wanted >= batch.start) & (wanted < batch.start + batch.rows)]
        chosen = np.zeros(batch.rows, dtype=np.bool_)
        chosen[here - batch.start] = True
        added: dict[str, NDArray[Any]] = {ROW: here}
        return batch.where(chosen), added | (
            {} if label is not None else {LABEL: np.full(len(here), empty)}
        )

    needed = [] if label is None else [label]
    added = [ROW] if label is not None else [ROW, LABEL]
    rewrite(
        source,
        target,
        asked_for,
        needed=needed,
        added=added,
        notation=notation,
        progress=progress,
    )


def exits_of_batch(
    batch: Batch,
    confidences: Sequence[str],
    thresholds: NDArray[np.float64],
    scale: float | None = None,
) -> NDArray[np.int64]:
    """The model that answers each row, counted from 0; `thresholds` are one for each exit, or a
    row of these for each row. A score of 1 is written as `scale`.
    """
    exits = np.full(batch.rows, len(confidences))
    for m in reversed(range(len(confidences))):
        exits[batch_scores(batch, confidences[m], scale) >= thresholds[..., m]] = m
    return exits


def _differ(batch: Batch, predictions: Sequence[str]) -> NDArray[np.bool_]:
    vocabulary = Vocabulary(ClassRule())
    codes = [vocabulary.codes(batch.values(name), name, batch.start) for name in predictions]
    for name, column in zip(predictions, codes, strict=True):
        missing = np.flatnonzero(column == MISSING)
        if missing.size:
            raise InvalidValueError(
                f"{name}[{batch.start + missing[0]}] is missing ({missing.size} such values): "
                "every model must predict every row."
            )
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


def _missing(batch: Batch, label: str) -> NDArray[np.bool_]:
    codes = Vocabulary(ClassRule()).codes(batch.values(label), label, batch.start)
    return np.asarray(codes == MISSING)

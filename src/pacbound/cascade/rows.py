"""A cascade and the rows of a table: which model answers each, and which rows need a label."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.cascade import CascadeCertificate
from pacbound.errors import InvalidTypeError
from pacbound.sources import Batch, Paths, Progress
from pacbound.sources.rewriting import rewrite
from pacbound.tally.columns import checked_scores, numeric
from pacbound.tally.files import predicted

ADDED = ("pac_exit", "pac_prediction")
"""The model that answers each row, counted from 0, and its answer; the answer only where
predictions are in the file."""

ROW = "pac_row"
"""Where a row that needs a label stands in the file it came from, counted from 0."""


def apply_to_file(
    certificate: CascadeCertificate,
    source: Paths,
    target: str | os.PathLike[str],
    *,
    confidences: Sequence[str],
    predictions: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> int:
    """Write the rows of `source` to `target` with the model that answers each, and return how many
    there were.

    A row is answered by the first model whose score, in float64, is at or above its threshold, and
    else by the last. From no rows, `target` has the columns and no rows.
    """
    thresholds = certificate.thresholds
    if len(confidences) != len(thresholds):
        raise InvalidTypeError(
            f"The certificate has {len(thresholds)} exits: name the confidence column of each."
        )

    def with_answer(batch: Batch) -> tuple[Batch, dict[str, NDArray[Any]]]:
        exits = _exits(batch, confidences, thresholds)
        return batch, {
            ADDED[0]: exits,
            **({ADDED[1]: _answers(batch, exits, predictions)} if predictions else {}),
        }

    added, needed = ADDED if predictions else ADDED[:1], [*confidences, *(predictions or ())]
    rows, _ = rewrite(
        source,
        target,
        with_answer,
        needed=needed,
        added=added,
        may_be_empty=True,
        progress=progress,
    )
    return rows


def rows_to_label(
    source: Paths,
    target: str | os.PathLike[str],
    *,
    predictions: Sequence[str],
    label: str | None = None,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Write the rows of `source` that need a label to `target`, and return how many of how many
    they are.

    A row needs one if the models do not all predict the same and `label`, where it is named, is
    empty. All others stay in the sample unlabelled: agreement loses nothing against the slow model,
    whatever the truth is.
    """

    def needing_label(batch: Batch) -> tuple[Batch, dict[str, NDArray[np.int64]]]:
        needs = _differ(batch, predictions) & (True if label is None else _missing(batch, label))
        return batch.where(needs), {ROW: batch.start + np.flatnonzero(needs)}

    needed = [*predictions, *([] if label is None else [label])]
    rows, needing = rewrite(
        source, target, needing_label, needed=needed, added=[ROW], progress=progress
    )
    return needing, rows


def _exits(
    batch: Batch, confidences: Sequence[str], thresholds: NDArray[np.float64]
) -> NDArray[np.int64]:
    exits = np.full(batch.rows, len(thresholds))
    for m in reversed(range(len(thresholds))):
        scores = checked_scores(
            numeric(batch.numbers(confidences[m]), confidences[m]),
            confidences[m],
            start=batch.start,
        )
        exits[scores >= thresholds[m]] = m
    return exits


def _answers(batch: Batch, exits: NDArray[np.int64], predictions: Sequence[str]) -> NDArray[Any]:
    columns = predicted(batch, predictions)
    common = np.result_type(*columns)
    if common.kind == "f":
        # Classes are integers or names. NumPy holds signed beside unsigned ones as floats, which do
        # not tell large ones apart.
        columns = [_signed(column, name) for column, name in zip(columns, predictions, strict=True)]
        common = np.dtype(np.int64)
    answers = np.empty(batch.rows, dtype=common)
    for model, column in enumerate(columns):
        answers[exits == model] = column[exits == model]
    return answers


def _signed(column: NDArray[Any], name: str) -> NDArray[np.int64]:
    integers = column.astype(np.int64)
    if (integers != column).any():
        raise InvalidTypeError(
            f"{name} has dtype {column.dtype} and holds {column[integers != column][0]}, beside "
            "signed integers in another column, and no type holds both: write all predictions "
            "with one type."
        )
    return integers


def _differ(batch: Batch, predictions: Sequence[str]) -> NDArray[np.bool_]:
    columns = predicted(batch, predictions)
    return np.asarray(np.any([column != columns[-1] for column in columns[:-1]], axis=0))


def _missing(batch: Batch, label: str) -> NDArray[np.bool_]:
    labels = batch.classes(label)
    return np.asarray(np.isnan(labels) if labels.dtype.kind == "f" else np.ma.getmaskarray(labels))

"""A cascade and the rows of a table: which model answers each, and which rows need a label."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.thresholds import ExitThresholds
from pacbound.certificate.cascade import CascadeCertificate
from pacbound.certificate.cascade_groups import GroupedCascadeCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import Batch, Paths, Progress
from pacbound.sources.paths import format_of
from pacbound.sources.rewriting import rewrite
from pacbound.sources.values import MISSING
from pacbound.tally.classes import ClassRule, Vocabulary, class_of
from pacbound.tally.columns import as_names, checked_scores, numeric

ADDED = ("pac_exit", "pac_prediction")
"""The model that answers each row, counted from 0, and its answer; the answer only where
predictions are in the file."""

ROW = "pac_row"
"""Where a row that needs a label stands in the file it came from, counted from 0."""

LABEL = "label"
"""The column that takes the label of a row that was asked for."""


def apply_to_file(
    certificate: CascadeCertificate | GroupedCascadeCertificate,
    source: Paths,
    target: str | os.PathLike[str],
    *,
    confidences: Sequence[str],
    predictions: Sequence[str] | None = None,
    group: str | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> int:
    """Write the rows of `source` to `target` with the model that answers each, and return how many
    there were.

    A row is answered by the first model whose score, in float64, is at or above its threshold, and
    else by the last. Where each group has its own thresholds, `group` names the column; a row of a
    group that is not known is answered by the last, or raises if `strict`. A certificate that does
    not follow from its own counts raises `CertificateError`, and one without a proof (a greedy
    choice) `InvalidValueError`.
    """
    thresholds = ExitThresholds.of(certificate, certificate.exits + 1)
    if len(confidences) != thresholds.exits:
        raise InvalidTypeError(
            f"The certificate has {thresholds.exits} exits: name the confidence column of each."
        )
    thresholds.require_groups(group, "the name of the column with the group of each row")

    def with_answer(batch: Batch) -> tuple[Batch, dict[str, NDArray[Any]]]:
        names = None if group is None else as_names(batch.names(group), group, start=batch.start)
        if strict and names is not None:
            _require_known(names, thresholds, group, batch.start)
        exits = exits_of_batch(batch, confidences, thresholds.of_rows(batch.rows, names))
        return batch, {
            ADDED[0]: exits,
            **({ADDED[1]: _answers(batch, exits, predictions)} if predictions else {}),
        }

    added, needed = ADDED if predictions else ADDED[:1], [*confidences, *(predictions or ())]
    needed += [] if group is None else [group]
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
    whatever the truth is. Of the rows written, as many as you like may stay without a label, too:
    each then counts as a loss.
    """

    def needing_label(batch: Batch) -> tuple[Batch, dict[str, NDArray[np.int64]]]:
        needs = _differ(batch, predictions) & (True if label is None else _missing(batch, label))
        return batch.where(needs), {ROW: batch.start + np.flatnonzero(needs)}

    needed = [*predictions, *([] if label is None else [label])]
    rows, needing = rewrite(
        source, target, needing_label, needed=needed, added=[ROW], progress=progress
    )
    return needing, rows


def rows_asked_for(
    source: Paths,
    target: str | os.PathLike[str],
    rows: NDArray[np.int64],
    *,
    label: str | None = None,
    numbers: bool = False,
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
    rewrite(source, target, asked_for, needed=needed, added=added, progress=progress)


def exits_of_batch(
    batch: Batch, confidences: Sequence[str], thresholds: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The model that answers each row, counted from 0; `thresholds` are one for each exit, or a
    row of these for each row.
    """
    exits = np.full(batch.rows, len(confidences))
    for m in reversed(range(len(confidences))):
        scores = checked_scores(
            numeric(batch.numbers(confidences[m]), confidences[m]),
            confidences[m],
            start=batch.start,
        )
        exits[scores >= thresholds[..., m]] = m
    return exits


def _require_known(
    names: NDArray[Any], thresholds: ExitThresholds, group: str | None, start: int
) -> None:
    known = np.isin(names.astype(np.str_), list(thresholds.values))
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise InvalidValueError(
            f"{group}[{start + row}] is {str(names[row])!r}, a group that was not certified. "
            "Without --strict (strict=True) such rows go to the slow model."
        )


def _answers(batch: Batch, exits: NDArray[np.int64], predictions: Sequence[str]) -> NDArray[Any]:
    """What the answering model predicted for each row, as it stands in the file."""
    answers = np.empty(batch.rows, dtype=object)
    for model, name in enumerate(predictions):
        rows, values = np.flatnonzero(exits == model), batch.values(name)
        # What is not a class raises here, with its row.
        codes = Vocabulary(ClassRule()).codes(values, name, batch.start)
        missing = rows[codes[rows] == MISSING]
        if missing.size:
            raise InvalidValueError(
                f"{name}[{batch.start + missing[0]}] is missing ({missing.size} such values), and "
                "this model answers there."
            )
        written = [
            value if isinstance(value, str) else class_of(value) for value in values.distinct
        ]
        answers[rows] = np.array([*written, None], dtype=object)[values.places[rows]]
    return _of_one_type(answers, predictions)


def _of_one_type(answers: NDArray[Any], predictions: Sequence[str]) -> NDArray[Any]:
    found = answers.tolist()
    if all(isinstance(value, str) for value in found):
        return np.array(found, dtype=np.str_)
    if any(isinstance(value, str) for value in found):
        raise InvalidTypeError(
            f"{', '.join(predictions)} hold numbers and text, which are never equal: name classes "
            "one way."
        )
    least, most = min(found, default=0), max(found, default=0)
    if least < -(2**63) or most >= 2**64 or (least < 0 and most >= 2**63):
        raise InvalidTypeError(
            f"{', '.join(predictions)} hold {least} and {most}, and no type holds both: write all "
            "predictions with one type."
        )
    return np.array(found, dtype=np.uint64 if most >= 2**63 else np.int64)


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

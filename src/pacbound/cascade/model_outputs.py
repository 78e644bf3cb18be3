"""What a model of a cascade may give back, and how it is read: a label and a float64 confidence for
every row.

A model gives an (n, C) table of class probabilities, or `Answers` where there are no probabilities
over classes. Anything else raises a `ModelError` that names the model and the row. The confidence
is cast to float64 before it is compared, as it was when the certificate counted it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.stages import Stage
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.columns import ROUNDING, as_array, as_column, as_score_column, numeric
from pacbound.tally.toplabel import ONE_SCORE, top_blocks

Array = NDArray[Any]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Answers:
    """Labels and confidences of a batch, from a model without probabilities over classes; the last
    model needs no confidence.

    Parameters
    ----------
    labels : array-like of shape (n,)
        The label of each row: numbers or text.
    confidence : array-like of shape (n,), optional
        How sure the model is of each, from 0 to 1.

    Examples
    --------
    >>> Answers(["refund", "greeting"], [0.98, 0.61])
    Answers(labels=['refund', 'greeting'], confidence=[0.98, 0.61])
    """

    labels: Any
    confidence: Any = None


@dataclass(frozen=True)
class Answer:
    """The label and the confidence of one item; the last model of a cascade needs no confidence.

    Parameters
    ----------
    label : any
        The label: a number, text, or an object such as parsed JSON.
    confidence : float, optional
        How sure the model is of it, from 0 to 1.

    Examples
    --------
    >>> Answer("refund", 0.98)
    Answer(label='refund', confidence=0.98)
    """

    label: Any
    confidence: Any = None


@dataclass(frozen=True)
class SaidByModel:
    """What a model said: a label and a confidence per row, NaN where none was given, and how many
    classes it knows.
    """

    labels: Array
    confidence: Floats
    n_classes: int | None = None

    @property
    def kind(self) -> str:
        """What the labels are."""
        return {"U": "text", "T": "text", "O": "objects"}.get(self.labels.dtype.kind, "numbers")


def read_batch(stage: Stage, output: Any, rows: Rows, classes: Array | None) -> SaidByModel:
    """What `stage` said about `rows`, from what its model gave back for them."""
    with _explained(stage, f"gave {len(rows)} rows no answer"):
        if isinstance(output, Answers):
            return _read_answers(stage, output, rows)
        _refuse_tuple(output, "Answers(labels, confidence)")
        return _read_table(stage, output, rows, classes)


def read_item(stage: Stage, output: Any, item: int, classes: Array | None) -> SaidByModel:
    """What `stage` said about one item: an `Answer`, or one probability per class."""
    rows = np.array([item])
    with _explained(stage, f"gave item {item} no answer", row=item):
        if isinstance(output, Answer):
            given = _on_host(output.confidence)
            confidence = None if given is None else as_array(given, "confidence").reshape(-1)
            return SaidByModel(
                _one_label(stage, output.label, item), _scores(stage, confidence, rows)
            )
        _refuse_tuple(output, "Answer(label, confidence)")
        probabilities = as_array(_on_host(output), "probabilities")
        if probabilities.ndim != 1:
            raise InvalidValueError(
                f"shape {probabilities.shape}: expected one probability per class, or an Answer."
            )
        return _read_table(stage, probabilities[None, :], rows, classes)


@contextmanager
def _explained(stage: Stage, what: str, row: int | None = None) -> Iterator[None]:
    """Say of an output that cannot be read which model gave it, and for what."""
    try:
        yield
    except (InvalidValueError, InvalidTypeError) as error:
        raise stage.error(f"{what}: {error}", row=row) from error


def _refuse_tuple(output: Any, remedy: str) -> None:
    if isinstance(output, tuple):
        raise InvalidTypeError(f"a tuple, which could mean many things: return {remedy}.")


def require_same_classes(
    earlier: Sequence[tuple[Stage, SaidByModel]], stage: Stage, reading: SaidByModel
) -> None:
    """Raise if the answers of `stage` are of another kind, or over other classes, than those of the
    models before it.
    """
    for before, said in earlier:
        if said.kind != reading.kind:
            raise stage.error(
                f"answers with {reading.kind}, but model {before} with {said.kind}: name classes "
                "one way."
            )
        if None not in (said.n_classes, reading.n_classes) and said.n_classes != reading.n_classes:
            raise stage.error(
                f"knows {reading.n_classes} classes, but model {before} knows {said.n_classes}: "
                "expected the same classes, in the same columns."
            )


def _read_answers(stage: Stage, output: Answers, rows: Rows) -> SaidByModel:
    labels = as_column(_on_host(output.labels), "labels")
    if len(labels) != len(rows):
        raise stage.error(f"gave {len(labels)} labels for {len(rows)} rows.")
    if labels.dtype.kind not in "biufUT":
        raise InvalidTypeError(f"labels of dtype {labels.dtype}: expected numbers or strings.")
    return SaidByModel(labels, _scores(stage, output.confidence, rows))


def _read_table(stage: Stage, output: Any, rows: Rows, classes: Array | None) -> SaidByModel:
    table = numeric(as_array(_on_host(output), "probabilities"), "probabilities")
    if table.ndim != 2 or len(table) != len(rows) or not table.shape[1]:
        hint = (
            " For two classes, return both columns: 1 - p and p."
            if table.shape == (len(rows),)
            else ""
        )
        raise stage.error(
            f"gave shape {table.shape} for {len(rows)} rows: expected ({len(rows)}, classes).{hint}"
        )
    if table.shape[1] == 1:
        raise stage.error(f"gave shape {table.shape}, {ONE_SCORE}.")
    if classes is not None and len(classes) != table.shape[1]:
        raise stage.error(f"knows {table.shape[1]} classes, but {len(classes)} names were given.")
    if table.min() < 0:
        _refuse(stage, table.min(axis=1), rows, "probability")
    confidence, labels = np.empty(len(table)), np.empty(len(table), dtype=np.intp)
    for start, top, label in top_blocks(table):
        confidence[start : start + len(top)] = top
        labels[start : start + len(top)] = label
    return SaidByModel(
        labels if classes is None else classes[labels],
        _checked(stage, confidence, rows),
        table.shape[1],
    )


def _scores(stage: Stage, confidence: Any, rows: Rows) -> Floats:
    if confidence is None:
        if not stage.last:
            raise stage.error(
                "gave no confidence, without which nothing can exit: only the last model needs "
                "none."
            )
        return np.full(len(rows), np.nan)
    scores = as_score_column(_on_host(confidence), "confidence").astype(np.float64)
    if len(scores) != len(rows):
        raise stage.error(f"gave {len(scores)} confidences for {len(rows)} rows.")
    return _checked(stage, scores, rows)


def _checked(stage: Stage, scores: Floats, rows: Rows) -> Floats:
    if not ((scores >= 0) & (scores <= 1 + ROUNDING)).all():
        _refuse(stage, scores, rows, "confidence")
    return np.minimum(scores, 1.0)


def _refuse(stage: Stage, scores: Array, rows: Rows, what: str) -> None:
    bad = np.flatnonzero(~((scores >= 0) & (scores <= 1 + ROUNDING)))
    value, row = scores[bad[0]], int(rows[bad[0]])
    hint = "" if np.isnan(value) else " These look like logits: pass softmax outputs."
    more = f" ({len(bad)} such {stage.unit}s)" if len(bad) > 1 else ""
    raise stage.error(
        f"gave {what} {value} for {stage.unit} {row}{more}: expected 0 to 1.{hint}", row=row
    )


def _one_label(stage: Stage, label: Any, item: int) -> Array:
    if label is None:
        raise stage.error(f"gave item {item} no label.", row=item)
    if isinstance(label, (str, bool, int, float, np.generic)):
        return np.array([label])
    held = np.empty(1, dtype=object)
    held[0] = label
    return held


def _on_host(values: Any) -> Any:
    """A tensor on any device, with or without a gradient, as one that NumPy can read."""
    if hasattr(values, "detach"):
        values = values.detach()
    return values.cpu() if hasattr(values, "cpu") else values

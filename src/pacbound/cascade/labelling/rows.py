"""What a session keeps of its rows: the counts of all, and the rows whose label can matter.

Those are the rows in which a fast model differs from the slow one. All others are counted once and
forgotten.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.rows import Reading
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import open_table
from pacbound.sources.batches import require_columns
from pacbound.tally.classes import ClassRule, Evidence, Vocabulary
from pacbound.tally.columns import same_length, same_rows
from pacbound.tally.count import Counting
from pacbound.tally.questions.cascade import CascadeQuestion
from pacbound.tally.questions.question import Slot, scaled
from pacbound.tally.rows import Rows
from pacbound.tally.tally import Tally

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_DOUBT = "slow_confidence"


@dataclass(frozen=True, eq=False)
class SessionRows:
    """The tally of all rows without labels, and the rows in which predictions differ.

    Attributes
    ----------
    tally : Tally
        All rows, none of them with a label.
    numbers : ndarray of shape (k,)
        The rows in which predictions differ, counted from 0, in rising order.
    cells : ndarray of shape (k, M-1)
        The cells of their scores.
    answers : tuple of ndarray of shape (k,)
        What each model predicts there, by the numbers of the vocabulary.
    places : ndarray of shape (k,)
        Where their cells stand in the tally.
    doubt : ndarray of shape (k,)
        The confidence of the slow model; NaN where it is not known.
    vocabulary, evidence
        The classes of the predictions, and what was seen of them.
    digest : str
        SHA-256 of all scores and predictions.
    """

    tally: Tally
    numbers: Integers
    cells: Integers
    answers: tuple[Integers, ...]
    places: Integers
    doubt: Floats
    vocabulary: Vocabulary
    evidence: Evidence
    digest: str

    @property
    def exits(self) -> int:
        """The number of models before the slow one."""
        return len(self.answers) - 1

    @property
    def differ(self) -> NDArray[np.bool_]:
        """Which exits differ from the slow model; (exits, k)."""
        return np.stack([codes != self.answers[-1] for codes in self.answers[:-1]])


def session_rows(
    columns: Mapping[str, Any], slow_confidence: Any, data: Any, reading: Reading
) -> SessionRows:
    """The rows of (n, M-1) confidences and (n, M) predictions, as arrays or as columns of a file,
    which is read in order.
    """
    if columns["prediction"] is None:
        raise InvalidTypeError("prediction is missing: pass those of all models.")
    if data is None:
        return _of_arrays(columns, slow_confidence, reading.rule)
    if not isinstance(data, (str, os.PathLike)):
        raise InvalidTypeError(
            f"data is of type {type(data).__name__}: expected the path of one file. Pass arrays "
            "without data."
        )
    named = {
        name: [given] if isinstance(given, str) else list(given) for name, given in columns.items()
    }
    if not all(isinstance(name, str) for names in named.values() for name in names):
        raise InvalidTypeError(
            "With data, confidence and prediction name its columns: expected texts."
        )
    return _of_file(data, named, slow_confidence, reading)


def _of_arrays(columns: Mapping[str, Any], slow_confidence: Any, rule: ClassRule) -> SessionRows:
    same_rows(**columns, slow_confidence=slow_confidence)
    question, arrays = CascadeQuestion.of_arrays(**columns)
    slots = _slots(question, None if slow_confidence is None else _DOUBT, None)
    rows = Rows.of_arrays(slots, {**arrays, _DOUBT: slow_confidence})
    if slow_confidence is not None:
        same_length(confidence=rows, slow_confidence=rows.numbers(_DOUBT))
    gathering = _Gathering(question, rule)
    gathering.add(rows)
    return gathering.result()


def _of_file(
    path: str | os.PathLike[str],
    columns: Mapping[str, Sequence[str]],
    slow_confidence: str | None,
    reading: Reading,
) -> SessionRows:
    table, question = open_table(path, reading.notation), CascadeQuestion.of_columns(**columns)
    slots = _slots(question, slow_confidence, reading.notation.scale)
    needed = list(dict.fromkeys(slot.name for slot in slots.values()))
    require_columns(table, needed)
    gathering = _Gathering(question, reading.rule)
    for batch in table.batches(needed, progress=reading.progress):
        try:
            gathering.add(Rows.of_batch(slots, batch))
        except (InvalidTypeError, InvalidValueError) as error:
            raise type(error)(f"{table.path}: {error}") from None
    return gathering.result()


def _slots(
    question: CascadeQuestion, slow_confidence: str | None, scale: float | None
) -> dict[str, Slot]:
    """The columns of a question, and the slow model's confidence beside them."""
    slots = dict(question.slots)
    if slow_confidence is not None:
        slots[_DOUBT] = Slot("number or nothing", slow_confidence)
    return scaled(slots, scale)


class _Gathering:
    """Takes rows part by part."""

    def __init__(self, question: CascadeQuestion, rule: ClassRule) -> None:
        self._question = question
        self._counting = Counting(question, rule)
        self._scores, self._models = (
            [slot for slot in question.slots if slot.startswith(role)]
            for role in ("confidence", "prediction")
        )
        self._hashes = {slot: hashlib.sha256() for slot in (*self._scores, *self._models)}
        self._parts: list[tuple[Any, ...]] = []

    def add(self, rows: Rows) -> None:
        start = self._counting.rows
        self._counting.ask(rows)
        vocabulary = self._counting.vocabulary
        scores = np.column_stack([rows.scores(slot) for slot in self._scores])
        answers = np.stack([rows.classes(slot, vocabulary) for slot in self._models])
        names = _named(vocabulary)
        for slot, column in zip(self._scores, scores.T, strict=True):
            self._hashes[slot].update(np.ascontiguousarray(column, dtype="<f8").data)
        for slot, codes in zip(self._models, answers, strict=True):
            self._hashes[slot].update(names[codes].data)
        kept = np.flatnonzero((answers[:-1] != answers[-1]).any(axis=0))
        cells = np.column_stack([self._question.grid.cells(column[kept]) for column in scores.T])
        doubt = np.full(len(kept), np.nan)
        if _DOUBT in rows.slots:
            doubt = rows.numbers(_DOUBT)[kept].astype(np.float64)
        self._parts.append((start + kept, cells, answers[:, kept], doubt))

    def result(self) -> SessionRows:
        if not self._counting.rows:
            raise InvalidValueError("There are no rows: a guarantee needs at least one.")
        tally = Tally.of(self._question, self._counting.result())
        numbers, cells, answers, doubt = zip(*self._parts, strict=True)
        whole = np.concatenate(cells)
        digest = hashlib.sha256(b"pacbound session rows 1")
        for part in self._hashes.values():
            digest.update(part.digest())
        return SessionRows(
            tally=tally,
            numbers=np.concatenate(numbers),
            cells=whole,
            answers=tuple(np.concatenate(answers, axis=1)),
            places=_places(whole, tally.cells, self._question.grid.n_cells),
            doubt=np.concatenate(doubt),
            vocabulary=self._counting.vocabulary,
            evidence=self._counting.evidence,
            digest=f"sha256:{digest.hexdigest()}",
        )


def _named(vocabulary: Vocabulary) -> NDArray[np.uint64]:
    """A number for each class that depends on nothing but the class, by its place."""
    classes = list(vocabulary)
    names = [
        hashlib.sha256(f"{type(found).__name__} {found}".encode("utf-8", "surrogatepass")).digest()
        for found in classes
    ]
    return np.array([int.from_bytes(name[:8], "little") for name in names], dtype="<u8")


def _places(cells: Integers, table: Integers, width: int) -> Integers:
    """Where each row of `cells`, all below `width`, stands in the rows of `table`, which are in
    order.
    """
    radix = width ** np.arange(table.shape[1])[::-1]
    return np.searchsorted(table @ radix, cells @ radix)

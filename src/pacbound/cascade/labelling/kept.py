"""What a session keeps: of its rows the counts of all and the rows whose label can matter; in its
file what was fixed, whose rows they are, and the labels in the order in which they came.

A label can matter where a fast model differs from the slow one; all other rows are counted once and
forgotten. The file is written whole at each save, in one step, so a crash leaves the labels of the
last save. It holds no rows, only a digest of them: labels go with the rows they were given for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound import documents
from pacbound.cascade.labelling.walks import SessionClaim
from pacbound.cascade.rows import ReadingOptions
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.file_locks import locked
from pacbound.procedures.cascade import NAMES
from pacbound.sources import open_table
from pacbound.sources.batches import require_columns
from pacbound.tally.classes import Class, ClassRule, Evidence, Vocabulary
from pacbound.tally.columns import Rows, Slot, same_length, same_rows, scaled
from pacbound.tally.count import Counting
from pacbound.tally.questions.cascade import CASCADE, CascadeQuestion
from pacbound.tally.tally import Tally

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FORMAT = "pacbound-label-session"
SCHEMA = 1
WHAT = "a pacbound label session"
LARGEST_FILE = 2**28
_LARGEST_CLASS = 2**63
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

    def checks(self, numbers: Integers) -> NDArray[np.str_]:
        """A short text for each of these rows of this session: answers that come back with it are
        for this row, whatever else they show.
        """
        hashes = [hashlib.sha256(f"{self.digest} {row}".encode()) for row in numbers.tolist()]
        # A letter first, so that no spreadsheet takes it for a number.
        return np.array([f"r{found.hexdigest()[:7]}" for found in hashes], dtype="U8")

    @property
    def differ(self) -> NDArray[np.bool_]:
        """Which exits differ from the slow model; (exits, k)."""
        return np.stack([codes != self.answers[-1] for codes in self.answers[:-1]])


def session_rows(
    columns: Mapping[str, Any], slow_confidence: Any, data: Any, reading: ReadingOptions
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
    question, arrays = CASCADE.of_arrays(**columns)
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
    reading: ReadingOptions,
) -> SessionRows:
    table, question = open_table(path, reading.notation), CASCADE.of_columns(**columns)
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


@dataclass(frozen=True)
class SessionDocument:
    """All that a session file says."""

    rows: int
    digest: str
    sources: frozenset[str]
    asked: SessionClaim
    costs: tuple[float, ...] | None
    rule: ClassRule
    labels: Mapping[int, Class]
    declined: tuple[int, ...]
    unused: tuple[int, ...]
    undone: tuple[tuple[int, Class | None], ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to `path`, unless another session is there, or one that knows more."""
        body = self._body()
        with locked(path, wait=True):
            if Path(path).exists() and Path(path).is_file():
                self._require_same(SessionDocument.read(path), path)
            documents.write(path, documents.sealed(body))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SessionDocument:
        """The session in `path`, or a `CertificateError` that says why it cannot be read."""
        found = documents.read(path, WHAT, largest=LARGEST_FILE)
        remedy = "A session is changed only by telling it labels."
        documents.require_seal(found, str(path), WHAT, FORMAT, SCHEMA, remedy)
        return cls._of(Reader(found, str(path)))

    @classmethod
    def _of(cls, body: Reader) -> SessionDocument:
        asked, rows = body.mapping("asked"), body.mapping("rows")
        told, classes = body.integers("labelled"), _classes(body, "labels")
        if len(told) != len(classes) or len(set(told)) != len(told):
            raise CertificateError(f"{body.place('labels')} does not fit the rows with a label.")
        costs = None if asked.raw("costs") is None else tuple(asked.numbers("costs"))
        listed = None if asked.raw("classes") is None else _classes(asked, "classes")
        return cls(
            rows=rows.positive("count"),
            digest=rows.text("digest"),
            sources=frozenset(rows.texts("sources")),
            asked={
                "xi": asked.rate("xi"),
                "delta": asked.probability("delta"),
                "bound": asked.choice("bound", tuple(NAMES)),
            },
            costs=costs,
            rule=ClassRule.of(listed, _classes(asked, "missing"), asked.number("unseen_labels")),
            labels=dict(zip(told, classes, strict=True)),
            declined=tuple(body.integers("declined")),
            unused=tuple(body.integers("unused")),
            undone=_undone(body),
        )

    def _body(self) -> dict[str, Json]:
        for row, label in self.labels.items():
            if isinstance(label, int) and abs(label) >= _LARGEST_CLASS:
                raise InvalidValueError(
                    f"The label of row {row} is {label}, which is too large for a file: expected "
                    "classes below 2**63."
                )
        listed = self.rule.listed()
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "rows": {"count": self.rows, "digest": self.digest, "sources": sorted(self.sources)},
            "asked": {
                **self.asked,
                "costs": None if self.costs is None else list(self.costs),
                "classes": listed["classes"],
                "missing": listed["missing"] or [],
                "unseen_labels": self.rule.unseen_labels,
            },
            "labelled": list(self.labels),
            "labels": list(self.labels.values()),
            "declined": list(self.declined),
            "unused": list(self.unused),
            "undone": [list(each) for each in self.undone],
        }

    def _require_same(self, there: SessionDocument, path: str | os.PathLike[str]) -> None:
        """Refuse to replace a session of other rows or another claim, or labels that this one does
        not have.
        """
        if there.digest != self.digest:
            raise InvalidValueError(
                f"{path} holds the session of other rows, and stays as it is: name another file."
            )
        if there.fixed != self.fixed:
            raise InvalidValueError(
                f"{path} holds a session of the same rows that asked for something else "
                f"({_shown(there.asked)}; here {_shown(self.asked)}), and stays as it is. What is "
                "asked for may not change once labels were seen."
            )
        lost = {row for row, label in there.labels.items() if self.labels.get(row) != label}
        lost |= {*there.declined} - {*self.declined, *self.labels}
        # Only what nobody has used may have been taken back.
        undone = {*there.unused} & {row for row, _ in self.undone}
        if not lost <= undone or there.undone != self.undone[: len(there.undone)]:
            raise InvalidValueError(
                f"{path} holds labels that this session does not have, and stays as it is: another "
                "process may be telling it labels. Load it, and tell it these."
            )

    @property
    def fixed(self) -> tuple[Any, ...]:
        """What was fixed before any label was seen."""
        return self.asked, self.costs, self.rule


def _classes(reader: Reader, key: str) -> list[Class]:
    found = reader.raw(key)
    if not isinstance(found, list) or not all(type(value) in (int, str) for value in found):
        raise CertificateError(f"{reader.place(key)}: expected a list of numbers and names.")
    return found


def _undone(body: Reader) -> tuple[tuple[int, Class | None], ...]:
    """What was taken back, in order: rows, each with the label that it had, None if declined."""
    found = body.raw("undone")
    if not isinstance(found, list) or not all(
        isinstance(each, list)
        and len(each) == 2
        and type(each[0]) is int
        and (each[1] is None or type(each[1]) in (int, str))
        for each in found
    ):
        raise CertificateError(f"{body.place('undone')}: expected rows with their labels.")
    return tuple((row, label) for row, label in found)


def _shown(asked: SessionClaim) -> str:
    return f"xi = {asked['xi']}, delta = {asked['delta']}, bound {asked['bound']!r}"

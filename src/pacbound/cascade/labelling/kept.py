"""What a session keeps: of its rows the counts of all and the rows whose label can matter; what it
was told of these; in its file what was fixed, whose rows they are, and the labels in the order in
which they came.

A label can matter where a fast model differs from the slow one; all other rows are counted once and
forgotten. Where answers are graded, the quality of each model's answer takes the place of the
label, and every row keeps its coin. The file is written whole at each save, in one step, so a crash
leaves the labels of the last save. It holds no rows, only a digest of them: labels go with the rows
they were given for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound import documents
from pacbound.cascade.labelling.forecast import GradeRates, LabelRates
from pacbound.cascade.rows import ReadingOptions
from pacbound.documents import Json, Reader
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    UnwritableFileError,
)
from pacbound.file_locks import locked
from pacbound.procedures.cascade import NAMES
from pacbound.procedures.cascade_groups import Asked
from pacbound.sources import open_table
from pacbound.sources.batches import located, require_columns
from pacbound.sources.values import MISSING, Values, values_of
from pacbound.tally.classes import Class, ClassRule, Evidence, Vocabulary
from pacbound.tally.coins import COIN, Coins, Graded, graded_from, graded_to_dict
from pacbound.tally.columns import (
    QUALITY,
    Rows,
    Slot,
    as_array,
    same_length,
    same_rows,
    scaled,
    stored,
)
from pacbound.tally.count import Counting
from pacbound.tally.draws import Candidates, Draw, draw_slots
from pacbound.tally.questions.cascade import (
    CASCADE,
    FOR_GOOD,
    ONLY_SLOW,
    CascadeQuestion,
    exit_outcomes,
    joint_of,
    joint_outcome,
    quality_columns,
    require_graded,
)
from pacbound.tally.tally import Tally

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FORMAT = "pacbound-label-session"
SCHEMA = 1
WHAT = "a pacbound label session"
LARGEST_FILE = 2**28
_LARGEST_CLASS = 2**63
_DOUBT = "slow_confidence"

# What a session was told of a row, as it is listed: a class, or the quality of each model's answer,
# from 0 to 1, None where it is missing.
Qualities = tuple[float | None, ...]
# The same of some rows: the number of a class in one column, or qualities in one for each model.
Told = NDArray[Any]
# What further rows would be told, by their places and how many came before.
Imagined = Callable[[Integers, int], Told]
_IDS = "row_ids"


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
        What each model predicts there, by the numbers of the vocabulary; empty without predictions.
    places : ndarray of shape (k,)
        Where their cells stand in the tally.
    doubt : ndarray of shape (k,)
        The confidence of the slow model; NaN where it is not known.
    vocabulary, evidence
        The classes of the predictions, and what was seen of them.
    digest : str
        SHA-256 of all scores and predictions, and of the coins where answers are graded.
    graded : Graded or None
        How answers are graded; None where rows get labels.
    coins : ndarray of shape (k,)
        Their coins, if answers are graded.
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
    graded: Graded | None
    coins: Floats

    @property
    def exits(self) -> int:
        """The number of models before the slow one."""
        return int(self.cells.shape[1])

    def checks(self, numbers: Integers) -> NDArray[np.str_]:
        """A short text for each of these rows of this session: answers that come back with it are
        for this row, whatever else they show.
        """
        hashes = [hashlib.sha256(f"{self.digest} {row}".encode()) for row in numbers.tolist()]
        # A letter first, so that no spreadsheet takes it for a number.
        return np.array([f"r{found.hexdigest()[:7]}" for found in hashes], dtype="U8")

    @property
    def differ(self) -> NDArray[np.bool_]:
        """Which exits differ from the slow model; (exits, k). Without predictions, all."""
        if not self.answers:
            return np.ones((self.exits, len(self.numbers)), dtype=np.bool_)
        return np.stack([codes != self.answers[-1] for codes in self.answers[:-1]])


def session_rows(
    columns: Mapping[str, Any],
    slow_confidence: Any,
    data: Any,
    reading: ReadingOptions,
    graded: Graded | None = None,
) -> SessionRows:
    """The rows of (n, M-1) confidences and (n, M) predictions, as arrays or as columns of a file,
    which is read in order. Where answers are graded there may be ids of rows, and no predictions.
    """
    columns = {name: given for name, given in columns.items() if given is not None}
    if graded is None and "prediction" not in columns:
        raise InvalidTypeError(
            "prediction is missing: pass those of all models. Answers that are graded need none: "
            "outcome='quality' (--quality)."
        )
    if data is None:
        return _of_arrays(columns, slow_confidence, reading.rule, graded)
    if not isinstance(data, (str, os.PathLike)):
        raise InvalidTypeError(
            f"data is of type {type(data).__name__}: expected the path of one file. Of a frame, "
            "collect the columns of confidence and prediction, and pass them as arrays without "
            "data."
        )
    named = {
        name: [given] if isinstance(given, str) else list(given) for name, given in columns.items()
    }
    if not all(isinstance(name, str) for names in named.values() for name in names):
        raise InvalidTypeError(
            f"With data, {' and '.join(columns)} name its columns: expected texts."
        )
    return _of_file(data, named, slow_confidence, reading, graded)


def _of_arrays(
    columns: Mapping[str, Any], slow_confidence: Any, rule: ClassRule, graded: Graded | None
) -> SessionRows:
    same_rows(**columns, slow_confidence=slow_confidence)
    ids = {name: given for name, given in columns.items() if name == _IDS}
    asked = {name: given for name, given in columns.items() if name != _IDS}
    if graded is not None:
        shape = as_array(columns["confidence"], "confidence").shape
        asked[QUALITY] = np.full((*shape[:1], 1 + (shape[1] if len(shape) > 1 else 1)), nan)
    question, arrays = CASCADE.of_arrays(**asked)
    question = _to_grade(question, graded, draw_slots(ids, columns=False))
    slots = _slots(question, None if slow_confidence is None else _DOUBT, None)
    rows = Rows.of_arrays(slots, {**arrays, **ids, _DOUBT: slow_confidence})
    beside = {name: rows.columns[name] for name in (_IDS, _DOUBT) if name in slots}
    same_length(confidence=rows, **beside)
    gathering = _Gathering(question, rule)
    gathering.add(rows)
    return gathering.result()


def _of_file(
    path: str | os.PathLike[str],
    columns: Mapping[str, Sequence[str]],
    slow_confidence: str | None,
    reading: ReadingOptions,
    graded: Graded | None,
) -> SessionRows:
    table, asked = open_table(path, reading.notation), dict(columns)
    ids = {name: asked.pop(name)[0] for name in (_IDS,) if name in asked}
    if graded is not None:
        asked[QUALITY] = [f"{QUALITY} {m}" for m in range(len(asked["confidence"]) + 1)]
    question = _to_grade(CASCADE.of_columns(**asked), graded, draw_slots(ids, columns=True))
    slots = _slots(question, slow_confidence, reading.notation.scale)
    needed = list(dict.fromkeys(slot.name for slot in stored(slots).values()))
    require_columns(table, needed)
    gathering = _Gathering(question, reading.rule)
    for batch in table.batches(needed, progress=reading.progress):
        with located(table.path):
            gathering.add(Rows.of_batch(slots, batch))
    return gathering.result()


def _to_grade(
    question: CascadeQuestion, graded: Graded | None, ids: Mapping[str, Slot]
) -> CascadeQuestion:
    """The question of rows that have no quality yet, and the ids that their coins go by."""
    if graded is None:
        return question
    slots = {
        key: replace(slot, constant=nan) if key.startswith(QUALITY) else slot
        for key, slot in question.slots.items()
    }
    return replace(question, slots={**slots, **ids}, graded=graded)


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
        self._coins = None if question.graded is None else Coins(question.graded)
        ids = {name: slot for name, slot in question.slots.items() if name == _IDS}
        self._ids = Candidates(Draw("rows", ids, seed=0), self._id) if ids else None
        self._id_parts: list[NDArray[Any]] = []
        self._scores, self._models = (
            [slot for slot in question.slots if slot.startswith(role)]
            for role in ("confidence", "prediction")
        )
        tossed = [] if self._coins is None else [COIN]
        self._hashes = {slot: hashlib.sha256() for slot in (*self._scores, *self._models, *tossed)}
        self._parts: list[tuple[Any, ...]] = []

    def add(self, rows: Rows) -> None:
        start, counting = self._counting.rows, self._counting
        coins = np.zeros(0)
        if self._ids is not None:
            self._ids.take(rows)
            self._id_parts.append(rows.columns[_IDS])
        if self._coins is not None:
            rows = self._coins.tossed(rows)
            coins = rows.numbers(COIN)
            self._hashes[COIN].update(np.ascontiguousarray(coins, dtype="<f8").data)
        vocabulary = counting.vocabulary
        counting.add(self._question.judge(rows, vocabulary, counting.evidence))
        scores = np.column_stack([rows.scores(slot) for slot in self._scores])
        answers = np.array([rows.classes(slot, vocabulary) for slot in self._models])
        answers = answers.reshape(len(self._models), len(rows))
        names = _named(vocabulary)
        for slot, column in zip(self._scores, scores.T, strict=True):
            self._hashes[slot].update(np.ascontiguousarray(column, dtype="<f8").data)
        for slot, codes in zip(self._models, answers, strict=True):
            self._hashes[slot].update(names[codes].data)
        kept = np.arange(len(rows))
        if self._models:
            kept = np.flatnonzero((answers[:-1] != answers[-1]).any(axis=0))
        cells = np.column_stack([self._question.grid.cells(column[kept]) for column in scores.T])
        doubt = np.full(len(kept), np.nan)
        if _DOUBT in rows.slots:
            doubt = rows.numbers(_DOUBT)[kept].astype(np.float64)
        coins = coins[kept] if coins.size else coins
        self._parts.append((start + kept, cells, answers[:, kept], doubt, coins))

    def _id(self, place: int) -> str:
        return str(np.concatenate(self._id_parts)[place])

    def result(self) -> SessionRows:
        if not self._counting.rows:
            raise InvalidValueError("There are no rows: a guarantee needs at least one.")
        if self._ids is not None:
            self._counting.ids = self._ids.ids()
        tally = Tally.of(self._question, self._counting.result())
        numbers, cells, answers, doubt, coins = zip(*self._parts, strict=True)
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
            graded=self._question.graded,
            coins=np.concatenate(coins),
        )


class ByLabel:
    """Rows are told their label: the number of a class, MISSING where there is none."""

    what, several = "label", "labels"

    def __init__(self, rows: SessionRows) -> None:
        self._rows = rows

    def nothing(self, count: int) -> Told:
        """`count` rows without a label."""
        return np.full((count, 1), MISSING)

    def known(self, told: Told) -> NDArray[np.bool_]:
        """Which rows have a label."""
        return np.asarray(told != MISSING)

    def read(self, labels: Any, name: str = "labels", start: int = 0) -> Told:
        """Labels, in the form in which they are kept."""
        values = labels if isinstance(labels, Values) else values_of(labels, name)
        return self._rows.vocabulary.codes(values, name, start)[:, None]

    def listed(self, told: Told) -> list[Any]:
        """The labels given so far, for people and files; None where there is none."""
        names = [*self._rows.vocabulary, None]
        return [names[code] for code in told[:, 0].tolist()]

    def named(self, told: Told) -> str:
        """The label of one row, for messages."""
        (found,) = self.listed(told)
        return "none" if found is None else repr(found)

    def unlisted(self, values: Sequence[Any]) -> Told:
        """Labels of a file, in the form in which they are kept."""
        return self.read(list(values))

    def outcomes(self, places: Integers, told: Told) -> Integers:
        """The joint outcome of each row."""
        return joint_outcome(self._answers(places), told[:, 0])

    def for_good(self, places: Integers, told: Told) -> Integers:
        """The same if no more labels come."""
        answers = self._answers(places)
        return joint_outcome(answers, np.where(told[:, 0] == MISSING, answers[-1], told[:, 0]))

    def open(self, places: Integers, told: Told) -> NDArray[np.bool_]:
        """At which exits a label could still matter; (exits, rows)."""
        return np.asarray(self._rows.differ[:, places] & (told[:, 0] == MISSING))

    def imagined(self, order: Integers, told: Told, declined: int) -> Imagined:
        """Labels of further rows that are like those of `order`."""
        rates = LabelRates.seen(self._answers(order), told[:, 0], declined)
        return lambda places, first: rates.labels(self._answers(places), first)[:, None]

    def _answers(self, places: Integers) -> list[Integers]:
        return [column[places] for column in self._rows.answers]


class ByQuality:
    """Rows are told the quality of each model's answer, from 0 to 1, NaN where it is missing: some
    may come before the others.
    """

    what, several = "quality", "grades"

    def __init__(self, rows: SessionRows, graded: Graded) -> None:
        self._rows, self._graded, self._models = rows, graded, rows.exits + 1

    def nothing(self, count: int) -> Told:
        """`count` rows without a grade."""
        return np.full((count, self._models), nan)

    def known(self, told: Told) -> NDArray[np.bool_]:
        """Which answers have a grade."""
        return ~np.isnan(told)

    def read(self, quality: Any, name: str = QUALITY, start: int = 0) -> Told:
        """Grades as they are kept: a column for each model, or the slow one's alone."""
        columns = quality if isinstance(quality, Mapping) else None
        if columns is None:
            found = quality_columns(quality)
            names = [name] if len(found) == 1 else [f"{name}[:, {m}]" for m in range(len(found))]
            columns = dict(zip(names, found, strict=True))
        require_graded(self._models, len(columns), preferred=False)
        read = [self._graded.quality(grades, name, start) for name, grades in columns.items()]
        return np.column_stack(read if len(read) > 1 else [1.0 - read[0], read[0]])

    def listed(self, told: Told) -> list[Any]:
        """The grades given so far, for people and files; None where there is none."""
        return [
            None if all(map(isnan, row)) else tuple(None if isnan(one) else one for one in row)
            for row in told.tolist()
        ]

    def named(self, told: Told) -> str:
        """The grades of one row, on their scale, for messages."""
        worst, best = self._graded.scale
        return ", ".join(
            "none" if isnan(one) else f"{worst + one * (best - worst):g}"
            for one in told[0].tolist()
        )

    def unlisted(self, values: Sequence[Any]) -> Told:
        """Grades of a file, in the form in which they are kept."""
        return np.array(values, dtype=np.float64).reshape(-1, self._models)

    def outcomes(self, places: Integers, told: Told) -> Integers:
        """The joint outcome of each row."""
        return joint_of(self._at_exits(places, told))

    def for_good(self, places: Integers, told: Told) -> Integers:
        """The same if no more grades come."""
        return joint_of(FOR_GOOD[self._at_exits(places, told)])

    def open(self, places: Integers, told: Told) -> NDArray[np.bool_]:
        """At which exits a grade could still matter; (exits, rows)."""
        return self._at_exits(places, told) > ONLY_SLOW

    def imagined(self, order: Integers, told: Told, declined: int) -> Imagined:
        """Qualities of further rows that are like those `told`."""
        cells = self._rows.cells
        rates = GradeRates.seen(told, cells[order], declined)
        return lambda places, first: rates.of_rows(first, cells[places])

    def _at_exits(self, places: Integers, told: Told) -> Integers:
        rows = self._rows
        return exit_outcomes(rows.coins[places], list(told.T), rows.differ[:, places])


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
    asked: Asked
    costs: tuple[float, ...] | None
    rule: ClassRule
    graded: Graded | None
    told: Mapping[int, Class | Qualities]
    declined: tuple[int, ...]
    # Rows with what was told last, None if declined: what may still be taken back, which `told` and
    # `declined` do not count, and what was.
    unused: tuple[tuple[int, Class | Qualities | None], ...]
    undone: tuple[tuple[int, Class | Qualities | None], ...]

    def save(self, path: str | os.PathLike[str], *, by_hand: bool = False) -> None:
        """Write it to `path`, unless another session is there, or one with more labels. Only a
        caller who labels `by_hand`, and holds the lock all the time, may have taken back labels
        that are unused there.
        """
        body = self._body()
        with locked(path, wait=True):
            if Path(path).exists() and Path(path).is_file():
                there = SessionDocument.read(path)
                self._require_same(there if by_hand else there.used(), path)
            documents.write(path, documents.sealed(body))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SessionDocument:
        """The session in `path`, or a `CertificateError` that says why it cannot be read."""
        found = documents.read(path, WHAT, largest=LARGEST_FILE)
        remedy = "A session is changed only by telling it labels."
        documents.require_seal(found, str(path), WHAT, FORMAT, SCHEMA, remedy)
        return cls._of(Reader(found, str(path)))

    @classmethod
    def read_used(cls, path: str | os.PathLike[str]) -> SessionDocument:
        """The session in `path`. Labels that could still be taken back are used from now on, in the
        file too; they are left out if the process that may take them back holds the lock.
        """
        found = cls.read(path)
        if not found.unused:
            return found
        try:
            with locked(path, wait=False):
                used = cls.read(path).used()
                documents.write(path, documents.sealed(used._body()))
                return used
        except (InvalidValueError, UnwritableFileError):
            return replace(found, unused=())

    def used(self) -> SessionDocument:
        """The session in which no label can be taken back any more."""
        told = {row: label for row, label in self.unused if label is not None}
        declined = [row for row in self.declined if row not in told]
        declined += [row for row, label in self.unused if label is None]
        return replace(
            self, told={**self.told, **told}, declined=tuple(dict.fromkeys(declined)), unused=()
        )

    @classmethod
    def _of(cls, body: Reader) -> SessionDocument:
        asked, rows = body.mapping("asked"), body.mapping("rows")
        graded = None if body.raw("graded") is None else graded_from(body.mapping("graded"))
        told, labels = body.integers("labelled"), _labels(body, "labels", graded)
        if len(told) != len(labels) or len(set(told)) != len(told):
            raise CertificateError(f"{body.place('labels')} does not fit the rows with a label.")
        costs = None if asked.raw("costs") is None else tuple(asked.numbers("costs"))
        listed = None if asked.raw("classes") is None else asked.classes("classes")
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
            rule=ClassRule.of(listed, asked.classes("missing"), asked.number("unseen_labels")),
            graded=graded,
            told=dict(zip(told, labels, strict=True)),
            declined=tuple(body.integers("declined")),
            unused=_last_told(body, "unused", graded),
            undone=_last_told(body, "undone", graded),
        )

    def _body(self) -> dict[str, Json]:
        for row, label in self.told.items():
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
            "graded": None if self.graded is None else graded_to_dict(self.graded),
            "labelled": list(self.told),
            "labels": [_json(label) for label in self.told.values()],
            "declined": list(self.declined),
            "unused": [[row, _json(label)] for row, label in self.unused],
            "undone": [[row, _json(label)] for row, label in self.undone],
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
        # Only what nobody has used may have been taken back, and only that very label.
        known, undone = self.undone[: len(there.undone)], self.undone[len(there.undone) :]
        stays = tuple(each for each in there.unused if each not in undone)
        before, now = replace(there, unused=stays).used(), self.used()
        lost = {row for row, label in before.told.items() if not _is_kept(label, now.told.get(row))}
        lost |= {*before.declined} - {*now.declined, *now.told}
        if lost or there.undone != known:
            raise InvalidValueError(
                f"{path} holds labels that this session does not have, and stays as it is: another "
                "process may be telling it labels. Load it, and tell it these."
            )

    @property
    def fixed(self) -> tuple[Any, ...]:
        """What was fixed before any label was seen."""
        return self.asked, self.costs, self.rule, self.graded


def _is_kept(before: Class | Qualities, now: Class | Qualities | None) -> bool:
    """Whether the label given before is unchanged; qualities may have been added."""
    if not isinstance(before, tuple) or not isinstance(now, tuple):
        return before == now
    return all(one is None or one == other for one, other in zip(before, now, strict=True))


def _json(label: Class | Qualities | None) -> Json:
    return list(label) if isinstance(label, tuple) else label


def _labels(reader: Reader, key: str, graded: Graded | None) -> list[Any]:
    """The labels in a file: classes, or qualities."""
    found = reader.raw(key)
    if not isinstance(found, list) or not all(_is_told(each, graded) for each in found):
        what = "numbers and names" if graded is None else "lists of numbers from 0 to 1"
        raise CertificateError(f"{reader.place(key)}: expected a list of {what}.")
    return [tuple(each) if isinstance(each, list) else each for each in found]


def _is_told(found: Any, graded: Graded | None) -> bool:
    """Whether it can be the label of a row: a class, or the quality of each model's answer."""
    if graded is None:
        return type(found) in (int, str)
    return isinstance(found, list) and all(
        one is None or (type(one) in (int, float) and 0 <= one <= 1) for one in found
    )


def _last_told(
    body: Reader, key: str, graded: Graded | None
) -> tuple[tuple[int, Class | Qualities | None], ...]:
    """Rows in order, each with its last label, None if declined."""
    found = body.raw(key)
    if not isinstance(found, list) or not all(
        isinstance(each, list)
        and len(each) == 2
        and type(each[0]) is int
        and (each[1] is None or _is_told(each[1], graded))
        for each in found
    ):
        raise CertificateError(f"{body.place(key)}: expected rows with their labels.")
    return tuple((row, tuple(label) if isinstance(label, list) else label) for row, label in found)


def _shown(asked: Asked) -> str:
    return f"xi = {asked['xi']}, delta = {asked['delta']}, bound {asked['bound']!r}"

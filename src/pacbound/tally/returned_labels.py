"""Labels, or grades, that come back for rows: joined to them by the id that each row went out with.

Whatever writes rows to be labelled gives each an id, `pac_id`, by which its label comes home
(`pacbound.tally.row_ids`). What comes back need not hold more than that id and the label, in any
order and any format. Where the table has a column `pac_id` itself, of whole numbers, rows are known
by what stands there. The label is in the column `expert_label`, and the grades of several models in
`expert_grade_1` and so on; a file without them has the columns that are named for the table.

A label that lands on a wrong row makes a false certificate, so nothing is forgiven: an id that is
not that of a row, or that has two different labels, raises, and so does a label that contradicts
one that the table has. The question's own scores and classes, and the ids of joined tables, must
hold what the table holds where they came back beside the labels; all other columns are not
compared. Classes are read by the one rule (`pacbound.tally.classes`), each file by its own types. A
label that did not come back is missing, and what that means is up to the question.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.batches import Batch, Progress, TableFile, located
from pacbound.sources.engines import reading_frame
from pacbound.sources.fingerprints import fingerprinting
from pacbound.sources.formats.arrays import ArrayBatch
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.opening import open_tables
from pacbound.sources.paths import Paths, are_paths, expanded, format_of
from pacbound.sources.values import MISSING, Values
from pacbound.tally.classes import ClassRule, Vocabulary
from pacbound.tally.columns import (
    NO_FLAG,
    QUALITY,
    Floats,
    Integers,
    Slot,
    flags_with_gaps,
    numeric,
)
from pacbound.tally.questions.question import GRADED_SLOTS, Question
from pacbound.tally.row_ids import GRADE, ID, LABEL, Returned, RowIds, parted, spelling_of

# How far a score may be from what it was when it went out: digits are lost on the way.
CLOSE: Final = 1e-6

# What labels in a frame are called in messages.
THE_ANSWERS: Final = "the frame of answers"


@dataclass(frozen=True)
class KnownBy:
    """One column that came back beside the labels, by which rows are recognised: numbers, or
    classes in one spelling of them.
    """

    slot: Slot
    values: NDArray[Any]

    @classmethod
    def of(cls, batch: Batch, slot: Slot) -> KnownBy:
        """The column of a slot, in some rows."""
        if is_told_as_number(slot):
            numbers = batch.numbers(slot.name, missing=True)
            return cls(slot, np.asarray(numbers, dtype=np.float64))
        column = batch.values(slot.name)
        spelled = Values([*map(spelling_of, column.distinct)], column.places)
        return cls(slot, spelled.column)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.slot.name

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers, and not classes."""
        return is_told_as_number(self.slot)

    def differ(self, here: NDArray[Any]) -> Integers:
        """Where the table holds something else; a number that did not come back is passed over."""
        there = self.values
        if self.is_number:
            same = np.isclose(here, there, rtol=CLOSE, atol=CLOSE) | np.isnan(there)
        else:
            same = np.array([a == b for a, b in zip(here, there, strict=True)], dtype=bool)
        return np.flatnonzero(~same)

    def at(self, chosen: Any) -> KnownBy:
        """The same of some of the rows."""
        return replace(self, values=self.values[chosen])


@dataclass(frozen=True)
class AnswerColumn:
    """A column that came back, of classes, truth values or grades. They are read as numbers that
    can be compared, NaN where there is none; the `vocabulary` numbers classes.
    """

    key: str
    slot: Slot
    vocabulary: Vocabulary

    @classmethod
    def of(cls, key: str, slot: Slot, rule: ClassRule) -> AnswerColumn:
        """The column of a slot."""
        # The names of models, and ties, are not classes that a rule could list.
        return cls(key, slot, Vocabulary(ClassRule() if key == "preferred" else rule))

    @property
    def name(self) -> str:
        """What it is called."""
        return self.slot.name

    def came_as(self, columns: Collection[str]) -> str:
        """What it is called among the columns that came back."""
        role, _, model = self.key.partition(" ")
        own = LABEL if role == "label" else self.name
        if role == QUALITY and model:
            own = f"{GRADE}{int(model) + 1}"
        return own if own in columns else self.name

    @property
    def what(self) -> str:
        """What it holds, for a message."""
        return repr(self.name) if self.key.startswith(GRADED_SLOTS) else "label"

    @property
    def is_graded(self) -> bool:
        """Whether it holds numbers."""
        return self.slot.kind == "number or nothing"

    @property
    def is_class(self) -> bool:
        """Whether it holds classes."""
        return not self.is_graded and self.slot.read_as == "class"

    def read(self, batch: Batch, name: str) -> Floats:
        """What stands in a column of this kind."""
        if self.is_graded:
            return np.asarray(numeric(batch.numbers(name, missing=True), name), float)
        values = batch.values(name)
        if self.is_class:
            codes, nothing = self.vocabulary.codes(values, name, batch.start), MISSING
        else:
            codes, nothing = flags_with_gaps(values, name, start=batch.start), NO_FLAG
        return np.where(codes == nothing, np.nan, codes)

    def given(self, held: Floats) -> Any:
        """What was read, as a source gives it."""
        if not self.is_class:
            return held if self.is_graded else held == 1
        places = np.where(np.isnan(held), MISSING, held).astype(np.int64)
        return Values(list(self.vocabulary.names()), places)

    def spelled(self, held: float) -> str:
        """What one of them says, for a message."""
        if isnan(held):
            return "nothing"
        if self.is_class:
            return repr(self.vocabulary.names()[int(held)])
        return f"{held:g}" if self.is_graded else str(bool(held))


@dataclass
class ReturnedLabels:
    """What came back: for each row in `numbers`, rising, what stands in each of the columns; the
    `ids` of all rows that came back, and those that nobody can tell.
    """

    name: str
    columns: Sequence[AnswerColumn]
    numbers: Integers
    values: Floats
    ids: Mapping[int, str]
    declined: Integers
    asked: str = ""
    told: Sequence[KnownBy] = ()
    sources: tuple[str, ...] = ()
    needs_all: bool = True
    met: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.met = np.zeros(len(self.numbers), dtype=bool)

    @classmethod
    def of(
        cls,
        returned: Returned,
        question: Question,
        rule: ClassRule,
        notation: Notation = PLAIN,
        cannot_tell: str | None = None,
    ) -> ReturnedLabels:
        """The answers in files or in a frame, to be joined to the rows of a question; of a row that
        holds `cannot_tell` nobody can tell the answer.
        """
        columns, known_by = answer_columns(question, rule)
        found = _Found(columns, known_by, cannot_tell)
        if are_paths(returned.source):
            found.take_files(returned.source, notation)
        elif returned.source is not None:
            found.take_frame(returned.source)
        numbers, values = np.concatenate(found.numbers), np.concatenate(found.values)
        answered = np.flatnonzero(~np.isnan(values).all(axis=1))
        chosen = answered[np.argsort(numbers[answered], kind="stable")]
        first, values = _merged(found.name, columns, numbers[chosen], values[chosen])
        return cls(
            found.name,
            columns,
            numbers[chosen[first]],
            values,
            found.ids,
            np.array(sorted(found.declined), dtype=np.int64),
            returned.asked,
            found.beside(chosen[first]),
            found.sources,
            needs_all=not question.labels_may_be_missing,
        )

    def require_own_ids(self, *, own: bool) -> None:
        """Raise unless rows came back under numbers where the table has an `own` column of them,
        and else under the ids that they went out with.
        """
        wrong = next((row for row, check in self.ids.items() if bool(check) == own), None)
        if wrong is None:
            return
        if own:
            raise InvalidValueError(
                f"{self.name} has the {ID} {wrong}-r{self.ids[wrong]}, and the table has numbers "
                f"of its own in its column {ID}: these are answers to another table."
            )
        raise not_a_row(f"{ID} of {self.name} holds {wrong}")

    def require_ids_of(self, table: str) -> None:
        """Raise if some ids are not those of the rows of this table, by its digest."""
        checks = {row: check for row, check in self.ids.items() if check}
        wrong = RowIds(table, self.asked).strange(checks)
        if wrong:
            raise InvalidValueError(
                f"{self.name} answers {wrong[0]} ({len(wrong):,} of {len(self.ids):,} such ids), "
                "which is no row of this table and question. It went out for another table, for "
                "these rows before some were dropped, added or moved, or with another xi, delta, "
                "claim, costs or seed; or the line was cut short. Pass the table and the options "
                "with which it went out."
            )

    def tables(self, tables: Sequence[TableFile]) -> list[TableFile]:
        """The tables with the labels in them, to be read one after the other, and in order."""
        passed: list[int] = []
        self.require_own_ids(own=any(ID in table.columns for table in tables))
        return [
            _Joined(table.path, table, self, place, passed) for place, table in enumerate(tables)
        ]

    def joined(self, arrays: Mapping[str, Any], question: Question) -> dict[str, Any]:
        """The columns of a frame by slot with the labels among them. Rows are known by the column
        `ID` or, if there is none, by their place.
        """
        found = {key: arrays[key] for key in question.slots if key in arrays}
        named = {question.slots[key].name: column for key, column in found.items()}
        named |= {ID: arrays[ID]} if ID in arrays else {}
        self.require_own_ids(own=ID in arrays)
        rows = len(next(iter(named.values())))
        values = self.join_all(ArrayBatch(0, rows, named), list(named), "the frame")
        for column, held in zip(self.columns, values.T, strict=True):
            given = column.given(held)
            found[column.key] = given.column if isinstance(given, Values) else given
        return found

    def join(self, batch: Batch, stored: Sequence[str], where: str, before: int = 0) -> Floats:
        """What stands in each column for each row of a batch, NaN where there is nothing.

        The table, called `where`, has the columns `stored`, and there are as many rows as `before`
        in the tables before it.
        """
        rows = (
            row_numbers(batch.numbers(ID), batch.start)
            if ID in stored
            else before + batch.start + np.arange(batch.rows)
        )
        places = np.searchsorted(self.numbers, rows)
        found = np.zeros(len(rows), dtype=bool)
        inside = places < len(self.numbers)
        found[inside] = self.numbers[places[inside]] == rows[inside]
        again = np.flatnonzero(found)[self.met[places[found]]]
        if again.size or len(np.unique(places[found])) < int(found.sum()):
            twice = rows[again[0]] if again.size else rows[found][0]
            raise InvalidValueError(
                f"{where}: a row that was answered stands there twice (its {ID} is {twice}): every "
                "row has an id of its own."
            )
        self.met[places[found]] = True
        for column in self.told:
            there = column.at(places[found])
            here = KnownBy.of(batch, column.slot).values[found]
            other = there.differ(here)
            if other.size:
                first = other[0]
                raise InvalidValueError(
                    f"{self.name} has another {column.name!r} than {where} for row "
                    f"{rows[found][first]} ({other.size} such rows here): {there.values[first]!s} "
                    f"and {here[first]!s}. These are answers to other rows."
                )
        values = np.full((len(rows), len(self.columns)), np.nan)
        values[found] = self.values[places[found]]
        for answer, came in zip(self.columns, values.T, strict=True):
            if answer.name in stored:
                came[:] = self._agreeing(answer, came, answer.read(batch, answer.name), rows, where)
        lacking = rows[np.isnan(values).any(axis=1)]
        if self.needs_all and lacking.size:
            raise lacking_answers(self.name, where, int(lacking[0]), lacking.size)
        return values

    def _agreeing(
        self, column: AnswerColumn, came: Floats, had: Floats, rows: Integers, where: str
    ) -> Floats:
        """What came back, and what the table has where nothing came; they do not contradict."""
        other = np.flatnonzero(~np.isnan(had) & ~np.isnan(came) & (had != came))
        if other.size:
            one, another = (column.spelled(found[other[0]]) for found in (came, had))
            raise InvalidValueError(
                f"{self.name} says another {column.what} than {where} for row {rows[other[0]]} "
                f"({other.size} such rows): {one} and {another}. A label is not changed once it "
                "was seen: find out which is right."
            )
        return np.where(np.isnan(came), had, came)

    def join_all(self, batch: Batch, stored: Sequence[str], where: str) -> Floats:
        """The same where there are no other rows."""
        values = self.join(batch, stored, where)
        self.require_all_met(where)
        return values

    def require_all_met(self, where: str) -> None:
        """Refuse answers to rows that are not there."""
        strange = self.numbers[~self.met]
        if strange.size:
            raise InvalidValueError(
                f"{self.name} answers row {strange[0]} ({strange.size} such answers), which is not "
                f"in {where}: these are answers to other rows, or some files are not named."
            )

    def among(self, rows: Integers) -> ReturnedLabels:
        """What came back for these rows."""
        chosen = np.isin(self.numbers, rows)
        told = [each.at(chosen) for each in self.told]
        return replace(self, numbers=self.numbers[chosen], values=self.values[chosen], told=told)


def lacking_answers(answers: str, where: str, row: int, rows: int) -> InvalidValueError:
    """The error for rows that have no answer, the first of which is `row`, where each needs one."""
    return InvalidValueError(
        f"{where}: row {row} has no answer in {answers} ({rows} such rows here): every row needs "
        "one. Answer them all; to drop rows for it voids the guarantee."
    )


def _merged(
    name: str, columns: Sequence[AnswerColumn], numbers: Integers, values: Floats
) -> tuple[Integers, Floats]:
    """Where each of some rising numbers begins, and what was answered there; a row may come back
    several times, and must not have been answered otherwise.
    """
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    if len(first) == len(numbers):
        return first, values
    least, most = (each.reduceat(values, first) for each in (np.fmin, np.fmax))
    twice = np.flatnonzero((least < most).any(axis=1))
    if twice.size:
        row = int(twice[0])
        one, other = (
            ", ".join(map(AnswerColumn.spelled, columns, each[row].tolist()))
            for each in (least, most)
        )
        raise InvalidValueError(
            f"{name} answers row {numbers[first[row]]} twice, once {one} and once {other} "
            f"({twice.size} such answers): keep one answer to each row."
        )
    return first, most


class _Found:
    """What came back, batch by batch: the id of each row, what it was answered, and the columns
    beside.
    """

    def __init__(
        self, answers: Sequence[AnswerColumn], known_by: Sequence[Slot], cannot_tell: str | None
    ) -> None:
        self.name = "the answers"
        self.sources: tuple[str, ...] = ()
        self.numbers = [np.zeros(0, dtype=np.int64)]
        self.values = [np.zeros((0, len(answers)))]
        self.ids: dict[int, str] = {}
        self.declined: set[int] = set()
        self._answers, self._known_by, self._cannot_tell = answers, known_by, cannot_tell
        self._beside: list[list[KnownBy]] = []

    def take_files(self, paths: Paths, notation: Notation) -> None:
        """Take the rows of files."""
        tables = open_answers(paths, notation)
        files = [table.path for table in tables]
        self.name = ", ".join(map(str, files[:3])) + (", …" if len(files) > 3 else "")
        told = told_slots(self._known_by, [table.columns for table in tables])
        with fingerprinting(files, answers_notation(files, notation)) as fingerprints:
            for table in tables:
                came = [column.came_as(table.columns) for column in self._answers]
                for batch in table.batches(list(dict.fromkeys([ID, *came, *told]))):
                    with located(table.path):
                        self._take(batch, came, told)
            self.sources = tuple(fingerprint.result() for fingerprint in fingerprints)

    @reading_frame()
    def take_frame(self, frame: Any) -> None:
        """Take the rows of a frame."""
        # Loaded here, because files need no narwhals.
        from pacbound.tally.frames.counting import column_names, whole_columns  # noqa: PLC0415

        self.name, names = THE_ANSWERS, column_names(frame)
        told = told_slots(self._known_by, [names])
        came = [column.came_as(names) for column in self._answers]
        slots = {ID: Slot("class", ID)}
        for column, name in zip(self._answers, came, strict=True):
            slots[name] = stored_as(replace(column.slot, name=name))
        columns = whole_columns(frame, {**slots, **told}, in_order=False)
        self._take(ArrayBatch(0, len(columns[ID]), columns), came, told)

    def _take(self, batch: Batch, came: Sequence[str], told: Mapping[str, Slot]) -> None:
        """Take the next rows of a table, in which the answers `came` by these names."""
        numbers, ids = identified(batch)
        for row, check in ids.items():
            if self.ids.setdefault(row, check) != check:
                raise not_a_row(f"{ID} holds {row}-r{check} and {row}-r{self.ids[row]}")
        named = zip(self._answers, came, strict=True)
        self.numbers.append(numbers)
        self.values.append(
            np.column_stack([self._read(column, name, batch, numbers) for column, name in named])
        )
        self._beside.append([KnownBy.of(batch, slot) for slot in told.values()])

    def _read(self, column: AnswerColumn, name: str, batch: Batch, numbers: Integers) -> Floats:
        """What was answered; NaN where nothing was, or nobody can tell."""
        if self._cannot_tell is None:
            return column.read(batch, name)
        values = batch.values(name)
        meant = [str(one) == self._cannot_tell for one in values.distinct]
        unknown = np.array([*meant, False])[values.places]
        self.declined |= set(numbers[unknown].tolist())
        found = np.full(batch.rows, np.nan)
        if not unknown.all():
            found[~unknown] = column.read(batch.where(~unknown), name)
        return found

    def beside(self, chosen: Integers) -> list[KnownBy]:
        """The columns beside the labels, of the chosen rows."""
        return [
            replace(parts[0], values=np.concatenate([part.values for part in parts])[chosen])
            for parts in zip(*self._beside, strict=True)
        ]


def identified(batch: Batch) -> tuple[Integers, dict[int, str]]:
    """The number of each row that came back, and the check of each; empty where the table gives its
    rows numbers of its own.
    """
    values, ids = batch.values(ID), dict[int, str]()
    numbers = np.full(batch.rows, MISSING, dtype=np.int64)
    found = [parted(str(one)) or _own_number(one) for one in values.distinct]
    for place, at in enumerate(values.places.tolist()):
        known = None if at == MISSING else found[at]
        if known is None or ids.setdefault(*known) != known[1]:
            held = "nothing" if at == MISSING else repr(values.distinct[at])
            raise not_a_row(f"{ID}[{batch.start + place}] is {held}")
        numbers[place] = known[0]
    return numbers, ids


def _own_number(value: Any) -> tuple[int, str] | None:
    """A row's number, where the table gives its rows numbers of its own; None if it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return (int(number), "") if 0 <= number < 2.0**53 and number.is_integer() else None


def answer_columns(question: Question, rule: ClassRule) -> tuple[list[AnswerColumn], list[Slot]]:
    """The columns that come back to a question, and those by which its rows are recognised."""
    keys = [key for key in question.slots if key.startswith(GRADED_SLOTS)]
    keys = keys or [key for key in question.labelled_by if key in question.slots][:1]
    if not keys:
        raise InvalidTypeError(
            "The column of the labels that came back is not named: name it as in the file that "
            "came back."
        )
    columns = [AnswerColumn.of(key, question.slots[key], rule) for key in keys]
    return columns, [other for name, other in question.slots.items() if name not in keys]


def stored_as(slot: Slot) -> Slot:
    """How a frame holds a column of answers: grades as numbers, all else as it likes."""
    return slot if slot.kind == "number or nothing" else Slot("class", slot.name)


def open_answers(paths: Paths, notation: Notation) -> list[TableFile]:
    """The tables of answers to rows that are written in a notation: rows go out as they came, so
    text comes back in the same one.
    """
    return open_tables(paths, answers_notation(paths, notation))


def answers_notation(paths: Paths, notation: Notation) -> Notation:
    """The notation of answers to rows that are written in `notation`: the same, if they are text,
    and else nothing is to be said.
    """
    is_text = all(format_of(file) == "delimited" for file in expanded(paths))
    return notation if is_text else PLAIN


def row_numbers(values: Any, start: int) -> Integers:
    """The numbers of rows, if all are numbers of rows."""
    numbers = np.asarray(values, dtype=np.float64)
    bad = np.flatnonzero(~((numbers >= 0) & (numbers == np.floor(numbers)) & (numbers < 2.0**53)))
    if bad.size:
        raise not_a_row(f"{ID}[{start + bad[0]}] is {numbers[bad[0]]}")
    return numbers.astype(np.int64)


def not_a_row(said: str) -> InvalidValueError:
    """The error for a number that is not that of a row, after what is said of it."""
    return InvalidValueError(
        f"{said}, which is not the id of a row: leave the column as it was written."
    )


def told_slots(known_by: Sequence[Slot], columns: Sequence[Sequence[str]]) -> dict[str, Slot]:
    """The columns of scores and predictions that came back, too, by name."""
    scores_and_classes = ("number", "number or nothing", "class")
    return {
        slot.name: slot
        for slot in known_by
        if slot.kind in scores_and_classes and all(slot.name in each for each in columns)
    }


def is_told_as_number(slot: Slot) -> bool:
    """Whether rows are recognised by numbers in a column, and not by classes."""
    return slot.kind != "class"


@dataclass
class _Joined:
    """A table with the labels that came back in columns of it; of the tables before it, `passed`
    holds the rows.
    """

    path: Path
    table: TableFile
    answers: ReturnedLabels
    place: int
    passed: list[int]

    @property
    def columns(self) -> Sequence[str]:
        return list(dict.fromkeys([*self.table.columns, *self._names]))

    @property
    def _names(self) -> list[str]:
        return [column.name for column in self.answers.columns]

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None
    ) -> Iterator[Batch]:
        answers, names, stored = self.answers, self._names, self.table.columns
        if columns is not None and not {*columns} & {*names}:
            yield from self.table.batches(columns, progress=progress)
            return
        needed = None
        if columns is not None:
            wanted = [name for name in columns if name not in names]
            # All columns of answers that are there: each must agree with what came back.
            beside = [name for name in (*names, ID) if name in stored]
            known_by = [each.name for each in answers.told]
            needed = list(dict.fromkeys([*wanted, *beside, *known_by])) or [stored[0]]
        if self.place == 0:
            answers.met[:] = False
            self.passed.clear()
        before, seen = sum(self.passed[: self.place]), 0
        for batch in self.table.batches(needed, progress=progress):
            values = answers.join(batch, stored, str(self.path), before)
            seen += batch.rows
            labels = zip(names, answers.columns, values.T, strict=True)
            yield JoinedRows(batch, {name: (column, held) for name, column, held in labels})
        self.passed.append(seen)


@dataclass(frozen=True)
class JoinedRows:
    """Rows with the labels that came back for them, by the names of their columns."""

    rest: Batch
    labels: Mapping[str, tuple[AnswerColumn, Floats]]

    @property
    def start(self) -> int:
        return self.rest.start

    @property
    def rows(self) -> int:
        return self.rest.rows

    def numbers(self, name: str, *, missing: bool = False) -> NDArray[Any]:
        if name in self.labels:
            return np.asarray(self._given(name))
        return self.rest.numbers(name, missing=missing)

    def names(self, name: str) -> NDArray[Any]:
        return self.rest.names(name)

    def flags(self, name: str) -> NDArray[Any]:
        return np.asarray(self._given(name)) if name in self.labels else self.rest.flags(name)

    def values(self, name: str) -> Values:
        found: Values = self._given(name) if name in self.labels else self.rest.values(name)
        return found

    def _given(self, name: str) -> Any:
        column, held = self.labels[name]
        return column.given(held)

    def where(self, chosen: NDArray[np.bool_]) -> JoinedRows:
        labels = {name: (column, held[chosen]) for name, (column, held) in self.labels.items()}
        return JoinedRows(self.rest.where(chosen), labels)

    def only(self, columns: Collection[str]) -> JoinedRows:
        return replace(self, rest=self.rest.only(columns))

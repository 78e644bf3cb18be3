"""Predictions against labels inside an engine: where two columns name the same class.

What names a class is decided by `pacbound.tally.classes`, on the distinct values of each column,
which come back first, with how many rows of each are right, differ or have a label. The engine
then counts columns whose values all name classes. Columns are compared by their types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import narwhals as nw
import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import is_missing
from pacbound.tally.classes import (
    ALL_PREDICT,
    EVERY_ROW_HAS_ONE,
    MOST_CLASSES,
    Class,
    ClassRule,
    Evidence,
    NotAClassError,
    PositiveClass,
    not_a_class,
    refuse_many_classes,
)
from pacbound.tally.frames.counting import KeyCounts, counted_each, extreme
from pacbound.tally.frames.opening import (
    Frame,
    is_number,
    is_text,
    is_too_wide_for_arrow,
    one_where,
    one_where_whole,
    typed,
)
from pacbound.tally.grids import Integers

_WIDE: Final = frozenset([nw.UInt64(), nw.UInt128(), nw.Int128()])
_VALUE: Final = "value"
_STATE: Final = "state"
# What a row's state adds up from: some model predicts the label, the slow one does, an exit differs
# from the slow one, there is a label, a prediction is missing where one may be.
_RIGHT, _SLOW_RIGHT, _DIFFER, _LABELLED, _GAP = 1, 2, 4, 8, 16
_EXACT_FLOATS: Final = 2**53
_NO_LABEL: Final = -1
_NO_PREDICTION: Final = -2
# What stands for all numbers that are not whole, so that a column of scores is one value.
_FRACTION: Final = float("inf")


@dataclass(frozen=True)
class ClassColumn:
    """A column of classes: its values, null where one is missing."""

    name: str
    dtype: nw.dtypes.DType
    value: nw.Expr
    comparable: bool = True
    float_by_text: bool = False

    @property
    def is_text(self) -> bool:
        """Whether classes are named, not numbered."""
        return self.dtype == nw.String

    @property
    def as_float(self) -> nw.Expr:
        """The classes as float64, by way of their text where the engine rounds no integer."""
        return (self.value.cast(nw.String) if self.float_by_text else self.value).cast(nw.Float64)

    def holds(self, found: Class) -> nw.Expr:
        """Where the column holds a class that was met in it."""
        if isinstance(found, int) and not _holds(nw.Int64(), found):
            return one_where(self.value.cast(nw.String) == str(found)) == 1
        return one_where(self.value == found) == 1

    @property
    def key(self) -> nw.Expr:
        """The classes to count by: all fractions are one value."""
        if not self.dtype.is_float():
            return self.value
        whole, fraction = one_where_whole(self.value) == 1, nw.when(is_number(self.value))
        return nw.when(whole).then(self.value).otherwise(fraction.then(nw.lit(_FRACTION)))


class AnswerColumns:
    """Columns of predictions against a column of labels, if there is one.

    Columns come with the names that they have where they come from. The distinct values of each
    column are looked at when this is made: one that names no class raises. With `gaps`, a
    prediction may be missing, and labels are held against rows that have all of them.
    """

    def __init__(
        self,
        frame: Frame,
        predictions: Mapping[str, str],
        labels: tuple[str, str] | None,
        rule: ClassRule,
        evidence: Evidence,
        *,
        gaps: bool = False,
    ) -> None:
        self._frame, self._rule, self._evidence, self._gaps = frame, rule, evidence, gaps
        self._answers = [
            class_column(frame, name, column, rule) for name, column in predictions.items()
        ]
        self._truth = None if labels is None else class_column(frame, *labels, rule)
        self._looked_at = 0
        self._missing: dict[str, int] = {}
        columns = [*self._answers, *([] if self._truth is None else [self._truth])]
        tables = counted_each(
            frame,
            [column.key for column in columns],
            {} if self._truth is None else {_STATE: self._state()},
            most=2 * MOST_CLASSES,
        )
        self._refuse_many([column.name for column in columns], tables)
        for column, table in zip(columns, tables, strict=True):
            self._see(column, list(self._read(column, table)))

    def _state(self) -> nw.Expr:
        """What the label of each row is compared with, in one number."""
        right = reduce(nw.Expr.__add__, (one_where(right) for right in self.right))
        state = one_where(right > 0) * _RIGHT + one_where(self.unlabelled) * -_LABELLED + _LABELLED
        if self._gaps:
            state = state + one_where(self._unpredicted) * _GAP
        if not self.agree:
            return state
        differ = reduce(nw.Expr.__or__, (one_where(agree) == 0 for agree in self.agree))
        return state + one_where(self.right[-1]) * _SLOW_RIGHT + one_where(differ) * _DIFFER

    def _see(self, column: ClassColumn, read: Sequence[tuple[Class, int, int]]) -> None:
        """Let the evidence take in the classes of a column, each with a state and its rows."""
        evidence = self._evidence
        if column is self._truth:
            held = [each for each in read if not each[1] & _GAP]
            evidence.labelled |= {found for found, _, _ in held}
            for found, state, rows in held:
                self._see_label(found, state, rows)
            return
        evidence.saw(column.name, (found for found, _, _ in read))
        if self.agree:
            evidence.slow = column.name
        if self.agree and column is self._answers[-1]:
            for found, state, rows in read:
                if state & _LABELLED and not state & _GAP:
                    evidence.met[bool(state & _DIFFER)].slow[found] += rows

    def _see_label(self, found: Class, state: int, rows: int) -> None:
        """Count a label by who predicts it in its row: nobody, where that matters, only an exit, or
        the slow model.
        """
        evidence = self._evidence
        if not self.agree:
            if not state & _RIGHT:
                evidence.unmatched[found] += rows
            return
        met = evidence.met[bool(state & _DIFFER)]
        met.labels[found] += rows
        if state & _SLOW_RIGHT:
            met.both[found] += rows
        elif state & _DIFFER:
            (evidence.gained if state & _RIGHT else evidence.unmatched)[found] += rows

    @property
    def agree(self) -> list[nw.Expr]:
        """For every model but the last, where it predicts what the last one does."""
        return [same_class(answer, self._answers[-1]) for answer in self._answers[:-1]]

    @property
    def right(self) -> list[nw.Expr]:
        """For every model, where it predicts the label."""
        if self._truth is None:
            return [_nowhere() for _ in self._answers]
        return [same_class(answer, self._truth) for answer in self._answers]

    @property
    def unlabelled(self) -> nw.Expr:
        """Where there is no label."""
        if self._truth is None:
            return nw.lit(0) == nw.lit(0)
        return one_where(self._truth.value.is_null()) == 1

    @property
    def columns(self) -> list[ClassColumn]:
        """The columns of predictions."""
        return self._answers

    def missing_in(self, column: ClassColumn) -> int:
        """How many rows have nothing in a column."""
        return self._missing[column.name]

    def predicted(self, column: ClassColumn) -> set[Class]:
        """The classes that were met in a column of predictions."""
        return self._evidence.predicted.get(column.name, set())

    @property
    def missing(self) -> list[nw.Expr]:
        """For every model, where it predicts nothing."""
        return [one_where(answer.value.is_null()) == 1 for answer in self._answers]

    @property
    def _unpredicted(self) -> nw.Expr:
        return reduce(nw.Expr.__or__, self.missing)

    def right_as_number(self, model: int) -> nw.Expr:
        """1 where a model predicts the label, else 0."""
        return one_where(self.right[model])

    def joint_outcome(self) -> nw.Expr:
        """The joint outcome of all exits of a cascade, numbered as its question does.

        Each exit's digit is agree, fast, slow or neither, the first exit's leading. Rows without a
        label in which an exit differs come after all of these: a digit for each exit, agree or not.
        """
        *exits, slow = self.right
        singles = [
            nw.when(agree)
            .then(nw.lit(0))
            .otherwise(
                nw.when(fast)
                .then(nw.lit(1))
                .otherwise(nw.when(slow).then(nw.lit(2)).otherwise(nw.lit(3)))
            )
            for agree, fast in zip(self.agree, exits, strict=True)
        ]
        differs = [nw.when(agree).then(nw.lit(0)).otherwise(nw.lit(1)) for agree in self.agree]
        pattern = reduce(lambda joint, single: joint * 2 + single, differs)
        labelled = reduce(lambda joint, single: joint * 4 + single, singles)
        without = pattern + (4 ** len(exits) - 1)
        return nw.when(self.unlabelled & (pattern > 0)).then(without).otherwise(labelled)

    def replaced(
        self, decided: Sequence[tuple[Sequence[str], int]], otherwise: int
    ) -> list[nw.Expr]:
        """For every model but the last, what its answer does in place of the last one's: the number
        of the first case of `decided` whose facts all hold.
        """
        *right, old_right = (one_where(right) == 1 for right in self.right)
        *missing, no_old = self.missing
        found = []
        for new_right, no_new, agree in zip(right, missing, self.agree, strict=True):
            so = {
                "no new answer": no_new,
                "no old answer": no_old,
                "no label": self.unlabelled,
                "agree": one_where(agree) == 1,
                "new right": new_right,
                "old right": old_right,
            }
            outcome = nw.lit(otherwise)
            for facts, code in reversed(decided):
                holds = reduce(nw.Expr.__and__, (so[fact] for fact in facts))
                outcome = nw.when(holds).then(nw.lit(code)).otherwise(outcome)
            found.append(outcome)
        return found

    def coded(self, outcome: nw.Expr) -> nw.Expr:
        """`outcome`, a number from 0, or below 0 what keeps a row from having one.

        A cascade has an outcome for rows without a label.
        """
        flawed = outcome
        if not self.agree:
            flawed = nw.when(self.unlabelled).then(nw.lit(_NO_LABEL)).otherwise(outcome)
        return nw.when(self._unpredicted).then(nw.lit(_NO_PREDICTION)).otherwise(flawed)

    def checked(self, counts: KeyCounts, key: str) -> Integers:
        """The outcomes that were counted, if every row has one."""
        codes, rows = counts.numbers(key).astype(np.int64), int(counts.rows.sum())
        if self._looked_at != rows * (len(self._answers) + (self._truth is not None)):
            raise InvalidValueError(
                f"The frame gave {rows} rows when it was counted and another number before: "
                "classes are looked at twice. A stream can be read only once: load it first."
            )
        if (codes == _NO_PREDICTION).any():
            self._refuse_missing_predictions()
        unlabelled = counts.rows_where(codes == _NO_LABEL)
        if unlabelled and self._truth is not None:
            raise InvalidValueError(
                f"{unlabelled} rows have no label in {self._truth.name}: label them. "
                "Dropping them, or labelling only some, would void the guarantee."
            )
        return codes

    def _read(self, column: ClassColumn, table: KeyCounts) -> Iterator[tuple[Class, int, int]]:
        """The classes of a column with the state of their rows, and how many rows that are."""
        self._looked_at += int(table.rows.sum())
        self._missing[column.name] = 0
        states = table.keys.get(_STATE, np.zeros(len(table.rows), dtype=np.int64))
        known: dict[Any, Class | None] = {}
        for value, state, rows in zip(
            table.keys[_VALUE].tolist(), states.tolist(), table.rows.tolist(), strict=True
        ):
            if is_missing(value):
                self._missing[column.name] += rows
                continue
            if value not in known:
                known[value] = self._class_of(column, value, table)
            found = known[value]
            if found is not None:
                yield found, state, rows

    def _class_of(self, column: ClassColumn, value: Any, table: KeyCounts) -> Class | None:
        try:
            read = self._rule.read(value, typed=True)
        except NotAClassError as error:
            shown = self._example(column) if value == _FRACTION else value
            rows = table.rows_where(np.array([other == value for other in table.keys[_VALUE]]))
            raise not_a_class(column.name, shown, str(error), rows, self._rule) from None
        if not column.comparable:
            raise InvalidTypeError(
                f"{column.name} has type {column.dtype}: expected class indices or names."
            )
        return read

    def _refuse_many(self, names: Sequence[str], tables: Sequence[KeyCounts]) -> None:
        """Refuse a column with too many distinct values: of what came back, the one with most."""
        distinct = [len(set(table.keys[_VALUE].tolist())) for table in tables]
        most = max(distinct)
        if most > MOST_CLASSES or sum(map(len, (t.rows for t in tables))) > 2 * MOST_CLASSES:
            refuse_many_classes(names[distinct.index(most)])

    def _example(self, column: ClassColumn) -> Any:
        fraction = is_number(column.value) & (one_where_whole(column.value) == 0)
        return extreme(self._frame, column.value, fraction, greatest=True)

    def _refuse_missing_predictions(self) -> None:
        for column in self._answers:
            missing = self._missing[column.name]
            if missing:
                raise InvalidValueError(
                    f"{column.name} has {missing} missing values (null or NaN): {ALL_PREDICT}."
                )


class ClassFlag:
    """A column of classes of which one counts, as truth values: 1 where a row is of it, else 0."""

    is_boolean: Final = False

    def __init__(self, answers: AnswerColumns, positive: PositiveClass) -> None:
        self._answers = answers
        (self._column,) = answers.columns
        missing = answers.missing_in(self._column)
        if missing:
            raise InvalidValueError(
                f"{self.name} has {missing} missing values (null or NaN): {EVERY_ROW_HAS_ONE}"
            )
        self._meant = positive.met(answers.predicted(self._column))

    @property
    def name(self) -> str:
        """What the column is called where it comes from."""
        return self._column.name

    @property
    def is_true(self) -> nw.Expr:
        """Whether a row is of the class that counts, as a condition."""
        held = (self._column.holds(found) for found in self._meant)
        return reduce(nw.Expr.__or__, held, _nowhere())

    @property
    def key(self) -> nw.Expr:
        """The value as a key to count by."""
        return one_where(self.is_true)

    def checked(self, counts: KeyCounts, key: str) -> Integers:
        """The values that were counted."""
        return self._answers.checked(counts, key)


def class_column(frame: Frame, name: str, key: str, rule: ClassRule) -> ClassColumn:
    """The column `key` of class indices or names, null where the rule says that one is missing.

    `name` is what it is called where it comes from.
    """
    dtype, column = typed(frame, key)
    if is_text(dtype):
        text = column.cast(nw.String)
        names = [code for code in rule.missing if isinstance(code, str)]
        empty = [] if rule.classes is not None and "" in rule.classes else [""]
        return ClassColumn(name, nw.String(), _without(text, [*empty, *names]))
    numbers = [code for code in rule.missing if isinstance(code, int)]
    if dtype == nw.Boolean:
        codes = [code for code in numbers if code in (0, 1)]
        return ClassColumn(name, nw.Int64(), _without(column.cast(nw.Int64), codes))
    if dtype.is_integer():
        # Engines fail on a number that their type does not hold, and no value is it.
        codes = [code for code in numbers if _holds(dtype, code)]
        wide = is_too_wide_for_arrow(frame, key)
        return ClassColumn(name, dtype, _without(column, codes), float_by_text=wide)
    if dtype.is_float():
        value = column.cast(nw.Float64)
        present = nw.when(is_number(value)).then(value)
        exact = [float(code) for code in numbers if abs(code) < _EXACT_FLOATS]
        return ClassColumn(name, nw.Float64(), _without(present, exact))
    if isinstance(dtype, (nw.Unknown, nw.Object)):
        # A column of nothing but nulls has no type of its own in some engines.
        return ClassColumn(name, dtype, column, comparable=False)
    raise InvalidTypeError(f"{name} has type {dtype}: expected class indices or names.")


def same_class(one: ClassColumn, other: ClassColumn) -> nw.Expr:
    """Where both columns name the same class; null or false where either is missing."""
    if not (one.comparable and other.comparable) or one.is_text != other.is_text:
        # A number never equals text.
        return _nowhere()
    if nw.Float64 in (one.dtype, other.dtype):
        # Whole floats below 2**53 are exact, and no other integer becomes one of them.
        return one.as_float == other.as_float
    if one.dtype != other.dtype and _WIDE & {one.dtype, other.dtype}:
        # Engines do not agree on what holds both a signed and an unsigned integer of 64 bits. Text
        # does.
        return one.value.cast(nw.String) == other.value.cast(nw.String)
    return one.value == other.value


def _nowhere() -> nw.Expr:
    return nw.lit(0) == nw.lit(1)


def _holds(dtype: nw.dtypes.DType, number: int) -> bool:
    """Whether a type of integers, such as UInt8, holds the number."""
    unsigned, bits = str(dtype).startswith("U"), int(str(dtype).removeprefix("U")[len("Int") :])
    least, most = (0, 1 << bits) if unsigned else (-1 << (bits - 1), 1 << (bits - 1))
    return least <= number < most


def _without(value: nw.Expr, codes: Sequence[Any]) -> nw.Expr:
    """The values, null where one is a code for a missing value."""
    if not codes:
        return value
    return nw.when(reduce(nw.Expr.__and__, (_is_not(value, code) for code in codes))).then(value)


def _is_not(value: nw.Expr, code: str | float) -> nw.Expr:
    if isinstance(code, int) and not _holds(nw.Int64(), code):
        # Arrow takes no such integer from Python.
        return value.cast(nw.String) != str(code)
    return value != code

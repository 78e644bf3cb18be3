"""Predictions against labels inside an engine: where two columns name the same class.

What names a class is decided by `pacbound.tally.classes`, on the distinct values of each column,
which come back first. The engine then compares columns whose values all name classes, by their
types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import narwhals as nw
import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import is_missing
from pacbound.tally.classes import (
    Class,
    ClassRule,
    Evidence,
    NotAClassError,
    not_a_class,
)
from pacbound.tally.frames.counting import KeyCounts, counted, extreme
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
_RIGHT: Final = "right"
_SLOW_RIGHT: Final = "slow right"
_DIFFER: Final = "differ"
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


class AnswerColumns:
    """Columns of predictions against a column of labels, if there is one.

    Columns come with the names that they have where they come from. The distinct values of each
    column are looked at when this is made: one that names no class
    raises.
    """

    def __init__(
        self,
        frame: Frame,
        predictions: Mapping[str, str],
        labels: tuple[str, str] | None,
        rule: ClassRule,
        evidence: Evidence,
    ) -> None:
        self._frame, self._rule, self._evidence = frame, rule, evidence
        self._answers = [
            class_column(frame, name, column, rule) for name, column in predictions.items()
        ]
        self._truth = None if labels is None else class_column(frame, *labels, rule)
        self._looked_at = 0
        for column in self._answers:
            evidence.saw(column.name, self._distinct(column))
            if len(self._answers) > 1:
                evidence.slow = column.name
        if self._truth is not None:
            evidence.labelled |= self._distinct(self._truth).keys()

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

    def coded(self, outcome: nw.Expr) -> nw.Expr:
        """`outcome`, a number from 0, or below 0 what keeps a row from having one.

        A cascade has an outcome for rows without a label.
        """
        unpredicted = reduce(
            nw.Expr.__or__, (one_where(a.value.is_null()) == 1 for a in self._answers)
        )
        flawed = outcome
        if not self.agree:
            flawed = nw.when(self.unlabelled).then(nw.lit(_NO_LABEL)).otherwise(outcome)
        return nw.when(unpredicted).then(nw.lit(_NO_PREDICTION)).otherwise(flawed)

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

    def witness(self) -> None:
        """Count the labels that equal none of the predictions of their row, where that matters,
        those that only an exit predicts, and how often labels match the slow model.
        """
        if self._truth is None:
            return
        has_label = ~self._truth.value.is_null()
        right = reduce(nw.Expr.__add__, (one_where(right) for right in self.right))
        keys = {_VALUE: self._truth.value, _RIGHT: one_where(right > 0)}
        if not self.agree:
            wrong = (one_where(self.right[-1]) == 0) & has_label
            found = counted(self._frame.filter(wrong), keys)
            for label, rows in self._read(found):
                self._evidence.unmatched[label] += rows
            return
        differ = reduce(nw.Expr.__or__, (one_where(agree) == 0 for agree in self.agree))
        keys |= {_SLOW_RIGHT: one_where(self.right[-1]), _DIFFER: one_where(differ)}
        labelled = self._frame.filter(has_label)
        found = counted(labelled, keys)
        any_right, slow_right, differs = (
            (found.numbers(key) == 1).tolist() for key in (_RIGHT, _SLOW_RIGHT, _DIFFER)
        )
        for place, (label, rows) in enumerate(self._read(found)):
            met = self._evidence.met[differs[place]]
            met.labels[label] += rows
            if slow_right[place]:
                met.both[label] += rows
            elif differs[place]:
                counts = self._evidence.gained if any_right[place] else self._evidence.unmatched
                counts[label] += rows
        said = counted(labelled, {_VALUE: self._answers[-1].value, _DIFFER: one_where(differ)})
        differs = (said.numbers(_DIFFER) == 1).tolist()
        for place, (predicted, rows) in enumerate(self._read(said)):
            self._evidence.met[differs[place]].slow[predicted] += rows

    def _read(self, found: KeyCounts) -> Iterator[tuple[Class, int]]:
        """The classes that were counted under a key, all of which were looked at before, and their
        rows.
        """
        for value, rows in zip(found.keys[_VALUE].tolist(), found.rows.tolist(), strict=True):
            read = self._rule.read(value, typed=True)
            if read is None:
                raise InvalidValueError(
                    f"A class that was there is missing now ({value!r}): a stream can be read only "
                    "once. Load it first."
                )
            yield read, rows

    def _distinct(self, column: ClassColumn) -> Counter[Class]:
        """The classes of a column, with their rows."""
        key = column.value
        if column.dtype.is_float():
            key = (
                nw.when(one_where_whole(key) == 1)
                .then(key)
                .otherwise(nw.when(is_number(key)).then(nw.lit(_FRACTION)))
            )
        found = counted(self._frame, {_VALUE: key})
        self._looked_at += int(found.rows.sum())
        classes: Counter[Class] = Counter()
        for value, rows in zip(found.keys[_VALUE].tolist(), found.rows.tolist(), strict=True):
            if is_missing(value):
                continue
            try:
                read = self._rule.read(value, typed=True)
            except NotAClassError as error:
                shown = self._example(column) if value == _FRACTION else value
                raise not_a_class(column.name, shown, str(error), rows, self._rule) from None
            if read is not None:
                classes[read] += rows
        if classes and not column.comparable:
            raise InvalidTypeError(
                f"{column.name} has type {column.dtype}: expected class indices or names."
            )
        return classes

    def _example(self, column: ClassColumn) -> Any:
        fraction = is_number(column.value) & (one_where_whole(column.value) == 0)
        return extreme(self._frame, column.value, fraction, greatest=True)

    def _refuse_missing_predictions(self) -> None:
        for column in self._answers:
            found = counted(self._frame, {_VALUE: one_where(column.value.is_null())})
            missing = found.rows_where(found.numbers(_VALUE) == 1)
            if missing:
                raise InvalidValueError(
                    f"{column.name} has {missing} missing values (null or NaN): every model must "
                    "predict every row."
                )


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

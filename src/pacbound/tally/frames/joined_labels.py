"""Labels that came back for rows in Spark, joined to them there by the number of each row.

Spark finds the rows whose labels could be wrong. These alone leave it, and what is wrong with them
is said where it is for arrays, by `pacbound.tally.returned_labels`. Labels in a frame of Spark stay
on its executors; others are handed over to it. Where labels and rows hold classes of types that no
one column holds, numbers and text, nothing is joined here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

import narwhals as nw
import numpy as np

from pacbound.sources.formats.arrays import ArrayBatch
from pacbound.sources.values import Values
from pacbound.tally.classes import ClassRule
from pacbound.tally.columns import Floats, Slot
from pacbound.tally.frames.answer_columns import ClassColumn, class_column, same_class
from pacbound.tally.frames.counting import (
    collected,
    column_names,
    counted,
    extreme,
    whole_columns,
)
from pacbound.tally.frames.opening import (
    Frame,
    is_boolean,
    is_number,
    known_frame,
    number,
    one_where,
    open_frame,
    with_exact_text,
)
from pacbound.tally.questions.question import Question
from pacbound.tally.returned_labels import (
    CLOSE,
    THE_ANSWERS,
    AnswerColumn,
    ReturnedLabels,
    answer_columns,
    is_told_as_number,
    lacking_answers,
    not_a_row,
    stored_as,
    told_slots,
)
from pacbound.tally.row_ids import ID, Returned

# Columns that are there while labels are joined.
_KEY, _MET, _HERE, _CAME, _TOLD = (
    f"pac_join_{name}" for name in ("row", "met", "here", "came", "told")
)
_TABLE: Final = "the frame"


class CannotJoinError(Exception):
    """The labels and the classes of the rows are of types that no one column holds, or the rows
    have no numbers.
    """


def is_in_spark(native: Any) -> bool:
    """Whether Spark holds these rows."""
    return bool(known_frame(native).implementation.is_spark_like())


def joined_inside(native: Any, answers: Any, question: Question, rule: ClassRule) -> Any:
    """The frame of Spark with the labels in their columns; `answers` are what was read of them, or
    a frame of Spark that holds them.
    """
    if ID not in column_names(native):
        raise CannotJoinError
    return _Join(native, answers, question, rule).made()


class _Join:
    """Rows with the labels that came back for them."""

    def __init__(self, native: Any, answers: Any, question: Question, rule: ClassRule) -> None:
        self._question, self._rule, self._given = question, rule, answers
        self._columns, known_by = answer_columns(question, rule)
        self._stored = column_names(native)
        if isinstance(answers, ReturnedLabels):
            answers.require_own_ids(own=True)
            self._name = answers.name
            self._told = {each.name: each.is_number for each in answers.told}
            came = _handed_over(native, answers)
        else:
            self._name = THE_ANSWERS
            told = told_slots(known_by, [column_names(answers)])
            self._told = {name: is_told_as_number(slot) for name, slot in told.items()}
            came = self._of_frame(answers)
        self._answers = _numbered(came).with_columns(nw.lit(1).alias(_MET))
        self._slots = {slot.name: slot for slot in question.slots.values()}
        named = [name for name in self._slots if name in self._stored]
        self._table = _numbered(with_exact_text(known_frame(native), named))

    def made(self) -> Any:
        """The frame, if its labels can be those of its rows."""
        joined: Frame = self._table.join(self._answers, on=_KEY, how="left")
        labels = {
            column.name: self._label(joined, place) for place, column in enumerate(self._columns)
        }
        self._refuse_wrong(list(labels.values()))
        values = {f"{_MET}_{name}": label.value for name, label in labels.items()}
        labelled = joined.with_columns(**values)
        self._refuse_lacking(labelled, list(values))
        kept = [name for name in self._stored if name not in labels]
        renamed = [nw.col(f"{_MET}_{name}").alias(name) for name in labels]
        return labelled.select(*kept, *renamed).to_native()

    def _of_frame(self, native: Any) -> Frame:
        """Answers in a frame of Spark, without the rows that have no answer."""
        back = [column.came_as(column_names(native)) for column in self._columns]
        frame = open_frame(native, [ID, *back, *self._told])
        came = {
            f"{_CAME}_{place}": self._value(frame, column, name)
            for place, (column, name) in enumerate(zip(self._columns, back, strict=True))
        }
        told = {
            f"{_TOLD}_{place}": number(frame, name) if is_a_number else nw.col(name)
            for place, (name, is_a_number) in enumerate(self._told.items())
        }
        chosen = frame.select(ID, **came, **told)
        there = [~nw.col(name).is_null() for name in came]
        # A row may come back several times, and must not have been answered otherwise.
        return chosen.filter(reduce(nw.Expr.__or__, there)).unique()

    def _value(self, frame: Frame, column: AnswerColumn, name: str) -> nw.Expr:
        """What stands in a column of labels, null where nothing does."""
        if column.is_class:
            return self._class(frame, column, name).value
        if column.slot.kind != "number or nothing" and is_boolean(frame, name, name):
            return nw.col(name).cast(nw.Float64)
        value = number(frame, name)
        return nw.when(is_number(value)).then(value)

    def _class(self, frame: Frame, column: AnswerColumn, name: str) -> ClassColumn:
        rule = ClassRule() if column.key == "preferred" else self._rule
        return class_column(frame, column.name, name, rule)

    def _label(self, joined: Frame, place: int) -> _Label:
        """What came back, and what the table has where nothing came."""
        column, name = self._columns[place], f"{_CAME}_{place}"
        came = nw.col(name)
        if column.name not in self._stored:
            return _Label(came, nw.lit(0) == nw.lit(1))
        if column.is_class:
            one = self._class(joined, column, name)
            other = self._class(joined, column, column.name)
            kind, same = _common(one, other), same_class(one, other)
            came, had = one.value.cast(kind), other.value.cast(kind)
        else:
            had = self._value(joined, column, column.name)
            same = came == had
        differs = ~came.is_null() & ~had.is_null() & (one_where(same) == 0)
        return _Label(nw.coalesce(came, had), differs)

    def _refuse_wrong(self, labels: list[_Label]) -> None:
        """Refuse answers to rows that are not there or there twice, that stand beside something
        that these rows do not hold, or contradict a label that they have.
        """
        here = self._table.with_columns(nw.lit(1).alias(_HERE))
        met = self._answers.join(here, on=_KEY, how="left")
        beside = [place for place, name in enumerate(self._told) if name in self._stored]
        differ = [*(self._differs(met, place) for place in beside), *(x.differs for x in labels)]
        wrong = reduce(nw.Expr.__or__, (one_where(each) == 1 for each in differ))
        marked = met.select(_KEY, one_where(wrong | nw.col(_HERE).is_null()).alias(_MET))
        keys = marked.group_by(_KEY).agg(nw.len().alias(_HERE), nw.col(_MET).sum())
        strange = keys.filter((nw.col(_HERE) > 1) | (nw.col(_MET) > 0))
        unnumbered = nw.when(nw.col(_KEY).is_null()).then(nw.col(_HERE))
        found = collected(strange.select(nw.len().alias(_KEY), unnumbered.sum().alias(_MET)))
        _refuse_numbers(self._answers, self._name, int(found[_MET][0] or 0))
        if found[_KEY][0]:
            self._refuse_rows(strange.select(_KEY))

    def _differs(self, met: Frame, place: int) -> nw.Expr:
        """Where another score or class came back than went out; of classes, perhaps only another
        spelling.
        """
        name, is_a_number = list(self._told.items())[place]
        there = nw.col(f"{_TOLD}_{place}")
        if is_a_number:
            here = number(met, name)
            close = (here == there) | ((here - there).abs() <= CLOSE + CLOSE * there.abs())
            return is_number(there) & (one_where(close) == 0)
        here = nw.col(name)
        # Text and numbers are compared by their text.
        same = here.cast(nw.String) == there.cast(nw.String)
        return (one_where(same) == 0) & ~(here.is_null() & there.is_null())

    def _refuse_rows(self, keys: Frame) -> None:
        """Join the rows of these numbers as arrays are joined, which says what is wrong with them;
        they go on where classes were only spelled in two ways.
        """
        if isinstance(self._given, ReturnedLabels):
            answers = self._given.among(collected(keys)[_KEY])
        else:
            given = _numbered(known_frame(self._given)).join(keys, on=_KEY, how="semi")
            answers = ReturnedLabels.of(Returned(given.to_native()), self._question, self._rule)
        compared = {name: self._slots[name] for name in self._told}
        compared |= {column.name: stored_as(column.slot) for column in self._columns}
        slots = {name: slot for name, slot in compared.items() if name in self._stored}
        rows = self._table.join(keys, on=_KEY, how="semi").sort(_KEY).to_native()
        columns = whole_columns(rows, {**slots, ID: Slot("number", ID)}, in_order=False)
        batch = ArrayBatch(0, len(columns[ID]), columns)
        replace(answers, needs_all=False).join_all(batch, list(columns), _TABLE)

    def _refuse_lacking(self, frame: Frame, labels: list[str]) -> None:
        """Refuse rows that have no number, or no label where each needs one."""
        missing = reduce(nw.Expr.__or__, (nw.col(name).is_null() for name in labels))
        keys = {"unnumbered": one_where(nw.col(_KEY).is_null()), "missing": one_where(missing)}
        found = counted(frame, keys)
        bad, lacking = (found.rows_where(found.numbers(key) == 1) for key in keys)
        _refuse_numbers(frame, _TABLE, bad)
        if lacking and not self._question.labels_may_be_missing:
            first = int(extreme(frame, nw.col(_KEY), missing, greatest=False))
            raise lacking_answers(self._name, _TABLE, first, lacking)


@dataclass(frozen=True)
class _Label:
    """A label: what came back, else what the table has, and where the two contradict each other."""

    value: nw.Expr
    differs: nw.Expr


def _numbered(frame: Frame) -> Frame:
    """The frame with the number of each row, null where it is not one."""
    value = number(frame, ID)
    inside = (value >= 0.0) & (value < 2.0**53)
    whole = nw.when(inside).then(one_where(value == value.floor())).otherwise(nw.lit(0))
    return frame.with_columns(nw.when(whole == 1).then(value).cast(nw.Int64).alias(_KEY))


def _refuse_numbers(frame: Frame, where: str, bad: int) -> None:
    """Refuse numbers that are not those of rows, of which there are so many."""
    if bad:
        example = extreme(frame, number(frame, ID), nw.col(_KEY).is_null(), greatest=True)
        shown = "nothing" if example is None else example
        raise not_a_row(f"{ID} of {where} holds {shown} ({bad} such values)")


def _common(one: ClassColumn, other: ClassColumn) -> nw.dtypes.DType:
    """The type that holds the classes of both columns."""
    kinds = (one.dtype, other.dtype)
    if all(column.is_text for column in (one, other)):
        return nw.String()
    if all(kind.is_integer() for kind in kinds) and not {nw.UInt64(), nw.Int128()} & {*kinds}:
        return nw.Int64()
    if all(kind.is_float() for kind in kinds):
        return nw.Float64()
    raise CannotJoinError


def _handed_over(native: Any, answers: ReturnedLabels) -> Frame:
    """Answers that were read here, as a frame of Spark."""
    columns: dict[str, tuple[list[Any], str]] = {ID: (answers.numbers.tolist(), "long")}
    for place, (column, values) in enumerate(zip(answers.columns, answers.values.T, strict=True)):
        columns[f"{_CAME}_{place}"] = _plain(column, values)
    for place, each in enumerate(answers.told):
        held = each.values.tolist()
        columns[f"{_TOLD}_{place}"] = (
            (held, "double")
            if each.is_number
            else ([None if one is None else str(one) for one in held], "string")
        )
    schema = ", ".join(f"{name} {kind}" for name, (_, kind) in columns.items())
    rows = list(zip(*(values for values, _ in columns.values()), strict=True))
    frame: Frame = nw.from_native(native.sparkSession.createDataFrame(rows, schema))
    return frame


def _plain(column: AnswerColumn, values: Floats) -> tuple[list[Any], str]:
    """Answers as a column of Python's values, and the type of Spark that holds them."""
    given = column.given(values)
    if not isinstance(given, Values):
        return [None if np.isnan(one) else one for one in values.tolist()], "double"
    found = given.column.tolist()
    kinds = {type(one) for one in found if one is not None}
    if kinds == {int} and all(one is None or abs(one) < 2**63 for one in found):
        return found, "long"
    if kinds <= {str}:
        return found, "string"
    raise CannotJoinError

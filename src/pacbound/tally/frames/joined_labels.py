"""Labels that came back for rows in Spark, joined to them there by the number of each row.

The same is refused as in `pacbound.tally.returned_labels`, by counts and an example of each. Labels
in a frame of Spark stay on its executors; others are handed over to it. Where labels and rows hold
classes of types that no one column holds, numbers and text, nothing is joined here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import narwhals as nw
import numpy as np

from pacbound.errors import InvalidValueError
from pacbound.sources.values import Values
from pacbound.tally.classes import ClassRule
from pacbound.tally.columns import Floats, Slot
from pacbound.tally.frames.answer_columns import ClassColumn, class_column, same_class
from pacbound.tally.frames.counting import collected, column_names, counted, extreme
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
    AnswerColumn,
    ReturnedLabels,
    Wrong,
    answer_columns,
    is_told_as_number,
    not_a_row,
    told_slots,
)
from pacbound.tally.row_ids import ID, spelling_of

# Columns that are there while labels are joined.
_KEY, _MET, _CAME, _TOLD = (f"pac_join_{name}" for name in ("row", "met", "came", "told"))
_TABLE: Final = "the frame"
_ANSWERS: Final = "the frame of answers"


class CannotJoinError(Exception):
    """The labels and the classes of the rows are of types that no one column holds."""


def is_in_spark(native: Any) -> bool:
    """Whether Spark holds these rows."""
    return bool(known_frame(native).implementation.is_spark_like())


def joined_inside(native: Any, answers: Any, question: Question, rule: ClassRule) -> Any:
    """The frame of Spark with the labels in their columns; `answers` are what was read of them, or
    a frame of Spark that holds them.
    """
    if ID not in column_names(native):
        raise InvalidValueError(
            "The rows of this frame have no order, and labels are joined by the number of a row: "
            f"give it a column {ID} with the numbers that went out."
        )
    return _Join(native, answers, question, rule).made()


class _Join:
    """Rows with the labels that came back for them, and what is wrong with these."""

    def __init__(self, native: Any, answers: Any, question: Question, rule: ClassRule) -> None:
        self._question, self._rule = question, rule
        self._columns, known_by = answer_columns(question, rule)
        self._stored = column_names(native)
        if isinstance(answers, ReturnedLabels):
            answers.require_own_ids(own=True)
            self._name = answers.name
            self._told = {each.name: question_slot(question, each.name) for each in answers.told}
            self._answers = self._handed_over(native, answers)
        else:
            self._name = _ANSWERS
            self._told = told_slots(known_by, [column_names(answers)])
            self._answers = self._of_frame(answers)
        used = [column.name for column in self._columns if column.name in self._stored]
        named = [slot.name for slot in question.slots.values() if slot.name in self._stored]
        self._table = with_exact_text(known_frame(native), [*used, *named])

    def made(self) -> Any:
        """The frame, if its labels can be those of its rows."""
        answers = self._numbered(self._answers)
        self._refuse_repeated(answers)
        answers = answers.with_columns(nw.lit(1).alias(_MET))
        table = self._numbered(self._table)
        joined: Frame = table.join(answers, on=_KEY, how="left")
        labels = [self._label(joined, place) for place in self._places]
        self._refuse_met(joined.filter(~nw.col(_MET).is_null()), answers, table, labels)
        labelled = joined.with_columns(
            *(label.value.alias(f"{_MET}_{place}") for place, label in enumerate(labels))
        )
        self._refuse_lacking(labelled)
        return self._named(labelled)

    @property
    def _places(self) -> range:
        return range(len(self._columns))

    def _named(self, frame: Frame) -> Any:
        """The frame with the labels under their own names, and nothing else that was joined."""
        kept = [name for name in self._stored if name not in {c.name for c in self._columns}]
        labels = [
            nw.col(f"{_MET}_{place}").alias(self._columns[place].name) for place in self._places
        ]
        return frame.select(*kept, *labels).to_native()

    def _of_frame(self, native: Any) -> Frame:
        """Answers in a frame of Spark, without the rows that have no answer."""
        back = [column.came_as(column_names(native)) for column in self._columns]
        names = [ID, *back, *self._told]
        frame = open_frame(native, names)
        came = [
            self._value(frame, column, name).alias(f"{_CAME}_{place}")
            for place, (column, name) in enumerate(zip(self._columns, back, strict=True))
        ]
        told = [
            (number(frame, name) if is_told_as_number(slot) else nw.col(name)).alias(
                f"{_TOLD}_{place}"
            )
            for place, (name, slot) in enumerate(self._told.items())
        ]
        chosen = frame.select(ID, *came, *told)
        there = [~nw.col(f"{_CAME}_{place}").is_null() for place in self._places]
        # A row may come back several times, and must not have been answered otherwise.
        return chosen.filter(reduce(nw.Expr.__or__, there)).unique()

    def _handed_over(self, native: Any, answers: ReturnedLabels) -> Frame:
        """Answers that were read here, as a frame of Spark."""
        columns: dict[str, tuple[list[Any], str]] = {ID: (answers.numbers.tolist(), "long")}
        for place, (column, values) in enumerate(
            zip(answers.columns, answers.values.T, strict=True)
        ):
            columns[f"{_CAME}_{place}"] = _plain(column, values)
        for place, each in enumerate(answers.told):
            if each.is_number:
                columns[f"{_TOLD}_{place}"] = each.values.astype(float).tolist(), "double"
            else:
                spelled = [None if one is None else str(one) for one in each.values.tolist()]
                columns[f"{_TOLD}_{place}"] = spelled, "string"
        schema = ", ".join(f"{name} {kind}" for name, (_, kind) in columns.items())
        rows = list(zip(*(values for values, _ in columns.values()), strict=True))
        frame: Frame = nw.from_native(native.sparkSession.createDataFrame(rows, schema))
        return frame

    def _value(self, frame: Frame, column: AnswerColumn, name: str) -> nw.Expr:
        """What stands in a column of labels, null where nothing does."""
        if column.slot.kind == "number or nothing":
            value = number(frame, name)
            return nw.when(is_number(value)).then(value)
        if column.slot.read_as != "class":
            if is_boolean(frame, name, name):
                return nw.col(name).cast(nw.Int64)
            value = number(frame, name)
            return nw.when(is_number(value)).then(value)
        return self._class(frame, column, name).value

    def _class(self, frame: Frame, column: AnswerColumn, name: str) -> ClassColumn:
        rule = ClassRule() if column.key == "preferred" else self._rule
        return class_column(frame, column.name, name, rule)

    def _numbered(self, frame: Frame) -> Frame:
        """The frame with the number of each row, null where it is not one."""
        value = number(frame, ID)
        inside = (value >= 0.0) & (value < 2.0**53)
        whole = nw.when(inside).then(one_where(value == value.floor())).otherwise(nw.lit(0))
        return frame.with_columns(nw.when(whole == 1).then(value).cast(nw.Int64).alias(_KEY))

    def _refuse_numbers(self, frame: Frame, where: str, bad: int) -> None:
        """Refuse numbers that are not those of rows, of which there are so many."""
        if bad:
            example = extreme(frame, number(frame, ID), nw.col(_KEY).is_null(), greatest=True)
            shown = "nothing" if example is None else example
            raise not_a_row(f"{ID} of {where} holds {shown} ({bad} such values)")

    def _refuse_repeated(self, answers: Frame) -> None:
        times = answers.group_by(_KEY).agg(nw.len().alias(_MET))
        found = _summed(times)
        self._refuse_numbers(answers, _ANSWERS, found["unnumbered"])
        self._answered = found["rows"]
        if found["twice"]:
            raise Wrong(self._name, "", found["first"], found["twice"]).repeated("")

    def _refuse_met(
        self, met: Frame, answers: Frame, table: Frame, labels: Sequence[_Label]
    ) -> None:
        """Refuse answers to rows that are not there or there twice, that stand beside something
        that these rows do not hold, or contradict a label that they have. One look at all of them,
        and another one for each that is wrong.
        """
        told = {f"{_TOLD}_differs_{place}": self._differs(met, place) for place in self._beside}
        other = {
            f"{_CAME}_differs_{place}": label.differs
            for place, label in enumerate(labels)
            if label.differs is not None
        }
        counts = {name: one_where(differs) for name, differs in {**told, **other}.items()}
        marked = met.select(_KEY, *(count.alias(name) for name, count in counts.items()))
        times = marked.group_by(_KEY).agg(
            nw.len().alias(_MET), *(nw.col(name).sum() for name in counts)
        )
        found = _summed(times, *counts)
        if found["twice"]:
            raise Wrong(self._name, _TABLE, found["first"], found["twice"]).twice()
        strange = self._answered - found["rows"]
        if strange:
            others = answers.join(table.select(_KEY), on=_KEY, how="anti")
            first = int(collected(others.select(nw.col(_KEY).min()))[_KEY][0])
            raise Wrong(self._name, _TABLE, first, strange).strange()
        for place, (name, differs) in zip(self._beside, told.items(), strict=True):
            if found[name]:
                self._refuse_told(met, place, differs, found[name])
        for name, differs in other.items():
            if found[name]:
                place = int(name.removeprefix(f"{_CAME}_differs_"))
                wrong = self._wrong(met, differs, found[name])
                at, label = differs & (nw.col(_KEY) == wrong.row), labels[place]
                said = (extreme(met, each, at, greatest=True) for each in label.both)
                column = self._columns[place]
                raise wrong.contradicted(column.what, *(_shown(column, each) for each in said))

    @property
    def _beside(self) -> list[int]:
        """The places of the columns beside the labels that the table has as well."""
        return [place for place, name in enumerate(self._told) if name in self._stored]

    def _differs(self, met: Frame, place: int) -> nw.Expr:
        """Where another score or class came back than went out; of classes, perhaps only another
        spelling.
        """
        name, slot = list(self._told.items())[place]
        there = nw.col(f"{_TOLD}_{place}")
        if is_told_as_number(slot):
            here = number(met, name)
            close = (here == there) | ((here - there).abs() <= CLOSE + CLOSE * there.abs())
            return is_number(there) & (one_where(close) == 0)
        here = nw.col(name)
        # Text and numbers are compared by their text.
        same = here.cast(nw.String) == there.cast(nw.String)
        return (one_where(same) == 0) & ~(here.is_null() & there.is_null())

    def _refuse_told(self, met: Frame, place: int, differs: nw.Expr, rows: int) -> None:
        name, slot = list(self._told.items())[place]
        here, there = nw.col(name), nw.col(f"{_TOLD}_{place}")
        if is_told_as_number(slot):
            here = number(met, name)
            wrong = self._wrong(met, differs, rows)
            at = differs & (nw.col(_KEY) == wrong.row)
            raise wrong.told(name, *(extreme(met, e, at, greatest=True) for e in (there, here)))
        pairs = counted(met.filter(differs), {"there": there, "here": here})
        ends = (pairs.keys[side].tolist() for side in ("there", "here"))
        for one, other, times in zip(*ends, pairs.rows.tolist(), strict=True):
            if _spelled(one) != _spelled(other):
                same = [
                    side.is_null() if value is None else side == value
                    for side, value in ((there, one), (here, other))
                ]
                raise self._wrong(met, same[0] & same[1], times).told(name, one, other)

    def _wrong(self, frame: Frame, where: nw.Expr, rows: int) -> Wrong:
        """What is wrong in some rows, by the least number among them."""
        row = int(extreme(frame, nw.col(_KEY), where, greatest=False))
        return Wrong(self._name, _TABLE, row, rows)

    def _label(self, joined: Frame, place: int) -> _Label:
        """What came back, and what the table has where nothing came."""
        column = self._columns[place]
        came = nw.col(f"{_CAME}_{place}")
        if column.name not in self._stored:
            return _Label(came)
        if column.slot.read_as == "class":
            one = self._class(joined, column, f"{_CAME}_{place}")
            other = self._class(joined, column, column.name)
            kind = _common(one, other)
            return _Label(one.value.cast(kind), other.value.cast(kind), same_class(one, other))
        had = self._value(joined, column, column.name).cast(nw.Float64)
        return _Label(came.cast(nw.Float64), had, came.cast(nw.Float64) == had)

    def _refuse_lacking(self, frame: Frame) -> None:
        """Refuse rows that have no number, or no label where each needs one."""
        missing = reduce(
            nw.Expr.__or__, (nw.col(f"{_MET}_{place}").is_null() for place in self._places)
        )
        keys = {"unnumbered": one_where(nw.col(_KEY).is_null()), "missing": one_where(missing)}
        found = counted(frame, keys)
        bad, lacking = (found.rows_where(found.numbers(key) == 1) for key in keys)
        self._refuse_numbers(frame, _TABLE, bad)
        if lacking and not self._question.labels_may_be_missing:
            raise self._wrong(frame, missing, lacking).lacking()


@dataclass(frozen=True)
class _Label:
    """A label that came back, the one that the table has, if it has any, and where both are the
    same.
    """

    came: nw.Expr
    had: nw.Expr | None = None
    same: nw.Expr | None = None

    @property
    def value(self) -> nw.Expr:
        """What came back, and what the table has where nothing came."""
        if self.had is None:
            return self.came
        return nw.when(~self.came.is_null()).then(self.came).otherwise(self.had)

    @property
    def both(self) -> tuple[nw.Expr, nw.Expr]:
        """What came back, and what the table has."""
        return self.came, self.came if self.had is None else self.had

    @property
    def differs(self) -> nw.Expr | None:
        """Where the two contradict each other; None if there is but one."""
        if self.had is None or self.same is None:
            return None
        return ~self.came.is_null() & ~self.had.is_null() & (one_where(self.same) == 0)


def _summed(times: Frame, *counts: str) -> dict[str, int]:
    """Of numbers of rows with how often each is there: how many there are, how many of them several
    times and the least of these, how many rows have none, and the sums of other counts.
    """
    twice, numbered = nw.col(_MET) > 1, ~nw.col(_KEY).is_null()
    found = collected(
        times.select(
            one_where(numbered).sum().alias("rows"),
            one_where(numbered & twice).sum().alias("twice"),
            nw.when(numbered & twice).then(nw.col(_KEY)).min().alias("first"),
            nw.when(~numbered).then(nw.col(_MET)).sum().alias("unnumbered"),
            *(nw.col(name).sum() for name in counts),
        )
    )
    return {name: int(column[0] or 0) for name, column in found.items()}


def question_slot(question: Question, name: str) -> Slot:
    """The slot of a question that a column is for."""
    return next(slot for slot in question.slots.values() if slot.name == name)


def _spelled(value: Any) -> Any:
    missing = value is None or value != value  # noqa: PLR0124 - NaN alone is not itself
    return None if missing else spelling_of(value)


def _shown(column: AnswerColumn, value: Any) -> str:
    if column.slot.kind == "number or nothing":
        return f"{value:g}"
    return repr(value) if column.slot.read_as == "class" else str(bool(value))


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


def _plain(column: AnswerColumn, values: Floats) -> tuple[list[Any], str]:
    """Answers as a column of Python's values, and the type of Spark that holds them."""
    gaps = np.isnan(values)
    if column.slot.kind == "number or nothing":
        return [
            None if gap else one for gap, one in zip(gaps, values.tolist(), strict=True)
        ], "double"
    if column.slot.read_as != "class":
        return [None if gap else int(one) for gap, one in zip(gaps, values, strict=True)], "long"
    given = column.given(values)
    if not isinstance(given, Values):
        raise CannotJoinError
    found = [None if place < 0 else given.distinct[place] for place in given.places.tolist()]
    kinds = {type(one) for one in found if one is not None}
    if kinds == {int} and all(one is None or abs(one) < 2**63 for one in found):
        return found, "long"
    if kinds <= {str}:
        return found, "string"
    raise CannotJoinError

"""The outcome of each row of a frame as a number, and what may keep a row from having one.

Outcomes are 0, 1, …; below 0 are the rows that have none, by what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Final, Protocol

import narwhals as nw
import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.exits import EXIT_OUTCOMES
from pacbound.tally.frames.classes import classes, same_class
from pacbound.tally.frames.columns import Frame, is_number, number, one_where
from pacbound.tally.frames.counts import KeyCounts, extreme
from pacbound.tally.frames.flaws import Flaw, missing_class, no_class, no_label
from pacbound.tally.grids import Integers

OUTCOME: Final = "outcome"
_MISSING: Final = -1.0
_NO_FLAG: Final = -2.0


class Outcome(Protocol):
    """How the outcome of a row follows from its columns."""

    @property
    def code(self) -> nw.Expr:
        """The outcome, or below 0 what is wrong with the row."""
        ...

    def checked(self, counts: KeyCounts) -> Integers:
        """The outcomes that were counted, if none is wrong."""
        ...


@dataclass(frozen=True)
class Flag:
    """A column of booleans, or of numbers that are 0 or 1."""

    frame: Frame
    name: str

    @cached_property
    def _is_boolean(self) -> bool:
        dtype = self.frame.collect_schema()[self.name]
        if dtype == nw.Boolean:
            return True
        if not dtype.is_numeric():
            raise InvalidTypeError(
                f"{self.name} has type {dtype}: expected booleans, or numbers that are 0 or 1."
            )
        return False

    @cached_property
    def _is_integer(self) -> bool:
        return self.frame.collect_schema()[self.name].is_integer()

    @property
    def _value(self) -> nw.Expr:
        return nw.col(self.name) if self._is_integer else number(self.frame, self.name)

    @property
    def _is_there(self) -> nw.Expr:
        return ~self._value.is_null() if self._is_integer else is_number(self._value)

    @property
    def is_true(self) -> nw.Expr:
        """Whether the flag is set, as a condition: null where it is missing."""
        return nw.col(self.name) if self._is_boolean else self._value == 1

    @property
    def code(self) -> nw.Expr:
        if self._is_boolean:
            return nw.col(self.name)
        neither = nw.when(self._is_there).then(nw.lit(_NO_FLAG)).otherwise(nw.lit(_MISSING))
        is_zero = nw.when(self._value == 0).then(nw.lit(0.0))
        return nw.when(self._value == 1).then(nw.lit(1.0)).otherwise(is_zero.otherwise(neither))

    def checked(self, counts: KeyCounts) -> Integers:
        codes = counts.numbers(OUTCOME)
        missing, others = (
            counts.rows_where(np.isnan(codes) | (codes == _MISSING)),
            counts.rows_where(codes == _NO_FLAG),
        )
        if missing:
            raise InvalidValueError(
                f"{self.name} has {missing} missing values (null or NaN): expected True or False, "
                "or 0 or 1."
            )
        if others:
            neither = self._is_there & (self._value != 0) & (self._value != 1)
            example = extreme(self.frame, number(self.frame, self.name), neither, greatest=True)
            raise InvalidValueError(
                f"{self.name} holds {example} ({others} such values): expected True or False, or 0 "
                "or 1. For predictions and labels name both columns instead."
            )
        return codes.astype(np.int64)


class Answers:
    """Columns of predictions against a column of labels.

    One prediction is wrong or right, and every row needs its label. Of several, all but the last
    are compared with the last, and a label is needed only where they differ.
    """

    def __init__(self, frame: Frame, predictions: Sequence[str], label: str) -> None:
        answers, truth = [classes(frame, name) for name in predictions], classes(frame, label)
        if len(answers) > 1 and truth.is_text != answers[-1].is_text:
            # Which does not matter where nothing is labelled, as when all predictions agree.
            truth = truth.incomparable()
        self._right = [same_class(answer, truth) for answer in answers]
        self._agree = [same_class(answer, answers[-1]) for answer in answers[:-1]]
        labelled = (
            no_label(truth, self._agree)
            if self._agree
            else missing_class(truth, "label every row.")
        )
        self._flaws: list[Flaw] = [
            *(missing_class(answer, "every model must predict every row.") for answer in answers),
            *(no_class(column, frame) for column in (*answers, truth) if column.odd is not None),
            labelled,
        ]

    @property
    def code(self) -> nw.Expr:
        # Each flaw is a bit, so that the flaws of each column are counted although a row may have
        # several.
        flaws = reduce(
            nw.Expr.__add__, (flaw.flag * (1 << bit) for bit, flaw in enumerate(self._flaws))
        )
        return nw.when(flaws == 0).then(self._outcome).otherwise(flaws * -1)

    def checked(self, counts: KeyCounts) -> Integers:
        codes = counts.numbers(OUTCOME).astype(np.int64)
        for bit, flaw in enumerate(self._flaws):
            rows = counts.rows_where((codes < 0) & ((-codes >> bit) & 1 == 1))
            if rows:
                raise flaw.error(rows)
        return codes

    @property
    def _outcome(self) -> nw.Expr:
        if not self._agree:
            return one_where(self._right[0])
        exits = [
            _exit_outcome(agree, right, self._right[-1])
            for agree, right in zip(self._agree, self._right[:-1], strict=True)
        ]
        return reduce(lambda joint, single: joint * len(EXIT_OUTCOMES) + single, exits)


def _exit_outcome(agree: nw.Expr, fast_right: nw.Expr, slow_right: nw.Expr) -> nw.Expr:
    """The position in `EXIT_OUTCOMES`. Where predictions differ there is a label, and at most one
    of them is right.
    """
    differs = (
        nw.when(fast_right)
        .then(nw.lit(1))
        .otherwise(nw.when(slow_right).then(nw.lit(2)).otherwise(nw.lit(3)))
    )
    return nw.when(agree).then(nw.lit(0)).otherwise(differs)

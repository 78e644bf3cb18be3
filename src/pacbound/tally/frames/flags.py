"""A column of truth values inside an engine: booleans, or numbers that are 0 or 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import narwhals as nw
import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.frames.counting import KeyCounts, extreme
from pacbound.tally.frames.opening import Frame, is_number, number
from pacbound.tally.grids import Integers

_MISSING: Final = -1.0
_NOT_A_FLAG: Final = -2.0


@dataclass(frozen=True)
class Flag:
    """A column whose value is 1, 0, or below 0 what is wrong with it."""

    frame: Frame
    column: str
    name: str

    @cached_property
    def is_boolean(self) -> bool:
        """Whether the column holds booleans, and not numbers."""
        dtype = self.frame.collect_schema()[self.column]
        if dtype == nw.Boolean:
            return True
        if not dtype.is_numeric():
            raise InvalidTypeError(
                f"{self.name} has type {dtype}: expected booleans, or numbers that are 0 or 1."
            )
        return False

    @cached_property
    def _is_integer(self) -> bool:
        return self.frame.collect_schema()[self.column].is_integer()

    @property
    def _value(self) -> nw.Expr:
        return nw.col(self.column) if self._is_integer else number(self.frame, self.column)

    @property
    def _is_there(self) -> nw.Expr:
        return ~self._value.is_null() if self._is_integer else is_number(self._value)

    @property
    def is_true(self) -> nw.Expr:
        """Whether the flag is set, as a condition: null where it is missing."""
        return nw.col(self.column) if self.is_boolean else self._value == 1

    @property
    def key(self) -> nw.Expr:
        """The value as a key to count by."""
        if self.is_boolean:
            return nw.col(self.column)
        neither = nw.when(self._is_there).then(nw.lit(_NOT_A_FLAG)).otherwise(nw.lit(_MISSING))
        is_zero = nw.when(self._value == 0).then(nw.lit(0.0))
        return nw.when(self._value == 1).then(nw.lit(1.0)).otherwise(is_zero.otherwise(neither))

    def checked(self, counts: KeyCounts, key: str) -> Integers:
        """The values that were counted, if none is wrong."""
        codes = counts.numbers(key)
        missing = counts.rows_where(np.isnan(codes) | (codes == _MISSING))
        others = counts.rows_where(codes == _NOT_A_FLAG)
        if missing:
            raise InvalidValueError(
                f"{self.name} has {missing} missing values (null or NaN): expected True or False, "
                "or 0 or 1."
            )
        if others:
            neither = self._is_there & (self._value != 0) & (self._value != 1)
            example = extreme(self.frame, number(self.frame, self.column), neither, greatest=True)
            raise InvalidValueError(
                f"{self.name} holds {example} ({others} such values): expected True or False, or 0 "
                "or 1. For predictions and labels name both columns instead."
            )
        return codes.astype(np.int64)

"""Columns of predictions and labels in a frame, and where two of them name the same class.

Classes are numbers or names. NaN and null are missing, and equal nothing, whatever the engine
thinks of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import narwhals as nw

from pacbound.errors import InvalidTypeError
from pacbound.tally.frames.columns import (
    Frame,
    is_number,
    is_too_wide_for_arrow,
    one_where,
    one_where_whole,
    typed,
)

_WIDE: Final = frozenset([nw.UInt64(), nw.UInt128(), nw.Int128()])


@dataclass(frozen=True)
class Classes:
    """A column of classes: its values, and as 1 and 0 where one is missing, or odd: there, but no
    class.

    `odd` is None where the type leaves no room for that. A column that is not `comparable` equals
    no other.
    """

    name: str
    dtype: nw.dtypes.DType
    value: nw.Expr
    missing: nw.Expr
    odd: nw.Expr | None = None
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

    def incomparable(self) -> Classes:
        """The column as one that must not hold anything."""
        return replace(self, odd=1 - self.missing, comparable=False)


def classes(frame: Frame, name: str) -> Classes:
    """A column of class indices or names."""
    dtype, column = typed(frame, name)
    missing = one_where(column.is_null())
    if isinstance(dtype, (nw.Categorical, nw.Enum, nw.String)):
        return Classes(name, nw.String(), column.cast(nw.String), missing)
    if dtype == nw.Boolean:
        return Classes(name, nw.Int64(), column.cast(nw.Int64), missing)
    if dtype.is_integer():
        return Classes(
            name, dtype, column, missing, float_by_text=is_too_wide_for_arrow(frame, name)
        )
    if dtype.is_float():
        value = column.cast(nw.Float64)
        present = nw.when(is_number(value))
        odd = present.then(1 - one_where_whole(value)).otherwise(nw.lit(0))
        return Classes(name, nw.Float64(), value, present.then(nw.lit(0)).otherwise(nw.lit(1)), odd)
    if isinstance(dtype, (nw.Unknown, nw.Object)):
        # A column of nothing but nulls has no type of its own in some engines.
        return Classes(name, dtype, column, missing).incomparable()
    raise InvalidTypeError(f"{name} has type {dtype}: expected class indices or names.")


def same_class(one: Classes, other: Classes) -> nw.Expr:
    """Where both columns name the same class; null where either is missing."""
    if not (one.comparable and other.comparable):
        return nw.lit(0) == nw.lit(1)
    if one.is_text != other.is_text:
        raise InvalidTypeError(
            f"{one.name} has type {one.dtype} and {other.name} {other.dtype}, which are never "
            "equal: name classes one way."
        )
    if nw.Float64 in (one.dtype, other.dtype):
        # Whole floats below 2**53 are exact, and no other integer becomes one of them.
        return one.as_float == other.as_float
    if one.dtype != other.dtype and _WIDE & {one.dtype, other.dtype}:
        # Engines do not agree on what holds both a signed and an unsigned integer of 64 bits. Text
        # does.
        return one.value.cast(nw.String) == other.value.cast(nw.String)
    return one.value == other.value

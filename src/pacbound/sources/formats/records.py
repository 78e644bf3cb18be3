"""Some consecutive rows of a table as an Arrow record batch, its columns as NumPy arrays.

Columns with types are taken as they are. In a table of text (CSV, JSON lines) a column of strings
may stand for numbers and truth values too; in one with types (Parquet, Arrow) it may not. A value
that is not what the column should hold raises with its row and its text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError, MissingDependencyError

try:
    import pyarrow
    import pyarrow.compute as pc
except ImportError:
    raise MissingDependencyError.for_extra(
        "pyarrow", "frames", "Reading the rows of a file"
    ) from None

from pacbound.sources.notation import FALSE, TRUE
from pacbound.sources.values import MISSING, Values, cut_name, grade_hint, which_class

# What Arrow raises about a file that it cannot read.
UnreadableError = (pyarrow.ArrowException, OSError)


@dataclass(frozen=True)
class RecordRows:
    """Rows in a record batch.

    In text, `decimal` stands for the decimal point. `lines` are the rows as they stood in a file of
    JSON lines, where they came from one, and `nested` says in which rows a column is the text of a
    list or an object.
    """

    start: int
    record: Any
    is_text: bool = False
    decimal: str = "."
    lines: Any = None
    nested: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return int(self.record.num_rows)

    def numbers(self, name: str, *, missing: bool = False) -> NDArray[Any]:
        column = self._column(name)
        if self.is_text and _holds_text(column):
            return numbers_in(column, name, self.start, missing=missing, decimal=self.decimal)
        if not _holds_numbers(column):
            raise InvalidTypeError(
                f"{name} has type {column.type}, which does not hold scores: expected floats from "
                "0 to 1."
            )
        if not missing:
            self._refuse_null(
                column,
                name,
                "every row needs one: mend it. To drop rows by their outcome voids the guarantee",
            )
        # Decimals go through their digits, which are rounded once.
        plain = column.cast(pyarrow.string()) if pyarrow.types.is_decimal(column.type) else column
        return _floats(plain)

    def flags(self, name: str) -> NDArray[Any]:
        column = self._column(name)
        if self.is_text and _holds_text(column):
            return flags_in(column, name, self.start)
        if not (_holds_numbers(column) or pyarrow.types.is_boolean(column.type)):
            raise InvalidTypeError(
                f"{name} has type {column.type}: expected booleans, or numbers that are 0 or 1. "
                f"{which_class(_some(column))}"
            )
        self._refuse_null(column, name, "expected true or false, or 1 or 0")
        if pyarrow.types.is_boolean(column.type):
            return np.asarray(column.to_numpy(zero_copy_only=False))
        return _floats(column)

    def names(self, name: str) -> NDArray[Any]:
        column = self._column(name)
        if self.is_text and _holds_text(column):
            return names_in(column, name, self.start)
        missing = np.flatnonzero(np.asarray(column.is_null(nan_is_null=True)))
        if missing.size:
            raise InvalidValueError(
                f"{name}[{self.start + missing[0]}] is empty ({missing.size} such values): name it."
            )
        if _holds_text(column):
            return _as_text(column, name)
        if pyarrow.types.is_floating(column.type):
            return _floats(column)
        if pyarrow.types.is_integer(column.type) or pyarrow.types.is_boolean(column.type):
            return np.asarray(column.to_numpy(zero_copy_only=False))
        raise InvalidTypeError(f"{name} has type {column.type}: expected integers or strings.")

    def values(self, name: str) -> Values:
        column = self._column(name)
        if pyarrow.types.is_null(column.type):
            return Values([], np.full(len(column), MISSING, dtype=np.int64))
        if pyarrow.types.is_nested(column.type):
            raise InvalidTypeError(
                f"{name} has type {column.type}, which does not hold classes: expected integers, "
                "whole numbers or names."
            )
        if name in self.nested:
            self._refuse_nested(column, name)
        if pyarrow.types.is_float16(column.type):
            column = column.cast(pyarrow.float64())
        encoded = column.dictionary_encode()
        places = np.asarray(pc.fill_null(encoded.indices, MISSING)).astype(np.int64)
        is_typed = not (self.is_text and _holds_text(column))
        return Values(encoded.dictionary.to_pylist(), places, is_typed)

    def where(self, chosen: NDArray[np.bool_]) -> RecordRows:
        mask = pyarrow.array(chosen)
        return replace(
            self,
            record=self.record.filter(mask),
            lines=None if self.lines is None else self.lines.filter(mask),
            nested={name: rows.filter(mask) for name, rows in self.nested.items()},
        )

    def only(self, columns: Collection[str]) -> RecordRows:
        # By their places: a name may be there twice.
        places = [place for place, name in enumerate(self.record.schema.names) if name in columns]
        return replace(self, record=self.record.select(places), lines=None)

    def _column(self, name: str) -> Any:
        column = self.record.column(self.record.schema.get_field_index(name))
        if pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        # In text, nothing and an empty value are the same.
        return pc.fill_null(column, "") if self.is_text and _holds_text(column) else column

    def _refuse_nested(self, column: Any, name: str) -> None:
        rows = np.flatnonzero(self.nested[name].to_numpy(zero_copy_only=False))
        if rows.size:
            raise InvalidTypeError(
                f"{name}[{self.start + rows[0]}] is {column[int(rows[0])].as_py()}, a list or an "
                f"object ({rows.size} such values): expected integers, whole numbers or names."
            )

    def _refuse_null(self, column: Any, name: str, remedy: str) -> None:
        if column.null_count:
            row = self.start + int(np.flatnonzero(np.asarray(column.is_null()))[0])
            raise InvalidValueError(
                f"{name}[{row}] is missing ({column.null_count} such values): {remedy}."
            )


def with_constants(record: Any, constants: dict[str, str | None]) -> Any:
    """The record with a column of one value for each constant."""
    for name, value in constants.items():
        constant = pyarrow.scalar(value, pyarrow.string())
        record = record.append_column(name, pyarrow.repeat(constant, record.num_rows))
    return record


def _floats(column: Any) -> NDArray[np.float64]:
    # An integer that is rounded is beyond 2**53: no score and no truth value, and refused as such
    # where the values are checked.
    return np.asarray(column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False))


def _holds_text(column: Any) -> bool:
    types = pyarrow.types
    return bool(
        types.is_string(column.type)
        or types.is_large_string(column.type)
        or types.is_string_view(column.type)
    )


def _holds_numbers(column: Any) -> bool:
    types = pyarrow.types
    return bool(
        types.is_integer(column.type)
        or types.is_floating(column.type)
        or types.is_decimal(column.type)
    )


def numbers_in(
    column: Any, name: str, start: int, *, missing: bool = False, decimal: str = "."
) -> NDArray[np.float64]:
    """The numbers that the text stands for, correctly rounded; with `missing`, an empty text is
    NaN. Where a comma is the `decimal` sign, a point is none.
    """
    trimmed = pc.utf8_trim_whitespace(column)
    if missing:
        trimmed = pc.if_else(pc.equal(trimmed, ""), "nan", trimmed)
    plain = trimmed
    if decimal != ".":
        # One that has a point already has another decimal sign than was announced.
        points = pc.replace_substring(trimmed, ",", ".")
        plain = pc.if_else(pc.match_substring(trimmed, "."), "point", points)
    try:
        return np.asarray(plain.cast(pyarrow.float64()))
    except pyarrow.ArrowInvalid:
        row = next(row for row, value in enumerate(plain.to_pylist()) if not _is_number(value))
        value = trimmed[row].as_py()
        raise InvalidValueError(
            f"{name}[{start + row}] is {value!r}, which is not a number. {_hint(value, decimal)}"
            "Mend it; to drop rows by their outcome voids the guarantee."
        ) from None


def flags_in(column: Any, name: str, start: int) -> NDArray[np.bool_]:
    """The truth values that the text stands for: true and false, yes and no, 1 and 0."""
    lowered = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    true = np.asarray(pc.is_in(lowered, value_set=pyarrow.array(TRUE)))
    legal = true | np.asarray(pc.is_in(lowered, value_set=pyarrow.array(FALSE)))
    if not legal.all():
        row = int(np.flatnonzero(~legal)[0])
        value, count = column[row].as_py(), int((~legal).sum())
        if not value.strip():
            raise InvalidValueError(
                f"{name}[{start + row}] is missing ({count} values are missing, or neither true "
                "nor false): expected true or false, or 1 or 0. To drop such rows voids the "
                "guarantee, unless that has nothing to do with their outcome."
            )
        hint = grade_hint(value) or f" {which_class(_some(column))}"
        raise InvalidValueError(
            f"{name}[{start + row}] is {value!r} ({count} such values): expected true or false, or "
            f"1 or 0. For predictions and labels name both columns instead.{hint}"
        )
    return true


def _some(column: Any) -> list[str]:
    """The distinct values of a column, in order."""
    return sorted(map(str, pc.unique(column).to_pylist()))


def names_in(column: Any, name: str, start: int) -> NDArray[Any]:
    """The text itself; an empty one is a missing name."""
    values = pc.utf8_trim_whitespace(column)
    empty = np.flatnonzero(np.asarray(pc.equal(values, "")))
    if empty.size:
        raise InvalidValueError(
            f"{name}[{start + empty[0]}] is empty ({empty.size} such values): name it or drop the "
            "row."
        )
    return _as_text(values, name)


def _as_text(values: Any, name: str) -> NDArray[Any]:
    """An array of text, if none ends in NUL, which it would drop."""
    cut = values.filter(pc.ends_with(values, "\0"))
    if len(cut):
        raise cut_name(name, cut[0].as_py())
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.str_)


def _hint(value: str, decimal: str) -> str:
    """The option that would make a number of the text, if there is one."""
    if decimal == "." and value.count(",") == 1 and _is_number(value.replace(",", ".")):
        return "If the comma is a decimal comma, pass --decimal , (decimal=','). "
    if decimal == "," and _is_number(value):
        return "It has a decimal point, and a comma was announced: leave --decimal , out. "
    if value.endswith("%") and _is_number(value[:-1]):
        return "Write the number without the sign, and pass --scale 100 (scale=100). "
    return ""


def _is_number(value: str) -> bool:
    try:
        pyarrow.scalar(value).cast(pyarrow.float64())
    except pyarrow.ArrowInvalid:
        return False
    return True

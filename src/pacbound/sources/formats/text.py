"""Columns of text as numbers, truth values and names (Arrow strings in, NumPy out).

A value that is not what the column should hold raises with its row and its text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.sources.formats.text_sql import FALSE, TRUE


def numbers(
    column: Any, name: str, start: int, *, missing: bool = False, decimal: str = "."
) -> NDArray[np.float64]:
    """The numbers that the text stands for, correctly rounded; with `missing`, an empty text is
    NaN. Where a comma is the `decimal` sign, a point is none.
    """
    trimmed = pc.utf8_trim_whitespace(column)
    if missing:
        trimmed = pc.if_else(pc.equal(trimmed, ""), "nan", trimmed)
    plain = trimmed if decimal == "." else _with_points(trimmed)
    try:
        return np.asarray(plain.cast(pyarrow.float64()))
    except pyarrow.ArrowInvalid:
        row = next(row for row, value in enumerate(plain.to_pylist()) if not _is_number(value))
        value = trimmed[row].as_py()
        raise InvalidValueError(
            f"{name}[{start + row}] is {value!r}, which is not a number. {_hint(value, decimal)}"
            "Mend it; to drop rows by their outcome voids the guarantee."
        ) from None


def flags(column: Any, name: str, start: int) -> NDArray[np.bool_]:
    """The truth values that the text stands for: true and false, yes and no, 1 and 0."""
    lowered = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    true = np.asarray(pc.is_in(lowered, value_set=pyarrow.array(TRUE)))
    legal = true | np.asarray(pc.is_in(lowered, value_set=pyarrow.array(FALSE)))
    if not legal.all():
        row = int(np.flatnonzero(~legal)[0])
        value, count = column[row].as_py(), int((~legal).sum())
        raise InvalidValueError(
            f"{name}[{start + row}] is {value!r} ({count} such values): expected true or false, or "
            "1 or 0. For predictions and labels name both columns instead."
        )
    return true


def names(column: Any, name: str, start: int) -> NDArray[Any]:
    """The text itself; an empty one is a missing name."""
    values = pc.utf8_trim_whitespace(column)
    _refuse_empty(values, name, start)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.str_)


def _refuse_empty(values: Any, name: str, start: int) -> None:
    empty = np.asarray(pc.equal(values, ""))
    if empty.any():
        row = int(np.flatnonzero(empty)[0])
        raise InvalidValueError(
            f"{name}[{start + row}] is empty ({int(empty.sum())} such values): name it or drop the "
            "row."
        )


def _with_points(values: Any) -> Any:
    """Numbers with a decimal comma as numbers with a point; one that has a point is left as no
    number.
    """
    has_point = pc.match_substring(values, ".")
    return pc.if_else(has_point, "point", pc.replace_substring(values, ",", "."))


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

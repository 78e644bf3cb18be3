"""Columns of text as numbers, truth values and names, and rows as lines of text again (Arrow strings in, NumPy out).

A value that is not what the column should hold raises with its row and its text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError

_TRUE = pyarrow.array(["1", "true", "t", "yes", "1.0"])
_MISSING = ("", "nan")
_FALSE = pyarrow.array(["0", "false", "f", "no", "0.0"])


def numbers(column: Any, name: str, start: int, *, missing: bool = False) -> NDArray[np.float64]:
    """The numbers that the text stands for, correctly rounded; with `missing`, an empty text is NaN."""
    trimmed = pc.utf8_trim_whitespace(column)
    if missing:
        trimmed = pc.if_else(pc.equal(trimmed, ""), "nan", trimmed)
    try:
        return np.asarray(trimmed.cast(pyarrow.float64()))
    except pyarrow.ArrowInvalid:
        row, value = next((row, value) for row, value in enumerate(trimmed.to_pylist()) if not _is_number(value))
        raise InvalidValueError(f"{name}[{start + row}] is {value!r}, which is not a number. Mend or drop that row.") from None


def flags(column: Any, name: str, start: int) -> NDArray[np.bool_]:
    """The truth values that the text stands for: true and false, yes and no, 1 and 0."""
    lowered = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    true = np.asarray(pc.is_in(lowered, value_set=_TRUE))
    legal = true | np.asarray(pc.is_in(lowered, value_set=_FALSE))
    if not legal.all():
        row = int(np.flatnonzero(~legal)[0])
        value, count = column[row].as_py(), int((~legal).sum())
        raise InvalidValueError(
            f"{name}[{start + row}] is {value!r} ({count} such values): expected true or false, or 1 or 0. "
            "For predictions and labels name both columns instead."
        )
    return true


def names(column: Any, name: str, start: int) -> NDArray[Any]:
    """The text itself; an empty one is a missing name."""
    values = pc.utf8_trim_whitespace(column)
    _refuse_empty(values, name, start)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.str_)


def equal(left: Any, right: Any, called: tuple[str, str], start: int) -> NDArray[np.bool_]:
    """Where two columns name the same class: by their text, or by their value where both are numbers (3 and 3.0)."""
    one, other = pc.utf8_trim_whitespace(left), pc.utf8_trim_whitespace(right)
    _refuse_empty(one, called[0], start)
    _refuse_empty(other, called[1], start)
    same = np.array(pc.equal(one, other))
    for row in np.flatnonzero(~same) if _may_be_numbers(one, other) else ():
        same[row] = _same_number(one[int(row)].as_py(), other[int(row)].as_py())
    return same


def classes(column: Any) -> NDArray[Any]:
    """The classes that the text names, masked where it is empty; 3 and 3.0 are one class."""
    trimmed = pc.utf8_trim_whitespace(column)
    named = pc.replace_substring_regex(trimmed, r"^(-?\d+)\.0+$", r"\1")
    values = np.asarray(named.to_numpy(zero_copy_only=False), dtype=np.str_)
    masked: NDArray[Any] = np.ma.masked_array(values, mask=np.isin(np.char.lower(values), _MISSING))
    return masked


def quoted(column: Any, separator: str) -> Any:
    """The column with quotes around the values that need them, as CSV does it."""
    needs = pc.match_substring_regex(column, f'[{separator}"\r\n]')
    if not pc.any(needs).as_py():
        return column
    wrapped = pc.binary_join_element_wise('"', pc.replace_substring(column, '"', '""'), '"', "")
    return pc.if_else(needs, wrapped, column)


def lines(columns: list[Any], separator: str) -> bytes:
    """The rows of the columns as lines."""
    joined = pc.binary_join_element_wise(*columns, separator)
    ended = pc.binary_join_element_wise(joined, "\n", "")
    return "".join(ended.to_pylist()).encode()


def _refuse_empty(values: Any, name: str, start: int) -> None:
    empty = np.asarray(pc.equal(values, ""))
    if empty.any():
        row = int(np.flatnonzero(empty)[0])
        raise InvalidValueError(f"{name}[{start + row}] is empty ({int(empty.sum())} such values): name it or drop the row.")


def _may_be_numbers(one: Any, other: Any) -> bool:
    """Whether the two columns write numbers in different ways, one with a point and the other without."""
    return bool(len(one)) and (pc.any(pc.match_substring(one, ".")).as_py() != pc.any(pc.match_substring(other, ".")).as_py())


def _same_number(one: str, other: str) -> bool:
    return _is_number(one) and _is_number(other) and float(one) == float(other)


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True

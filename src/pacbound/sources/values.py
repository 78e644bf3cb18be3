"""Columns by their distinct values, from whatever holds them: nothing is interpreted yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError

# The place of a value that is missing.
MISSING: Final = -1

EXACT_FLOATS: Final = 2.0**53
_CLOSE: Final = 2**16
_LISTED: Final = 5
# Classes that say that there is nothing, so that another one is meant.
_PLAINLY_NOT: Final = frozenset(
    ("", "0", "0.0", "false", "healthy", "negative", "no", "none", "normal", "ok", "safe")
)


@dataclass(frozen=True)
class Values:
    """A column by its distinct values and, for each row, the place of its value among them.

    The place is -1 where the value is missing. Where values are not `typed`, they are text in a
    file that has no types: the text may stand for a number.
    """

    distinct: list[Any]
    places: NDArray[np.int64]
    typed: bool = True

    def __len__(self) -> int:
        return len(self.places)

    @property
    def column(self) -> NDArray[Any]:
        """What stands in each row, None where nothing does."""
        # The last place, -1, is that of a value that is missing.
        return np.array([*self.distinct, None], dtype=object)[self.places]

    def part(self, rows: slice) -> Values:
        """Some of the rows."""
        return Values(self.distinct, self.places[rows], self.typed)

    def at(self, rows: NDArray[np.int64]) -> Values:
        """The rows at some places, in this order."""
        return Values(self.distinct, self.places[rows], self.typed)


def cut_name(where: str, value: str) -> InvalidValueError:
    """The error for a name that arrays of text cannot hold."""
    return InvalidValueError(
        f"{where} holds {value!r}, and arrays of text drop the NUL at its end: rename it."
    )


def which_class(found: Sequence[Any]) -> str:
    """What to do about classes that stand where truth values are expected. One of them is
    recommended only where all others say plainly that there is nothing: a wrong one turns the
    claim around.
    """
    listed = ", ".join(map(repr, found[:_LISTED]))
    more = f", … ({len(found)} in all)" if len(found) > _LISTED else ""
    left = [value for value in found if str(value).strip().lower() not in _PLAINLY_NOT]
    if len(left) == 1 < len(found):
        which = f": positive_class={left[0]!r}, on the command line --positive-class {left[0]}."
    else:
        which = (
            ", where the column is to be true (for unsafe, the class that is unsafe): "
            "positive_class=..., on the command line --positive-class ..."
        )
    return f"If it holds classes ({listed}{more}), say which of them counts{which}"


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN, or what pandas and NumPy put in their place."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, (float, np.floating)) and isnan(value))
    )


def grade_hint(value: Any) -> str:
    """What to do with a number that is not whole where an outcome or a class is expected; nothing
    for anything else.
    """
    try:
        grade = not float(value).is_integer()
    except (TypeError, ValueError, OverflowError):
        return ""
    return " Grades, such as a judge's, are passed as quality." if grade else ""


def values_of(values: Any, name: str) -> Values:
    """A column by its distinct values: a list, an array, a tensor, or a column of a frame."""
    column, masked = _column(values)
    if column.ndim != 1:
        raise InvalidValueError(f"{name} has shape {column.shape}: expected one class per row.")
    kind = column.dtype.kind
    if kind in "iub":
        found = _of_integers(column)
    elif kind == "f":
        found = _of_floats(column)
    elif kind in "UTO":
        found = _of_objects(column.tolist(), name)
    else:
        raise InvalidTypeError(
            f"{name} has dtype {column.dtype}, which does not hold classes: expected integers, "
            "whole numbers or names."
        )
    if masked is None or not masked.any():
        return found
    return Values(found.distinct, np.where(masked, MISSING, found.places))


def _column(values: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """The values as an array, and which of them are masked."""
    if isinstance(values, np.ma.MaskedArray):
        return values.data, np.ma.getmaskarray(values)
    if hasattr(values, "detach"):
        values = values.detach()
    if isinstance(values, (list, tuple)) and any(
        issubclass(kind, str) for kind in set(map(type, values))
    ):
        # NumPy would write a number, or a missing value, among text as text.
        return np.fromiter(values, dtype=object, count=len(values)), None
    try:
        if not hasattr(values, "__array__") and hasattr(values, "__dlpack__"):
            return np.from_dlpack(values), None
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise InvalidTypeError(
            f"A {type(values).__name__} cannot be read as classes ({error}): pass a list or an "
            "array."
        ) from None
    return (array.astype(object) if array.dtype.kind == "T" else array), None


def _of_integers(column: NDArray[Any]) -> Values:
    if not column.size:
        return Values([], np.zeros(0, dtype=np.int64))
    whole = column.astype(np.int64) if column.dtype.kind == "b" else column
    least, most = int(whole.min()), int(whole.max())
    if most - least < _CLOSE:
        # Few numbers next to each other, as classes mostly are: no sorting.
        shifted = (whole - whole.dtype.type(least)).astype(np.int64)
        present = np.flatnonzero(np.bincount(shifted))
        place = np.zeros(most - least + 1, dtype=np.int64)
        place[present] = np.arange(len(present))
        return Values([int(p) + least for p in present], place[shifted])
    found, places = np.unique(whole, return_inverse=True)
    return Values(found.tolist(), places.astype(np.int64))


def _of_floats(column: NDArray[Any]) -> Values:
    missing = np.isnan(column)
    exact = np.abs(column) < EXACT_FLOATS
    if (missing | (exact & (column == np.floor(column)))).all():
        found = _of_integers(np.where(missing, 0, column).astype(np.int64))
        return Values(found.distinct, np.where(missing, MISSING, found.places))
    distinct, places = np.unique(column, return_inverse=True)
    return Values(distinct.tolist(), np.where(missing, MISSING, places.astype(np.int64)))


def _of_objects(values: Sequence[Any], name: str) -> Values:
    try:
        # Dictionaries at their own speed: a million names are numbered in a tenth of a second.
        met = dict.fromkeys(values)
    except TypeError:
        row = next(row for row, value in enumerate(values) if not _is_hashable(value))
        raise InvalidTypeError(
            f"{name}[{row}] is {values[row]!r}, which is not a class: expected whole numbers or "
            "names."
        ) from None
    distinct = [value for value in met if not is_missing(value)]
    places = dict.fromkeys(met, MISSING) | {value: place for place, value in enumerate(distinct)}
    return Values(distinct, np.fromiter(map(places.__getitem__, values), np.int64, len(values)))


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True

"""The group of each row of a frame: the column as it is inside the engine, and the names of what
came back.

Groups are text, as they are for arrays: 7, 7.0 and "7" are one group.
"""

from __future__ import annotations

from math import inf, isinf
from typing import Any, Final

import narwhals as nw
import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.columns import is_missing
from pacbound.tally.frames.columns import Frame, is_number, one_where_whole, typed
from pacbound.tally.frames.counts import KeyCounts
from pacbound.tally.tally import Integers, in_order

GROUP: Final = "group"
_FRACTION: Final = inf
"""What stands for every fraction, so that a column of scores does not make as many groups as it has
rows."""


def group_name(frame: Frame, name: str) -> nw.Expr:
    """A column of groups as it is, apart from fractions, which are no groups and become
    `_FRACTION`.
    """
    dtype, column = typed(frame, name)
    if isinstance(dtype, (nw.Categorical, nw.Enum)):
        return column.cast(nw.String)
    if dtype.is_float():
        value = column.cast(nw.Float64)
        fraction = nw.when(is_number(value)).then(nw.lit(_FRACTION)).otherwise(value)
        return nw.when(one_where_whole(value) == 1).then(value).otherwise(fraction)
    if dtype.is_integer() or isinstance(dtype, (nw.Boolean, nw.String)):
        return column
    raise InvalidTypeError(f"{name} has type {dtype}: expected integers or strings.")


def group_places(counts: KeyCounts, name: str) -> tuple[tuple[str, ...], Integers]:
    """The names of the groups in order, and the place among them of each key that was counted."""
    found = counts.keys[GROUP].tolist()
    missing = np.array([is_missing(value) for value in found], dtype=bool)
    if missing.any():
        rows = counts.rows_where(missing)
        raise InvalidValueError(
            f"{name} has {rows} missing values (null or NaN): expected an integer or a string. "
            "Name the missing ones."
        )
    fraction = np.array([isinstance(value, float) and isinf(value) for value in found], dtype=bool)
    if fraction.any():
        rows = counts.rows_where(fraction)
        raise InvalidValueError(
            f"{name} holds {rows} numbers that are not whole or not below 2**53: expected an "
            "integer or a string."
        )
    texts = [_text(value) for value in found]
    names = in_order(set(texts))
    places = {text: place for place, text in enumerate(names)}
    return names, np.array([places[text] for text in texts], dtype=np.int64)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(int(value))

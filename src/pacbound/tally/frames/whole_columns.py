"""Whole columns out of an engine, as arrays: where rows are drawn one by one before they are
counted, counts are not enough.

Only the columns that are asked for leave the engine, in one reading, each as what its slot holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.tally.frames.counting import collected
from pacbound.tally.frames.flags import Flag
from pacbound.tally.frames.opening import Frame, number, open_frame, typed
from pacbound.tally.questions.question import Slot


def whole_columns(
    native: Any, slots: Mapping[str, Slot], *, in_order: bool
) -> dict[str, NDArray[Any]]:
    """The columns of a frame by slot, all rows of them.

    With `in_order` rows are known by their place, and an engine that promises no order is refused.
    """
    frame = open_frame(native, [slot.name for slot in slots.values()])
    if in_order and (frame.implementation.is_duckdb() or frame.implementation.is_spark_like()):
        raise InvalidValueError(
            f"Rows in {frame.implementation.value} have no order, and a draw must know them: name "
            "a column of row_ids, one for each row, that tells the rows of a cluster apart."
        )
    values = [_value(frame, slot).alias(key) for key, slot in slots.items()]
    return collected(frame.select(*values), in_order=True)


def _value(frame: Frame, slot: Slot) -> nw.Expr:
    if slot.kind in ("number", "number or nothing"):
        return number(frame, slot.name)
    dtype, column = typed(frame, slot.name)
    if slot.kind == "flag":
        is_boolean = Flag(frame, slot.name, slot.name).is_boolean
        return column if is_boolean else number(frame, slot.name)
    return column.cast(nw.String) if isinstance(dtype, (nw.Categorical, nw.Enum)) else column

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
from pacbound.tally.frames.opening import Frame, known_frame, number, open_frame, typed
from pacbound.tally.rows import Slot


def whole_columns(
    native: Any, slots: Mapping[str, Slot], *, in_order: bool
) -> dict[str, NDArray[Any]]:
    """The columns of a frame by slot, all rows of them.

    With `in_order` rows are known by their place, and an engine that promises no order is refused.
    """
    frame = open_frame(native, [slot.name for slot in slots.values()])
    if in_order and not has_order(native):
        raise InvalidValueError(
            f"Rows in {frame.implementation.value} have no order, and a draw must know them: name "
            "a column of row_ids, one for each row, that tells the rows of a cluster apart."
        )
    values = [_value(frame, slot).alias(key) for key, slot in slots.items()]
    return collected(frame.select(*values), in_order=True)


def column_names(native: Any) -> list[str]:
    """The names of all columns of a frame."""
    return list(known_frame(native).collect_schema().names())


def has_order(native: Any) -> bool:
    """Whether the rows of a frame have a place: in DuckDB and Spark they have none."""
    engine = known_frame(native).implementation
    return not (engine.is_duckdb() or engine.is_spark_like())


def _value(frame: Frame, slot: Slot) -> nw.Expr:
    if slot.kind in ("number", "number or nothing"):
        return number(frame, slot.name)
    dtype, column = typed(frame, slot.name)
    if slot.kind == "flag":
        is_boolean = Flag(frame, slot.name, slot.name).is_boolean
        return column if is_boolean else number(frame, slot.name)
    return column.cast(nw.String) if isinstance(dtype, (nw.Categorical, nw.Enum)) else column

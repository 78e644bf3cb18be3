"""Counting keys inside the engine that holds a frame: one pass, of which only counts come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from pacbound.sources.values import is_missing
from pacbound.tally.frames.opening import Frame
from pacbound.tally.grids import Floats, Integers

_ROWS = "rows"
_VALUE = "value"


@dataclass(frozen=True)
class KeyCounts:
    """Each combination of keys that was seen, a column for each key, and in how many rows."""

    keys: Mapping[str, NDArray[Any]]
    rows: Integers

    def numbers(self, key: str) -> Floats:
        """A key that is a number, NaN where it is missing."""
        column = self.keys[key]
        if column.dtype == object:
            return np.array(
                [nan if is_missing(value) else value for value in column.tolist()],
                dtype=np.float64,
            )
        return column.astype(np.float64)

    def rows_where(self, chosen: Any) -> int:
        """In how many rows the chosen combinations were seen."""
        return int(self.rows[chosen].sum())


def counted(frame: Frame, keys: Mapping[str, nw.Expr]) -> KeyCounts:
    """How many rows have each combination of the keys."""
    # Named before they are grouped by: some engines cast inside an aggregation with a warning, or
    # not at all.
    named = frame.select(*[expression.alias(name) for name, expression in keys.items()])
    found = collected(named.group_by(*keys).agg(nw.len().alias(_ROWS)))
    return KeyCounts({name: found[name] for name in keys}, found[_ROWS].astype(np.int64))


def extreme(frame: Frame, value: nw.Expr, condition: nw.Expr, *, greatest: bool) -> Any:
    """The least or greatest value where the condition holds, for a message: a second look, which
    only bad rows cost.
    """
    chosen = frame.select(value.alias(_VALUE), condition.alias("chosen")).filter(nw.col("chosen"))
    try:
        found = collected(chosen.select(nw.col(_VALUE).max() if greatest else nw.col(_VALUE).min()))
    except Exception:  # an engine's own: a stream, say, can be read only once
        # The refusal stands without the example.
        return "a value that cannot be read again"
    return found[_VALUE][0]


def collected(frame: Frame, *, in_order: bool = False) -> dict[str, NDArray[Any]]:
    """The columns of a frame, by each engine's own way: what narwhals collects through may not be
    installed.

    An aggregate has no order to keep. With `in_order`, rows that have an order come in it.
    """
    engine, native = frame.implementation, frame.to_native()
    if engine.is_duckdb():
        return {name: _with_none(column) for name, column in native.fetchnumpy().items()}
    if engine.is_spark_like():
        rows = [tuple(row) for row in native.collect()]
        columns = zip(*rows, strict=True) if rows else ((),) * len(native.columns)
        return {
            name: np.array(column, dtype=object)
            for name, column in zip(native.columns, columns, strict=True)
        }
    streams = engine.is_polars() and not in_order
    found = frame.collect(engine="streaming") if streams else frame.collect()
    return {name: _with_gaps(column) for name, column in found.to_dict(as_series=True).items()}


def _with_gaps(column: nw.Series[Any]) -> NDArray[Any]:
    """A column as an array; integers beside nulls stay integers, which floats would round."""
    if column.dtype.is_integer() and column.null_count():
        return np.array(column.to_list(), dtype=object)
    return column.to_numpy()


def _with_none(column: NDArray[Any]) -> NDArray[Any]:
    """A column with None where it is masked."""
    if not np.ma.getmaskarray(column).any():
        return np.ma.getdata(column)
    objects: NDArray[Any] = np.ma.getdata(column).astype(object)
    objects[np.ma.getmaskarray(column)] = None
    return objects

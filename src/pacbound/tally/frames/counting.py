"""What leaves an engine: counts of keys, in one pass; or whole columns, as arrays, where rows are
drawn one by one before they are counted, and counts are not enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import inf, nan
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.sources.values import is_missing
from pacbound.tally.columns import Slot, stored
from pacbound.tally.frames.opening import (
    Frame,
    is_boolean,
    is_text,
    known_frame,
    number,
    open_frame,
    typed,
    with_fields,
)
from pacbound.tally.grids import Floats, Integers

_ROWS = "rows"
_VALUE = "value"
_COLUMN = "column"


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

    def distinct(self, keys: Sequence[str]) -> int:
        """How many combinations of some of the keys were seen."""
        codes = np.zeros(len(self.rows), dtype=np.int64)
        for key in keys:
            column = self.keys[key]
            plain = column.astype(np.str_) if column.dtype == object else column
            values, places = np.unique(plain, return_inverse=True)
            codes = np.unique(codes * len(values) + places, return_inverse=True)[1]
        return len(np.unique(codes))


def counted(frame: Frame, keys: Mapping[str, nw.Expr], *, most: int | None = None) -> KeyCounts:
    """How many rows have each combination of the keys; of more than `most`, one more comes back."""
    counts = _grouped(frame, keys)
    return _brought_back(counts if most is None else counts.head(most + 1), keys)


def counted_if(
    frame: Frame,
    keys: Mapping[str, nw.Expr],
    few_enough: Callable[[int, int], None],
    *,
    by: Sequence[str],
    most: int,
) -> KeyCounts:
    """The same, if `few_enough` does not raise: it takes the number of combinations, of which more
    than `most` are one more, and that of the keys `by` alone. Spark is asked for these numbers
    before a count leaves its executors.
    """
    counts = _grouped(frame, keys)
    if not frame.implementation.is_spark_like():
        found = _brought_back(counts.head(most + 1), keys)
        few_enough(len(found.rows), found.distinct(by))
        return found
    with computed_once(counts) as held:
        sizes = held.group_by(*by).agg(nw.len().alias(_ROWS))
        size = collected(sizes.select(nw.col(_ROWS).sum(), nw.len().alias(_VALUE)))
        few_enough(int(size[_ROWS][0] or 0), int(size[_VALUE][0]))
        return _brought_back(held, keys)


@contextmanager
def computed_once(frame: Frame) -> Iterator[Frame]:
    """A frame that is looked at more than once: Spark keeps it on its executors, and makes anew
    what is lost.
    """
    if not frame.implementation.is_spark_like():
        yield frame
        return
    kept = frame.to_native().persist()
    try:
        yield nw.from_native(kept)
    finally:
        kept.unpersist()


def _grouped(frame: Frame, keys: Mapping[str, nw.Expr]) -> Frame:
    # Named before they are grouped by: some engines cast inside an aggregation with a warning, or
    # not at all.
    return _named(frame, keys).group_by(*keys).agg(nw.len().alias(_ROWS))


def _brought_back(counts: Frame, keys: Iterable[str]) -> KeyCounts:
    found = collected(counts)
    return KeyCounts({name: found[name] for name in keys}, found[_ROWS].astype(np.int64))


def _named(frame: Frame, keys: Mapping[str, nw.Expr]) -> Frame:
    """The keys of all rows. Most engines give a single row for a selection of constants alone, so
    the keys are put beside the columns first.
    """
    if frame.implementation.is_duckdb():
        # It repeats constants. Beside the columns, it would take a key for a column whose name
        # differs in capitals only.
        return frame.select(**keys)
    return frame.with_columns(**keys).select(*keys)


def counted_each(
    frame: Frame, values: Sequence[nw.Expr], beside: Mapping[str, nw.Expr], *, most: int
) -> list[KeyCounts]:
    """How many rows have each of the `values`, for one column after the other, together with the
    keys `beside` them; of more than `most` in all, only some come back.

    Spark looks at the rows once for all columns: a pass there may read them over a network, or
    compute them. The other engines are as fast column by column, and stay with the types.
    """
    keys = {_VALUE: nw.col(_VALUE), **{name: nw.col(name) for name in beside}}
    if not frame.implementation.is_spark_like():
        parts = [frame.select(value.alias(_VALUE), **beside) for value in values]
        return [counted(part, keys, most=most) for part in parts]
    columns = {str(place): value for place, value in enumerate(values)}
    types = frame.select(**columns).collect_schema()
    # One column can hold them all only if they have one type.
    same = all(dtype.is_integer() for dtype in types.values())
    plain = {
        name: value.cast(nw.Int64) if same else _as_text(value, types[name])
        for name, value in columns.items()
    }
    flat = frame.select(**beside, **plain).unpivot(
        list(plain), index=list(beside), variable_name=_COLUMN, value_name=_VALUE
    )
    found = counted(flat, {_COLUMN: nw.col(_COLUMN), **keys}, most=most)
    return [_of_column(found, name, None if same else types[name]) for name in columns]


def _as_text(value: nw.Expr, dtype: nw.dtypes.DType) -> nw.Expr:
    """Whole numbers, and infinity, and names, as text that `_from_text` reads."""
    if not dtype.is_float():
        return value.cast(nw.String)
    is_finite = (value > -inf) & (value < inf)
    infinite = nw.when(value == inf).then(nw.lit("inf"))
    return nw.when(is_finite).then(value.cast(nw.Int64).cast(nw.String)).otherwise(infinite)


def _of_column(found: KeyCounts, name: str, dtype: nw.dtypes.DType | None) -> KeyCounts:
    """Of what was counted for several columns, the part of one, with its own type."""
    own = found.keys[_COLUMN] == name
    keys = {key: found.keys[key][own] for key in found.keys if key != _COLUMN}
    if dtype is not None and dtype.is_numeric():
        kind = float if dtype.is_float() else int
        read = [None if is_missing(text) else kind(text) for text in keys[_VALUE].tolist()]
        keys[_VALUE] = np.array(read, dtype=object)
    return KeyCounts(keys, found.rows[own])


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
        return _collected_by_spark(native)
    streams = engine.is_polars() and not in_order
    found = frame.collect(engine="streaming") if streams else frame.collect()
    return {name: _with_gaps(column) for name, column in found.to_dict(as_series=True).items()}


def _collected_by_spark(native: Any) -> dict[str, NDArray[Any]]:
    if find_spec("pyarrow") is not None:
        # Rows as Python objects take ten times the memory.
        table = native.toArrow()
        columns = {name: nw.from_native(table[name], series_only=True) for name in native.columns}
        return {name: _with_gaps(column) for name, column in columns.items()}
    rows = [tuple(row) for row in native.collect()]
    values = zip(*rows, strict=True) if rows else ((),) * len(native.columns)
    return {
        name: np.array(column, dtype=object)
        for name, column in zip(native.columns, values, strict=True)
    }


def _with_gaps(column: nw.Series[Any]) -> NDArray[Any]:
    """A column as an array; integers beside nulls stay integers, which floats would round, and text
    keeps a NUL at its end, which arrays of text drop.
    """
    integers = column.dtype.is_integer() and column.null_count()
    if integers or isinstance(column.dtype, (nw.String, nw.Categorical, nw.Enum)):
        return np.array(column.to_list(), dtype=object)
    return column.to_numpy()


def _with_none(column: NDArray[Any]) -> NDArray[Any]:
    """A column with None where it is masked."""
    if not np.ma.getmaskarray(column).any():
        return np.ma.getdata(column)
    objects: NDArray[Any] = np.ma.getdata(column).astype(object)
    objects[np.ma.getmaskarray(column)] = None
    return objects


def whole_columns(
    native: Any, slots: Mapping[str, Slot], *, in_order: bool
) -> dict[str, NDArray[Any]]:
    """The columns of a frame by slot, all rows of them.

    With `in_order` rows are known by their place, and an engine that promises no order is refused.
    """
    columns = stored(slots)
    native, fields = with_fields(native, [slot.name for slot in columns.values()])
    for key, slot in columns.items() if fields else ():
        columns[key] = replace(slot, name=fields.get(slot.name, slot.name))
    frame = open_frame(native, [slot.name for slot in columns.values()])
    if in_order and not has_order(native):
        raise InvalidValueError(
            f"Rows in {frame.implementation.value} have no order, and a draw must know them: "
            "name a column of row_ids, one for each row, that tells the rows of a cluster "
            "apart."
        )
    values = [_value(frame, slot).alias(key) for key, slot in columns.items()]
    return collected(frame.select(*values), in_order=True)


def first_columns(native: Any, most: int) -> dict[str, NDArray[Any]]:
    """The first rows of the columns of a frame that hold numbers, names, times or truth values."""
    frame = known_frame(native).lazy().head(most)
    plain = [
        name
        for name, dtype in frame.collect_schema().items()
        if dtype.is_numeric() or dtype.is_temporal() or is_text(dtype) or dtype == nw.Boolean
    ]
    return collected(frame.select(*plain), in_order=True)


def eager_columns(native: Any) -> dict[str, list[Any]]:
    """All columns of a frame, as lists."""
    frame = known_frame(native)
    held = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    return {name: column.to_list() for name, column in held.to_dict(as_series=True).items()}


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
    if slot.read_as == "flag":
        flags = is_boolean(frame, slot.name, slot.name)
        return column if flags else number(frame, slot.name)
    return column.cast(nw.String) if isinstance(dtype, (nw.Categorical, nw.Enum)) else column

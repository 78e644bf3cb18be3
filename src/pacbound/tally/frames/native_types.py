"""How pandas and PyArrow hold a column, beyond what narwhals tells: as Python objects, as
categories, or in Arrow's memory.
"""

from __future__ import annotations

from typing import Any, Final

import narwhals as nw

_TEXT: Final = ("string", "large_string", "string_view")


def with_plain_types(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """The frame with plain types in place of Python objects, and numbers in place of categories
    that are numbers.
    """
    engine = frame.implementation
    if not (engine.is_pandas() or engine.is_pyarrow()):
        return frame
    plain = {}
    for name, dtype in frame.schema.items():
        column = frame[name].to_native()
        if dtype == nw.Object:
            plain[name] = column.convert_dtypes()
        elif isinstance(dtype, (nw.Categorical, nw.Enum)):
            plain[name] = _decoded(column)
    return frame.with_columns(
        *(nw.from_native(column, series_only=True).alias(name) for name, column in plain.items())
    )


def is_held_by_arrow(frame: nw.LazyFrame[Any], name: str) -> bool:
    """Whether Arrow computes with the column: in PyArrow, and where pandas keeps it in Arrow's
    memory.
    """
    engine = frame.implementation
    return engine.is_pyarrow() or (
        engine.is_pandas() and hasattr(frame.to_native().dtypes[name], "pyarrow_dtype")
    )


def _decoded(column: Any) -> Any:
    """A column of categories as a column of their type, unless they are names: the text of 3.0 is
    not that of 3.
    """
    if hasattr(column, "cat"):
        return _without_categories(column)
    arrow_type = column.dtype.pyarrow_dtype if hasattr(column, "dtype") else column.type
    if str(arrow_type.value_type) in _TEXT:
        return column
    if hasattr(column, "dtype"):
        return column.astype(type(column.dtype)(arrow_type.value_type))
    return column.cast(arrow_type.value_type)


def _without_categories(column: Any) -> Any:
    categories = column.cat.categories.to_series()
    if nw.from_native(categories, series_only=True).dtype == nw.String:
        return column
    # Integers and booleans become types that have room for what is missing. Floats have it, and
    # whole ones must stay floats.
    return column.astype(
        categories.dtype if categories.dtype.kind == "f" else categories.convert_dtypes().dtype
    )

"""Opening a dataframe of any engine, its columns as numbers, and making a new one.

Columns that are not there, or whose names or types cannot be what they are for, are refused before
any row is looked at. Values are judged where they are counted. pandas and PyArrow hold columns as
Python objects, as categories, or in Arrow's memory, which narwhals does not tell.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from math import inf
from typing import Any, Final, Literal, TypeAlias, get_args

import narwhals as nw
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError, MissingDependencyError
from pacbound.sources.values import which_class
from pacbound.stats.arguments import one_of

Frame: TypeAlias = "nw.LazyFrame[Any]"

# So many values are looked at for a message.
_EXAMPLES: Final = 5
_LARGEST_WHOLE: Final = 2.0**53
_WIDER_THAN_FLOAT64: Final = (nw.Int64(), nw.UInt64())
_ENGINES: Final = (
    nw.Implementation.PANDAS,
    nw.Implementation.POLARS,
    nw.Implementation.PYARROW,
    nw.Implementation.DUCKDB,
    nw.Implementation.PYSPARK,
    nw.Implementation.PYSPARK_CONNECT,
)


def open_frame(native: Any, columns: Iterable[str], *, keep_nan: bool = False) -> Frame:
    """The named columns of any dataframe that narwhals knows, lazily where its engine is lazy.

    Where comparisons cannot be trusted with NaN, it becomes null, unless whoever counts compares
    nothing and says `keep_nan`.
    """
    named = list(columns)
    if not all(isinstance(name, str) for name in named):
        raise InvalidTypeError(
            f"{named} are not all names of columns: expected text. If the frame's names are "
            "numbers, rename them first: frame.rename(columns=str)."
        )
    names = list(dict.fromkeys(named))
    frame = known_frame(native)
    found = frame.collect_schema().names()
    absent = [name for name in names if name not in found]
    if absent:
        _refuse_absent(absent[0], found)
    _refuse_names_with_a_meaning(names, frame.implementation)
    if frame.implementation.is_duckdb() or frame.implementation.is_spark_like():
        # What narwhals lists has no name twice.
        _refuse_names_alike(names, list(frame.to_native().columns), frame.to_native())
    chosen = frame.select(*names)
    if isinstance(chosen, nw.DataFrame):
        return with_plain_types(chosen).lazy()
    lazy = with_exact_text(chosen, names)
    if not lazy.implementation.is_duckdb():
        return lazy
    _let_go_at_exit()
    return lazy if keep_nan else _with_null_for_nan(lazy)


def known_frame(native: Any) -> Any:
    """Any dataframe of an engine that was compared with the arrays, as narwhals has it."""
    try:
        frame = nw.from_native(native)
    except TypeError:
        raise InvalidTypeError(
            f"A {type(native).__name__} is not a frame: expected one of pandas, Polars, PyArrow, "
            "DuckDB or PySpark. For arrays leave data out; files are named by their paths."
        ) from None
    except nw.exceptions.DuplicateError as error:
        raise InvalidValueError(
            f"The frame has several columns of one name ({error}). Rename them."
        ) from None
    _refuse_other_engines(frame.implementation)
    if getattr(frame.to_native(), "isStreaming", False) is True:
        raise InvalidTypeError(
            "This frame is a stream of Spark, which has no last row: expected a table. Count each "
            "of its batches, with stream.writeStream.foreachBatch(count) and a function that names "
            'the batch: Tally.count(..., data=batch, source=f"epoch-{number}").'
        )
    return frame


def with_exact_text(frame: Frame, names: Iterable[str]) -> Frame:
    """The lazy frame with those of the columns `names` that hold text compared character by
    character.

    DuckDB and Spark may hold a column, or be set, so that "EU" and "eu" are one value. Every
    comparison and every group that is made of the column follows.
    """
    engine, schema = frame.implementation, frame.collect_schema()
    text = [name for name in dict.fromkeys(names) if is_text(schema[name])]
    if not text or not (engine.is_duckdb() or engine.is_spark_like()):
        return frame
    if engine.is_spark_like():
        return frame.with_columns(*(nw.col(name).cast(nw.String) for name in text))
    # In DuckDB a cast keeps the collation, and narwhals has no word for another one.
    quoted = ['"' + name.replace('"', '""') + '"' for name in text]
    exact = ", ".join(f"{name}::VARCHAR COLLATE C AS {name}" for name in quoted)
    replaced: Frame = nw.from_native(frame.to_native().project(f"* REPLACE ({exact})"))
    return replaced


def is_text(dtype: nw.dtypes.DType) -> bool:
    """Whether a column holds text, as it is or by the names of categories."""
    return isinstance(dtype, (nw.String, nw.Categorical, nw.Enum))


def number(frame: Frame, name: str) -> nw.Expr:
    """A column of scores as float64, not yet checked value by value."""
    dtype, column = typed(frame, name)
    if not dtype.is_numeric():
        raise InvalidTypeError(
            f"{name} has type {dtype}, which does not hold scores: expected floats from 0 to 1. "
            "Cast it to float64 if the values are numbers."
        )
    # Engines round decimals differently, but all read text correctly.
    by_text = dtype.is_decimal() or is_too_wide_for_arrow(frame, name)
    return (column.cast(nw.String) if by_text else column).cast(nw.Float64)


def as_text(frame: Frame, name: str) -> nw.Expr:
    """A column of names as text: 7, 7.0 and "7" are one; null where there is none."""
    dtype, column = typed(frame, name)
    if is_text(dtype):
        text = column.cast(nw.String)
        # Arrays of text drop it, and would take two names for one.
        return nw.when(~text.str.ends_with("\0")).then(text)
    if dtype == nw.Boolean:
        return column.cast(nw.Int64).cast(nw.String)
    if dtype.is_integer():
        return column.cast(nw.String)
    if dtype.is_float():
        value = column.cast(nw.Float64)
        whole = nw.when(one_where_whole(value) == 1).then(value)
        return whole.cast(nw.Int64).cast(nw.String)
    raise InvalidTypeError(f"{name} has type {dtype}: expected integers or strings.")


def is_boolean(frame: Frame, column: str, name: str) -> bool:
    """Whether a column of truth values holds booleans, and not numbers."""
    dtype = frame.collect_schema()[column]
    if dtype != nw.Boolean and not dtype.is_numeric():
        some = frame.select(nw.col(column).cast(nw.String)).unique().head(_EXAMPLES).collect()
        found = sorted(map(str, some.get_column(column).to_list()))
        raise InvalidTypeError(
            f"{name} has type {dtype}: expected booleans, or numbers that are 0 or 1."
            + (f" {which_class(found)}" if found else "")
        )
    return bool(dtype == nw.Boolean)


def unscaled(value: nw.Expr, scale: float | None) -> nw.Expr:
    """The scores that float64 values are written for: each divided once.

    Polars divides by a number by multiplying with its rounded reciprocal, which moves scores on
    edges; a column of equal numbers it divides by. What is not finite stays as it is.
    """
    if scale is None:
        return value
    is_finite = (value > -inf) & (value < inf)
    return nw.when(is_finite).then(value / (value * 0.0 + scale)).otherwise(value)


def is_too_wide_for_arrow(frame: Frame, name: str) -> bool:
    """Whether a column may hold integers that Arrow refuses to round to float64; it reads their
    text without complaint.
    """
    return frame.collect_schema()[name] in _WIDER_THAN_FLOAT64 and is_held_by_arrow(frame, name)


def is_number(value: nw.Expr) -> nw.Expr:
    """Whether a float64 is neither null nor NaN, in every engine's order of numbers; for null, the
    answer is null.
    """
    return (value >= -inf) & (value <= inf)


def one_where(condition: nw.Expr) -> nw.Expr:
    """1 where the condition is true, 0 where it is false or null."""
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))


def one_where_whole(value: nw.Expr) -> nw.Expr:
    """1 where a float64 is a whole number that floats tell from its neighbours, else 0."""
    exact = (value > -_LARGEST_WHOLE) & (value < _LARGEST_WHOLE)
    # Nested, since the floor of a larger number overflows in Spark.
    return nw.when(exact).then(one_where(value == value.floor())).otherwise(nw.lit(0))


def typed(frame: Frame, name: str) -> tuple[nw.dtypes.DType, nw.Expr]:
    """The type of a column, and the column."""
    return frame.collect_schema()[name], nw.col(name)


def _refuse_other_engines(engine: nw.Implementation) -> None:
    """Refuse what narwhals knows but nobody has compared with the arrays: such an engine may see
    other values in NaN.
    """
    if engine not in _ENGINES:
        raise InvalidTypeError(
            f"A frame of {engine.value} is not counted: expected one of pandas, Polars, PyArrow, "
            "DuckDB or PySpark. Pass the native frame of the engine beneath, or write the rows "
            "to Parquet and pass its path."
        )


def _refuse_absent(name: str, found: list[str]) -> None:
    if name in map(str, found):
        raise InvalidValueError(
            f"The column {name} of the frame has a name that is not text: rename it first, as with "
            "frame.rename(columns=str)."
        )
    close = [other for other in map(str, found) if other.lower() == name.lower()]
    close = close or get_close_matches(name, map(str, found), n=1)
    hint = f" Did you mean {close[0]!r}? Upper and lower case differ." if close else ""
    if close and close[0].lower() != name.lower():
        hint = f" Did you mean {close[0]!r}?"
    shown = [other for other in found if FIELD not in str(other)][:20]
    raise InvalidValueError(
        f"The frame has no column {name!r}. Its columns: {', '.join(map(repr, shown))}.{hint}"
    )


def _refuse_names_with_a_meaning(names: list[str], engine: nw.Implementation) -> None:
    """Refuse names that an engine reads as a pattern or a path: it may return other columns."""
    for name in names:
        pattern = name == "*" or (
            engine.is_polars() and name.startswith("^") and name.endswith("$")
        )
        if pattern or (engine.is_spark_like() and set(name) & set(".`")):
            plain = name.replace(".", "_").replace("`", "_")
            how = f", as with frame.withColumnRenamed({name!r}, {plain!r})"
            raise InvalidValueError(
                f"The column {name!r} has a name that means something else to its engine. "
                f"Rename it{how if engine.is_spark_like() else ''}."
            )


def _refuse_names_alike(names: list[str], found: list[str], native: Any) -> None:
    """Refuse names that an engine takes for one, and may hand over the other column for: after a
    join there may be two of one name, and names may differ in case only.
    """
    for name in names:
        if found.count(name) > 1:
            raise InvalidValueError(
                f"The frame has {found.count(name)} columns {name!r}, as after a join: expected "
                f"one. Drop the other, as with joined.drop(right[{name!r}]), or rename it before "
                "the join."
            )
        alike = [other for other in found if other.lower() == name.lower()]
        if len(alike) > 1 and not _tells_case(native):
            raise InvalidValueError(
                f"The frame has columns {', '.join(alike)}, which its engine takes for one. Rename "
                "them."
            )


def _tells_case(native: Any) -> bool:
    """Whether a session of Spark is set to tell C from c; DuckDB never does."""
    session = getattr(native, "sparkSession", None)
    return session is not None and session.conf.get("spark.sql.caseSensitive") == "true"


def with_fields(native: Any, names: Iterable[str]) -> tuple[Any, dict[str, str]]:
    """A frame of Spark with those of `names` that are fields of a struct, such as metrics.acc, as
    columns; and what each of them is called there. Other frames stay as they are.
    """
    frame = known_frame(native)
    if not frame.implementation.is_spark_like():
        return native, {}
    spark, stored = frame.to_native(), frame.collect_schema().names()
    fields = {
        name: name.replace(".", FIELD)
        for name in names
        if isinstance(name, str) and "." in name and name not in stored
        if _is_field(spark.schema, name.split("."))
    }
    if not fields:
        return native, {}
    from pyspark.sql import functions  # noqa: PLC0415 - loaded only for those who have it

    quoted = {name: ".".join(f"`{part}`" for part in name.split(".")) for name in fields}
    new = {column: functions.col(quoted[name]) for name, column in fields.items()}
    return spark.withColumns(new), fields


# What stands for the point between a struct and its field in the name of a column.
FIELD: Final = "\N{ONE DOT LEADER}"


def _is_field(schema: Any, path: list[str]) -> bool:
    for part in path:
        if part not in getattr(schema, "names", ()):
            return False
        schema = schema[part].dataType
    return True


def _with_null_for_nan(frame: Frame) -> Frame:
    """The frame of DuckDB with null in place of NaN.

    The statistics in Parquet files leave NaN out, and DuckDB concludes from them that a comparison
    holds in all rows, NaN included. A function of the value is looked at in every row.
    """
    floats = [name for name, dtype in frame.collect_schema().items() if dtype.is_float()]
    return frame.with_columns(
        nw.when(~nw.col(name).is_nan()).then(nw.col(name)).alias(name) for name in floats
    )


def _let_go_at_exit() -> None:
    """Let narwhals forget DuckDB before the process ends.

    It caches a namespace for each engine. The one that holds DuckDB's types until the very end
    makes DuckDB report them as leaked, on stderr.
    """
    with suppress(ImportError, AttributeError):
        # Not public: a narwhals without it needs no help.
        from narwhals._namespace import _builtin_namespace  # noqa: PLC0415

        # Registered once, however often it is asked for.
        atexit.unregister(_builtin_namespace.cache_clear)
        atexit.register(_builtin_namespace.cache_clear)


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


Backend = Literal["pandas", "polars", "pyarrow"]


def new_frame(columns: Mapping[str, NDArray[Any]], backend: Backend) -> Any:
    """A frame of the backend with these columns."""
    one_of(backend, get_args(Backend), "backend")
    kinds = {"f": nw.Float64, "i": nw.Int64}
    schema = {name: kinds[column.dtype.kind] for name, column in columns.items()}
    try:
        frame = nw.from_dict(
            {name: column.tolist() for name, column in columns.items()}, schema, backend=backend
        )
    except ImportError:
        raise MissingDependencyError(
            f"A frame of {backend} needs {backend}: pip install {backend}"
        ) from None
    return frame.to_native()

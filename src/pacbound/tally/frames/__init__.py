"""Judging rows inside any dataframe engine: pandas, Polars, PyArrow, DuckDB relations, PySpark.

The rows stay where they are: they are checked, put into cells and counted there, and only counts
come back. The integers are those that arrays would give. Rows of a frame have no order, so an error
names the column, the number of bad values and an example.
"""

from pacbound.errors import MissingDependencyError

try:
    import narwhals as _narwhals  # noqa: F401
except ImportError:
    raise MissingDependencyError.for_extra("narwhals", "frames", "Counting dataframes") from None

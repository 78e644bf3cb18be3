"""Tables in Parquet files, row group by row group, every column of the type it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from pacbound.errors import InvalidValueError, MissingDependencyError
from pacbound.sources.batches import Progress, require_columns
from pacbound.sources.paths import partitions_beside

_ROWS = 2**16


class ParquetFile:
    """A Parquet file; the parts of its path that stand for columns come last."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def schema(self) -> Any:
        with self._opened() as file:
            return file.schema_arrow

    @cached_property
    def partitions(self) -> dict[str, str | None]:
        return partitions_beside(self.path, self.schema.names)

    @property
    def columns(self) -> Sequence[str]:
        return [*self.schema.names, *self.partitions]

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None
    ) -> Iterator[Any]:
        # Counting inside DuckDB needs no Arrow.
        from pacbound.sources.formats.records import RecordRows, with_constants  # noqa: PLC0415

        if columns is not None:
            require_columns(self, columns)
        names = self.columns if columns is None else columns
        constants = {name: self.partitions[name] for name in names if name in self.partitions}
        stored = None if columns is None else [name for name in columns if name not in constants]
        with self._opened() as file:
            start, rows = 0, max(1, file.metadata.num_rows)
            for record in file.iter_batches(_ROWS, columns=stored):
                yield RecordRows(start, with_constants(record, constants))
                start += record.num_rows
                if progress is not None:
                    progress(start / rows)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            import pyarrow.parquet  # noqa: PLC0415
        except ImportError:
            raise MissingDependencyError.for_extra(
                "pyarrow", "frames", "Reading the rows of Parquet files"
            ) from None
        try:
            with pyarrow.parquet.ParquetFile(
                self.path, buffer_size=_ROWS, pre_buffer=False, page_checksum_verification=True
            ) as file:
                yield file
        except (pyarrow.ArrowException, OSError) as error:
            raise InvalidValueError(
                f"{self.path} cannot be read as Parquet ({_first_line(error)}). Was it cut short, "
                "or is it of another format?"
            ) from None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")

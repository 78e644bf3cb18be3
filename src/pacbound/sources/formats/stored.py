"""Tables in files whose path may stand for columns, too, as Hive's folders do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from pacbound.sources.batches import Progress, require_columns
from pacbound.sources.paths import partitions_beside


class StoredTable(ABC):
    """A table in a file; the parts of its path that stand for columns come last."""

    is_text: ClassVar[bool] = True

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    @abstractmethod
    def stored(self) -> Sequence[str]:
        """The names of the columns in the file itself."""

    @abstractmethod
    def records(
        self, columns: Sequence[str] | None
    ) -> Iterator[tuple[float, Any, Mapping[str, Any]]]:
        """The rows of these columns of the file, or of all, as Arrow record batches; with the share
        that is read after each, and what else `RecordRows` are to know of it.
        """

    @cached_property
    def partitions(self) -> dict[str, str | None]:
        return partitions_beside(self.path, self.stored)

    @property
    def columns(self) -> Sequence[str]:
        return [*self.stored, *self.partitions]

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None
    ) -> Iterator[Any]:
        # Counting inside DuckDB needs no Arrow.
        from pacbound.sources.formats.records import RecordRows, with_constants  # noqa: PLC0415

        if columns is not None:
            require_columns(self, columns)
        names = self.columns if columns is None else columns
        constants = {name: self.partitions[name] for name in names if name in self.partitions}
        stored = None if columns is None else [name for name in names if name not in constants]
        start = 0
        for share, record, known in self.records(stored):
            rows = with_constants(record, constants)
            yield RecordRows(start, rows, is_text=self.is_text, **known)
            start += record.num_rows
            if progress is not None:
                progress(share)

    @cached_property
    def schema(self) -> Any:
        """The types of its own columns; text has none to keep."""
        import pyarrow  # noqa: PLC0415

        return pyarrow.schema([(name, pyarrow.string()) for name in self.stored])

    def no_rows(self) -> Any:
        """Its columns with no rows in them."""
        import pyarrow  # noqa: PLC0415

        from pacbound.sources.formats.records import RecordRows, with_constants  # noqa: PLC0415

        record = pyarrow.RecordBatch.from_pylist([], schema=self.schema)
        folders = dict.fromkeys(self.partitions)
        return RecordRows(0, with_constants(record, folders), is_text=self.is_text)

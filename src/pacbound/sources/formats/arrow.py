"""Tables in Arrow's own formats (Feather, IPC files and streams), batch by batch, every column of
the type it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from pacbound.errors import InvalidValueError, MissingDependencyError
from pacbound.sources.batches import Progress, require_columns
from pacbound.sources.paths import partitions_beside

try:
    import pyarrow
    import pyarrow.feather
    import pyarrow.ipc
except ImportError:
    raise MissingDependencyError.for_extra("pyarrow", "frames", "Reading Arrow files") from None

from pacbound.sources.formats.records import RecordRows, with_constants

_ROWS = 2**16
_FILE = b"ARROW1"


class ArrowFile:
    """An Arrow file or stream; the parts of its path that stand for columns come last."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def schema(self) -> Any:
        with self._opened() as (schema, _):
            return schema

    @cached_property
    def partitions(self) -> dict[str, str | None]:
        return partitions_beside(self.path, self.schema.names)

    @property
    def columns(self) -> Sequence[str]:
        return [*self.schema.names, *self.partitions]

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None
    ) -> Iterator[RecordRows]:
        if columns is not None:
            require_columns(self, columns)
        names = self.columns if columns is None else columns
        stored = [name for name in names if name not in self.partitions]
        constants = {name: self.partitions[name] for name in names if name in self.partitions}
        start = 0
        with self._opened() as (_, records):
            for share, whole in records:
                record = whole if columns is None else whole.select(stored)
                # Offsets that point outside of a damaged file would end the process.
                record.validate(full=True)
                for first in range(0, record.num_rows, _ROWS):
                    part = record.slice(first, _ROWS)
                    yield RecordRows(start, with_constants(part, constants))
                    start += part.num_rows
                if progress is not None:
                    progress(share)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, Iterator[tuple[float, Any]]]]:
        """The schema, and the record batches with the share that is read after each."""
        try:
            # Mapped, so that a batch as large as the file is not copied into memory.
            with pyarrow.memory_map(str(self.path)) as file:
                is_file = file.read(len(_FILE)) == _FILE
                file.seek(0)
                reader = pyarrow.ipc.open_file(file) if is_file else pyarrow.ipc.open_stream(file)
                yield (
                    reader.schema,
                    (_records_of_file(reader) if is_file else _records_of_stream(reader, file)),
                )
        except (pyarrow.ArrowException, OSError) as error:
            raise InvalidValueError(
                f"{self.path} cannot be read as Arrow ({str(error).splitlines()[0].rstrip('.')}). "
                "Was it cut short, or is it of another format?"
            ) from None


def _records_of_file(reader: Any) -> Iterator[tuple[float, Any]]:
    for place in range(reader.num_record_batches):
        yield (place + 1) / reader.num_record_batches, reader.get_batch(place)


def _records_of_stream(reader: Any, file: Any) -> Iterator[tuple[float, Any]]:
    for record in reader:
        yield min(1.0, file.tell() / max(1, file.size())), record

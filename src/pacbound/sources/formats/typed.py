"""Tables in files that know the types of their columns: Parquet, row group by row group, and
Arrow's own formats (Feather, IPC files and streams), batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from pacbound.errors import InvalidValueError, MissingDependencyError
from pacbound.sources.formats.stored import StoredTable
from pacbound.sources.paths import format_of

_ROWS = 2**16
_FILE = b"ARROW1"
# Record batches, with the share that is read after each.
_Records: TypeAlias = Iterator[tuple[float, Any]]


class TypedFile(StoredTable):
    """A Parquet, Arrow or Feather file."""

    is_text = False

    @cached_property
    def schema(self) -> Any:
        with self._opened() as (schema, _):
            return without_views(schema)

    @property
    def stored(self) -> Sequence[str]:
        return list(self.schema.names)

    def records(
        self, columns: Sequence[str] | None
    ) -> Iterator[tuple[float, Any, Mapping[str, Any]]]:
        with self._opened() as (_, records):
            for share, record in records(None if columns is None else list(columns)):
                plain = without_views(record.schema)
                for first in range(0, record.num_rows, _ROWS):
                    part = record.slice(first, _ROWS)
                    yield share, part if part.schema == plain else part.cast(plain), {}

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, Callable[[list[str] | None], _Records]]]:
        """The schema, and what reads some of the columns, or all."""
        is_parquet = format_of(self.path) == "parquet"
        name, opened = ("Parquet", _parquet) if is_parquet else ("Arrow", _arrow)
        try:
            import pyarrow  # noqa: PLC0415
        except ImportError:
            raise MissingDependencyError.for_extra(
                "pyarrow", "frames", f"Reading the rows of {name} files"
            ) from None
        try:
            with opened(self.path) as found:
                yield found
        except (pyarrow.ArrowException, OSError) as error:
            raise InvalidValueError(
                f"{self.path} cannot be read as {name} ({str(error).splitlines()[0].rstrip('.')}). "
                "Was it cut short, or is it of another format?"
            ) from None


@contextmanager
def _parquet(path: Path) -> Iterator[tuple[Any, Callable[[list[str] | None], _Records]]]:
    import pyarrow.parquet  # noqa: PLC0415

    def records(columns: list[str] | None) -> _Records:
        done, rows = 0, max(1, file.metadata.num_rows)
        for record in file.iter_batches(_ROWS, columns=columns):
            done += record.num_rows
            yield done / rows, record

    with pyarrow.parquet.ParquetFile(
        path, buffer_size=_ROWS, pre_buffer=False, page_checksum_verification=True
    ) as file:
        yield file.schema_arrow, records


@contextmanager
def _arrow(path: Path) -> Iterator[tuple[Any, Callable[[list[str] | None], _Records]]]:
    import pyarrow.ipc  # noqa: PLC0415

    def records(columns: list[str] | None) -> _Records:
        count = reader.num_record_batches if is_file else 0
        for place, whole in enumerate(map(reader.get_batch, range(count)) if is_file else reader):
            share = (place + 1) / count if is_file else min(1.0, file.tell() / max(1, file.size()))
            record = whole if columns is None else whole.select(columns)
            # Offsets that point outside of a damaged file would end the process.
            record.validate(full=True)
            yield share, record

    # Mapped, so that a batch as large as the file is not copied into memory.
    with pyarrow.memory_map(str(path)) as file:
        is_file = file.read(len(_FILE)) == _FILE
        file.seek(0)
        reader = pyarrow.ipc.open_file(file) if is_file else pyarrow.ipc.open_stream(file)
        yield reader.schema, records


def without_views(schema: Any) -> Any:
    """The schema with plain texts and bytes in place of views, which Arrow can neither filter nor
    search.
    """
    import pyarrow  # noqa: PLC0415 - only files with types need it

    plain = {
        pyarrow.string_view(): pyarrow.large_string(),
        pyarrow.binary_view(): pyarrow.large_binary(),
    }

    def plainly(kind: Any) -> Any:
        if pyarrow.types.is_struct(kind):
            return pyarrow.struct([inside.with_type(plainly(inside.type)) for inside in kind])
        if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
            inside = kind.value_field
            made = pyarrow.list_ if pyarrow.types.is_list(kind) else pyarrow.large_list
            return made(inside.with_type(plainly(inside.type)))
        return plain.get(kind, kind)

    return pyarrow.schema(
        [field.with_type(plainly(field.type)) for field in schema], schema.metadata
    )

"""Tables as NumPy arrays of one length in an .npz file. Pickled objects are never loaded."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.sources.batches import Progress, require_columns
from pacbound.sources.formats.array_headers import ArrayHeader, read_header
from pacbound.sources.values import Values, values_of

_ROWS = 2**20
_LAST_LETTER = 0x10FFFF
_ARRAY = np.lib.format.MAGIC_PREFIX
_BROKEN = (
    ValueError,
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
"""What zipfile raises for an archive that is damaged, or of a kind that it cannot read."""


@dataclass(frozen=True)
class ArrayBatch:
    """Some consecutive rows of the arrays."""

    start: int
    rows: int
    arrays: Mapping[str, NDArray[Any]]

    # An array says NaN itself.
    def numbers(self, name: str, *, missing: bool = False) -> NDArray[Any]:  # noqa: ARG002, RUF100
        return self.arrays[name]

    def flags(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def names(self, name: str) -> NDArray[Any]:
        return self._sound(name)

    def values(self, name: str) -> Values:
        return values_of(self._sound(name), name)

    def _sound(self, name: str) -> NDArray[Any]:
        """A column, if it holds no text that cannot be, as a damaged file may."""
        array = self.arrays[name]
        if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
            letters = np.ascontiguousarray(array).view(array.dtype.byteorder + "u4")
            if letters.max() > _LAST_LETTER:
                raise InvalidValueError(
                    f"{name} holds characters that do not exist. Is the file damaged? Write it "
                    "again."
                )
        return array

    def where(self, chosen: NDArray[np.bool_]) -> ArrayBatch:
        return ArrayBatch(
            self.start,
            int(chosen.sum()),
            {name: array[chosen] for name, array in self.arrays.items()},
        )


class NpzFile:
    """The arrays in an .npz file as columns; members of other kinds are left alone.

    Rows are read as they are asked for, so that memory does not grow with the file, whatever its
    headers claim and however well it is compressed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def columns(self) -> Sequence[str]:
        with self._opened() as archive:
            found = [_column(member) for member in archive.infolist()]
        return [name for name in found if name is not None]

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None
    ) -> Iterator[ArrayBatch]:
        with self._streams(self.columns if columns is None else columns) as streams:
            rows = self._rows({name: stream.header for name, stream in streams.items()})
            for start in range(0, rows, _ROWS):
                some = min(_ROWS, rows - start)
                yield ArrayBatch(
                    start, some, {name: stream.read(some) for name, stream in streams.items()}
                )
                if progress is not None:
                    progress((start + some) / rows)
            for stream in streams.values():
                stream.finish()

    def no_rows(self) -> ArrayBatch:
        """Its columns with no rows in them."""
        with self._streams(self.columns) as streams:
            return ArrayBatch(0, 0, {name: stream.read(0) for name, stream in streams.items()})

    @contextmanager
    def _streams(self, names: Sequence[str]) -> Iterator[dict[str, _Member]]:
        require_columns(self, names)
        with self._opened() as archive, ExitStack() as stack:
            members = {_column(member): member for member in archive.infolist()}
            yield {
                name: stack.enter_context(_Member(archive, members[name], f"{self.path}: {name}"))
                for name in names
            }

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        with self.path.open("rb") as file:
            if file.read(len(_ARRAY)) == _ARRAY:
                raise InvalidValueError(
                    f"{self.path} holds a single array: expected named arrays, as np.savez writes "
                    "them."
                )
            file.seek(0)
            try:
                archive = zipfile.ZipFile(file)
            except _BROKEN as error:
                raise _unreadable(f"{self.path}", error) from None
            with archive:
                yield archive

    def _rows(self, headers: Mapping[str, ArrayHeader]) -> int:
        lengths = {name: header.rows for name, header in headers.items()}
        if len(set(lengths.values())) != 1 or None in lengths.values():
            listed = ", ".join(
                f"{name} has {'no' if length is None else length} rows"
                for name, length in lengths.items()
            )
            raise InvalidValueError(
                f"{self.path}: expected arrays of one length: {listed or 'it holds no array'}."
            )
        return next(length for length in lengths.values() if length is not None)


class _Member:
    """An array in an archive that is read from its first row to its last."""

    def __init__(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> None:
        self._name = name
        self._held: NDArray[Any] | None = None
        self._given = 0
        if member.flag_bits & 1:
            raise InvalidValueError(f"{name} is encrypted: save it without a password.")
        try:
            self._file = archive.open(member)
            self.header = read_header(cast("BinaryIO", self._file), name, member.file_size)
        except _BROKEN as error:
            raise _unreadable(name, error) from None

    def __enter__(self) -> _Member:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, rows: int) -> NDArray[Any]:
        """The next rows."""
        header = self.header
        if header.by_columns:
            return self._turned(rows)
        return np.frombuffer(self._exactly(rows), header.dtype).reshape(rows, *header.shape[1:])

    def _turned(self, rows: int) -> NDArray[Any]:
        if self._held is None:
            data = self._exactly(self.header.rows or 0)
            self._held = np.frombuffer(data, self.header.dtype).reshape(
                self.header.shape, order="F"
            )
        self._given += rows
        return self._held[self._given - rows : self._given]

    def finish(self) -> None:
        """Read to the end, where the checksum is compared."""
        while self._read(2**20):
            pass

    def _exactly(self, rows: int) -> bytes:
        # This grows with what is there, not with what is claimed.
        data = self._read(rows * self.header.row_bytes)
        if len(data) != rows * self.header.row_bytes:
            raise InvalidValueError(f"{self._name} was cut short: write it again.")
        return data

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except _BROKEN as error:
            raise _unreadable(self._name, error) from None


def _column(member: zipfile.ZipInfo) -> str | None:
    """The name of the array in a member of an archive; None if it is something else."""
    name = member.filename
    return name.removesuffix(".npy") if name.endswith(".npy") else None


def _unreadable(name: str, error: Exception) -> InvalidValueError:
    return InvalidValueError(
        f"{name} cannot be read as .npz ({error}). Was it cut short? Write it again."
    )


def sliced(
    arrays: Mapping[str, NDArray[Any]], rows: int, progress: Progress | None
) -> Iterator[ArrayBatch]:
    """The rows of arrays of one length, some at a time."""
    for start in range(0, rows, _ROWS):
        part = {name: array[start : start + _ROWS] for name, array in arrays.items()}
        yield ArrayBatch(start, min(_ROWS, rows - start), part)
        if progress is not None:
            progress(min(1.0, (start + _ROWS) / rows))


class NpzWriter:
    """Collects the rows, because an array is written with its length first."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._parts: list[Mapping[str, NDArray[Any]]] = []

    def write(self, batch: ArrayBatch, added: Mapping[str, NDArray[Any]]) -> None:
        self._parts.append({**batch.arrays, **added})

    def close(self) -> None:
        # As np.savez does it, but any name may be a column's: savez keeps `file` and `allow_pickle`
        # for itself.
        with zipfile.ZipFile(self._file, "w") as archive:
            for name in self._parts[0] if self._parts else ():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    array = np.concatenate([part[name] for part in self._parts])
                    # Text of any length comes as objects, which only pickles could hold.
                    held = array.astype(str) if array.dtype == object else np.asanyarray(array)
                    np.lib.format.write_array(entry, held, allow_pickle=False)

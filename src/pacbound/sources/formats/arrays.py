"""Tables as NumPy arrays: those of one length in an .npz file, or the fields of the one structured
array in an .npy file.

A header is data from outside: it may claim a shape that no machine can hold, objects that would
have to run code, or nothing that makes sense. It is checked before any memory is set aside, and
only one whose rows are there is believed. Pickled objects are never loaded.
"""

from __future__ import annotations

import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from tokenize import TokenError
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.sources.batches import Added, Progress, Write, require_columns
from pacbound.sources.values import Values, values_of

_ROWS = 2**20
_LAST_LETTER = 0x10FFFF
_ARRAY = np.lib.format.MAGIC_PREFIX
# What zipfile raises for an archive that is damaged, or of a kind that it cannot read.
DAMAGED = (
    ValueError,
    OSError,
    EOFError,
    RuntimeError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)

# Bytes of one row; what is beyond is not a column of a table.
_WIDEST_ROW = 2**26

# Bytes of an array stored by columns, which has to be held as a whole to get at its rows.
_LARGEST_TURNED = 2**30

# What NumPy raises for a header that it cannot read, which it takes apart as Python code.
_UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    SyntaxError,
    TokenError,
    OverflowError,
    RecursionError,
    MemoryError,
    EOFError,
)


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

    def only(self, columns: Collection[str]) -> ArrayBatch:
        return replace(
            self, arrays={name: array for name, array in self.arrays.items() if name in columns}
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

    def alike(self, column: str) -> Sequence[str]:
        """The columns of the shape of one, and it: others may be of anything."""
        shapes = dict[str, Any]()
        for name in self.columns:
            with suppress(InvalidValueError), self._streams([name]) as streams:
                shapes[name] = streams[name].header.shape
        return [name for name in shapes if shapes[name] == shapes.get(column)]

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
            except DAMAGED as error:
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
        except DAMAGED as error:
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
        except DAMAGED as error:
            raise _unreadable(self._name, error) from None


def _column(member: zipfile.ZipInfo) -> str | None:
    """The name of the array in a member of an archive; None if it is something else."""
    name = member.filename
    return name.removesuffix(".npy") if name.endswith(".npy") else None


def _unreadable(name: str, error: Exception) -> InvalidValueError:
    return InvalidValueError(
        f"{name} cannot be read as .npz ({error}). Was it cut short? Write it again."
    )


@contextmanager
def npz_writer(file: BinaryIO) -> Iterator[Write]:
    """Keeps the rows in temporary files, a column in each, because an array is written with its
    length first; one batch is in memory at a time.
    """
    columns: dict[str, _Kept] = {}

    def write(batch: ArrayBatch, added: Added) -> None:
        for name, part in {**batch.arrays, **added}.items():
            if name not in columns:
                columns[name] = _Kept()
                kept.enter_context(columns[name].file)
            columns[name].keep(part)

    with ExitStack() as kept:
        yield write
        # As np.savez does it, but any name may be a column's: savez keeps `file` and `allow_pickle`
        # for itself.
        with zipfile.ZipFile(file, "w") as archive:
            for name, column in columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    column.write(entry)


@dataclass
class _Kept:
    """The parts of a column, one after the other in a file."""

    file: Any = field(default_factory=TemporaryFile)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    types: set[np.dtype[Any]] = field(default_factory=set)

    def keep(self, part: NDArray[Any]) -> None:
        # Text of any length comes as objects, which only pickles could hold.
        held = part.astype(str) if part.dtype == object else np.asarray(part)
        np.lib.format.write_array(self.file, held, allow_pickle=False)
        self.shapes.append(held.shape)
        self.types.add(held.dtype)

    def write(self, entry: Any) -> None:
        kind = np.result_type(*self.types)
        shape = (sum(rows for rows, *_ in self.shapes), *self.shapes[0][1:])
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False}
        np.lib.format.write_array_header_2_0(entry, {**header, "shape": shape})
        self.file.seek(0)
        for _ in self.shapes:
            part = np.lib.format.read_array(self.file, allow_pickle=False)
            entry.write(part.astype(kind, order="C").tobytes())


class NpyFile:
    """The fields of a structured array as columns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def columns(self) -> Sequence[str]:
        return list(self._array.dtype.names or ())

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None
    ) -> Iterator[ArrayBatch]:
        names = list(self.columns if columns is None else columns)
        require_columns(self, names)
        rows = len(self._array)
        for start in range(0, rows, _ROWS):
            yield self._part(names, start, min(_ROWS, rows - start))
            if progress is not None:
                progress(min(1.0, (start + _ROWS) / rows))

    def no_rows(self) -> ArrayBatch:
        """Its columns with no rows in them."""
        return self._part(self.columns, 0, 0)

    def _part(self, names: Sequence[str], start: int, rows: int) -> ArrayBatch:
        part = self._array[start : start + rows]
        return ArrayBatch(start, rows, {name: part[name] for name in names})

    @cached_property
    def _array(self) -> NDArray[Any]:
        with self.path.open("rb") as file:
            if file.read(4) == b"PK\x03\x04":
                raise InvalidValueError(f"{self.path} holds several arrays: rename it to .npz.")
            file.seek(0)
            header = read_header(file, str(self.path), self.path.stat().st_size)
            data = file.tell()
        if header.dtype.names is None or len(header.shape) != 1:
            raise InvalidValueError(
                f"{self.path} holds {header.dtype} values of shape {header.shape}, which have no "
                "names: expected a structured one. Save columns by their names instead: "
                "np.savez('rows.npz', confidence=..., correct=...)."
            )
        if not header.rows:
            # There is nothing to map, which NumPy takes for an error.
            return np.empty(0, header.dtype)
        return np.memmap(self.path, header.dtype, "r", data, header.shape)


@dataclass(frozen=True)
class ArrayHeader:
    """The layout of an array; `by_columns` if its rows do not lie one after the other."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    by_columns: bool

    @property
    def rows(self) -> int | None:
        """Its length; None for a single value."""
        return self.shape[0] if self.shape else None

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize


def read_header(file: BinaryIO, name: str, size: int) -> ArrayHeader:
    """The header at the start of `file`, which is `size` bytes long; `file` is then at its data.

    Raises `InvalidValueError` for one that cannot be read or believed; `name` is for the message.
    """
    try:
        version = np.lib.format.read_magic(file)
        # Version 3 is version 2 with the names of fields in UTF-8.
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(file)
        if version == (3, 0) and dtype.names:
            dtype.names = tuple(name.encode("latin-1").decode() for name in dtype.names)
    except _UNREADABLE as error:
        raise InvalidValueError(
            f"{name} has no header that can be read ({_first_line(error)}). Write it again with "
            "np.save or np.savez."
        ) from None
    lengths = tuple(int(length) for length in shape)
    header = ArrayHeader(dtype, lengths, bool(fortran) and len(lengths) > 1)
    _require_plain(header, name)
    _require_present(header, name, size - file.tell())
    return header


def _require_plain(header: ArrayHeader, name: str) -> None:
    if header.dtype.hasobject:
        raise InvalidValueError(
            f"{name} holds Python objects, which are never loaded: they could run code. Save "
            "numbers, booleans or text: .astype(float), .astype(str)."
        )
    if header.by_columns and math.prod(header.shape) * header.dtype.itemsize > _LARGEST_TURNED:
        raise InvalidValueError(
            f"{name} is stored by columns (Fortran's order) and too large to be turned around in "
            "memory. Save np.ascontiguousarray of it."
        )


def _require_present(header: ArrayHeader, name: str, there: int) -> None:
    shape = header.shape
    claimed = math.prod(shape) * header.dtype.itemsize
    if min(shape, default=0) < 0 or claimed > there:
        raise InvalidValueError(
            f"{name} claims the shape {shape} of {header.dtype}, {claimed} bytes, and holds "
            f"{there}. Was it cut short? Write it again."
        )
    if header.rows and not 0 < header.row_bytes <= _WIDEST_ROW:
        raise InvalidValueError(
            f"{name} has {header.row_bytes} bytes in each of its rows (shape {shape}, "
            f"{header.dtype}): expected a column of a table."
        )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")

"""What the header of an array in a file claims, checked before any memory is set aside for it.

A header is data from outside: it may claim a shape that no machine can hold, objects that would
have to run code, or nothing that makes sense. Only one whose rows are there is believed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np

from pacbound.errors import InvalidValueError

_WIDEST_ROW = 2**26
"""Bytes of one row; what is beyond is not a column of a table."""

_LARGEST_TURNED = 2**30
"""Bytes of an array stored by columns, which has to be held as a whole to get at its rows."""


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
"""What NumPy raises for a header that it cannot read, which it takes apart as Python code."""


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

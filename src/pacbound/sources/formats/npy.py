"""Tables as one structured NumPy array in an .npy file, its fields the columns. It is mapped, not
loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.sources.batches import Progress, require_columns
from pacbound.sources.formats.array_headers import read_header
from pacbound.sources.formats.npz import ArrayBatch, sliced


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
        yield from sliced({name: self._array[name] for name in names}, len(self._array), progress)

    def no_rows(self) -> ArrayBatch:
        """Its columns with no rows in them."""
        return ArrayBatch(0, 0, {name: self._array[name][:0] for name in self.columns})

    @cached_property
    def _array(self) -> NDArray[Any]:
        with self.path.open("rb") as file:
            if file.read(4) == b"PK\x03\x04":
                raise InvalidValueError(f"{self.path} holds several arrays: rename it to .npz.")
            file.seek(0)
            header = read_header(file, str(self.path), self.path.stat().st_size)
        if header.dtype.names is None or len(header.shape) != 1:
            raise InvalidValueError(
                f"{self.path} holds {header.dtype} values of shape {header.shape}, which have no "
                "names: expected a structured one. Save columns by their names instead: "
                "np.savez('rows.npz', confidence=..., correct=...)."
            )
        if not header.rows:
            # There is nothing to map, which NumPy takes for an error.
            return np.empty(0, header.dtype)
        try:
            mapped: NDArray[Any] = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise InvalidValueError(
                f"{self.path} cannot be read as .npy ({error}). Write it again."
            ) from None
        return mapped

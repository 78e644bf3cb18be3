"""Tables as NumPy arrays of one length in an .npz file. Pickled objects are never loaded."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.sources.batches import Progress, require_columns
from pacbound.sources.values import Values, values_of

_ROWS = 2**20


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
        return self.arrays[name]

    def values(self, name: str) -> Values:
        return values_of(self.arrays[name], name)

    def where(self, chosen: NDArray[np.bool_]) -> ArrayBatch:
        return ArrayBatch(
            self.start,
            int(chosen.sum()),
            {name: array[chosen] for name, array in self.arrays.items()},
        )


class NpzFile:
    """The arrays in an .npz file as columns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def columns(self) -> Sequence[str]:
        with self._opened() as archive:
            return list(archive.files)

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None
    ) -> Iterator[ArrayBatch]:
        names = list(self.columns if columns is None else columns)
        require_columns(self, names)
        arrays = self._read(names)
        rows = self._rows(arrays)
        yield from sliced(arrays, rows, progress)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        # A file of our own: np.load leaves the one it opens behind when it fails.
        with self.path.open("rb") as file:
            try:
                opened = np.load(file, allow_pickle=False)
                if not isinstance(opened, np.lib.npyio.NpzFile):
                    raise InvalidValueError(
                        f"{self.path} holds a single array: expected named arrays, as np.savez "
                        "writes them."
                    )
                with opened:
                    yield opened
            except InvalidValueError:
                raise
            except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
                raise InvalidValueError(
                    f"{self.path} cannot be read as .npz ({error}). Was it cut short, or does it "
                    "hold objects? Write it again."
                ) from None

    def _read(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        with self._opened() as archive:
            return {name: archive[name] for name in names}

    def _rows(self, arrays: Mapping[str, NDArray[Any]]) -> int:
        lengths = {name: len(array) if array.ndim else -1 for name, array in arrays.items()}
        if len(set(lengths.values())) != 1:
            listed = ", ".join(
                f"{name} has {'no' if length < 0 else length} rows"
                for name, length in lengths.items()
            )
            raise InvalidValueError(f"{self.path}: arrays of different length: {listed}.")
        return next(iter(lengths.values()))


def sliced(
    arrays: Mapping[str, NDArray[Any]], rows: int, progress: Progress | None
) -> Iterator[ArrayBatch]:
    """The rows of arrays of one length, some at a time."""
    for start in range(0, rows, _ROWS):
        part = {name: array[start : start + _ROWS] for name, array in arrays.items()}
        yield ArrayBatch(start, min(_ROWS, rows - start), part)
        if progress is not None:
            progress(min(1.0, (start + _ROWS) / rows))

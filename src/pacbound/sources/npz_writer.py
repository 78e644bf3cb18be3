"""Arrays going out to an .npz file."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pacbound.sources.npz import ArrayBatch


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
                    np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)

"""Arrays as one .npz file that has the same bytes whenever it holds the same arrays.

`numpy.savez_compressed` stamps every array with the time of writing; here every entry carries the
same fixed date.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FIXED_DATE = (1980, 1, 1, 0, 0, 0)


def write_table(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write `arrays` to `path`, compressed, in the order given."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", FIXED_DATE)
            entry.create_system = 3  # the bytes do not depend on the operating system
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, npy_bytes(array), compresslevel=9)


def npy_bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()

"""Columns of arrays as a new frame, of the engine that the user picks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import narwhals as nw
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError, MissingDependencyError
from pacbound.stats.arguments import is_one_of

Backend = Literal["pandas", "polars", "pyarrow"]


def new_frame(columns: Mapping[str, NDArray[Any]], backend: Backend) -> Any:
    """A frame of the backend with these columns."""
    if not is_one_of(backend, get_args(Backend)):
        raise InvalidValueError(
            f"backend={backend!r} is not known: expected one of {', '.join(get_args(Backend))}."
        )
    kinds = {"f": nw.Float64, "i": nw.Int64}
    schema = {name: kinds[column.dtype.kind] for name, column in columns.items()}
    try:
        frame = nw.from_dict(
            {name: column.tolist() for name, column in columns.items()}, schema, backend=backend
        )
    except ImportError:
        raise MissingDependencyError(
            f"A frame of {backend} needs {backend}: pip install {backend}"
        ) from None
    return frame.to_native()

"""Rows of whatever holds them: how many there are, and some of them by number.

Arrays and tensors (NumPy, torch, JAX), sparse matrices, data frames and Arrow tables, lists and
tuples of anything, and dictionaries of these. What comes out is of the kind that went in. Nothing
is guessed from the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError

Rows = NDArray[np.intp]
Take = Callable[[Rows], Any]


def row_access(X: Any, name: str = "X") -> tuple[int, Take]:
    """The number of rows of `X`, and what takes some of them out; all of them are `X` itself, not a
    copy.
    """
    count, take = _access(X, name)
    return count, lambda rows: X if len(rows) == count else take(rows)


def _access(X: Any, name: str) -> tuple[int, Take]:
    if isinstance(X, Mapping):
        return _of_mapping(X, name)
    if hasattr(X, "iloc"):
        return len(X), lambda rows: X.iloc[rows]
    if hasattr(X, "tocsr"):
        return X.shape[0], lambda rows: X.tocsr()[rows].asformat(X.format)
    if hasattr(X, "num_rows") and hasattr(X, "schema"):
        return X.num_rows, X.take
    if hasattr(X, "shape"):
        if not len(X.shape):
            raise InvalidValueError(
                f"{name} is a single value without rows: put it into an array of one row."
            )
        return X.shape[0], lambda rows: X[rows]
    if isinstance(X, Sequence) and not isinstance(X, (str, bytes, bytearray)):
        kind = tuple if isinstance(X, tuple) else list
        return len(X), lambda rows: kind(X[row] for row in rows.tolist())
    raise InvalidTypeError(
        f"{name} is a {type(X).__name__}, which has no rows to pick: {_remedy(X)}"
    )


def _of_mapping(columns: Mapping[Any, Any], name: str) -> tuple[int, Take]:
    parts = {key: _access(column, f"{name}[{key!r}]") for key, column in columns.items()}
    counts = {key: count for key, (count, _) in parts.items()}
    if len(set(counts.values())) != 1:
        listed = (
            ", ".join(f"{name}[{key!r}] has {count}" for key, count in counts.items())
            or "it is empty"
        )
        raise InvalidValueError(
            f"{name} is a dictionary whose columns have no common number of rows: {listed}."
        )
    return next(iter(counts.values())), lambda rows: {
        key: take(rows) for key, (_, take) in parts.items()
    }


def _remedy(X: Any) -> str:
    if isinstance(X, (str, bytes, bytearray)):
        return "put it into a list."
    if isinstance(X, Iterator):
        return "list() its rows, or pass an iterable of batches to predict_batches."
    return "pass an array, a data frame, a list of rows or a dictionary of columns."

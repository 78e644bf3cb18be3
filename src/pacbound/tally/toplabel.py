"""The top label of every row of class probabilities, and its confidence, in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.tally.columns import Array, as_array, checked_scores, numeric

FEW_CLASSES = 64
"""Up to here a transposed block and a running maximum beat argmax, which is slow along short rows."""

_ROWS = 8192
_CACHED_ENTRIES = 2**18
_LOOKED_AT = 1024


def top_label(probabilities: Any) -> tuple[Array, NDArray[np.intp]]:
    """The highest probability of each row and the class that has it; of equal ones the first.

    The confidence keeps the dtype of the probabilities. Rows need not sum to one, so one-versus-rest scores will do, but
    NaN anywhere and a top score outside [0, 1] raise. Works in blocks: the extra memory is the result.

    Examples
    --------
    >>> confidence, prediction = top_label([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0]])
    >>> confidence.tolist(), prediction.tolist()
    ([0.7, 0.5], [1, 0])
    """
    table = as_probabilities(probabilities, "probabilities")
    confidence = np.empty(len(table), dtype=table.dtype)
    prediction = np.empty(len(table), dtype=np.intp)
    for start, top, label in top_blocks(table):
        checked_scores(top, "confidence", start=start)
        confidence[start : start + len(top)] = top
        prediction[start : start + len(top)] = label
    return np.minimum(confidence, 1, out=confidence), prediction


def as_probabilities(values: Any, name: str) -> Array:
    """`values` as an (n, classes) table of floats that do not look like logits."""
    table = numeric(as_array(values, name), name)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidValueError(
            f"{name} has shape {table.shape}: expected (rows, classes). For one confidence per row use calibrate."
        )
    if table.dtype.kind != "f":
        table = table.astype(np.float64)
    # A negative entry below the top one does no harm to the guarantee; it is looked for as the mark of logits.
    head = table[:_LOOKED_AT]
    if head.size and head.min() < 0:
        row, column = np.argwhere(head < 0)[0]
        raise InvalidValueError(
            f"{name}[{row}, {column}] is {head[row, column]}: expected probabilities from 0 to 1. "
            "These look like logits or log-probabilities: pass softmax outputs."
        )
    return table


def top_blocks(table: Array) -> Iterator[tuple[int, Array, Array]]:
    """Blocks of (first row, confidence, prediction); not yet checked, NaN in a row makes its confidence NaN."""
    maximum = _running_maximum if table.shape[1] <= FEW_CLASSES else _gathered_maximum
    for start in range(0, len(table), _ROWS):
        yield (start, *maximum(table[start : start + _ROWS]))


def _running_maximum(block: Array) -> tuple[Array, Array]:
    columns = np.ascontiguousarray(block.T)
    highest = columns[0].copy()
    label = np.zeros(len(highest), dtype=np.uint8)
    for index in range(1, len(columns)):
        # Classes are visited in rising order, so the latest improvement is the largest index: a maximum, not a branch.
        better = (columns[index] > highest).view(np.uint8)
        np.maximum(label, better * np.uint8(index), out=label)
        np.maximum(highest, columns[index], out=highest)
    return highest, label


def _gathered_maximum(block: Array) -> tuple[Array, Array]:
    highest, label = np.empty(len(block), dtype=block.dtype), np.empty(len(block), dtype=np.intp)
    rows = np.arange(max(1, _CACHED_ENTRIES // block.shape[1]))
    for start in range(0, len(block), len(rows)):
        # Few enough rows that what argmax found is still in the processor's cache when it is picked up.
        part, end = block[start : start + len(rows)], start + len(rows)
        label[start:end] = part.argmax(axis=1)
        highest[start:end] = part[rows[: len(part)], label[start:end]]
    return highest, label

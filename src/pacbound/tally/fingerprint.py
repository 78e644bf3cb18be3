"""A name for the rows that were counted, so that the same rows are not counted twice.

Rows with an order are named by a SHA-256 of their scores as float64 and a number for each row,
whatever types they came in. Rows that are too few or too alike have no such name, since honest rows
could be equal to them. Whatever was counted gets a name of its own then, which tells the very same
tally, but not the same rows counted again. Whether there is a name depends on nothing but what is
named: the rows of a cascade are told apart by their scores and by which exits differ from the slow
model, so they have the same name, or none, however many of them have a label.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

DISTINCT = 32
"""So many distinct scores tell rows from all others."""

TELLING_BITS = 128
"""Fewer distinct scores do too, if they and the numbers beside them can be arranged in 2 to the
power of this many ways."""

ARRAY = "array:"
"""How the names of arrays begin. They tell these very columns, not which rows they are of: another
model gives other columns for the same rows, and may give equal ones."""

HISTOGRAM = "rows:"
"""How the names of `histogram_names` begin. They tell the same rows with other labels, which are
other files, and say nothing about where the rows come from."""

_LOOKED_AT = 4096


class Fingerprint:
    """Takes the columns of a source block by block and names the whole."""

    def __init__(self) -> None:
        self._scores = hashlib.sha256()
        self._numbers = hashlib.sha256()
        self._kinds: Counter[tuple[float, ...]] = Counter()
        self._telling = False
        self._taken = 0

    def update(self, scores: NDArray[np.float64], numbers: NDArray[Any]) -> None:
        """Take the next rows: all scores of each row, and its number."""
        self._taken += len(numbers)
        if not self._telling:
            # A few rows nearly always tell, and cost little.
            looked_at = scores[: 4 * DISTINCT], scores[-4 * DISTINCT :], scores[:_LOOKED_AT]
            self._telling = any(np.unique(some).size >= DISTINCT for some in looked_at)
        if not self._telling:
            self._telling = self._told_apart(scores, numbers)
        self._scores.update(np.ascontiguousarray(scores, dtype="<f8").data)
        self._numbers.update(np.ascontiguousarray(numbers, dtype="<u2").data)

    def name(self) -> str | None:
        """The name of all rows taken; None if they are too few or too alike to have one."""
        if not self._taken or not self._telling:
            return None
        whole = hashlib.sha256(b"pacbound rows 2" + self._scores.digest() + self._numbers.digest())
        return f"{ARRAY}sha256:{whole.hexdigest()}"

    def _told_apart(self, scores: NDArray[np.float64], numbers: NDArray[Any]) -> bool:
        """Whether all rows so far tell, by how many of each kind there are."""
        if not len(numbers):
            return False
        values, places = np.unique(scores, return_inverse=True)
        if values.size >= DISTINCT:
            return True
        digits = np.column_stack([places.reshape(len(numbers), -1), numbers])
        kinds, seen = np.unique(digits @ _radix(digits.shape[1]), return_counts=True)
        for kind, rows in zip(kinds.tolist(), seen.tolist(), strict=True):
            number, place = kind & 0xFFFF, kind >> 16
            of_scores = (place >> 5 * m & 31 for m in range(digits.shape[1] - 1))
            self._kinds[(*values[list(of_scores)].tolist(), number)] += rows
        return arrangements(self._kinds.values()) >= TELLING_BITS


def _radix(columns: int) -> NDArray[np.int64]:
    """What puts places below 32, and a number below 2^16 after them, into one integer."""
    return np.array([*(1 << (16 + 5 * m) for m in range(columns - 1)), 1])


def arrangements(counts: Iterable[int]) -> float:
    """The logarithm to base 2 of about how many ways there are to arrange rows of these kinds."""
    seen = np.array([count for count in counts if count], dtype=np.float64)
    total = seen.sum()
    return float(total * np.log2(total) - (seen * np.log2(seen)).sum()) if total else 0.0


def histogram_names(cells: NDArray[np.int64], counts: NDArray[np.int64]) -> frozenset[str]:
    """The name of rows by how many of each kind are in each cell, in whatever order they came; none
    if honest rows could be equal to them.

    Two samples of one law have the same count of a kind that is expected c times with a chance of
    about 1 / (2 sqrt(pi c)).
    """
    seen = counts[counts > 0].astype(np.float64)
    if np.log2(2 * np.sqrt(np.pi * seen)).sum() < TELLING_BITS:
        return frozenset()
    whole = hashlib.sha256(b"pacbound histogram 1")
    for table in (np.array(counts.shape), cells, counts):
        whole.update(np.ascontiguousarray(table, dtype="<i8").data)
    return frozenset([f"{HISTOGRAM}sha256:{whole.hexdigest()}"])


def own_name() -> str:
    """A name that nothing else has."""
    return f"count:{os.urandom(16).hex()}"

"""A name for the rows that were counted, so that the same rows are not counted twice.

Rows with an order are named by a SHA-256 of their scores as float64 and a number for each row,
whatever types they came in. Rows that are too few or too alike have no such name, since honest rows
could be equal to them. Whatever was counted gets a name of its own then, which tells the very same
tally, but not the same rows counted again.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

DISTINCT = 32
"""So many distinct scores tell rows from all others."""

TELLING_BITS = 128
"""Fewer distinct scores do too, if their outcomes can be arranged in 2 to the power of this many
ways."""

_LOOKED_AT = 4096


class Fingerprint:
    """Takes the columns of a source block by block and names the whole."""

    def __init__(self) -> None:
        self._scores = hashlib.sha256()
        self._numbers = hashlib.sha256()
        self._telling = False
        self._taken = 0

    def update(self, scores: NDArray[np.float64], numbers: NDArray[Any]) -> None:
        """Take the next rows."""
        self._taken += len(numbers)
        if not self._telling:
            # A few rows nearly always tell, and cost little.
            looked_at = scores[: 4 * DISTINCT], scores[-4 * DISTINCT :], scores[:_LOOKED_AT]
            self._telling = any(np.unique(some).size >= DISTINCT for some in looked_at)
        self._scores.update(np.ascontiguousarray(scores, dtype="<f8").data)
        self._numbers.update(np.ascontiguousarray(numbers, dtype="<u2").data)

    def name(self, counts: NDArray[np.int64]) -> str | None:
        """The name of all rows taken, of which `counts` are how often each kind was seen.

        None if they are too few or too alike to have one.
        """
        if not self._taken or not (self._telling or arrangements(counts) >= TELLING_BITS):
            return None
        whole = hashlib.sha256(b"pacbound rows 2" + self._scores.digest() + self._numbers.digest())
        return f"sha256:{whole.hexdigest()}"


def arrangements(counts: NDArray[np.int64]) -> float:
    """The logarithm to base 2 of about how many ways there are to arrange rows of these kinds."""
    seen = counts[counts > 0].astype(np.float64)
    total = seen.sum()
    return float(total * np.log2(total) - (seen * np.log2(seen)).sum()) if total else 0.0


def own_name() -> str:
    """A name that nothing else has."""
    return f"count:{os.urandom(16).hex()}"

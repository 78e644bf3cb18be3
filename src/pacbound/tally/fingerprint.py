"""A name for the rows that were counted, so that the same rows are not counted twice.

The name is a SHA-256 of the columns as float64 scores and one-byte outcomes, whatever type they
came in, so that a float32 tensor and the CSV it was exported to are recognised only where their
values are equal. It says nothing about the data.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

DISTINCT = 32
"""Fewer distinct scores than this are no name: two honest batches of one saturated row are equal
too."""

_LOOKED_AT = 4096


class Fingerprint:
    """Takes the columns of a source block by block and names the whole."""

    def __init__(self) -> None:
        self._scores = hashlib.sha256()
        self._outcomes = hashlib.sha256()
        self._telling = False

    def update(self, scores: NDArray[np.float64], outcomes: NDArray[Any]) -> None:
        """Take the next rows."""
        if not self._telling:
            # A few rows nearly always tell, and cost little.
            looked_at = scores[: 4 * DISTINCT], scores[-4 * DISTINCT :], scores[:_LOOKED_AT]
            self._telling = any(np.unique(some).size >= DISTINCT for some in looked_at)
        self._scores.update(np.ascontiguousarray(scores, dtype="<f8").data)
        self._outcomes.update(np.ascontiguousarray(outcomes).data)

    def names(self) -> frozenset[str]:
        """The name of all rows taken, or nothing if they are too few or too alike to have one."""
        if not self._telling:
            return frozenset()
        whole = hashlib.sha256(b"pacbound rows 1" + self._scores.digest() + self._outcomes.digest())
        return frozenset([f"sha256:{whole.hexdigest()}"])

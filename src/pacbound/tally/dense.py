"""Counting cells and outcomes of one score into a table, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.tally.grids import Bins, DyadicGrid
from pacbound.tally.tally import Integers


class DenseCounts:
    """A running table of counts, one row of outcomes per cell of each group; cell -1 has its place
    before cell 0.
    """

    def __init__(self, grid: Bins | DyadicGrid, n_outcomes: int) -> None:
        self._width = grid.n_cells + 1
        self._outcomes = n_outcomes
        self._table = np.zeros(0, dtype=np.int64)

    @property
    def block(self) -> int:
        """How many rows to take at a time, so that the table is not walked over more often than the
        data.
        """
        return max(8192, self._width * self._outcomes)

    def add(self, cells: Integers, outcomes: NDArray[Any], groups: NDArray[Any] | int = 0) -> None:
        """Count one block."""
        index = ((cells + 1) + np.multiply(groups, self._width, dtype=np.int64)) * self._outcomes
        index += outcomes
        seen = np.bincount(index, minlength=self._table.size)
        seen[: self._table.size] += self._table
        self._table = seen

    def sparse(self, *, grouped: bool) -> tuple[Integers, Integers]:
        """The cells that were hit, in order, with their counts."""
        unit = self._width * self._outcomes
        whole = np.pad(self._table, (0, -self._table.size % unit)).reshape(
            -1, self._width, self._outcomes
        )
        group, cell = np.nonzero(whole.any(axis=2))
        columns = [group, cell - 1] if grouped else [cell - 1]
        return np.column_stack(columns).astype(np.int64), whole[group, cell].astype(np.int64)

"""The running table of a count: how often each outcome was seen in each cell, block by block."""

from __future__ import annotations

from collections.abc import Iterable
from unicodedata import decimal

import numpy as np

from pacbound.tally.grids import Bins, DyadicGrid
from pacbound.tally.questions.cascade import ALL_ROWS
from pacbound.tally.questions.question import OVERLAPPING, Judged
from pacbound.tally.rows import Integers

_DENSE = 2**22
"""Up to so many entries a table is kept whole; a larger one holds only the cells that were hit."""


class CountTable:
    """Counts by the cells of a row's scores, by outcome, and by group where there are groups."""

    def __init__(
        self, grid: Bins | DyadicGrid, *, scores: int, outcomes: int, grouped: bool
    ) -> None:
        self._width = grid.n_cells + 1
        self._scores, self._outcomes, self._grouped = scores, outcomes, grouped
        self._places: dict[str, int] = {}
        self._dense = np.zeros(0, dtype=np.int64)
        columns = scores + grouped
        self._cells = np.zeros((0, columns), dtype=np.int64)
        self._counts = np.zeros((0, outcomes), dtype=np.int64)

    @property
    def block(self) -> int:
        """How many rows to take at a time, so that the table is not walked more often than the
        data.
        """
        return max(8192, self._width * self._outcomes) if self._scores == 1 else 2**20

    def add(self, judged: Judged) -> None:
        """Count some rows."""
        places = self._group_places(judged)
        size = self._width * self._outcomes * max(1, len(self._places))
        if self._scores == 1 and size <= max(_DENSE, self._dense.size):
            self._add_dense(judged, places)
        else:
            cells = judged.cells
            keys = cells if places is None else np.column_stack([places, cells])
            times = np.ones(len(cells), dtype=np.int64) if judged.times is None else judged.times
            self._add_sparse(*tabulated(keys, judged.outcomes, times, self._outcomes))

    def result(self) -> tuple[Integers, Integers, tuple[str, ...]]:
        """The cells that were hit, in order, their counts, and the names of the groups in order."""
        self._add_sparse(*self._dense_as_sparse())
        names = in_order(self._places)
        if not self._grouped:
            return self._cells, self._counts, ()
        order = np.empty(len(names), dtype=np.int64)
        for place, name in enumerate(names):
            order[self._places[name]] = place
        cells = self._cells.copy()
        cells[:, 0] = order[cells[:, 0]]
        return *merge_cells(cells, self._counts), names

    def _group_places(self, judged: Judged) -> Integers | None:
        if judged.places is None:
            return None
        known = [self._places.setdefault(name, len(self._places)) for name in judged.groups]
        return np.array(known, dtype=np.int64)[judged.places]

    def _add_dense(self, judged: Judged, places: Integers | None) -> None:
        index = judged.cells[:, 0] + 1
        if places is not None:
            index = index + places * self._width
        index = index * self._outcomes + judged.outcomes
        seen = np.bincount(index, weights=judged.times, minlength=self._dense.size)
        if judged.times is not None:
            # Sums of integers below 2^53: exact in float64.
            seen = seen.astype(np.int64)
        seen[: self._dense.size] += self._dense
        self._dense = seen

    def _dense_as_sparse(self) -> tuple[Integers, Integers]:
        if not self._dense.size:
            return self._cells[:0], self._counts[:0]
        unit = self._width * self._outcomes
        whole = np.pad(self._dense, (0, -self._dense.size % unit)).reshape(
            -1, self._width, self._outcomes
        )
        group, cell = np.nonzero(whole.any(axis=2))
        columns = [group, cell - 1] if self._grouped else [cell - 1]
        self._dense = np.zeros(0, dtype=np.int64)
        return np.column_stack(columns).astype(np.int64), whole[group, cell].astype(np.int64)

    def _add_sparse(self, cells: Integers, counts: Integers) -> None:
        self._cells, self._counts = merge_cells(
            np.concatenate([self._cells, cells]), np.concatenate([self._counts, counts])
        )


def tabulated(
    cells: Integers, outcome: Integers, times: Integers, n_outcomes: int
) -> tuple[Integers, Integers]:
    """The cells that were hit, in order, and how often each outcome was seen in them."""
    keys, seen = merge_cells(np.column_stack([cells, outcome]), times[:, None])
    if not len(keys):
        return cells, np.zeros((0, n_outcomes), dtype=np.int64)
    first = np.concatenate(([True], (np.diff(keys[:, :-1], axis=0) != 0).any(axis=1)))
    counts = np.zeros((int(first.sum()), n_outcomes), dtype=np.int64)
    counts[np.cumsum(first) - 1, keys[:, -1]] = seen[:, 0]
    return np.ascontiguousarray(keys[first, :-1]), counts


def merge_cells(cells: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """Equal cells put together and in order."""
    if not len(cells):
        return cells, counts
    order = np.lexsort(cells.T[::-1])
    cells, counts = cells[order], counts[order]
    first = np.concatenate(([True], (np.diff(cells, axis=0) != 0).any(axis=1)))
    merged = np.add.reduceat(counts, np.flatnonzero(first), axis=0)
    return np.ascontiguousarray(cells[first]), merged


def in_order(groups: Iterable[str]) -> tuple[str, ...]:
    """The one order that a tally keeps its groups in: numbers by their value, then text."""
    return tuple(sorted(groups, key=_place_of_group))


def _place_of_group(name: str) -> tuple[int, int, str, str]:
    if not name.isdecimal():
        return 1, 0, "", name
    # Of two numbers the one with more digits is larger, however many more than int() reads there
    # are.
    digits = "".join(str(decimal(digit)) for digit in name).lstrip("0")
    return 0, len(digits), digits, name


def together(
    scope: str, cells: Integers, counts: Integers, groups: tuple[str, ...]
) -> tuple[Integers, Integers]:
    """The table of all rows together, from those of the groups that they are in."""
    if scope == "top":
        return cells, counts
    if scope in OVERLAPPING:
        inside = cells[:, 0] == groups.index(ALL_ROWS)
        return cells[inside, 1:], counts[inside]
    return merge_cells(cells[:, 1:], counts)

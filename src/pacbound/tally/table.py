"""The running table of a count: how often each outcome was seen in each cell, block by block; and a
name for the rows that were counted, so that the same rows are not counted twice.

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

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.columns import ARRAY, Integers
from pacbound.tally.grids import Bins, DyadicGrid
from pacbound.tally.questions.cascade import ALL_ROWS
from pacbound.tally.questions.question import OVERLAPPING, Judged, in_order

# So many distinct scores tell rows from all others.
DISTINCT = 32

# Fewer distinct scores do too, if they and the numbers beside them can be arranged in 2 to the
# power of this many ways.
TELLING_BITS = 128

# How the names of `histogram_names` begin. They tell the same rows with other labels, which are
# other files, and say nothing about where the rows come from.
HISTOGRAM = "rows:"

# How the names begin that users give their rows with `source`.
NAMED = "named:"

# How the names of `own_name` begin.
_OWN = "count:"

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
    return f"{_OWN}{os.urandom(16).hex()}"


def named_by(source: str | None, names: frozenset[str]) -> frozenset[str]:
    """The names of rows, with the one that the user gives them in place of one of their own."""
    if source is None or not names:
        return names
    if not isinstance(source, str):
        raise InvalidTypeError(
            f"source is of type {type(source).__name__}: expected text, such as 'epoch-17'."
        )
    if not source.strip() or source != source.strip() or not source.isprintable():
        raise InvalidValueError(
            f"source={source!r}: expected a name without spaces around it, such as 'epoch-17'."
        )
    kept = (name for name in names if not name.startswith(_OWN))
    return frozenset([*kept, f"{NAMED}{source}"])


def unnamed(names: Iterable[str]) -> list[str]:
    """The names of rows without those that users gave them."""
    return [name for name in names if not name.startswith(NAMED)]


# Up to so many entries a table is kept whole; a larger one holds only the cells that were hit.
_DENSE = 2**22

# So many rows are taken at a time, at most.
_MOST_ROWS = 2**20

# Kinds of rows whose sums are taken at a time.
_MOST_SUMS = 2**18

# Rows that come first and are fewer than one in so many entries are sorted: to walk a whole table
# would take longer.
_FEW = 16


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
        table = self._width * self._outcomes if self._scores == 1 else _MOST_ROWS
        return min(max(8192, table), _MOST_ROWS)

    def add(self, judged: Judged) -> None:
        """Count some rows."""
        places = self._group_places(judged)
        if judged.sums is not None:
            self._add_sums(judged, places)
            return
        size = self._width * self._outcomes * max(1, len(self._places))
        few = self._is_empty and _FEW * len(judged.outcomes) < size
        if self._scores == 1 and size <= max(_DENSE, self._dense.size) and not few:
            self._add_dense(judged, places)
        else:
            cells = judged.cells
            keys = cells if places is None else np.column_stack([places, cells])
            times = np.ones(len(cells), dtype=np.int64) if judged.times is None else judged.times
            self._add_sparse(*tabulated(keys, judged.outcomes, times, self._outcomes))

    def _add_sums(self, judged: Judged, places: Integers | None) -> None:
        """Count what is summed of rows, each once: rows that are alike are put together first."""
        columns = [judged.cells, judged.outcomes]
        keys = np.column_stack(columns if places is None else [places, *columns])
        times = np.ones(len(keys), dtype=np.int64) if judged.times is None else judged.times
        kinds, rows = merge_cells(keys, times[:, None])
        cells = self._cells.shape[1]
        for start in range(0, len(kinds), _MOST_SUMS):
            some = slice(start, start + _MOST_SUMS)
            sums = judged.sums(kinds[some, cells:]) * rows[some] if judged.sums else rows[some]
            self._add_sparse(*merge_cells(kinds[some, :cells], sums))

    @property
    def _is_empty(self) -> bool:
        return not self._dense.size and not len(self._cells)

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

"""Counts of rows that are already sorted into cells and outcomes, put together into the table that
a tally holds.
"""

from __future__ import annotations

import numpy as np

from pacbound.tally.tally import Integers, merge_cells


def tabulated(
    cells: Integers, outcome: Integers, times: Integers, n_outcomes: int
) -> tuple[Integers, Integers]:
    """The cells that were hit, in order, and how often each outcome was seen in them: `times` for
    each pair that is given.
    """
    keys, seen = merge_cells(np.column_stack([cells, outcome]), times[:, None])
    if not len(keys):
        return cells, np.zeros((0, n_outcomes), dtype=np.int64)
    first = np.concatenate(([True], (np.diff(keys[:, :-1], axis=0) != 0).any(axis=1)))
    counts = np.zeros((int(first.sum()), n_outcomes), dtype=np.int64)
    counts[np.cumsum(first) - 1, keys[:, -1]] = seen[:, 0]
    return np.ascontiguousarray(keys[first, :-1]), counts

"""The running counts of a cascade of any number of models, as its thresholds fall together along a
list fixed in advance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pacbound.procedures.cascade import Bound, Walk
from pacbound.tally.questions.cascade import MORE_MODELS as GRID

Integers = NDArray[np.int64]

TOP = GRID.n_cells - 1
"""The highest cell of the question's grid; a procedure of another grid would need another name."""

NEVER = TOP + 1
"""A threshold above every score: this exit is never taken."""


@dataclass(frozen=True)
class JointWalk:
    """Counts per exit (a row each) at the steps of a walk (a column each).

    At step s, a row of the data exits at the first exit m whose score is at or above cells[m, s] on
    the grid. `exits` rows do so there, on `differ` of them the exit's answer differs from the slow
    model's, on `only_slow` only the slow model is then right, on `only_fast` only the exit.
    """

    cells: Integers
    exits: Integers
    differ: Integers
    only_slow: Integers
    only_fast: Integers

    @classmethod
    def of_two_models(cls, walk: Walk) -> JointWalk:
        """The walk of a single exit."""
        return cls(
            walk.cells[None],
            walk.exits[None],
            walk.differ[None],
            walk.only_slow[None],
            walk.only_fast[None],
        )

    def of_exit(self, exit_: int) -> Walk:
        """One exit's part of the counts."""
        columns = (self.cells, self.exits, self.differ, self.only_slow, self.only_fast)
        return Walk(*(column[exit_] for column in columns))

    def of_all_exits(self) -> Walk:
        """The counts of all exits together; the cells are those of the first."""
        columns = (self.exits, self.differ, self.only_slow, self.only_fast)
        return Walk(self.cells[0], *(column.sum(axis=0) for column in columns))

    @property
    def losses(self) -> Integers:
        """Rows that the whole cascade loses against the slow model (b)."""
        return np.asarray(self.only_slow.sum(axis=0))

    @property
    def gains(self) -> Integers:
        """Rows that it gains (c)."""
        return np.asarray(self.only_fast.sum(axis=0))

    def take(self, steps: Integers | slice | list[int]) -> JointWalk:
        """The walk at some of its steps."""
        columns = (self.cells, self.exits, self.differ, self.only_slow, self.only_fast)
        return JointWalk(*(column[:, steps] for column in columns))

    def changes(self) -> Integers:
        """The first step, and each at which a count that the tests look at changes."""
        judged = np.concatenate([self.differ, self.only_slow, self.only_fast])
        return np.flatnonzero(np.concatenate(([True], (np.diff(judged, axis=1) != 0).any(axis=0))))

    def judged_by(self, bound: Bound) -> JointWalk:
        """The walk with the counts that `bound` looks at: only the product looks at rows that
        differ to no effect.
        """
        return self if bound == "product" else replace(self, differ=self.only_slow + self.only_fast)

    def __len__(self) -> int:
        return int(self.cells.shape[1])


def along(path: Integers, cells: Integers, counts: Integers) -> JointWalk:
    """The counts at every step of `path`, from the occupied joint cells and their joint outcomes.

    `path` is (exits, steps) and falls along its steps in every exit, so a row takes exit m from the
    first step at which its score reaches that threshold until the first at which an earlier exit's
    is reached.
    """
    return along_each((path,), cells, counts)[0]


def along_each(
    paths: Iterable[Integers], cells: Integers, counts: Integers
) -> tuple[JointWalk, ...]:
    """The walks along several paths of the same rows."""
    n_exits = cells.shape[1]
    answered = [_at_exit(counts, m, n_exits) for m in range(n_exits)]
    return tuple(_along(path, cells, answered) for path in paths)


def _along(path: Integers, cells: Integers, answered: list[tuple[Integers, ...]]) -> JointWalk:
    n_exits, n_steps = path.shape
    # Where no step reaches a score the index is n_steps: it never leaves there.
    first = np.stack([np.searchsorted(-path[m], -cells[:, m], side="left") for m in range(n_exits)])
    parts = np.zeros((4, n_exits, n_steps), dtype=np.int64)
    until = np.full(len(cells), n_steps)
    for m in range(n_exits):
        for part, weights in enumerate(answered[m]):
            parts[part, m] = _running(first[m], until, weights, n_steps)
        until = np.minimum(until, first[m])
    return JointWalk(path, *parts)


def _running(first: Integers, until: Integers, weights: Integers, n_steps: int) -> Integers:
    """How much weight is there at each step, if each part of it is there from `first` up to, not
    including, `until`.
    """
    there = first < until
    arrive = np.bincount(first[there], weights=weights[there], minlength=n_steps + 1)
    leave = np.bincount(until[there], weights=weights[there], minlength=n_steps + 1)
    # Sums of integers below 2^53: exact in float64.
    return np.cumsum(arrive - leave)[:n_steps].astype(np.int64)


def _at_exit(counts: Integers, exit_: int, n_exits: int) -> tuple[Integers, ...]:
    """All rows, those that differ, only_slow and only_fast, by what `exit_` would answer."""
    others = tuple(axis + 1 for axis in range(n_exits) if axis != exit_)
    single = counts.reshape(len(counts), *([4] * n_exits)).sum(axis=others)
    return single.sum(axis=1), single[:, 1:].sum(axis=1), single[:, 2], single[:, 1]

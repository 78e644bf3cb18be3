"""The running counts of a cascade of any number of models, as its thresholds fall together along a
list fixed in advance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pacbound.tally.questions.cascade import MORE_MODELS as GRID
from pacbound.tally.questions.cascade import ONLY_FAST, ONLY_SLOW, UNLABELLED, of_exit

Integers = NDArray[np.int64]

# The highest cell of the question's grid; a procedure of another grid would need another name.
TOP = GRID.n_cells - 1

# A threshold above every score: this exit is never taken.
NEVER = TOP + 1


@dataclass(frozen=True)
class JointWalk:
    """Counts per exit (a row each) at the steps of a walk (a column each).

    At step s, a row of the data exits at the first exit m whose score is at or above cells[m, s] on
    the grid. `exits` rows do so there, on `differ` of them the exit's answer differs from the slow
    model's, on `only_slow` only the slow model is then right, on `only_fast` only the exit, and
    `unlabelled` of those that differ have no label.
    """

    cells: Integers
    exits: Integers
    differ: Integers
    only_slow: Integers
    only_fast: Integers
    unlabelled: Integers

    @property
    def lost(self) -> Integers:
        """Rows of each exit that count as lost against the slow model: those that are, and those
        without a label.
        """
        return self.only_slow + self.unlabelled

    @property
    def losses(self) -> Integers:
        """Rows that count as lost by the whole cascade (b)."""
        return np.asarray(self.lost.sum(axis=0))

    @property
    def gains(self) -> Integers:
        """Rows that it gains (c)."""
        return np.asarray(self.only_fast.sum(axis=0))

    def take(self, steps: Integers | slice | list[int]) -> JointWalk:
        """The walk at some of its steps."""
        return JointWalk(**{name: column[:, steps] for name, column in vars(self).items()})

    def at(self, cells: Integers) -> JointWalk:
        """The walk of a single exit at any cells of its grid: the counts are those of the last step
        at or above each of them.
        """
        steps = np.searchsorted(-self.cells[0], -cells, side="right") - 1
        return replace(self.take(steps), cells=cells[None])

    def changes(self) -> Integers:
        """The first step, and each at which a count that the tests look at changes."""
        judged = np.concatenate([self.differ, self.lost, self.only_fast])
        return np.flatnonzero(np.concatenate(([True], (np.diff(judged, axis=1) != 0).any(axis=0))))

    def as_judged(self) -> JointWalk:
        """The walk with the counts that tests look at: none looks at rows that differ to no
        effect.
        """
        return replace(self, differ=self.lost + self.only_fast)

    def scaled(self, n: int, rows: int) -> JointWalk:
        """The first step as so many `rows` like these `n` would have it: gains are rounded down and
        all else up, in Python's integers, since the products leave int64.
        """
        up = [
            [[-(-count * rows // n)] for count in part[:, 0].tolist()]
            for part in (self.exits, self.differ, self.lost)
        ]
        gains = [[count * rows // n] for count in self.only_fast[:, 0].tolist()]
        return JointWalk(self.cells[:, :1], *map(np.array, (*up, gains, [[0]] * len(gains))))

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
    answered = answered_at_exits(counts, cells.shape[1])
    return tuple(_along(path, cells, answered) for path in paths)


def _along(path: Integers, cells: Integers, answered: list[tuple[Integers, ...]]) -> JointWalk:
    n_exits, n_steps = path.shape
    parts = np.zeros((5, n_exits, n_steps), dtype=np.int64)
    for m, (first, until) in enumerate(zip(*exits_along(path, cells), strict=True)):
        for part, weights in enumerate(answered[m]):
            parts[part, m] = _running(first, until, weights, n_steps)
    return JointWalk(path, *parts)


def exits_along(path: Integers, cells: Integers) -> tuple[Integers, Integers]:
    """From which step each row takes each exit, and up to which, not included; (exits, rows) each.

    Where the first is not below the second, the row never takes that exit.
    """
    # Where no step reaches a score the index is the number of steps: it never leaves there.
    first = np.stack(
        [np.searchsorted(-path[m], -cells[:, m], side="left") for m in range(len(path))]
    )
    before = np.full((1, len(cells)), path.shape[1])
    return first, np.minimum.accumulate(np.concatenate([before, first[:-1]]), axis=0)


def _running(first: Integers, until: Integers, weights: Integers, n_steps: int) -> Integers:
    """How much weight is there at each step, if each part of it is there from `first` up to, not
    including, `until`.
    """
    there = first < until
    arrive = np.bincount(first[there], weights=weights[there], minlength=n_steps + 1)
    leave = np.bincount(until[there], weights=weights[there], minlength=n_steps + 1)
    # Sums of integers below 2^53: exact in float64.
    return np.cumsum(arrive - leave)[:n_steps].astype(np.int64)


def answered_at_exits(counts: Integers, n_exits: int) -> list[tuple[Integers, ...]]:
    """For each exit the rows of every cell by what it would answer: all, those that differ,
    only_slow, only_fast and unlabelled.
    """
    return [_at_exit(counts, m, n_exits) for m in range(n_exits)]


def _at_exit(counts: Integers, exit_: int, n_exits: int) -> tuple[Integers, ...]:
    """All rows, those that differ, only_slow, only_fast and unlabelled, by what `exit_` would
    answer.
    """
    single = of_exit(counts, exit_, n_exits)
    differ = single[:, ONLY_FAST:].sum(axis=1)
    return single.sum(axis=1), differ, *single[:, [ONLY_SLOW, ONLY_FAST, UNLABELLED]].T

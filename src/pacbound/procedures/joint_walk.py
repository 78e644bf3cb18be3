"""Paths of thresholds, and the running counts of a cascade of any number of models along them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.tally.questions.cascade import (
    ONLY_FAST,
    ONLY_SLOW,
    UNLABELLED,
    WIDTH,
    are_graded,
    grid_of,
    of_exit,
)

Integers = NDArray[np.int64]


def top_of(exits: int) -> int:
    """The highest cell of the grid that scores are counted on, finer where there is a single exit;
    a procedure of another grid would need another name. The threshold above it is never reached.
    """
    return grid_of(exits).n_cells - 1


@dataclass(frozen=True)
class JointWalk:
    """Counts per exit (a row each) at the steps of a walk (a column each).

    At step s, a row of the data exits at the first exit m whose score is at or above cells[m, s] on
    the grid. `exits` rows do so there, on `differ` of them the exit's answer differs from the slow
    model's, on `only_slow` only the slow model is then right, on `only_fast` only the exit, and
    `unlabelled` of those that differ have no label. Where answers are graded, `grades` are the sums
    of what all exits lose, a row for each step.
    """

    cells: Integers
    exits: Integers
    differ: Integers
    only_slow: Integers
    only_fast: Integers
    unlabelled: Integers
    grades: Integers | None = None

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
        grades = None if self.grades is None else self.grades[steps]
        return replace(JointWalk(*(each[:, steps] for each in self.columns)), grades=grades)

    @property
    def columns(self) -> tuple[Integers, ...]:
        """The thresholds and the counts, (exits, steps) each."""
        differ = self.differ
        return self.cells, self.exits, differ, self.only_slow, self.only_fast, self.unlabelled

    @property
    def judged(self) -> Integers:
        """What the tests look at, a column for each step."""
        counts = np.concatenate([self.differ, self.lost, self.only_fast])
        return counts if self.grades is None else np.concatenate([counts, self.grades.T])

    def changes(self) -> Integers:
        """The first step, and each at which a count that the tests look at changes."""
        changed = (np.diff(self.judged, axis=1) != 0).any(axis=0)
        return np.flatnonzero(np.concatenate(([True], changed)))

    def counts_at(self, cells: Sequence[int] | None, name: str) -> Integers:
        """The counts of a `name` at each exit where thresholds are `cells`; 0 if they never are."""
        place = self.place_of(cells)
        if place is None:
            return np.zeros(len(self.cells), dtype=np.int64)
        return np.asarray(getattr(self, name)[:, place])

    def place_of(self, cells: Sequence[int] | None) -> int | None:
        """The last step at which thresholds are `cells`; None if they never are."""
        if cells is None:
            return None
        there = np.flatnonzero((self.cells == np.array(cells)[:, None]).all(axis=0))
        return int(there[-1]) if there.size else None

    def as_judged(self) -> JointWalk:
        """The walk with the counts that tests look at: none looks at rows that differ to no
        effect.
        """
        return replace(self, differ=self.lost + self.only_fast)

    def with_gains(self) -> JointWalk:
        """The walk as it would be if every row without a label were a gain: what is decided from it
        is the best that more labels could lead to.
        """
        gains, none = self.only_fast + self.unlabelled, np.zeros_like(self.unlabelled)
        return replace(self, only_fast=gains, unlabelled=none)

    def __len__(self) -> int:
        return int(self.cells.shape[1])


@dataclass(frozen=True)
class Path:
    """Vectors of thresholds in the order in which they are tested, (exits, steps). Where they are
    `falling`, none rises from a step to the next, and a walk need have only the steps at which its
    counts change; else it has every step.
    """

    cells: Integers
    falling: bool = True

    def step(self, place: int) -> tuple[int, ...]:
        """The thresholds at a place."""
        return tuple(self.cells[:, place].tolist())

    def places(self, walk: JointWalk) -> Integers:
        """Where the steps of a walk stand on the path; of equal thresholds the first is meant."""
        found = np.arange(len(walk))
        if self.falling:
            found = np.searchsorted(self._fall, -walk.cells.sum(axis=0))
        there = np.minimum(found, self.cells.shape[1] - 1)
        declared = there[-1] == found[-1] and (self.cells[:, there] == walk.cells).all()
        if not declared or (np.diff(there) < 0).any():
            raise InvalidValueError("The thresholds of a walk are not those of its declared path.")
        return np.asarray(there)

    def at(self, walk: JointWalk, places: Integers) -> JointWalk:
        """The walk at any places: the counts are those of its last step at or above each."""
        steps = np.searchsorted(self.places(walk), places, side="right") - 1
        return replace(walk.take(steps), cells=self.cells[:, places])

    def kept(self, walk: JointWalk, end: int) -> JointWalk:
        """What a certificate keeps of a walk that ends at a place, -1 for none: the steps that
        change what tests look at, up to the next, and the end; all, where they do not fall.
        """
        seen, last = self.places(walk), max(end, 0)
        if self.falling:
            seen, last = seen[walk.changes()], int(np.searchsorted(self._fall, self._fall[last]))
        return self.at(walk, np.unique([*seen[seen <= end + 1].tolist(), last]))

    @cached_property
    def _fall(self) -> Integers:
        return np.asarray(-self.cells.sum(axis=0))


def along(paths: Iterable[Integers], cells: Integers, counts: Integers) -> list[JointWalk]:
    """The counts at every step of several paths, from the occupied joint cells and their joint
    outcomes.

    A path is (exits, steps) and falls along its steps in every exit, so a row takes exit m from the
    first step at which its score reaches that threshold until the first at which an earlier exit's
    is reached.
    """
    answered = _answered(counts, cells.shape[1])
    return [_along(path, cells, answered) for path in paths]


def _along(path: Integers, cells: Integers, answered: list[Integers]) -> JointWalk:
    n_exits, n_steps = path.shape
    parts = np.zeros((len(answered[0]), n_exits, n_steps), dtype=np.int64)
    for m, (first, until) in enumerate(zip(*exits_along(path, cells), strict=True)):
        for part, weights in enumerate(answered[m]):
            parts[part, m] = _running(first, until, weights, n_steps)
    return _walk(path, parts)


def _walk(path: Integers, parts: Integers) -> JointWalk:
    """The walk of counts, (numbers, exits, steps): those beyond the first five are of grades."""
    grades = parts[5:].sum(axis=1).T if len(parts) > 5 else None
    return replace(JointWalk(path, *parts[:5]), grades=grades)


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


def routed(sequence: Integers, cells: Integers, counts: Integers) -> JointWalk:
    """The counts at every step of any sequence of thresholds, (exits, steps)."""
    exits, steps = sequence.shape
    answered = _answered(counts, exits)
    parts = np.zeros((len(answered[0]), exits, steps), dtype=np.int64)
    for step in range(steps):
        left = np.ones(len(cells), dtype=bool)
        for m in range(exits):
            leaves = left & (cells[:, m] >= sequence[m, step])
            parts[:, m, step] = answered[m][:, leaves].sum(axis=1)
            left &= ~leaves
    return _walk(sequence, parts)


def _running(first: Integers, until: Integers, weights: Integers, n_steps: int) -> Integers:
    """How much weight is there at each step, if each part of it is there from `first` up to, not
    including, `until`.
    """
    there = first < until
    arrive = np.bincount(first[there], weights=weights[there], minlength=n_steps + 1)
    leave = np.bincount(until[there], weights=weights[there], minlength=n_steps + 1)
    # Sums of integers below 2^53: exact in float64.
    return np.cumsum(arrive - leave)[:n_steps].astype(np.int64)


def _answered(counts: Integers, n_exits: int) -> list[Integers]:
    """For each exit the rows of every cell by what it would answer: all, those that differ,
    only_slow, only_fast and unlabelled; and what they lose, where answers are graded.
    """
    found = []
    for m in range(n_exits):
        if are_graded(counts, n_exits):
            own = counts[:, 2 + 2 * m * WIDTH :][:, :WIDTH].T
            found.append(np.stack([counts[:, 0], own[:3].sum(axis=0), *own]))
            continue
        single = of_exit(counts, m, n_exits)
        named = single[:, [ONLY_SLOW, ONLY_FAST, UNLABELLED]].T
        found.append(np.stack([single.sum(axis=1), single[:, ONLY_FAST:].sum(axis=1), *named]))
    return found

"""The search for a cheap cascade among many models, on the rows of a fold. Nothing here is
certified.

A cascade is an ordered choice of exits before the slow model. On the fold, all vectors of
thresholds on a grid of score quantiles are evaluated at once: the rows are counted by which
quantiles their scores reach, and running sums over these counts give cost and loss of every vector.
An exit may also be left out. What is looked for is the cascade whose cheapest vector has an
estimated loss of at most a target, a little below xi.

All subsets of exits are looked at in order of rising cost, on a coarse grid, as long as there are
at most `MOST_SUBSETS` of a size; beyond that, only those that extend the best `KEPT` of one exit
less. The best `KEPT` of all are then looked at in all their orders, on a fine grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, permutations
from math import comb, inf

import numpy as np

from pacbound.procedures.cascade import MOST_STEPS
from pacbound.procedures.joint_walk import top_of
from pacbound.tally.columns import Floats, Integers
from pacbound.tally.questions.cascade import grid_of

KEPT = 24
MOST_SUBSETS = 10_000
COARSE = {1: 64, 2: 32, 3: 16, 4: 8, 5: 5}
# The quantiles of each score, by the number of exits: the more exits, the fewer, so that the table
# of all vectors stays small.
FINE = {1: 256, 2: 96, 3: 32, 4: 14, 5: 8}

COARSE_ROWS = 2**13
FINE_ROWS = 2**20
# Steps from one corner of a front to the next.
BETWEEN = 8

# The weight of a row in sums that also hold losses minus gains: both stay exact in float64.
_ROW = 2.0**26


@dataclass(frozen=True)
class Tried:
    """What a cascade would cost and lose, by the rows of a fold: an estimate, chosen as the best of
    many, and so optimistic.

    Attributes
    ----------
    models : tuple of int
        The models in the order in which they are asked, the slow one last.
    cost : float
        What a row costs on average, at the cheapest thresholds whose loss is within the target;
        +inf if there are none.
    loss : float
        The accuracy that is lost there against the slow model; the least loss of all thresholds if
        none are within the target.

    Examples
    --------
    >>> Tried((3, 1, 0), 2.5, 0.01).models
    (3, 1, 0)
    """

    models: tuple[int, ...]
    cost: float
    loss: float

    @property
    def rank(self) -> tuple[float, float, int]:
        """Cheapest first; those without fitting thresholds come last, by their loss; of equals the
        shorter one first.
        """
        return self.cost, self.loss, len(self.models)


@dataclass(frozen=True)
class Fold:
    """The rows that choose: the cell of each model's score on the finest grid, what answering by it
    loses (+1) or gains (-1) against the slow model, and what each model costs by itself.
    """

    cells: Integers
    losses: Floats
    costs: tuple[float, ...]
    slow: int

    @cached_property
    def fast(self) -> list[int]:
        """The models that are cheaper than the slow one, cheapest first."""
        cheaper = [m for m, cost in enumerate(self.costs) if cost < self.costs[self.slow]]
        return sorted(cheaper, key=lambda m: self.costs[m])

    def first(self, rows: int) -> Fold:
        """Some of the rows; they are in random order."""
        return Fold(self.cells[:rows], self.losses[:rows], self.costs, self.slow)


@dataclass(frozen=True)
class Levels:
    """A model's thresholds on a grid of quantiles of its score, falling to 0, and the level from
    which on each row exits. Level 0 is never to exit.
    """

    thresholds: Integers
    reached: Integers

    @classmethod
    def of(cls, cells: Integers, quantiles: int, never: int) -> Levels:
        """The levels of one model's cells."""
        shares = 1 - np.arange(1, quantiles) / quantiles
        chosen = np.quantile(cells, shares, method="lower")
        falling = np.unique(np.append(chosen, 0).astype(np.int64))[::-1]
        return cls(
            np.concatenate(([never], falling)), np.searchsorted(-falling, -cells, side="left") + 1
        )


class Evaluation:
    """Cost and loss of all vectors of thresholds, for any cascade of so many exits."""

    def __init__(self, fold: Fold, exits: int, quantiles: int) -> None:
        shift = grid_of(1).bits - grid_of(exits).bits
        never = top_of(exits) + 1
        self._fold = fold
        # The coarser grid's cells: floor(floor(2^16 s) / 2^6) is floor(2^10 s).
        self._cells = fold.cells >> shift
        self._levels = {m: Levels.of(self._cells[:, m], quantiles, never) for m in fold.fast}
        self._weights = {m: _ROW + fold.losses[:, m] for m in fold.fast}

    def table(self, exits: Sequence[int]) -> tuple[Floats, Floats]:
        """The mean cost and the mean loss of a row, an axis for the levels of each exit."""
        rows = len(self._cells)
        key = np.zeros(rows, dtype=np.int64)
        shape: tuple[int, ...] = ()
        left, loss, cost = np.array(float(rows)), np.zeros(()), np.zeros(())
        for m in exits:
            levels = self._levels[m]
            size = len(levels.thresholds)
            key, shape = key * size + levels.reached, (*shape, size)
            here = np.bincount(key, self._weights[m], minlength=int(np.prod(shape))).reshape(shape)
            for axis in range(len(shape) - 1):
                # Not exited before: those that reach a later level only.
                here = here.sum(axis=axis, keepdims=True) - np.cumsum(here, axis=axis)
            leaving = np.cumsum(here, axis=-1)
            leavers = np.rint(leaving / _ROW)
            asked = np.arange(size) > 0
            cost = cost[..., None] + self._fold.costs[m] * left[..., None] * asked
            loss = loss[..., None] + (leaving - leavers * _ROW)
            left = left[..., None] - leavers
        cost = cost + self._fold.costs[self._fold.slow] * left
        return cost / rows, loss / rows

    def best(self, exits: Sequence[int], target: float) -> Tried:
        """The cheapest vector that saves anything and loses at most `target`."""
        cost, loss = (part.ravel() for part in self.table(exits))
        saves = cost < self._fold.costs[self._fold.slow]
        fitting = np.flatnonzero(saves & (loss <= target))
        models = (*exits, self._fold.slow)
        if not fitting.size:
            return Tried(models, inf, float(loss[saves].min(initial=inf)))
        place = fitting[np.lexsort((loss[fitting], cost[fitting]))[0]]
        return Tried(models, float(cost[place]), float(loss[place]))

    def front(self, exits: Sequence[int]) -> tuple[Integers, Floats]:
        """The corners of the front of cost and loss, from the least loss to the least cost: cells
        of thresholds, (exits, corners), and the loss of each.
        """
        table = self.table(exits)
        cost, loss = (part.ravel() for part in table)
        saves = np.flatnonzero(cost < self._fold.costs[self._fold.slow])
        order = saves[np.lexsort((cost[saves], loss[saves]))]
        cheaper = np.minimum.accumulate(cost[order])
        order = order[np.concatenate(([True], cost[order][1:] < cheaper[:-1]))]
        corners = order[_convex(cost[order], loss[order])]
        places = np.unravel_index(corners, table[0].shape)
        cells = [self._levels[m].thresholds[at] for m, at in zip(exits, places, strict=True)]
        return np.stack(cells), loss[corners]

    def at(self, exits: Sequence[int], vector: Integers) -> tuple[float, float]:
        """The mean cost and the mean loss of a row at one vector of thresholds, on the grid."""
        left, loss, cost = np.ones(len(self._cells), dtype=bool), 0.0, 0.0
        for m, threshold in zip(exits, vector.tolist(), strict=True):
            if threshold <= top_of(len(exits)):
                cost += self._fold.costs[m] * int(left.sum())
                leaves = left & (self._cells[:, m] >= threshold)
                loss += float(self._fold.losses[leaves, m].sum())
                left &= ~leaves
        cost += self._fold.costs[self._fold.slow] * int(left.sum())
        return cost / len(left), loss / len(left)


def search(
    fold: Fold,
    *,
    target: float,
    most: int,
    contain: frozenset[int] = frozenset(),
    first: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[tuple[Tried, ...], int]:
    """The best cascades of at most `most` models before and with the slow one that were looked at
    closely, best first, and how many were looked at at all.

    All of them have the models in `contain`, and `first` as their first if it is given.
    """
    report = progress or (lambda _: None)
    exits = range(max(1, len(contain)), min(most - 1, len(fold.fast)) + 1)
    coarse, searched = list[Tried](), 0
    some, all_rows = fold.first(COARSE_ROWS), fold.first(FINE_ROWS)
    level = list[Tried]()
    for size in exits:
        evaluation = Evaluation(some, size, COARSE[size])
        subsets = list(_subsets(fold.fast, size, contain, level))
        level = []
        for place, subset in enumerate(subsets):
            order = sorted(subset, key=lambda m: (m != first, fold.costs[m]))
            level.append(evaluation.best(order, target))
            if not place % 64:
                report(0.8 * (size - exits[0] + place / len(subsets)) / len(exits))
        coarse += level
        searched += len(subsets)
    best = sorted(coarse, key=lambda each: each.rank)[:KEPT]
    fine = {size: Evaluation(all_rows, size, FINE[size]) for size in exits}
    orders = [
        order
        for each in best
        for order in permutations(each.models[:-1])
        if first is None or order[0] == first
    ]
    tried = []
    for place, exits_in_order in enumerate(orders):
        tried.append(fine[len(exits_in_order)].best(exits_in_order, target))
        report(0.8 + 0.2 * place / len(orders))
    report(1.0)
    return tuple(sorted(tried, key=lambda each: each.rank)), searched


def declared_sequence(fold: Fold, models: Sequence[int], *, target: float) -> Integers:
    """The thresholds to walk along for a cascade, (exits, steps): the corners of its front, from
    the least loss to the least cost, with steps between them.

    Only corners of the convex hull are taken: vectors between them owe more to chance. Steps that
    do not save against the one before are left out. Where a loss is allowed, the walk begins near
    "never exit" and comes to the first corner through steps that lose at most `target`, so that a
    front that begins too boldly does not end the walk at its first step.
    """
    exits = models[:-1]
    rows = fold.first(FINE_ROWS)
    evaluation = Evaluation(rows, len(exits), FINE[len(exits)])
    corners, _ = evaluation.front(exits)
    corners = _thinned(corners, MOST_STEPS // (2 * BETWEEN))
    steps = list[Integers]()
    never = np.full(len(exits), top_of(len(exits)) + 1)
    if target > 0:
        alone = fold.costs[fold.slow]
        for vector in _between(never, corners[:, 0], 2 * BETWEEN)[:-1]:
            cost, loss = evaluation.at(exits, vector)
            if loss <= target and cost < alone:
                steps.append(vector)
    steps.append(corners[:, 0])
    cheapest, _ = evaluation.at(exits, corners[:, 0])
    for start, end in pairwise(corners.T):
        for vector in _between(start, end, BETWEEN):
            cost, _ = evaluation.at(exits, vector)
            if cost < cheapest:
                steps.append(vector)
                cheapest = cost
    distinct = dict.fromkeys(tuple(vector.tolist()) for vector in steps)
    return np.array(list(distinct), dtype=np.int64).T


def _subsets(
    fast: Sequence[int], size: int, contain: frozenset[int], smaller: Sequence[Tried]
) -> Iterator[tuple[int, ...]]:
    """All subsets of a size with the models that must be there; or, if they are too many, those
    that add a model to the best of the `smaller` ones.
    """
    others = [m for m in fast if m not in contain]
    free = size - len(contain)
    if not smaller or comb(len(others), free) <= MOST_SUBSETS:
        yield from ((*contain, *chosen) for chosen in combinations(others, free))
        return
    best = sorted(smaller, key=lambda each: each.rank)[:KEPT]
    extended = (
        frozenset((*each.models[:-1], m)) for each in best for m in others if m not in each.models
    )
    yield from (tuple(sorted(subset)) for subset in dict.fromkeys(extended))


def _convex(cost: Floats, loss: Floats) -> list[int]:
    """The corners of the lower hull of points whose loss rises and whose cost falls."""
    hull = list[int]()
    for place in range(len(cost)):
        while len(hull) > 1:
            first, last = hull[-2], hull[-1]
            ahead = (cost[last] - cost[first]) * (loss[place] - loss[last])
            if ahead < (cost[place] - cost[last]) * (loss[last] - loss[first]):
                break
            hull.pop()
        hull.append(place)
    return hull


def _between(start: Integers, end: Integers, steps: int) -> list[Integers]:
    """Vectors from after `start` up to and including `end`, on the grid."""
    shares = np.arange(1, steps + 1) / steps
    return [np.rint(start + (end - start) * share).astype(np.int64) for share in shares]


def _thinned(corners: Integers, most: int) -> Integers:
    """At most so many of the corners, with the first and the last."""
    count = corners.shape[1]
    return corners[:, np.unique(np.linspace(0, count - 1, min(most, count)).astype(int))]

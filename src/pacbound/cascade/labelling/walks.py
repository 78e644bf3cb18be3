"""The walks of a session, kept up to date as labels come, what they lead to, and how far it has
come.

A label changes what one row does at each of its exits, so counts are changed, and nothing is
counted again. A row that was declined is a loss for good, like one that has the slow model's
answer for a label. What open rows could still become is judged by `procedures.cascade_partial`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.cascade.certificate import BestPossible
from pacbound.procedures import cascade, cascade_partial, cascade_paths
from pacbound.procedures.cascade import Bound, CascadeDecision, Walk
from pacbound.procedures.cascade_paths import TILTS, PathsDecision, declared_path
from pacbound.procedures.joint_walk import JointWalk, along_each, exits_along
from pacbound.tally.questions.cascade import are_graded, at_best, best_outcomes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Decision = CascadeDecision | PathsDecision

# So many rows are counted anew at once: each brings a number for every joint outcome.
_BLOCK = 4096


class SessionClaim(TypedDict):
    """What is claimed: fixed when the session is made."""

    xi: float
    delta: float
    bound: Bound


@dataclass(frozen=True)
class Outlook:
    """The decision by the labels so far, the best that more labels could lead to, and how many rows
    take each exit by the one and by the other.
    """

    now: Decision
    best: Decision
    exits_now: tuple[int, ...]
    exits_best: tuple[int, ...]

    @property
    def settled(self) -> bool:
        """Whether no label of an open row can change the thresholds."""
        return cascade_partial.settled(self.now, self.best)


@dataclass(frozen=True, eq=False)
class LabelProgress:
    """How far a `LabelSession` has come. Certified is `xi` alone; all else is descriptive.

    Attributes
    ----------
    labels, declined : int
        How many rows in which predictions differ have a label, and how many were declined. Where
        answers are graded, a row has one if a quality was told.
    open : int
        How many others have a label that could still matter. It falls as labels come, faster than
        by one each.
    differ, rows : int
        In how many rows predictions differ, and how many rows there are.
    certified : bool
        Whether anything is certified so far.
    thresholds, exit_rates : ndarray of shape (M-1,)
        The certified thresholds, +inf where nothing is, and the share of the rows that leaves at
        each exit.
    expected_cost : float or None
        What a row costs on average; None if the session has no costs.
    best_possible : BestPossible
        What more labels could lead to at best, if each were one that exiting early gains.
    done : bool
        Whether no further label can change the thresholds.
    graded : bool
        Whether answers are graded.

    Examples
    --------
    >>> from pacbound.cascade import LabelSession
    >>> session = LabelSession([0.9] * 400, [[1, 1]] * 400, xi=0.02, delta=0.05)
    >>> print(session.progress)
    0 labels of 0 differing rows: 100.0% exit early, at best 100.0%; done
    """

    labels: int
    declined: int
    open: int
    differ: int
    rows: int
    certified: bool
    thresholds: Floats
    exit_rates: Floats
    expected_cost: float | None
    best_possible: BestPossible
    done: bool
    graded: bool = False

    def __str__(self) -> str:
        best = self.best_possible
        declined = f" ({self.declined:,} declined)" if self.declined else ""
        now = f"{self.exit_rates.sum():.1%} exit early" if self.certified else "not certified"
        cost = "" if self.expected_cost is None else f" (cost {self.expected_cost:.4g} a row)"
        left = "done" if self.done else f"{self.open:,} more may matter"
        return (
            f"{self.labels:,} {'graded' if self.graded else 'labels'} of {self.differ:,} differing "
            f"rows{declined}: {now}{cost}, at "
            f"best {best.exit_rates.sum():.1%}{_costing(best.expected_cost)}; {left}"
        )


class TwoModelWalk:
    """The one walk of two models."""

    def __init__(self, cells: Integers, counts: Integers, n: int, asked: SessionClaim) -> None:
        self._cells, self._counts = cells[:, 0], counts.copy()
        self._n, self._asked = n, asked
        self._are_graded = are_graded(counts, 1)

    def change(self, cells: Integers, before: Integers, after: Integers) -> None:
        """Rows with these `cells` that were counted as `before` count as `after`."""
        places = np.searchsorted(self._cells, cells[:, 0])
        np.subtract.at(self._counts, (places, before), 1)
        np.add.at(self._counts, (places, after), 1)

    def outlook(self) -> Outlook:
        walk = self._walk(self._counts)
        hoped = self._walk(at_best(self._counts, 1)) if self._are_graded else walk
        now = cascade.decide(walk, self._n, **self._asked)
        best = cascade_partial.best_possible(hoped, self._n, **self._asked)
        return Outlook(now, best, *((_exiting(walk, each.cell),) for each in (now, best)))

    def _walk(self, counts: Integers) -> Walk:
        return Walk.from_counts(self._cells, counts).judged_by(self._asked["bound"])

    def steps(self, best: Decision, cells: Integers, open_: NDArray[np.bool_]) -> Integers:
        """The step at which each row begins to count, -1 for one that the best possible end never
        reaches; `open_` are the exits at which more could be told of it.
        """
        end = best.cell if isinstance(best, CascadeDecision) else None
        reached = (cells[:, 0] >= end) & open_[0] if end is not None else open_[0] & False
        return np.where(reached, cascade.TOP - cells[:, 0], -1)


class SevenWalks:
    """The walks along the declared paths of more than two models."""

    def __init__(
        self,
        cells: Integers,
        counts: Integers,
        n: int,
        asked: SessionClaim,
        costs: tuple[float, ...],
    ) -> None:
        self._paths = [declared_path(tilt, cells.shape[1]) for tilt in TILTS]
        self._walks = along_each(self._paths, cells, counts)
        self._outcomes, self._n, self._asked, self._costs = counts.shape[1], n, asked, costs
        # Of graded rows, the best that they could become, and the walks of that.
        self._best: Integers | None = None
        if are_graded(counts, cells.shape[1]):
            self._best = best_outcomes(cells.shape[1])
            self._hoped = along_each(self._paths, cells, at_best(counts, cells.shape[1]))

    def change(self, cells: Integers, before: Integers, after: Integers) -> None:
        """Rows with these `cells` that were counted as `before` count as `after`."""
        for start in range(0, len(cells), _BLOCK):
            some = slice(start, start + _BLOCK)
            self._walks = self._changed(self._walks, cells[some], before[some], after[some])
            if self._best is not None:
                best = self._best[before[some]], self._best[after[some]]
                self._hoped = self._changed(self._hoped, cells[some], *best)

    def _changed(
        self, walks: tuple[JointWalk, ...], cells: Integers, before: Integers, after: Integers
    ) -> tuple[JointWalk, ...]:
        # Running counts are sums over rows: those of the difference are the difference of those.
        changed = np.zeros((len(cells), self._outcomes), dtype=np.int64)
        rows = np.arange(len(cells))
        np.subtract.at(changed, (rows, before), 1)
        np.add.at(changed, (rows, after), 1)
        return tuple(map(_added, walks, along_each(self._paths, cells, changed)))

    def outlook(self) -> Outlook:
        walks = self._judged(self._walks)
        hoped = walks if self._best is None else self._judged(self._hoped)
        now = cascade_paths.decide(walks, self._n, **self._asked, costs=self._costs)
        best = cascade_partial.best_possible_paths(hoped, self._n, **self._asked, costs=self._costs)
        return Outlook(now, best, *(self._exiting(each) for each in (now, best)))

    def _judged(self, walks: tuple[JointWalk, ...]) -> tuple[JointWalk, ...]:
        return tuple(walk.judged_by(self._asked["bound"]) for walk in walks)

    def steps(self, best: Decision, cells: Integers, open_: NDArray[np.bool_]) -> Integers:
        """The step of the path with the best possible end at which each row begins to count, -1 for
        one that counts at none of its steps down to that end; `open_` are the exits at which more
        could be told of it.
        """
        if not isinstance(best, PathsDecision) or best.cells is None:
            return np.full(len(cells), -1)
        path, end = self._paths[best.chosen], self._step(best)
        first, until = exits_along(path, cells)
        counted = open_ & (first < until) & (first <= end)
        if self._asked["xi"] == 0:
            # Each declared threshold is tested by itself, whatever came before it.
            counted &= until > end
        begins = np.where(counted, first, path.shape[1]).min(axis=0)
        return np.where(counted.any(axis=0), begins, -1)

    def _step(self, decision: PathsDecision) -> int:
        """The last step of the decision's path with its thresholds."""
        path = self._paths[decision.chosen]
        return int(np.flatnonzero((path == np.array(decision.cells)[:, None]).all(axis=0))[-1])

    def _exiting(self, decision: PathsDecision) -> tuple[int, ...]:
        if decision.cells is None:
            return (0,) * len(self._paths[0])
        exits = self._walks[decision.chosen].exits[:, self._step(decision)]
        return tuple(exits.tolist())


def _exiting(walk: Walk, cell: int | None) -> int:
    """How many rows exit at a threshold."""
    return 0 if cell is None else int(walk.at(np.array([cell])).exits[0])


def _added(walk: JointWalk, more: JointWalk) -> JointWalk:
    counts = [field.name for field in fields(JointWalk) if field.name != "cells"]
    return JointWalk(walk.cells, *(getattr(walk, name) + getattr(more, name) for name in counts))


def _costing(cost: float | None) -> str:
    return "" if cost is None else f" (cost {cost:.4g})"

"""The walks of a session, kept up to date as labels come, what they lead to, and how far it has
come.

A label changes what one row does at each of its exits, so counts are changed, and nothing is
counted again. A row that was declined is a loss for good, like one that has the slow model's
answer for a label. What open rows could still become is judged by `procedures.cascade_partial`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.cascade.certificate import BestPossible, counts_at
from pacbound.procedures import cascade, cascade_partial
from pacbound.procedures.cascade import CascadeDecision
from pacbound.procedures.cascade_groups import Asked, GroupRows, decide_alone
from pacbound.procedures.cascade_paths import TILTS, declared_path
from pacbound.procedures.joint_walk import JointWalk, along_each, exits_along
from pacbound.tally.questions.cascade import are_graded, at_best, best_outcomes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# So many rows are counted anew at once: each brings a number for every joint outcome.
_BLOCK = 4096


@dataclass(frozen=True)
class Outlook:
    """The decision by the labels so far, and the best that more labels could lead to."""

    now: CascadeDecision
    best: CascadeDecision

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


class SessionWalks:
    """The walks of a session: one down the grid of two models, or those along the declared paths of
    more.
    """

    def __init__(
        self,
        cells: Integers,
        counts: Integers,
        n: int,
        asked: Asked,
        costs: tuple[float, ...],
    ) -> None:
        exits = cells.shape[1]
        self._paths = (
            # Only the cells of these rows: at the other steps down the grid no count changes.
            [np.union1d(cells[cells >= 0], cascade.TOP)[None, ::-1]]
            if exits == 1
            else [declared_path(tilt, exits) for tilt in TILTS]
        )
        self._walks = along_each(self._paths, cells, counts)
        self._outcomes, self._n, self._asked, self._costs = counts.shape[1], n, asked, costs
        # Of graded rows, the best that they could become, and the walks of that.
        self._best: Integers | None = None
        if are_graded(counts, exits):
            self._best = best_outcomes(exits)
            self._hoped = along_each(self._paths, cells, at_best(counts, exits))

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
        """What the labels so far lead to, and what more of them could."""
        seen = self._judged(self._walks)
        hoped = (seen if self._best is None else self._judged(self._hoped)).with_gains()
        return Outlook(*(decide_alone(rows, self._asked, self._costs) for rows in (seen, hoped)))

    def _judged(self, walks: tuple[JointWalk, ...]) -> GroupRows:
        return GroupRows(self._n, tuple(walk.judged_by(self._asked["bound"]) for walk in walks))

    def steps(self, best: CascadeDecision, cells: Integers, open_: NDArray[np.bool_]) -> Integers:
        """The step of the path with the best possible end at which each row begins to count, -1 for
        one that counts at none of its steps down to that end; `open_` are the exits at which a
        label could still matter.
        """
        if best.cells is None:
            return np.full(len(cells), -1)
        path = self._paths[best.chosen]
        end = np.flatnonzero((path >= np.array(best.cells)[:, None]).all(axis=0))[-1]
        first, until = exits_along(path, cells)
        counted = open_ & (first < until) & (first <= end)
        if self._asked["xi"] == 0:
            # Each declared threshold is tested by itself, whatever came before it.
            counted &= until > end
        begins = np.where(counted, first, path.shape[1]).min(axis=0)
        return np.where(counted.any(axis=0), begins, -1)


def exits_of(decision: CascadeDecision) -> Integers:
    """How many rows take each exit at the thresholds of a decision."""
    walk = decision.walks[decision.chosen]
    return counts_at(walk, decision.cells, walk.exits)


def _added(walk: JointWalk, more: JointWalk) -> JointWalk:
    counts = [field.name for field in fields(JointWalk) if field.name != "cells"]
    return JointWalk(walk.cells, *(getattr(walk, name) + getattr(more, name) for name in counts))


def _costing(cost: float | None) -> str:
    return "" if cost is None else f" (cost {cost:.4g})"

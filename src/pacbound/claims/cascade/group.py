"""One table of a cascade certificate: the rows of a group, or all rows, with their thresholds and
the walks that these follow from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.claim import sealed
from pacbound.procedures import cascade, cascade_paths, joint_walk
from pacbound.procedures.cascade import CascadeRefusal
from pacbound.procedures.cascade_front import Declared, never_cell
from pacbound.procedures.joint_walk import JointWalk

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Cells = tuple[int, ...]
Counted = Literal["exits", "only_slow", "only_fast", "unlabelled"]


@dataclass(frozen=True)
class Unlabelled:
    """How many rows without a label counted as losses because their answer differs from the slow
    model's.

    Attributes
    ----------
    exiting : int
        Those that exit early at the thresholds with such an answer.
    in_all : int
        All rows without a label in which a fast model differs from the slow one.

    Examples
    --------
    >>> Unlabelled(exiting=3, in_all=40)
    Unlabelled(exiting=3, in_all=40)
    """

    exiting: int
    in_all: int


@dataclass(frozen=True, eq=False)
class BestPossible:
    """What more labels could gain at best, on the same rows: the outcome if every row without a
    label were one that exiting early gains. It is not certified.

    Attributes
    ----------
    thresholds : ndarray of shape (M-1,)
        The thresholds that would be certified; +inf if none would.
    exit_rates : ndarray of shape (M-1,)
        The share of the rows that would leave at each exit.
    expected_cost : float or None
        What a row would cost on average; None if no costs were given.

    Examples
    --------
    >>> BestPossible(np.array([0.5]), np.array([0.75]), None).exit_rates
    array([0.75])
    """

    thresholds: Floats
    exit_rates: Floats
    expected_cost: float | None


@dataclass(frozen=True, eq=False)
class CascadeGroup:
    """The part of a `CascadeCertificate` that is about one group, or about all rows.

    What is certified is that the cascade loses at most `xi` accuracy among the rows of the group
    or, where `bounded` of the certificate is "differ", that at most `xi` of their answers differ.
    Exit rates, costs and the observed error increase were seen on these rows, and are not
    certified.

    A group that is not certified has the thresholds +inf: its rows never exit early. `refusal` says
    why, unless it is only because thresholds are common and another group is to blame.

    Attributes
    ----------
    name : str or None
        The group; None for all rows.
    n : int
        The number of rows of the group.
    cells : tuple of int or None
        The thresholds on their grid; None if there are none.
    chosen : int
        Which of the walks has these thresholds.
    walks : tuple of JointWalk
        The counts of the group, wherever they change as the thresholds fall.
    labels : mapping or None
        How many rows in which predictions differ are "labelled" and "unlabelled"; None if no label
        is missing in any group.
    best : mapping or None
        What more labels could lead to, as the document holds it; None if no label is missing.
    costs : tuple of float or None
        What a row costs that each model answers at these thresholds, the models before it included.
    refusal : CascadeRefusal or None
        Why the group is not certified, and about how many of its rows it would take.

    Examples
    --------
    >>> from pacbound import certify_cascade
    >>> sites = ["north"] * 900 + ["south"] * 100
    >>> certificate = certify_cascade(
    ...     [0.9] * 1000, [[1, 1]] * 1000, xi=0.01, delta=0.05, groups=sites, group_thresholds="own"
    ... )
    >>> south = certificate.groups["south"]
    >>> south.n, south.thresholds, south.refusal.needed
    (100, array([inf]), 366)
    """

    name: str | None
    n: int
    cells: Cells | None
    chosen: int
    walks: tuple[JointWalk, ...]
    labels: Mapping[str, int] | None
    best: Mapping[str, Any] | None
    costs: tuple[float, ...] | None
    refusal: CascadeRefusal | None

    @property
    def exits(self) -> int:
        """The number of models before the slow one."""
        return len(self.walks[0].cells)

    @property
    def certified(self) -> bool:
        """Whether there are thresholds for this group."""
        return self.cells is not None

    @property
    def thresholds(self) -> Floats:
        """A row of the group exits at the first model whose float64 score is at or above its
        threshold; +inf where it never does.
        """
        return thresholds_of(self.cells, self.exits)

    @property
    def exit_counts(self) -> Integers:
        """How many rows of the group left at each exit; not certified."""
        return self.seen("exits")

    @property
    def exit_rates(self) -> Floats:
        """The share of the group's rows that left at each exit; not certified."""
        return self.exit_counts / max(self.n, 1)

    @property
    def observed_error_increase(self) -> float:
        """The accuracy lost on these very rows; not certified. Rows without a label count as
        lost.
        """
        return float(self.lost() / max(self.n, 1))

    @property
    def expected_cost(self) -> float | None:
        """What a row of the group cost on average; not certified. None if no costs were given."""
        return self._cost(self.exit_counts.tolist())

    @property
    def unlabelled(self) -> Unlabelled:
        """How many rows counted as losses because they have no label and predictions differ."""
        in_all = 0 if self.labels is None else self.labels["unlabelled"]
        return Unlabelled(int(self.seen("unlabelled").sum()), in_all)

    @property
    def best_possible(self) -> BestPossible:
        """What more labels of the same rows could lead to at best; not certified. The group's own
        thresholds if no label is missing where it matters.
        """
        if self.best is None:
            return BestPossible(self.thresholds, self.exit_rates, self.expected_cost)
        exits = self.best["exits"]
        rates = np.array(exits) / max(self.n, 1)
        return BestPossible(np.array(self.best["thresholds"]), rates, self._cost(exits))

    @property
    def settled(self) -> bool:
        """Whether more labels of the same rows cannot change the thresholds."""
        if self.best is None or all(value == np.inf for value in self.best["thresholds"]):
            return True
        best = list(self.best["thresholds"]), self.best["chosen"]
        return best == (self.thresholds.tolist(), self.chosen)

    def seen(self, count: Counted) -> Integers:
        """The counts of each exit at the thresholds, none if there are no thresholds."""
        walk = self.walks[self.chosen]
        return counts_at(walk, self.cells, getattr(walk, count))

    def lost(self) -> int:
        """Rows lost less rows gained at the thresholds, those without a label counted as lost."""
        lost = self.seen("only_slow") + self.seen("unlabelled") - self.seen("only_fast")
        return int(lost.sum())

    def _cost(self, exits: Sequence[int]) -> float | None:
        if self.costs is None or not self.n:
            return None
        return cascade_paths.total_cost(np.array(exits), self.n, self.costs) / self.n


def group_of(
    table: Mapping[str, Any],
    method: str,
    costs: tuple[float, ...] | None,
    declared: Declared | None,
    refusal: CascadeRefusal | None,
) -> CascadeGroup:
    """The group that a table of a certificate's values is about."""
    exits = len(table["walks"][0].cells)
    cells = cells_of(table["thresholds"], method)
    if declared is not None:
        costs = declared.costs_at(cells or (never_cell(exits),) * exits)
    return CascadeGroup(
        table["group"],
        table["n"],
        cells,
        table["chosen"],
        table["walks"],
        table["labels"],
        table["best_possible"],
        costs,
        refusal,
    )


def grid_top(exits: int) -> int:
    """The highest cell of the grid that scores are counted on: finer where there is a single
    exit.
    """
    return cascade.TOP if exits == 1 else joint_walk.TOP


def thresholds_of(cells: Cells | None, exits: int) -> Floats:
    """Cells of the grid as thresholds; +inf where there are none, or one is above every score."""
    if cells is None:
        return np.full(exits, np.inf)
    top = grid_top(exits)
    return np.array([cell / top if cell <= top else np.inf for cell in cells])


def cells_of(thresholds: Sequence[float], method: str) -> Cells | None:
    """Thresholds as cells of their grid; None where nothing ever exits, unless it was chosen by
    a method that names thresholds without certifying them.
    """
    if method != "greedy" and all(value == np.inf for value in thresholds):
        return None
    top = grid_top(len(thresholds))
    return tuple(top + 1 if value == np.inf else int(value * top) for value in thresholds)


def counts_at(walk: JointWalk, cells: Cells | None, counts: Integers) -> Integers:
    """Counts of each exit along the walk, where its thresholds are `cells`; 0 if they are not."""
    if cells is not None:
        there = np.flatnonzero((walk.cells == np.array(cells)[:, None]).all(axis=0))
        if there.size:
            return np.asarray(counts[:, there[-1]])
    return np.zeros(len(walk.cells), dtype=np.int64)


def sealed_walk(walk: JointWalk) -> JointWalk:
    """`walk` as a certificate may hand it out: nobody can write into its counts."""
    return JointWalk(**{name: sealed(column) for name, column in vars(walk).items()})


def unit_costs(exits: int) -> tuple[float, ...]:
    """What stands for the costs of more than two models where none are given: each model as much
    as the first.
    """
    return tuple(float(place) for place in range(1, exits + 2))

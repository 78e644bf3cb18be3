"""Two models on a population that is known: every image of a data set, each as likely as any other.

A calibration set is then a draw with replacement. Its rows are independent, as the guarantee
assumes, and the loss of any threshold is known exactly, so whether a choice violates xi is a fact
and not an estimate from test rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from pacbound import paper
from pacbound.procedures.cascade import Asked, GroupCounts, decide
from pacbound.procedures.joint_walk import JointWalk, along, top_of
from pacbound.stats.paired import paired_test, paired_upper
from pacbound.tally.questions.cascade import AGREE, NEITHER, ONLY_FAST, ONLY_SLOW

Array = NDArray[Any]

TOP = top_of(1)
NEVER = TOP + 1
"""The cell of a threshold that no score reaches: the slow model answers every row."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A fast model and a slow one: the cell of the fast model's score and the outcome of each row.

    Thresholds are cells j, for the score j / 2^16, and `NEVER` for none.
    """

    cells: Array
    outcomes: Array

    @classmethod
    def of(cls, confidence: Array, fast: Array, slow: Array, labels: Array) -> Pair:
        """From what both models say about every row of the population."""
        right = (fast == labels) * 2 + (slow == labels)
        outcomes = np.array([NEITHER, ONLY_SLOW, ONLY_FAST, AGREE])[right]
        cells = np.floor(confidence.astype(np.float64) * TOP).astype(np.int64)
        return cls(cells, np.where(fast == slow, AGREE, outcomes))

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def _exits(self) -> Array:
        """The share of the population that exits at each threshold from 0 to `NEVER`."""
        return self._from_the_top(np.ones(len(self))) / len(self)

    @cached_property
    def _lost(self) -> Array:
        difference = (self.outcomes == ONLY_SLOW) * 1 - (self.outcomes == ONLY_FAST) * 1
        return np.rint(self._from_the_top(difference)) / len(self)

    def _from_the_top(self, weights: Array) -> Array:
        by_cell = np.bincount(self.cells, weights=weights, minlength=NEVER + 1)
        return np.asarray(np.cumsum(by_cell[::-1])[::-1])

    def exit_rate(self, threshold: int) -> float:
        """The share of the population that the fast model answers."""
        return float(self._exits[threshold])

    def loss(self, threshold: int) -> float:
        """The accuracy that the population loses against the slow model alone."""
        return float(self._lost[threshold])

    def oracle(self, xi: float) -> int:
        """The lowest threshold whose loss is at most xi, known only to those who know the
        population."""
        return int(np.flatnonzero(self._lost <= xi)[0])

    def curve(self, points: int = 400) -> tuple[Array, Array]:
        """Exit rates and losses over quantiles of the scores."""
        cells = np.unique(np.quantile(self.cells, np.linspace(0, 1, points)).astype(np.int64))
        return self._exits[cells], self._lost[cells]

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """The rows of a calibration set."""
        return rng.integers(0, len(self), n)

    def walk(self, rows: Array) -> JointWalk:
        """The counts of these rows as the threshold falls."""
        cells, place = np.unique(self.cells[rows], return_inverse=True)
        keys = place * 4 + self.outcomes[rows]
        return walk_from_counts(cells, np.bincount(keys, minlength=4 * len(cells)).reshape(-1, 4))


def walk_from_counts(cells: Array, counts: Array) -> JointWalk:
    """The walk to each of the occupied cells, with all rows that differ, which the paper's bound
    looks at."""
    return along([np.unique([*cells, TOP])[None, ::-1]], cells[:, None], counts)[0]


def certified(walk: JointWalk, n: int, *, xi: float, delta: float) -> int:
    """The threshold that is certified: the last before the first failure."""
    cells = decide([GroupCounts(n, (walk,))], Asked(xi, delta, (1.0, 2.0)))[0].cells
    return NEVER if cells is None else cells[0]


def by_bound(name: str, walk: JointWalk, n: int, *, xi: float, delta: float) -> int:
    """The last threshold before the first failure of the "exact" test, a "pair" of binomial bounds,
    or the paper's "product"."""
    if name == "exact":
        return certified(walk, n, xi=xi, delta=delta)
    changes = walk.take(walk.changes())
    if name == "product":
        return walked(changes, product_bounds(changes, n, delta)[0] <= xi)
    return walked(changes, paired_upper(changes.losses, changes.gains, n, delta=delta) <= xi)


def walked(changes: JointWalk, passes: Array) -> int:
    """The last threshold before the first failure, from which of the `changes` pass; the same as
    `certified`, for bounds that are computed once and compared with many xi."""
    failed = np.flatnonzero(~passes)
    return _just_before(changes, int(failed[0]) if failed.size else len(passes))


def searched(changes: JointWalk, passes: Array) -> int:
    """The paper's search: the lowest threshold that passes, whatever fails above it."""
    passed = np.flatnonzero(passes)
    return _just_before(changes, int(passed[-1]) + 1 if passed.size else 0)


def _just_before(changes: JointWalk, step: int) -> int:
    """The lowest threshold with the counts of the step before: between two changes the verdict
    stays the same."""
    if step == 0:
        return NEVER
    return 0 if step == len(changes) else int(changes.cells[0, step]) + 1


def passes_exact(changes: JointWalk, n: int, *, xi: float, delta: float) -> Array:
    """Which steps the exact test passes, each by itself."""
    return np.asarray(paired_test(changes.losses, changes.gains, n, xi=xi, delta=delta))


def mean_loss(changes: JointWalk, n: int) -> Array:
    """The loss that the rows show: the paper's histogram binning has means in place of bounds."""
    return np.asarray((changes.losses - changes.gains) / n)


def product_bounds(changes: JointWalk, n: int, delta: float) -> tuple[Array, Array]:
    """The paper's bound on the loss at each step, mended and as it is printed."""
    counts = changes.differ, changes.only_fast, changes.lost, n
    mended = paper.error_bound(*counts, delta=delta)
    return np.asarray(mended), np.asarray(paper.error_bound_as_printed(*counts, delta=delta))


def cell_of(threshold: float) -> int:
    """The cell of a threshold that is given as a score: at or above it is in this cell or higher.

    Exact for thresholds on the grid; others are rounded up to it.
    """
    return min(int(np.ceil(threshold * TOP)), NEVER) if np.isfinite(threshold) else NEVER


def chance_of_more(violations: int, draws: int, delta: float) -> float:
    """P(at least so many violations) if each draw violates with probability delta: the p-value of
    the hypothesis that the guarantee holds."""
    return 1.0 if violations == 0 else float(bdtrc(violations - 1, draws, delta))

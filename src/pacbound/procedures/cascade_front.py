"""Thresholds for a cascade along a sequence that other rows declared: one walk at the full delta.

The sequence is any list of threshold vectors; they need not fall together. It was chosen on a fold
of the rows, and the rows that are counted here are all others. Given the fold, these are
independent draws of the same law and the sequence is fixed, so a fixed-sequence walk holds at the
full delta: let s be the first step whose true loss exceeds xi. A false claim needs s to pass, and
the test of s alone passes with probability at most delta. All steps before the first failure hold
together, and the last of them is kept. Before the first step stands "never exit", which loses
nothing and is not tested.

xi = 0 is walked in the same way by McNemar's test. That needs no coarse grid here, because the
sequence may begin where the fold saw gains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.procedures.cascade import CascadeDecision, CascadeRefusal
from pacbound.procedures.cascade_paths import step_test
from pacbound.procedures.joint_walk import JointWalk, answered_at_exits
from pacbound.stats.binomial import fixed_sequence
from pacbound.stats.paired import PairedBound, mcnemar_test
from pacbound.stats.planning import least_passing
from pacbound.tally.questions.cascade import grid_of

Integers = NDArray[np.int64]
Passes = NDArray[np.bool_]

NAME = "cascade/declared-front/1"
# A sequence is no longer than the paths that are declared without a fold.
MOST_STEPS = 1024


@dataclass(frozen=True)
class Declared:
    """What a fold of the rows declared for all others.

    Attributes
    ----------
    models : tuple of int
        The models in the order in which they are asked, the slow one last, by their places among
        all candidates.
    costs : tuple of float
        What each of them costs a row by itself.
    share : float
        The share of the rows that was asked for as the fold.
    seed : int
        What drew it.
    rows : int
        How many rows it has; none of them was counted.
    cells : ndarray of shape (exits, steps)
        The sequence of thresholds on the grid, in the order in which they are tested. A cell above
        the grid is an exit that is never taken.

    Examples
    --------
    >>> declared = Declared((4, 2), (1.0, 9.0), 0.2, 0, 500, np.array([[65537, 60000]]))
    >>> declared.running_costs, declared.costs_at((60000,)), declared.costs_at((65537,))
    ((1.0, 10.0), (1.0, 10.0), (0.0, 9.0))
    """

    models: tuple[int, ...]
    costs: tuple[float, ...]
    share: float
    seed: int
    rows: int
    cells: Integers

    @property
    def running_costs(self) -> tuple[float, ...]:
        """What a row costs that each model answers, those before it included."""
        return tuple(accumulate(self.costs))

    def costs_at(self, cells: tuple[int, ...]) -> tuple[float, ...]:
        """The same where models are left out whose exit is never taken."""
        never = never_cell(len(cells))
        asked = [cell < never for cell in cells] + [True]
        return tuple(
            accumulate(cost if used else 0.0 for cost, used in zip(self.costs, asked, strict=True))
        )


def never_cell(exits: int) -> int:
    """The threshold that no score reaches, on the grid of so many exits."""
    return grid_of(exits).n_cells


def walk_along(sequence: Integers, cells: Integers, counts: Integers) -> JointWalk:
    """The counts at every step of `sequence`, (exits, steps), from the occupied joint cells and
    their joint outcomes.
    """
    exits, steps = sequence.shape
    answered = answered_at_exits(counts, exits)
    parts = np.zeros((len(answered[0]), exits, steps), dtype=np.int64)
    for step in range(steps):
        left = np.ones(len(cells), dtype=bool)
        for m in range(exits):
            leaves = left & (cells[:, m] >= sequence[m, step])
            for part, weights in enumerate(answered[m]):
                parts[part, m, step] = weights[leaves].sum()
            left &= ~leaves
    return JointWalk(sequence, *parts).as_judged()


def decide(
    walk: JointWalk,
    declared: Declared,
    n: int,
    *,
    xi: float,
    delta: float,
    bound: PairedBound = "exact",
) -> CascadeDecision:
    """Walk the declared sequence and keep the last step before the first failure.

    With probability at least 1 - `delta` the cascade at that step's thresholds loses at most `xi`
    accuracy against its last model. `walk` has the counts of the first steps of the sequence, at
    least down to the first failure.
    """
    steps = declared.cells.shape[1]
    if not np.array_equal(walk.cells, declared.cells[:, : len(walk)]):
        raise InvalidValueError("The walk leaves the declared sequence.")
    passed = fixed_sequence(_test(n, xi, delta, bound)(walk))
    if passed == len(walk) < steps:
        raise InvalidValueError(
            f"The walk stops after {len(walk)} of {steps} declared steps, and none of them fails."
        )
    seen = walk.take(slice(0, passed + 1))
    if passed == 0:
        return CascadeDecision(None, 0, (seen,), _refusal(walk, n, xi, delta))
    return CascadeDecision(tuple(walk.cells[:, passed - 1].tolist()), 0, (seen,), None)


def _test(n: int, xi: float, delta: float, bound: PairedBound) -> Callable[[JointWalk], Passes]:
    if xi > 0:
        return step_test(n, xi, delta, bound)
    return lambda walk: np.asarray(mcnemar_test(walk.losses, walk.gains, delta=delta))


def _refusal(walk: JointWalk, n: int, xi: float, delta: float) -> CascadeRefusal:
    """Why the first step fails, and about how many rows would pass at the rates that were seen."""
    losses, gains = int(walk.losses[0]), int(walk.gains[0])
    if losses - gains > xi * n or (xi == 0 and losses == gains):
        needed = None
    else:
        needed = least_passing(lambda rows: _passes_scaled(walk, n, rows, xi, delta))
    if xi == 0 and losses == gains:
        return CascadeRefusal("fold-even", {"losses": losses}, needed)
    if losses == gains == 0:
        return CascadeRefusal("fold-too-few", {"n": n, "xi": xi, "delta": delta}, needed)
    numbers = {"losses": losses, "gains": gains, "n": n, "xi": xi}
    return CascadeRefusal("fold-loses" if needed is None else "fold-near", numbers, needed)


def _passes_scaled(walk: JointWalk, n: int, rows: int, xi: float, delta: float) -> bool:
    """Whether so many rows would pass the first step at the rates of `n`."""
    more = walk.scaled(n, rows)
    # A few rows cannot hold what was rounded up at each exit.
    if more.losses[0] + more.gains[0] > rows:
        return False
    # The pair asks for a few more rows than the exact test, and answers at once for any number.
    return bool(_test(rows, xi, delta, "pair")(more)[0])

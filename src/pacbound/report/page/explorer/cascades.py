"""Where a cascade would stop at a stricter xi or delta, from the walk that its certificate keeps.

The certificate keeps the steps at which a count changes that the tests look at, down to the first
failure. A stricter walk ends at one of these, so its threshold is exactly the one that the rows
themselves would give. How many rows exit there is known exactly where the certificate keeps that
very step, and else lies between the counts of the steps around it: rows on which the models agree
come in between, and these are not kept.

For more than two models the cheapest of seven ends is taken. Where what is known of the exits does
not say which is the cheapest, the thresholds are not told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate import CascadeCertificate, GroupedCascadeCertificate
from pacbound.certificate.cascade import unit_costs
from pacbound.certificate.cascade_labels import thresholds_of
from pacbound.procedures import cascade_paths
from pacbound.procedures.joint_walk import JointWalk
from pacbound.stats.sequences import bonferroni_level, fixed_sequence
from pacbound.tally.questions.cascade import ALL_ROWS

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """Where a walk of `n` rows ends: the thresholds, None if it is refused; and the fewest and the
    most rows that exit there, and what all rows cost then, at least and at most.
    """

    thresholds: tuple[float, ...] | None
    n: int
    exits: tuple[int, int]
    cost: tuple[float, float]


def outcome(asked: CascadeCertificate, kept: CascadeCertificate) -> Outcome | None:
    """What `asked`, the certificate `kept` with a stricter xi or delta, would decide; None if the
    counts do not tell.
    """
    costs = kept.costs or unit_costs(kept.exits)
    if kept.method == "paths" and kept.xi > 0:
        return _cheapest(asked, costs)
    again = asked.recomputed()
    if kept.method == "walk" and kept.xi > 0:
        return _of_walk(kept.walks[0], kept.cells, again.cells, kept.n, costs)
    # Here every step is kept: those that a fold declared, or the few that are tried for xi = 0.
    cost = (again.expected_cost or 0.0) * kept.n
    exits = int(again.exit_counts.sum())
    limits = None if again.cells is None else tuple(again.thresholds.tolist())
    return Outcome(limits, kept.n, (exits, exits), (cost, cost))


def outcomes_by_group(
    again: GroupedCascadeCertificate, kept: GroupedCascadeCertificate
) -> list[Outcome | None]:
    """The same for the groups that hold every row once, from what was decided `again`."""
    costs = kept.costs or unit_costs(kept.exits)
    names = list(kept.groups)
    if kept.scope == "overlapping-groups":
        names = [ALL_ROWS]
    found: list[Outcome | None] = []
    for name in names:
        before, now = kept.groups[name], again.groups[name]
        if not before.n:
            found.append(Outcome(None, 0, (0, 0), (0.0, 0.0)))
            continue
        walk = before.walks[0]
        if kept.xi == 0:
            exits = int(now.seen("exits").sum())
            cost = cascade_paths.total_cost(now.seen("exits"), before.n, costs)
            limits = None if now.cells is None else tuple(now.thresholds.tolist())
            found.append(Outcome(limits, before.n, (exits, exits), (cost, cost)))
        else:
            found.append(_of_walk(walk, before.cells, now.cells, before.n, costs))
    return found


def _of_walk(
    walk: JointWalk,
    own: tuple[int, ...] | None,
    cells: tuple[int, ...] | None,
    n: int,
    costs: tuple[float, ...],
) -> Outcome | None:
    """The end of a walk of one exit at a threshold that was decided from its counts."""
    if cells is None:
        slow = cascade_paths.total_cost(np.array([0]), n, costs)
        return Outcome(None, n, (0, 0), (slow, slow))
    if own is None or cells < own:
        # Lower than the certificate's own: beyond the counts that it keeps.
        return None
    steps, exits = walk.cells[0], walk.exits[0]
    at = int(np.flatnonzero(steps >= cells[0])[-1])
    fewest = most = int(exits[at])
    if steps[at] != cells[0]:
        # The rows that change a count at the next step lie below the threshold.
        later = at + 1
        arrived = int(walk.differ[0, later] - walk.differ[0, at])
        most = int(exits[later]) - arrived
    paid = tuple(cascade_paths.total_cost(np.array([rows]), n, costs) for rows in (most, fewest))
    limits = tuple(thresholds_of(cells, 1).tolist())
    return Outcome(limits, n, (fewest, most), (paid[0], paid[1]))


@dataclass(frozen=True)
class _End:
    """The end of one path: the fewest and the most rows that have left at or before each exit."""

    cells: tuple[int, ...]
    fewest: Integers
    most: Integers

    def cost(self, n: int, costs: tuple[float, ...]) -> tuple[float, float]:
        """What all rows cost, at least and at most: a row that leaves earlier costs less."""
        low, high = (
            cascade_paths.total_cost(np.diff(gone, prepend=0), n, costs)
            for gone in (self.most, self.fewest)
        )
        return low, high


def _cheapest(asked: CascadeCertificate, costs: tuple[float, ...]) -> Outcome | None:
    n = asked.n
    level = bonferroni_level(asked.delta, len(cascade_paths.TILTS))
    test = cascade_paths.step_test(n, asked.xi, level, asked.bound)
    ends: list[_End] = []
    for walk, tilt in zip(asked.walks, cascade_paths.TILTS, strict=True):
        changes = walk.changes()
        passed = fixed_sequence(test(walk.take(changes)))
        if passed == 0:
            continue
        path = cascade_paths.declared_path(tilt, asked.exits)
        if passed < len(changes):
            ends.append(_end_before(walk, int(changes[passed]), path))
        elif walk.cells[:, -1].any():
            # Nothing that is kept fails: the walk goes on beyond the counts of the certificate.
            return None
        else:
            gone = np.cumsum(walk.exits[:, -1])
            ends.append(_End(tuple(walk.cells[:, -1].tolist()), gone, gone))
    if not ends:
        slow = cascade_paths.total_cost(np.zeros(asked.exits, dtype=np.int64), n, costs)
        return Outcome(None, n, (0, 0), (slow, slow))
    paid = [end.cost(n, costs) for end in ends]
    best = min(range(len(ends)), key=lambda place: paid[place][1])
    if not _is_cheapest(best, paid):
        return None
    limits = tuple(thresholds_of(ends[best].cells, asked.exits).tolist())
    exits = int(ends[best].fewest[-1]), int(ends[best].most[-1])
    return Outcome(limits, n, exits, paid[best])


def _end_before(walk: JointWalk, failing: int, path: Integers) -> _End:
    """The step of the declared path just before the first that fails."""
    place = int(np.flatnonzero((path == walk.cells[:, [failing]]).all(axis=0))[0])
    cells = path[:, place - 1]
    fewest, most = (np.cumsum(walk.exits[:, step]) for step in (failing - 1, failing))
    if np.array_equal(walk.cells[:, failing - 1], cells):
        most = fewest
    return _End(tuple(cells.tolist()), fewest, most)


def _is_cheapest(best: int, paid: Sequence[tuple[float, float]]) -> bool:
    """Whether the end `best` is the cheapest for sure; of equal ones the first is taken."""
    most = paid[best][1]
    return all(
        most < low or (most == low == high == paid[best][0] and best < place)
        for place, (low, high) in enumerate(paid)
        if place != best
    )

"""Cascades whose loss is bounded in every group: by thresholds common to all groups, or by those of
each group alone.

A group is a set of rows that was fixed beforehand. Its loss is that of the cascade among its rows,
P[cascade wrong | group] - P[slow wrong | group]. A step is *bad* for a group if its loss there is
more than xi. A group has n_g of the n rows; given n_g they are independent draws of the group, so
the test of a step with the group's own counts and n_g passes with probability at most its level
where the step is bad for the group. Without rows no test passes.

Theorem (common thresholds). Walk a list of thresholds fixed in advance from "never exit". A step
passes if *every* group passes its own test there, at the full delta; stop at the first failure.
Then with probability at least 1 - delta no step that was passed is bad for any group, however many
groups there are and however they overlap.
Proof. Which steps are bad for which groups is a matter of the law, not of the sample. Take the
first step that is bad for some group, and a group for which it is bad. If a bad step was passed,
then so was this one, and with it this group's test there, which given n_g happens with probability
at most delta. QED (Intersection-union within a fixed sequence: no share of delta goes to the number
of groups.) With seven paths each is such a walk at delta / 7. For xi = 0 a declared point passes if
every group passes McNemar's test there at the level of the point, and the levels of all points add
up to delta.

Since a group passes all steps before its own first failure, the walk of all groups together ends
where the first of them would stop alone; that is how it is computed.

Theorem (own thresholds). Let the groups be disjoint, and decide each alone at the level
1 - (1 - delta)^(1/G), G being their number. Then with probability at least 1 - delta no group loses
more than xi at its own thresholds.
Proof. Given n_1, .., n_G the samples of disjoint groups are independent, so with probability at
least ((1 - delta)^(1/G))^G = 1 - delta none of the G decisions is wrong; this holds for all
n_1, .., n_G. QED A group that is too small is refused and never exits early, so it loses nothing;
nor does a group that was not among the rows, if its rows never exit. Where one row of a cluster
was drawn for each of its groups the samples are dependent, and each group is decided at delta / G.

Groups left out. Let the groups be disjoint, and leave out those whose n_g alone is too small: 0, or
such that not even zero losses of n_g would show xi at the level of a walk. Given n_1, .., n_G the
groups that are left are fixed, and the theorem of common thresholds holds for them; the rows of the
others never exit early. Nothing but n_g may decide this: a group that is left out because its walk
failed would get, with every other, a chance of its own. Of groups that overlap, the rows are not
independent draws given the others' numbers, so there none is left out; nor where clusters give a
row to each of their groups.

Partial labels. A row that exits early with an answer that differs from the slow model's and has no
label counts as a loss in each of its groups. By the lemma of `cascade_partial` whatever passes so
passes with all labels too, in every group, and both theorems hold as they do there: for any order
of labelling, at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.procedures import cascade, cascade_partial, cascade_paths
from pacbound.procedures.cascade import CascadeDecision, CascadeRefusal
from pacbound.procedures.cascade_paths import Passes
from pacbound.procedures.joint_walk import JointWalk
from pacbound.stats.binomial import (
    binomial_upper,
    bonferroni_level,
    fixed_sequence,
    sidak_level,
)
from pacbound.stats.paired import PairedBound

Integers = NDArray[np.int64]
Shared = Literal["common", "own"]
Method = Literal["walk", "paths"]
Decisions = tuple[CascadeDecision, ...]

NAMES: dict[tuple[Shared, Method], str] = {
    ("common", "walk"): "cascade/groups/common/two-models/1",
    ("common", "paths"): "cascade/groups/common/seven-paths/1",
    ("own", "walk"): "cascade/groups/own/two-models/1",
    ("own", "paths"): "cascade/groups/own/seven-paths/1",
}


@dataclass(frozen=True)
class GroupRows:
    """The rows of a group: how many, and their walk, or their walks along the seven paths."""

    n: int
    walks: tuple[JointWalk, ...]

    @classmethod
    def from_counts(cls, cells: Integers, counts: Integers) -> GroupRows:
        """From the occupied cells of the group and the counts of their joint outcomes."""
        n = int(counts.sum())
        if cells.shape[1] > 1:
            return cls(n, cascade_paths.walks_from_counts(cells, counts))
        return cls(n, (cascade.walk_from_counts(cells[:, 0], counts).as_judged(),))

    def with_gains(self) -> GroupRows:
        """The rows as they would be if all without a label were gains."""
        return GroupRows(self.n, tuple(map(cascade_partial.with_gains, self.walks)))


class Asked(TypedDict):
    """What a decision is asked for. A plan asks by the "pair", which answers at once."""

    xi: float
    delta: float
    bound: NotRequired[PairedBound]


def decide(
    groups: Sequence[GroupRows],
    shared: Shared,
    *,
    asked: Asked,
    costs: tuple[float, ...],
    whole: int | None = None,
    dependent: bool = False,
) -> Decisions:
    """The thresholds of each group, in their order; equal ones if they are "common".

    With probability at least 1 - delta no group loses more than xi at its thresholds. `whole` is
    the place of the group that holds all rows, where groups overlap; `costs` choose among ends that
    hold. `dependent` says that rows of several groups may be of one cluster. A group that cannot be
    certified has no cells; if thresholds are common, then none has, and those that are to blame
    have a refusal.
    """
    if shared == "own":
        level = own_level(asked["delta"], len(groups), dependent=dependent)
        alone: Asked = {**asked, "delta": level}
        return tuple(decide_alone(group, alone, costs) for group in groups)
    counted = range(len(groups)) if whole is None else (whole,)
    if asked["xi"] == 0:
        return _without_loss(groups, asked, costs, counted)
    if len(groups[0].walks) == 1:
        return _one_walk(groups, asked)
    return _along_paths(groups, asked, costs, counted)


def own_level(delta: float, groups: int, *, dependent: bool) -> float:
    """The level of each group's own decision."""
    return (bonferroni_level if dependent else sidak_level)(delta, groups)


def too_small(n: int, exits: int, *, xi: float, delta: float) -> bool:
    """Whether a group of so many rows is too small to pass, by its number alone."""
    level = delta
    if exits > 1:
        level = bonferroni_level(level, len(cascade_paths.TILTS))
    return n == 0 or bool(binomial_upper(0, n, delta=level) > xi)


def refused(
    names: Sequence[str], groups: Sequence[GroupRows], found: Decisions
) -> CascadeRefusal | None:
    """Why no group is certified, by the one that is furthest from it; None if one is."""
    if any(decision.cells is not None for decision in found):
        return None
    blamed = [place for place, decision in enumerate(found) if decision.refusal is not None]
    worst = max(blamed, key=lambda place: _lacking(groups[place].n, found[place].refusal))
    refusal = found[worst].refusal
    if refusal is None:
        raise InvalidValueError("A refusal without a group that is to blame.")
    others = tuple(names[place] for place in blamed if place != worst)
    numbers = {**refusal.numbers, "rows": groups[worst].n}
    return replace(refusal, numbers=numbers, group=names[worst], others=others)


def _lacking(n: int, refusal: CascadeRefusal | None) -> float:
    return np.inf if refusal is None or refusal.needed is None else float(refusal.needed - n)


def decide_alone(group: GroupRows, asked: Asked, costs: tuple[float, ...]) -> CascadeDecision:
    """The thresholds of one group, or of all rows, at the full delta."""
    if len(group.walks) > 1:
        return cascade_paths.decide(group.walks, group.n, **asked, costs=costs)
    return cascade.decide(group.walks[0], group.n, **asked)


def _one_walk(groups: Sequence[GroupRows], asked: Asked) -> Decisions:
    """Two models: down to the highest of the thresholds at which the groups would stop alone."""
    alone = [cascade.decide(group.walks[0], group.n, **asked) for group in groups]
    ends = [decision.cells[0] for decision in alone if decision.cells is not None]
    if len(ends) < len(alone):
        top = np.array([cascade.TOP])
        return tuple(
            replace(decision, cells=None, walks=(group.walks[0].at(top),))
            for group, decision in zip(groups, alone, strict=True)
        )
    lowest = max(ends)
    return tuple(
        CascadeDecision((lowest,), 0, (_down_to(lowest, group.walks[0], decision),), None)
        for group, decision in zip(groups, alone, strict=True)
    )


def _down_to(lowest: int, walk: JointWalk, alone: CascadeDecision) -> JointWalk:
    """What is to be kept of the walk of a group that ends at `lowest` with all others: its changes
    until then, and its first failure if it is the one that ends it.
    """
    if alone.cells == (lowest,):
        return alone.walks[0]
    kept = alone.walks[0].cells[0]
    return walk.at(np.array([*kept[kept > lowest], lowest]))


def _along_paths(
    groups: Sequence[GroupRows], asked: Asked, costs: tuple[float, ...], counted: Sequence[int]
) -> Decisions:
    """More than two models: each path up to the first failure of any group, then the cheapest."""
    xi, bound = asked["xi"], asked.get("bound", "exact")
    level = bonferroni_level(asked["delta"], len(cascade_paths.TILTS))
    walks = [tuple(map(_Placed.of, group.walks, cascade_paths.TILTS)) for group in groups]
    failures = np.array(
        [
            [walk.first_failure(cascade_paths.step_test(group.n, xi, level, bound)) for walk in own]
            for group, own in zip(groups, walks, strict=True)
        ]
    )
    ends = (failures.min(axis=0) - 1).tolist()
    seen = [tuple(map(_Placed.up_to, own, ends)) for own in walks]
    passed = [path for path, end in enumerate(ends) if end >= 0]
    if not passed:
        least = int((failures == 0).sum(axis=0).argmin())
        return tuple(
            CascadeDecision(
                None,
                least,
                kept,
                cascade.refusal_at_top(group.walks[least], group.n, xi=xi, delta=level, bound=bound)
                if fails[least] == 0
                else None,
            )
            for group, kept, fails in zip(groups, seen, failures, strict=True)
        )
    rows = sum(groups[place].n for place in counted)

    def cost(path: int) -> float:
        exits = sum(walks[place][path].exits_at(ends[path]) for place in counted)
        return cascade_paths.total_cost(np.asarray(exits), rows, costs)

    chosen = min(passed, key=cost)
    cells = tuple(walks[0][chosen].path[:, ends[chosen]].tolist())
    return tuple(CascadeDecision(cells, chosen, kept, None) for kept in seen)


@dataclass(frozen=True)
class _Placed:
    """A walk along a declared path, whole or at some of its steps, with the place of each step on
    the path. Of equal thresholds in a row the first is meant.
    """

    walk: JointWalk
    path: Integers
    first: dict[tuple[int, ...], int]
    places: Integers

    @classmethod
    def of(cls, walk: JointWalk, tilt: float) -> _Placed:
        exits = len(walk.cells)
        path, first = cascade_paths.declared_path(tilt, exits), _first_places(tilt, exits)
        try:
            places = [first[tuple(step)] for step in walk.cells.T.tolist()]
        except KeyError as error:
            raise InvalidValueError(
                f"The thresholds {error} are not on the declared path of tilt {tilt}."
            ) from None
        return cls(walk, path, first, np.array(places))

    def first_failure(self, test: Callable[[JointWalk], Passes]) -> int:
        """The place of the first step that fails, beyond the path if none does."""
        changes = self.walk.changes()
        passed = fixed_sequence(test(self.walk.take(changes)))
        if passed == len(changes):
            return int(self.path.shape[1])
        return int(self.places[changes[passed]])

    def up_to(self, end: int) -> JointWalk:
        """What a certificate keeps: the changes up to the step after `end`, and `end`."""
        changes = self.walk.changes()
        seen = changes[self.places[changes] <= end + 1].tolist()
        return self.walk.take(np.unique([*seen, self._step(max(end, 0))]))

    def exits_at(self, end: int) -> Integers:
        """How many rows take each exit there."""
        return self.walk.exits[:, self._step(end)]

    def _step(self, end: int) -> int:
        place = self.first[tuple(self.path[:, end].tolist())]
        step = int(np.searchsorted(self.places, place))
        if step == len(self.places) or self.places[step] != place:
            raise InvalidValueError(
                f"A walk does not have the step {end} of its path, where all groups end: nothing "
                "is known about it there."
            )
        return step


@lru_cache(maxsize=32)
def _first_places(tilt: float, exits: int) -> dict[tuple[int, ...], int]:
    steps = cascade_paths.declared_path(tilt, exits).T.tolist()
    return {tuple(step): place for place, step in reversed(list(enumerate(steps)))}


def _without_loss(
    groups: Sequence[GroupRows], asked: Asked, costs: tuple[float, ...], counted: Sequence[int]
) -> Decisions:
    """For xi = 0: the declared points at which every group passes."""
    tried, passes = zip(*(_tried(group, asked["delta"]) for group in groups), strict=True)
    together = np.logical_and.reduce(passes)
    points = [(int(path), int(step)) for path, step in np.argwhere(together)]
    if not points:
        return _refused_without_loss(groups, tried, np.array(passes))
    rows = sum(groups[place].n for place in counted)

    def cost(point: tuple[int, int]) -> tuple[float, tuple[int, int]]:
        path, step = point
        exits = sum(tried[place][path].exits[:, step] for place in counted)
        return cascade_paths.total_cost(np.asarray(exits), rows, costs), point

    # Of two models the lowest threshold exits most, as for a cascade without groups.
    path, step = points[-1] if len(tried[0]) == 1 else min(points, key=cost)
    cells = tuple(tried[0][path].cells[:, step].tolist())
    return tuple(CascadeDecision(cells, path, walks, None) for walks in tried)


def _tried(group: GroupRows, delta: float) -> tuple[tuple[JointWalk, ...], NDArray[np.bool_]]:
    if len(group.walks) > 1:
        tried, passes = cascade_paths.tried_without_loss(group.walks, delta)
        return tried, np.stack(passes)
    walk, passed = cascade.tried_without_loss(group.walks[0], delta)
    return (walk,), passed[None]


def _refused_without_loss(
    groups: Sequence[GroupRows],
    tried: Sequence[tuple[JointWalk, ...]],
    passes: NDArray[np.bool_],
) -> Decisions:
    """Every group that passes at the fewest of the declared points is to blame."""
    times = passes.sum(axis=(1, 2)).tolist()
    return tuple(
        CascadeDecision(
            None,
            0,
            walks,
            CascadeRefusal(
                "no-loss-in-groups", {"tried": passes[0].size, "passed": seen, "n": group.n}
            )
            if seen == min(times)
            else None,
        )
        for group, walks, seen in zip(groups, tried, times, strict=True)
    )

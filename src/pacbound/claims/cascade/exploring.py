"""Where a cascade would stop at a stricter xi or delta, from the walks that its certificate keeps.

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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.cascade.certificate import (
    CascadeGroup,
    counted_groups,
    thresholds_of,
    unit_costs,
)
from pacbound.explorable import CERTIFIED, REFUSED, UNTOLD, Explorable, Reading
from pacbound.procedures import cascade_paths
from pacbound.procedures.joint_walk import JointWalk
from pacbound.says import Quantity
from pacbound.stats.binomial import bonferroni_level, fixed_sequence

if TYPE_CHECKING:
    from pacbound.claims.cascade.certificate import CascadeCertificate

Integers = NDArray[np.int64]


def explorable(certificate: CascadeCertificate) -> Explorable | str:
    """How stricter values are explored, or why they cannot be."""
    if certificate.method == "greedy":
        return "A greedy choice carries no proof, at no xi."
    if certificate.groups and certificate.method == "paths":
        return (
            "The certificate of several models in groups does not hold the counts that another xi "
            "would need."
        )
    if certificate.left_out:
        return (
            "Which groups are left out depends on xi, and their counts are not in the certificate."
        )
    own = certificate.group_thresholds == "own"
    first = "Groups certified" if own else f"Threshold{'s' * (certificate.exits > 1)}"
    paid = () if certificate.costs is None else ("Cost of a row",)
    drawn = paid[0] if paid else "Rows that exit early"
    return Explorable("xi", (first, "Rows that exit early", *paid), _reading, drawn, bool(paid))


def asking(certificate: CascadeCertificate, xi: float, delta: float) -> CascadeCertificate:
    """The same counts with other values asked for, not decided yet."""
    values = {**certificate.values, "xi": xi, "delta": delta}
    values.pop("refusal", None)
    return replace(certificate, values=values, loaded=None)


def _reading(certificate: CascadeCertificate, xi: float | None, delta: float) -> Reading:
    asked = asking(certificate, certificate.xi if xi is None else xi, delta)
    if not certificate.groups:
        return _told([outcome(asked, certificate)], certificate.costs)
    again = asked.recomputed()
    found = outcomes_by_group(again, certificate)
    if certificate.group_thresholds != "own":
        return _told(found, certificate.costs)
    told = sum(part is not None and part.thresholds is not None for part in found)
    return _told(found, certificate.costs, first=f"{told} of {len(again.groups)}")


def _told(
    found: Sequence[Outcome | None],
    costs: tuple[float, ...] | None,
    *,
    first: str | None = None,
) -> Reading:
    """What the outcomes of all groups, or of the only one, say together."""
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return Reading(UNTOLD, ("",) * (2 if costs is None else 3))
    n = sum(part.n for part in parts)
    fewest, most = (sum(ends) / n for ends in zip(*(part.exits for part in parts), strict=True))
    certified = any(part.thresholds is not None for part in parts)
    shown = first or _thresholds(parts[0].thresholds)
    values = [shown, _between(f"{fewest:.2%}", f"{most:.2%}")]
    drawn = fewest, most
    if costs is not None:
        least, most = (sum(ends) / n for ends in zip(*(part.cost for part in parts), strict=True))
        drawn = least, most
        values.append(_between(*(Quantity(paid, "amount").text for paid in (least, most))))
    return Reading(CERTIFIED if certified else REFUSED, tuple(values), drawn)


def _thresholds(thresholds: Sequence[float] | None) -> str:
    if thresholds is None:
        return "never exit early"
    return ", ".join("never" if np.isinf(value) else repr(value) for value in thresholds)


def _between(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


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
        return _of_walk(kept.only, again.only, costs)
    # Here every step is kept: those that a fold declared, or the few that are tried for xi = 0.
    cost = (again.expected_cost or 0.0) * kept.n
    return _whole(again.only, cost)


def outcomes_by_group(again: CascadeCertificate, kept: CascadeCertificate) -> list[Outcome | None]:
    """The same for the groups that hold every row once, from what was decided `again`."""
    costs = kept.costs or unit_costs(kept.exits)
    found: list[Outcome | None] = []
    for before in counted_groups(kept.tables, kept.scope):
        now = again.groups[str(before.name)]
        if not before.n:
            found.append(Outcome(None, 0, (0, 0), (0.0, 0.0)))
        elif kept.xi == 0:
            cost = cascade_paths.total_cost(now.exit_counts, before.n, costs)
            found.append(_whole(now, cost))
        else:
            found.append(_of_walk(before, now, costs))
    return found


def _whole(now: CascadeGroup, cost: float) -> Outcome:
    exits = int(now.exit_counts.sum())
    limits = None if now.cells is None else tuple(now.thresholds.tolist())
    return Outcome(limits, now.n, (exits, exits), (cost, cost))


def _of_walk(kept: CascadeGroup, now: CascadeGroup, costs: tuple[float, ...]) -> Outcome | None:
    """The end of a walk of one exit at a threshold that was decided from its counts."""
    walk, n, cells = kept.walks[0], kept.n, now.cells
    if cells is None:
        slow = cascade_paths.total_cost(np.array([0]), n, costs)
        return Outcome(None, n, (0, 0), (slow, slow))
    if kept.cells is None or cells < kept.cells:
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
    walks: Any = asked.values["tables"][0]["walks"]
    for walk, tilt in zip(walks, cascade_paths.TILTS, strict=True):
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

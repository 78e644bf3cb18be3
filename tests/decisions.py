"""One decision of a cascade for all rows, from their walks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pacbound.procedures.cascade import Asked, CascadeDecision, Declared, GroupCounts, decide
from pacbound.procedures.joint_walk import JointWalk, along, top_of
from pacbound.stats.paired import PairedBound

Integers = NDArray[np.int64]
TOP = top_of(1)


def walk_from_counts(cells: Integers, counts: Integers) -> JointWalk:
    """The walk of two models at their occupied cells, with all rows that differ."""
    return along([np.unique([*cells, TOP])[None, ::-1]], cells[:, None], counts)[0]


def decided(
    walks: JointWalk | tuple[JointWalk, ...],
    n: int,
    *,
    xi: float,
    delta: float,
    bound: PairedBound = "exact",
    costs: tuple[float, ...] | None = None,
    declared: Declared | None = None,
) -> CascadeDecision:
    several = (walks,) if isinstance(walks, JointWalk) else walks
    unit = tuple(float(m + 1) for m in range(len(several[0].cells) + 1))
    asked = Asked(xi, delta, costs or unit, bound, declared)
    return decide([GroupCounts(n, several)], asked)[0]

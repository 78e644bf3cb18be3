"""The paper's thresholds for a cascade of more than two models: one exit after the other, each as
low as its bound allows.

The exits are chosen on the same rows one by one, and no proof is known that the result keeps xi
with probability 1 - delta for more than two models. It is here for comparison. A certificate made
by it says so and is not certified.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.procedures.cascade import Bound, CascadeRefusal
from pacbound.procedures.cascade_paths import (
    PathsDecision,
    joint_product_bound,
    last_to_pass,
    require_followed,
    step_test,
    steps_to_tell,
)
from pacbound.procedures.joint_walk import NEVER, TOP, JointWalk, along
from pacbound.stats.sequences import bonferroni_level

Integers = NDArray[np.int64]

NAMES: dict[Bound, str] = {
    "exact": "cascade/greedy/exact/1",
    "pair": "cascade/greedy/pair/1",
    "product": "cascade/greedy/product/1",
}
NO_PROOF = CascadeRefusal("no-proof")


def decide(
    cells: Integers, counts: Integers, n: int, *, xi: float, delta: float, bound: Bound
) -> PathsDecision:
    """Lower each threshold in turn to the last cell before the first failure, those before it
    fixed, those after it unused.
    """
    exits, falling = cells.shape[1], np.arange(TOP, -1, -1)
    path = np.full((exits, len(falling)), NEVER)
    walks = []
    for m in range(exits):
        path[m] = falling
        walk = along(path.copy(), cells, counts).judged_by(bound)
        end = last_to_pass(walk, _test(m, n, xi, delta, bound), m)
        path[m] = falling[end] if end >= 0 else NEVER
        walks.append(walk.take(steps_to_tell(walk, end)))
    return decide_again(tuple(walks), n, xi=xi, delta=delta, bound=bound)


def decide_again(
    walks: tuple[JointWalk, ...], n: int, *, xi: float, delta: float, bound: Bound
) -> PathsDecision:
    """The decision from the walks that a certificate keeps, one for each exit."""
    cells: list[int] = []
    kept = []
    for m, walk in enumerate(walks):
        _require_greedy(walk, m, cells)
        end = last_to_pass(walk, _test(m, n, xi, delta, bound), m)
        path = np.repeat(walk.cells[:, :1], TOP + 1, axis=1)
        path[m] = np.arange(TOP, -1, -1)
        require_followed(walk, end, path)
        cells.append(int(walk.cells[m, end]) if end >= 0 else NEVER)
        kept.append(walk.take(steps_to_tell(walk, end)))
    taken = [m for m, cell in enumerate(cells) if cell != NEVER]
    return PathsDecision(tuple(cells), taken[-1] if taken else 0, tuple(kept), NO_PROOF)


def _require_greedy(walk: JointWalk, exit_: int, chosen: list[int]) -> None:
    """Raise unless `walk` lowers the threshold of `exit_` from the top alone, those before it at
    what was `chosen` and those after it unused.
    """
    fixed = np.array([*chosen, *[NEVER] * (len(walk.cells) - len(chosen) - 1)])
    others = np.delete(walk.cells, exit_, axis=0)
    lowered = walk.cells[exit_]
    if (others != fixed[:, None]).any() or lowered[0] != TOP or (np.diff(lowered) >= 0).any():
        raise InvalidValueError(
            f"Walk {exit_} is not that of a greedy choice: expected the threshold of exit {exit_} "
            f"to fall from {TOP}, and all others to stay at {fixed.tolist()}."
        )


def _test(
    exit_: int, n: int, xi: float, delta: float, bound: Bound
) -> Callable[[JointWalk], NDArray[np.bool_]]:
    if bound == "product":
        return lambda walk: joint_product_bound(walk, n, delta, used=exit_ + 1) <= xi
    return lambda walk: step_test(n, xi, bonferroni_level(delta, len(walk.cells)), bound)(walk)

"""The threshold of a recall from a look at positives that grow in number, by a plan of looks.

Trials are the labelled positives, in the order in which they were drawn, and a look is a number of
them. Given which rows are positive, the misses at a fixed threshold among the first P_l positives
are binomial, and misses only grow with the threshold. Let g be the least threshold of the grid
whose true miss rate exceeds 1 - target. To claim g or more at any look, at most the allowed number
of positives may be missed at g at that look, and that happens at any look with probability at most
delta (`pacbound.stats.looks`). So the threshold of each look holds, all of them together. Negatives
do not count, and rows that follow the last positive of a look change nothing.
"""

from __future__ import annotations

import numpy as np

from pacbound.procedures.recall import ASSUMPTIONS as FIXED_ASSUMPTIONS
from pacbound.procedures.recall import Integers, RecallDecision, highest_threshold
from pacbound.procedures.refusal import Refusal
from pacbound.stats.looks import PlannedLooks

NAME = "recall/planned-looks/1"
ASSUMPTIONS = (
    FIXED_ASSUMPTIONS[0],
    (
        "The target, delta and the looks, which are numbers of positives, were fixed beforehand; "
        "each look counts all positives up to it, in the order in which they were drawn."
    ),
    *FIXED_ASSUMPTIONS[2:],
)


def decide(
    cells: Integers, positives: Integers, plan: PlannedLooks, *, target: float
) -> RecallDecision:
    """The highest threshold j / 2^16 below which the plan allows so few positives.

    `cells` rise, `plan` is for the rate of misses 1 - `target`, and the number of positives is one
    of its looks. With probability at least 1 - `plan.delta` at least a share `target` of the
    positives is flagged at this threshold, and at that of any other look.
    """
    total = int(positives.sum())
    allowed = plan.allowed(total)
    if allowed < 0:
        return RecallDecision(float("-inf"), allowed, _too_few(total, target, plan))
    return RecallDecision(highest_threshold(cells, np.cumsum(positives), allowed), allowed, None)


def _too_few(total: int, target: float, plan: PlannedLooks) -> Refusal:
    # The last look of a plan can always pass.
    needed = next(look for look in plan.looks if plan.allowed(look) >= 0)
    return Refusal(
        f"{total} positives, at look {plan.position(total) + 1} of {len(plan.looks)}, cannot "
        f"certify a recall of {target}, even if none were missed.",
        needed,
    )

"""The threshold of a shield from a look at rollouts that grow in number, by a plan of looks.

At each threshold the misses among the first n_l rollouts are binomial, and misses only grow with
the threshold. Let g be the least threshold of the grid whose true rate exceeds xi. To claim g or
more at any look, at most the allowed number of rollouts may be missed at g at that look, and that
happens at any look with probability at most delta (`pacbound.stats.looks`). So the threshold of
each look holds, all of them together, and looking on after one has passed is free.
"""

from __future__ import annotations

from pacbound.procedures.refusal import Refusal
from pacbound.procedures.shield import ASSUMPTIONS as FIXED_ASSUMPTIONS
from pacbound.procedures.shield import Integers, ShieldDecision, search
from pacbound.stats.looks import PlannedLooks

NAME = "shield/planned-looks/1"
ASSUMPTIONS = (
    (
        "The rollouts are independent draws from the distribution of use (rooms, starts, noise); "
        "the looks were fixed before the first of them, and each counts all rollouts up to it, in "
        "the order in which they were started."
    ),
    *FIXED_ASSUMPTIONS[1:],
)


def decide(cells: Integers, unsafe: Integers, n: int, plan: PlannedLooks) -> ShieldDecision:
    """The largest threshold j / 2^16 that misses at most as many as the plan allows at `n`.

    `cells` are the occupied cells in rising order, -1 for rollouts lost at the start, and `unsafe`
    the unsafe rollouts in each. With probability at least 1 - `plan.delta` at most a share
    `plan.xi` of the rollouts is unsafe under a shield of this threshold, or of that of any other
    look.
    """
    allowed = plan.allowed(n)
    threshold, cells, misses = search(cells, unsafe, allowed)
    refusal = None
    if threshold == float("-inf"):
        lost = int(misses[0]) if cells.size and cells[0] < 0 else 0
        refusal = _refusal(lost, n, allowed, plan)
    return ShieldDecision(threshold, cells, misses, allowed, refusal)


def _refusal(lost: int, n: int, allowed: int, plan: PlannedLooks) -> Refusal:
    place = f"look {plan.position(n) + 1} of {len(plan.looks)}"
    reason = (
        f"{n} rollouts, at {place}, cannot certify xi = {plan.xi} at delta = {plan.delta}, even if "
        "none were missed."
        if allowed < 0
        else f"{lost} of {n} rollouts are lost at the start; {allowed} may be, at {place}."
    )
    later = (look for look in plan.looks if look > n)
    # As many as now, rounded up, stay lost of every later rollout.
    needed = next((look for look in later if -(-lost * look // n) <= plan.allowed(look)), None)
    if needed is None:
        reason += (
            f" If {lost} of {n} stay lost at the start no later look passes, and looks cannot be "
            "added."
        )
    return Refusal(reason, needed)

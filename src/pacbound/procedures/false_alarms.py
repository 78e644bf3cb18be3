"""The lowest threshold at which at most a given share of the negatives raises an alarm.

A row raises an alarm if its score is at or above the threshold g; an alarm of a negative is false.
Given which rows are negative, the scores of the negatives are independent draws from the law of the
score given negative. So at a fixed g the false alarms among N negatives are binomial
(N, P(score >= g | negative)), and they fall as g rises. Let g be the highest threshold of the grid
whose true rate is above xi, the bad one that is hardest to tell. A search that returns a bad
threshold, which is g or lower, has at least as many false alarms there as at g, so g passes, too:
the chance is at most delta. One test, no correction, and the claim holds for all thresholds at or
above the one that is returned, at once. It holds for a fixed number of rows, for a fixed number of
negatives, and for every stopping rule that sees only which rows are negative.

Rollouts: the plain and the shielded rollout coincide until the shield fires, so a shield fires in a
rollout that would have been safe iff the running maximum over the whole of that rollout reaches the
threshold. Whether a lost rollout would have been safe is not known. It is counted as a safe one
that raises an alarm at every threshold. If m of L lost rollouts were safe in truth, and a of these
raise an alarm, the count would be A + a of S + m where this takes A + L of S + L, and
Upper(A + L, S + L) >= Upper(A + a, S + m): one more trial that is an alarm never lowers the bound,
since Bin(n + 1, p) <= Bin(n, p) + 1, and nor does one more alarm.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, log1p
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.procedures.refusal import Refusal, least_passing
from pacbound.procedures.shield import largest_passing
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.stats.binomial import binomial_upper
from pacbound.tally.questions.recall import GRID

Integers = NDArray[np.int64]
Unit = Literal["rows", "rollouts"]
"""What raises alarms: rows that are negative, or rollouts that are safe."""

NAMES: dict[Unit, str] = {
    "rows": "false-alarms/binomial/1",
    "rollouts": "false-alarms/rollouts/1",
}
NEGATIVES: dict[Unit, str] = {"rows": "negatives", "rollouts": "safe rollouts"}
ASSUMPTIONS: dict[Unit, tuple[str, ...]] = {
    "rows": (
        (
            "The rows are independent draws from the distribution of use, untouched by training or "
            "model choice, and none was selected for labelling by its score."
        ),
        (
            "xi and delta were fixed beforehand, and when to stop labelling was decided without "
            "sight of the scores."
        ),
        "A row raises an alarm if its score, as float64, is at or above the threshold.",
    ),
    "rollouts": (
        (
            "The rollouts are independent draws from the distribution of use (rooms, starts, "
            "noise), without a shield; xi, delta and their number were fixed beforehand."
        ),
        (
            "Every started rollout is counted; one that was lost, or whose backup fails at the "
            "start, has the score -inf, and counts as a safe one that raises an alarm."
        ),
        (
            "A rollout is safe if it has no un-recoverable state; its score is the maximum of the "
            "danger over the whole rollout, and 1 if a reading of the danger failed."
        ),
        (
            "Un-recoverable is judged by one simulation of the backup policy per step, and the "
            "simulator behaves as the world does."
        ),
        "An alarm is raised once the danger is at or above the threshold.",
    ),
}


@dataclass(frozen=True)
class AlarmDecision:
    """The lowest threshold, or why there is none; and how many alarms may be false."""

    threshold: float
    allowed: int
    refusal: Refusal | None


def decide(
    cells: Integers, negatives: Integers, lost: int, unit: Unit, *, xi: float, delta: float
) -> AlarmDecision:
    """The lowest threshold j / 2^16 with Upper(alarms, trials, delta) <= xi.

    `cells` rise from 0, and `negatives` are those in each. `lost` rollouts are trials and alarms,
    beside the negatives at or above the threshold. With probability at least 1 - `delta` at most a
    share `xi` of the negatives raises an alarm, at this threshold and at all higher ones. Where
    there is none the threshold is +inf: no alarms.
    """
    trials = lost + int(negatives.sum())
    allowed = largest_passing(
        lambda alarms: binomial_upper(alarms, trials, delta=delta) <= xi, trials
    )
    if allowed < 0:
        return AlarmDecision(float("inf"), allowed, _too_few(trials, unit, xi, delta))
    # Not all may raise an alarm, since xi is below 1: some cell breaks the budget.
    alarms = lost + np.cumsum(negatives[::-1])[::-1]
    broken = -1 if lost > allowed else int(cells[np.flatnonzero(alarms > allowed)[-1]])
    if lost > allowed or broken == GRID.n_cells - 1:
        atom = lost + (int(negatives[-1]) if cells.size and cells[-1] == GRID.n_cells - 1 else 0)
        refusal = _at_every_threshold(atom, lost, trials, allowed, unit, xi, delta)
        return AlarmDecision(float("inf"), allowed, refusal)
    return AlarmDecision(GRID.threshold(broken + 1), allowed, None)


def _too_few(trials: int, unit: Unit, xi: float, delta: float) -> Refusal:
    if xi == 0:
        return Refusal(f"xi = 0 cannot be certified from any number of {NEGATIVES[unit]}.", None)
    reason = (
        f"{trials} {NEGATIVES[unit]} cannot certify xi = {xi} at delta = {delta}, even if none "
        "raised an alarm."
        if trials
        else f"There are no {NEGATIVES[unit]}, so nothing is known about their scores."
    )
    least = log(delta) / log1p(-xi)
    if least > 0.99 * LARGEST_COUNT:
        return Refusal(reason, None)
    needed = max(1, ceil(least))
    while binomial_upper(0, needed, delta=delta) > xi:
        needed += 1
    return Refusal(reason, needed)


def _at_every_threshold(  # noqa: PLR0913, RUF100
    atom: int, lost: int, trials: int, allowed: int, unit: Unit, xi: float, delta: float
) -> Refusal:
    """The refusal where even the highest threshold has too many false alarms."""
    with_lost = f", or are lost ({lost})" if lost else ""
    reason = (
        f"{atom} of {trials} {NEGATIVES[unit]} have a score of 1{with_lost}, and raise an alarm at "
        f"every threshold; {allowed} may."
    )
    if atom >= xi * trials:
        return Refusal(reason, None)
    return Refusal(
        reason,
        least_passing(
            lambda many: binomial_upper(-(-atom * many // trials), many, delta=delta) <= xi
        ),
    )

"""The highest threshold at which at least a given share of the positives is flagged.

A row is flagged if its score is at or above the threshold g; a positive with a score *below* g is
missed. Given which rows are positive, the scores of the positives are independent draws from the
law of the score given positive. So at a fixed g the misses among P positives are binomial
(P, P(score < g | positive)), and they rise with g. Let g be the first threshold of the grid whose
true miss rate is above 1 - target, the bad one that is hardest to tell. A search that returns any
bad threshold has at most as many misses at g as at what it returned, so it passes g: the chance is
at most delta. One test, no correction. It holds for a fixed number of rows, for a fixed number of
positives, and for every stopping rule that sees only which rows are positive. It does not hold if
rows were selected for labelling by their score.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, log1p, nextafter

import numpy as np
from numpy.typing import NDArray

from pacbound.procedures.refusal import Refusal
from pacbound.procedures.shield import largest_passing
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.stats.binomial import binomial_upper
from pacbound.tally.questions.recall import GRID

Integers = NDArray[np.int64]

NAME = "recall/binomial/1"
ASSUMPTIONS = (
    (
        "The rows are independent draws from the distribution of use, untouched by training or "
        "model choice, and none was selected for labelling by its score."
    ),
    (
        "The target and delta were fixed beforehand, and when to stop labelling was decided "
        "without sight of the scores."
    ),
    "A row is flagged if its score, as float64, is at or above the threshold.",
)


@dataclass(frozen=True)
class RecallDecision:
    """A threshold, or why there is none; and how many positives may be missed."""

    threshold: float
    allowed: int
    refusal: Refusal | None


def decide(cells: Integers, positives: Integers, *, target: float, delta: float) -> RecallDecision:
    """The highest threshold j / 2^16 with Upper(positives below it, all positives, delta) at most
    1 - `target`.

    `cells` rise. With probability at least 1 - `delta` at least a share `target` of the positives
    is flagged.
    """
    missable = miss_rate(target)
    total = int(positives.sum())
    allowed = largest_passing(
        lambda misses: binomial_upper(misses, total, delta=delta) <= missable, total
    )
    if allowed < 0:
        return RecallDecision(float("-inf"), allowed, _too_few(total, target, missable, delta))
    return RecallDecision(highest_threshold(cells, np.cumsum(positives), allowed), allowed, None)


def highest_threshold(cells: Integers, missed: Integers, allowed: int) -> float:
    """The highest threshold below which at most `allowed` positives are, `missed` being those up to
    and including each cell.
    """
    # Not all may be missed, so some cell breaks the budget; positives in it are not below it.
    first = int(np.flatnonzero(missed > allowed)[0])
    return GRID.threshold(int(cells[first]))


def miss_rate(target: float) -> float:
    """1 - `target`, rounded down."""
    exact = 1 - Fraction(target)
    near = float(exact)
    return near if Fraction(near) <= exact else nextafter(near, 0.0)


def _too_few(total: int, target: float, missable: float, delta: float) -> Refusal:
    reason = (
        f"{total} positives cannot certify a recall of {target}, even if none were missed."
        if total
        else "No row is positive, so nothing is known about the scores of positives."
    )
    least = log(delta) / log1p(-missable)
    if least > 0.99 * LARGEST_COUNT:
        return Refusal(reason, None)
    needed = max(1, ceil(least))
    while binomial_upper(0, needed, delta=delta) > missable:
        needed += 1
    return Refusal(reason, needed)

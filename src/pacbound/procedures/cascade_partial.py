"""Cascades with labels missing anywhere: a disagreement without a label counts as a loss.

The decisions are those of `cascade` and `cascade_paths`, on counts in which every row that exits
early, whose answer differs from the slow model's, and that has no label is a loss.

Lemma (monotone tests). A step that passes with b losses and c gains passes with fewer losses and
with more gains.
Exact: the region is {b <= bmax(c)}, and bmax is made nondecreasing when it is computed.
Pair: Upper(b) rises in b and Lower(c) in c, and the bound is their difference.
xi = 0: P(Bin(b + c, 1/2) <= b) = P(Bin(b + c, 1/2) >= c) rises in b and falls in c.

Theorem. Let n rows be independent draws, n fixed, and let each row's label exist, and be what it
is, whether it is asked for or not. Ask for labels in any order, by any rule, also one that looks at
the scores, at all predictions and at the labels so far; stop at any time, look as often as you
like. Then with probability at least 1 - delta every threshold that passes at any of these looks
loses at most xi.
Proof. Let D be what a row does to the cascade at a step: +1 where it loses, -1 where it gains, 0
else. Let D' be D where the row has a label or its answering exit agrees with the slow model (then
D = 0), and +1 where neither is so. D' >= D in every row and step, so the losses that are counted
are at least those that there are, and the gains at most. By the lemma a step that passes as counted
passes with all labels, so what passes before the first failure is a part of what would pass with
all labels, whatever was asked. That is a fixed sequence on n independent rows, which holds a step
that loses more than xi with probability at most delta. The same event covers all looks. With seven
paths each is such a sequence at delta / 7, and choosing an end by its cost is free; for xi = 0 the
set of declared thresholds that pass takes the place of the sequence. QED

All looks claim the loss, the one before the first label too. There D' is 1 where the answer differs
from the slow model's and 0 else, and the same walk would show that at most xi of the answers
differ; but that claim fails on another event, which this theorem does not cover at the looks that
follow. It is made alone, and declared beforehand.

Stop rule. Of all labels that the unlabelled rows could still get, gains at all their exits let the
most steps pass, and losses, as counted, the fewest. A path's end under any labels lies between
these two, and the cost falls along a path. So if the decision with gains filled in is the present
one, no label can change it; if it is not, the labels that make them gains do. (What a tally knows
of a row without a label, that its exits differ, allows that all of them gain.) Void is only what
looks at an outcome and then changes what was fixed: relabelling a row because it lost, or another
xi.

**That few answers differ from the slow model's.** Theorem. Let n rows be independent draws, n
fixed. With probability at least 1 - delta, at most xi of all answers differ from the slow model's
at every threshold that the walks of `cascade`, `cascade_paths` and `cascade_groups` pass, if every
row that exits early with another answer than the slow model's counts as a loss, and none as a gain.
Proof. Let what the slow model answers stand for the label. It is then never wrong, so the accuracy
that the cascade loses against it is the share of its answers that differ. The counts are those of a
sample in which every label is there, and the theorems of these procedures hold for every law of the
label. QED

The decisions are therefore those above, with no label at all. The claims are not the
same. That at most xi of the answers differ fails on another event than that at most xi of the
accuracy is lost, and delta covers one of the two: whoever publishes the first if it is good, and
labels on and publishes the second otherwise, is wrong with a probability of up to the sum. With
n = 300, xi = 0.1 and delta = 0.05 it can be 0.0924
(`tests/guarantees/test_labels_bit_by_bit.py`). So this claim is declared before the models' answers
are compared, and takes no labels. What is claimed while labels may still come is the loss, also as
long as there is none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from pacbound.errors import InvalidValueError
from pacbound.procedures.cascade import CascadeDecision, CascadeRefusal
from pacbound.procedures.joint_walk import JointWalk
from pacbound.stats.arguments import is_one_of

# What xi bounds: the accuracy lost against the slow model, or the share of answers that differ from
# its own.
Claim = Literal["loss", "differ"]

NAME = "cascade/two-models/partial-labels/1"
PATHS_NAME = "cascade/seven-paths/partial-labels/1"


def with_gains(walk: JointWalk) -> JointWalk:
    """The walk as it would be if every row without a label were a gain: what is decided from it is
    the best that more labels could lead to.
    """
    return replace(
        walk,
        only_fast=walk.only_fast + walk.unlabelled,
        unlabelled=np.zeros_like(walk.unlabelled),
    )


def settled(now: CascadeDecision, best: CascadeDecision) -> bool:
    """Whether more labels cannot change the thresholds, by the present decision and the best
    possible one.
    """
    same_walk = now.cells is None or now.chosen == best.chosen
    return now.cells == best.cells and same_walk


def checked_claim(claim: Any) -> Claim:
    """`claim`, if there is such a claim about a cascade."""
    if not is_one_of(claim, get_args(Claim)):
        raise InvalidValueError(
            f"claim={claim!r} is not known: expected 'loss', the accuracy lost against the slow "
            "model, or 'differ', the share of answers that differ from the slow model's."
        )
    found: Claim = claim
    return found


def refuse_labels(claim: Claim, labelled: int) -> None:
    """Raise if the claim is about answers that differ, and there are labels."""
    if claim == "differ" and labelled:
        raise InvalidValueError(
            f"claim='differ' takes no labels, and {labelled:,} rows on which models differ have "
            "one: with labels claim the loss (claim='loss'), which they say more about. Count "
            "without labels to claim that few answers differ, if that was decided before the "
            "answers were compared."
        )


def about_answers(decision: CascadeDecision, n: int, xi: float) -> CascadeDecision:
    """The decision with a refusal that is about answers that differ, not about losses."""
    if decision.refusal is None:
        return decision
    needed = decision.refusal.needed
    differ = int(decision.walks[decision.chosen].losses[0])
    numbers = {"n": n, "xi": xi, "differ": differ}
    if xi == 0:
        refusal = CascadeRefusal("no-difference")
    elif differ == 0:
        refusal = CascadeRefusal("too-few-to-differ", numbers, needed)
    else:
        code = "differing" if needed is None else "nearly-differing"
        refusal = CascadeRefusal(code, numbers, needed)
    return replace(decision, refusal=refusal)

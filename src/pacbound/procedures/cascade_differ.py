"""Cascades of which it is claimed that few answers differ from the slow model's.

Theorem. Let n rows be independent draws, n fixed. With probability at least 1 - delta, at most xi
of all answers differ from the slow model's at every threshold that the walks of `cascade`,
`cascade_paths` and `cascade_groups` pass, if every row that exits early with another answer than
the slow model's counts as a loss, and none as a gain.
Proof. Let what the slow model answers stand for the label. It is then never wrong, so the accuracy
that the cascade loses against it is the share of its answers that differ. The counts are those of
a sample in which every label is there, and the theorems of these procedures hold for every law of
the label. QED

The decisions are therefore those of `cascade_partial` with no label at all. The claims are not the
same. That at most xi of the answers differ fails on another event than that at most xi of the
accuracy is lost, and delta covers one of the two: whoever publishes the first if it is good, and
labels on and publishes the second otherwise, is wrong with a probability of up to the sum. With
n = 300, xi = 0.1 and delta = 0.05 it can be 0.0924 (`tests/guarantees/test_label_sessions.py`). So
this claim is declared before the models' answers are compared, and takes no labels. What is
claimed while labels may still come is the loss, also as long as there is none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

from pacbound.errors import InvalidValueError
from pacbound.procedures.cascade import CascadeRefusal
from pacbound.procedures.cascade_paths import PathsDecision
from pacbound.stats.arguments import is_one_of

Claim = Literal["loss", "differ"]
"""What xi bounds: the accuracy lost against the slow model, or the share of answers that differ
from its own."""


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


def about_answers(decision: PathsDecision, n: int, xi: float) -> PathsDecision:
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

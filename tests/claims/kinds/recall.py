"""Recall: the score from which to flag, so that enough of the positives are found."""

from __future__ import annotations

from fractions import Fraction
from math import nextafter

from tests.claims.kinds.flagged_scores import SCORE_BY_POSITIVE

from pacbound.asks import DELTA, THRESHOLDS, looks_ask, target_ask
from pacbound.claims.threshold import ThresholdCertificate, ThresholdClaim, ThresholdProcedure
from pacbound.claims.threshold_values import Trials
from pacbound.claims.threshold_words import ClaimWords


def miss_rate(target: float) -> float:
    """1 - `target`, rounded down."""
    exact = 1 - Fraction(target)
    near = float(exact)
    return near if Fraction(near) <= exact else nextafter(near, 0.0)


WORDS = ClaimWords(
    about="{n} rows, {trials} of them positive",
    unit="positives",
    rule="Flag a row where its score is at least {threshold}.",
    promise="at least {target} of all positives are then flagged",
    seen="{all} are flagged; {events} of {trials} positives are missed, {allowed} are allowed.",
    instead="Flag everything.",
    group="{group}: flag from {threshold} on; {events} of {trials} positives are missed.",
    refusals={
        "none": "No row is positive, so nothing is known about the scores of positives.",
        "too-few": "{trials} positives cannot certify {target}, even if none is missed.",
    },
    no_use={0.0: "Every score is at least 0: everything is flagged, so the claim is of no use."},
)
TRIALS = Trials("positive", "positive", "below")
ASSUMES = (
    "independent-rows",
    "untouched-rows",
    "not-selected-by-score",
    "asked-beforehand",
    "stopped-without-scores",
    "compared-in-float64",
)
AT_LOOKS = tuple(
    "looks-beforehand" if name == "stopped-without-scores" else name for name in ASSUMES
)


class RecallCertificate(ThresholdCertificate):
    """With probability at least 1 - delta at least a share target of the positives is flagged."""


CLAIM = ThresholdClaim(
    kind="recall",
    command="recall",
    help="Certify the score from which to flag, so that at least the target share of positives is "
    "flagged.",
    question=SCORE_BY_POSITIVE,
    asks=(
        target_ask("The share of the positives that must be flagged: 0.95"),
        DELTA,
        looks_ask("positives"),
        THRESHOLDS,
    ),
    procedures={
        "recall/binomial/1": ThresholdProcedure(
            "recall/binomial/1", ASSUMES, trials=TRIALS, words=WORDS
        ),
        "recall/planned-looks/1": ThresholdProcedure(
            "recall/planned-looks/1", AT_LOOKS, ("looks",), trials=TRIALS, words=WORDS
        ),
    },
    choose=lambda asked, question: (
        "recall/binomial/1" if asked["looks"] is None else "recall/planned-looks/1"
    ),
    rate=lambda asked: miss_rate(asked["target"]),
    curves=((1, "positives flagged"), ("all", "rows flagged")),
    certificate=RecallCertificate,
)

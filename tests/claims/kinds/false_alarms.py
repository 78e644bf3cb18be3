"""False alarms: the score from which to raise alarms, so that few negatives raise one."""

from __future__ import annotations

from dataclasses import replace

from tests.claims.kinds.flagged_scores import SCORE_BY_POSITIVE
from tests.claims.kinds.rollouts import ROLLOUTS

from pacbound.asks import DELTA, THRESHOLDS, xi_ask
from pacbound.claims.threshold import ThresholdCertificate, ThresholdClaim, ThresholdProcedure
from pacbound.claims.threshold_values import Trials
from pacbound.claims.threshold_words import ClaimWords

WORDS = ClaimWords(
    about="{n} rows, {trials} of them negative",
    unit="negatives",
    rule="Raise an alarm where the score is at least {threshold}, or any higher threshold.",
    promise="at most {xi} of all negatives then raise an alarm",
    seen="{events} of {trials} negatives raise an alarm, {allowed} are allowed; so do {positive} "
    "of the positives. Nothing is claimed about positives that raise none.",
    instead="Raise no alarms.",
    group="{group}: alarms from {threshold} on; {events} of {trials} negatives raise one.",
    refusals={
        "zero": "No number of negatives can certify xi = 0.",
        "none": "There are no negatives, so nothing is known about their scores.",
        "too-few": "{trials} negatives cannot certify {xi}, even if none raises an alarm.",
        **dict.fromkeys(
            ("unavoidable", "hopeless"),
            "{unavoidable} of {trials} negatives have a score of 1 and raise an alarm at every "
            "threshold; {allowed} are allowed.",
        ),
    },
)
OF_ROLLOUTS = replace(
    WORDS,
    about="{n} rollouts, {trials} of them safe ({lost} lost)",
    rows="rollouts",
    unit="safe rollouts",
    rule="Raise an alarm where the danger is at least {threshold}, or any higher threshold.",
    promise="at most {xi} of all safe rollouts then raise an alarm",
    seen="{events} of {trials} safe rollouts raise an alarm, {allowed} are allowed; so do {unsafe} "
    "of the unsafe ones. A shield needs a certificate about those.",
    group="{group}: alarms from {threshold} on; {events} of {trials} safe rollouts raise one.",
    refusals={
        "zero": "No number of safe rollouts can certify xi = 0.",
        "none": "There are no safe rollouts, so nothing is known about their dangers.",
        "too-few": "{trials} safe rollouts cannot certify {xi}, even if none raises an alarm.",
        **dict.fromkeys(
            ("unavoidable", "hopeless"),
            "{unavoidable} of {trials} safe rollouts have a danger of 1 or are lost, and raise an "
            "alarm at every threshold; {allowed} are allowed.",
        ),
    },
)


class FalseAlarmCertificate(ThresholdCertificate):
    """With probability at least 1 - delta at most a share xi of the negatives raises an alarm, at
    the threshold and at all higher ones.
    """


CLAIM = ThresholdClaim(
    kind="false-alarms",
    command="false-alarms",
    help="Certify the score from which to raise alarms, so that at most xi of the negatives raise "
    "one.",
    question=SCORE_BY_POSITIVE,
    asks=(xi_ask("The share of the negatives that may raise an alarm: 0.05"), DELTA, THRESHOLDS),
    procedures={
        "false-alarms/binomial/1": ThresholdProcedure(
            "false-alarms/binomial/1",
            (
                "independent-rows",
                "untouched-rows",
                "not-selected-by-score",
                "asked-beforehand",
                "stopped-without-scores",
                "compared-in-float64",
            ),
            trials=Trials("negative", "negative", "from"),
            words=WORDS,
        ),
        "false-alarms/rollouts/1": ThresholdProcedure(
            "false-alarms/rollouts/1",
            (
                "independent-rollouts",
                "lost-rollouts-alarm",
                "score-of-whole-rollout",
                "one-simulated-backup",
                "compared-in-float64",
            ),
            question=ROLLOUTS,
            trials=Trials("safe", "safe", "from", lost_is_alarm=True),
            words=OF_ROLLOUTS,
            not_watched="whether a rollout that the shield stopped would have been safe is not "
            "seen in use. Certify again on new rollouts without the shield",
        ),
    },
    choose=lambda asked, kind: (
        "false-alarms/rollouts/1" if kind == ROLLOUTS.kind else "false-alarms/binomial/1"
    ),
    rate=lambda asked: asked["xi"],
    curves=((0, "negatives that raise an alarm"), (1, "positives that do")),
    certificate=FalseAlarmCertificate,
)

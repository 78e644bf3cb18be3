"""Shields: the danger at which a policy must hand over to braking, so that few rollouts are unsafe.

The plain and the shielded rollout coincide until the shield fires, so a shielded rollout can be
unsafe only if the plain one is and every danger before its first un-recoverable state stayed below
the threshold. That is one count among all rollouts, monotone in the threshold. Misses among the
unsafe rollouts alone are another rate; the product of two bounds is the paper's own method.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from tests.claims.kinds.rollouts import ROLLOUTS

from pacbound.asks import DELTA, THRESHOLDS, Ask, looks_ask, xi_ask
from pacbound.claims.claim import Values
from pacbound.claims.threshold import ThresholdCertificate, ThresholdClaim, ThresholdProcedure
from pacbound.claims.threshold_values import Trials
from pacbound.claims.threshold_words import ClaimWords
from pacbound.forms import Choice, Whole


class ShieldCertificate(ThresholdCertificate):
    """With probability at least 1 - delta at most a share xi of the rollouts is unsafe, if the
    backup takes over once the danger reaches the threshold.
    """

    @property
    def xi(self) -> float:
        """The share of the rollouts that may be unsafe, or of the unsafe ones that are missed."""
        return float(self.values["xi"])

    @property
    def bound(self) -> str:
        """What decides: "exact", or "product" for the paper's method."""
        return str(self.values["bound"])

    @property
    def rate(self) -> str:
        """What misses are counted among: "all" rollouts, or "among-unsafe"."""
        return str(self.values["rate"])

    @property
    def horizon(self) -> int | None:
        """The most steps of a rollout, if it was said."""
        found = self.values["horizon"]
        return None if found is None else int(found)

    @property
    def interventions(self) -> int:
        """How many of these rollouts the shield would stop; at least so many, for the product. It
        was seen on these rollouts, and is not certified.
        """
        return round((self.share() or 0.0) * self.n)


WORDS = ClaimWords(
    about="{n} rollouts",
    rows="rollouts",
    unit="rollouts",
    rule="Hand over to the backup once the danger reaches {threshold}; it keeps control until "
    "reset.",
    promise="at most {xi} of all rollouts are then unsafe",
    seen="{events} unsafe rollouts would slip through, {allowed} are allowed; {all} of all "
    "rollouts would be stopped.",
    instead="Always brake.",
    group="{group}: from {threshold} on; {events} of {trials} rollouts slip through.",
    refusals={
        "zero": "No number of rollouts can certify xi = 0.",
        "too-few": "{trials} rollouts cannot certify {xi}, even if none slips through.",
        "unavoidable": "{unavoidable} of {trials} rollouts are lost at the start; {allowed} are "
        "allowed.",
        "hopeless": "{unavoidable} of {trials} rollouts are lost at the start, which alone breaks "
        "{xi}.",
    },
    no_use={
        0.0: "Every danger is at least 0: the shield always fires, so the claim is of no use.",
        inf: "The policy alone keeps xi: the shield never fires.",
    },
)
AMONG_UNSAFE = replace(
    WORDS,
    about="{n} rollouts, {trials} of them unsafe",
    unit="unsafe rollouts",
    promise="at most {xi} of all rollouts that have an un-recoverable state are then missed",
    refusals={
        **WORDS.refusals,
        "none": "No rollout is unsafe, so nothing is known about the dangers of unsafe ones.",
        "too-few": "{trials} unsafe rollouts cannot certify {xi}, even if none is missed.",
        "hopeless": "{unavoidable} of {trials} unsafe rollouts are lost at the start; {allowed} "
        "are allowed.",
    },
)
MISSES = Trials("all", "unsafe", "below")
ASSUMES = (
    "independent-rollouts",
    "every-rollout-counts",
    "score-up-to-unrecoverable",
    "one-simulated-backup",
    "shield-latches",
)


def _choose(asked: Values, _: str) -> str:
    if asked["looks"] is not None:
        return "shield/planned-looks/1"
    if asked["bound"] == "product":
        return "shield/product/1"
    return "shield/binomial/1" if asked["rate"] == "all" else "shield/among-unsafe/1"


def _conflict(asked: Values) -> str | None:
    rate, bound, looks = asked["rate"], asked["bound"], asked["looks"]
    instead = "pass delta divided by the number of looks at each of them instead"
    if looks is not None and rate != "all":
        return f"looks are planned numbers of rollouts and go with rate='all': {instead}."
    if looks is not None and bound != "exact":
        return f"looks go with bound='exact', not with {bound!r}: {instead}."
    if bound == "product" and rate != "all":
        return f"bound={bound!r} is about all rollouts: with rate={rate!r} leave it out."
    return None


CLAIM = ThresholdClaim(
    kind="shield",
    command="shield",
    help="Certify the danger at which a policy must brake, so that at most xi of the rollouts are "
    "unsafe.",
    question=ROLLOUTS,
    asks=(
        xi_ask("The share of the rollouts that may be unsafe: 0.05"),
        DELTA,
        Ask(
            "rate",
            Choice(("all", "among-unsafe")),
            "What misses are counted among: all rollouts, or the unsafe ones.",
            "all",
        ),
        Ask("bound", Choice(("exact", "product")), "exact, or product for the paper's.", "exact"),
        looks_ask("rollouts"),
        Ask("horizon", Whole(1), "The most steps of a rollout.", None),
        THRESHOLDS,
    ),
    procedures={
        "shield/binomial/1": ThresholdProcedure(
            "shield/binomial/1", ASSUMES, trials=MISSES, words=WORDS, unavoidable_first=True
        ),
        "shield/planned-looks/1": ThresholdProcedure(
            "shield/planned-looks/1",
            ("looks-at-rollouts", *ASSUMES[1:]),
            ("looks",),
            trials=MISSES,
            words=WORDS,
        ),
        "shield/among-unsafe/1": ThresholdProcedure(
            "shield/among-unsafe/1",
            ASSUMES,
            trials=Trials("unsafe", "unsafe", "below"),
            words=AMONG_UNSAFE,
            not_watched="whether a rollout that the shield stopped would have been unsafe is not "
            "seen in use. Monitor one of rate='all', or certify again on new rollouts without the "
            "shield",
        ),
        "shield/product/1": ThresholdProcedure(
            "shield/product/1",
            (*ASSUMES[:2], "score-at-unrecoverable", *ASSUMES[3:]),
            trials=MISSES,
            words=replace(
                WORDS,
                seen="{events} unsafe rollouts would slip through, {allowed} are allowed; at least "
                "{all} of all rollouts would be stopped.",
            ),
            by_product=True,
            unavoidable_first=True,
        ),
    },
    choose=_choose,
    conflict=_conflict,
    rate=lambda asked: asked["xi"],
    curves=((1, "unsafe rollouts that are stopped"), ("all", "rollouts that are stopped")),
    certificate=ShieldCertificate,
)

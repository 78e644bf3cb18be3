"""What a plan looks at, for each question: how a sample is certified, and what makes it useful.

A question that is to be planned for is one entry of `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, log, log1p
from typing import Any, Literal

from pacbound.certificate import (
    CascadeCertificate,
    FalseAlarmCertificate,
    RecallCertificate,
    ShieldCertificate,
)
from pacbound.claims import claim_of
from pacbound.procedures.cascade_differ import Claim
from pacbound.procedures.recall import miss_rate
from pacbound.stats.trinomial import labels_needed_by_walk, paired_test_work
from pacbound.tally import Tally

EXACT_WORK = 0.03
"""The largest exact test of a cascade that a plan waits for, about a third of a second."""

FEWEST_BINNED = 100
"""Fewer rows are never planned for a calibration: its bins would be empty."""


_NEVER_DIFFER = "its models never differ; draw a larger one"


@dataclass(frozen=True)
class Sample:
    """What one sample came to.

    `certified` is False for a refusal; `value` is the measure; `thresholds` has one for each exit,
    none for a calibration; `bound` is the one that was used.
    """

    certified: bool
    value: float
    thresholds: tuple[float, ...]
    bound: str


@dataclass(frozen=True)
class Measure:
    """How samples for one question are certified and judged.

    `name` is what is measured, in `unit`s, better if `larger`. `asked` names the rate that is to be
    certified, if there is one: `xi`, which is allowed, or `target`, which is required.
    `certify(tally, rate, delta)` gives the sample's worth, `labels(tally)` how many of its rows
    need a label, `least(pilot, rate, delta)` the fewest rows worth trying, and `silent(tally)` why
    a pilot cannot be planned from, with the remedy, or None.
    """

    name: str
    unit: str
    larger: bool
    asked: Literal["xi", "target"] | None
    certify: Callable[[Tally, Any, float], Sample]
    labels: Callable[[Tally], int]
    least: Callable[[Tally, Any, float], int]
    silent: Callable[[Tally], str | None]


def _abstention(tally: Tally, xi: float, delta: float) -> Sample:
    found = claim_of("abstention").certify(tally, {"xi": xi, "delta": delta})
    return Sample(
        certified=found.certified,
        value=found.coverage,
        # A draw may lack a group, so thresholds of groups cannot be compared between draws.
        thresholds=() if found.groups else (found.threshold,),
        bound="exact",
    )


def _calibration(tally: Tally, _: Any, delta: float) -> Sample:
    found = claim_of("calibration").certify(tally, {"delta": delta})
    widths = (found.upper - found.lower) * found.trials
    width = float(widths.sum() / found.trials.sum())
    return Sample(certified=True, value=width, thresholds=(), bound="exact")


def _cascade(tally: Tally, xi: float, delta: float, claim: Claim = "loss") -> Sample:
    quick = paired_test_work(tally.rows, xi=xi, delta=delta) <= EXACT_WORK
    bound: Any = "exact" if quick else "pair"
    found = CascadeCertificate.from_tally(tally, xi=xi, delta=delta, claim=claim, bound=bound)
    exits = float(found.exit_rates.sum()) if found.certified else 0.0
    return Sample(
        certified=found.certified,
        value=exits,
        thresholds=tuple(found.thresholds.tolist()),
        bound=bound,
    )


def _differ(tally: Tally, xi: float, delta: float) -> Sample:
    return _cascade(tally, xi, delta, "differ")


def _recall(tally: Tally, target: float, delta: float) -> Sample:
    found = RecallCertificate.from_tally(tally, target=target, delta=delta)
    return Sample(
        certified=found.certified,
        value=found.flag_rate,
        thresholds=(found.threshold,),
        bound="exact",
    )


def _shield(tally: Tally, xi: float, delta: float) -> Sample:
    found = ShieldCertificate.from_tally(tally, xi=xi, delta=delta)
    return Sample(
        certified=found.certified,
        value=found.interventions / found.n,
        thresholds=(found.threshold,),
        bound="exact",
    )


def _false_alarms(tally: Tally, xi: float, delta: float) -> Sample:
    found = FalseAlarmCertificate.from_tally(tally, xi=xi, delta=delta)
    return Sample(
        certified=found.certified,
        # A draw may have no positives, and then finds none.
        value=found.observed_recall or 0.0,
        thresholds=(found.threshold,),
        bound="exact",
    )


def _differing(tally: Tally) -> int:
    """Rows on which some exit differs from the slow model: only these need a label."""
    agreeing = [set(outcome.split("|")) == {"agree"} for outcome in tally.outcomes]
    return tally.rows - int(tally.counts[:, agreeing].sum())


def _enough_positives(pilot: Tally, target: float, delta: float) -> int:
    """Rows among which there are as many positives as certify a recall if none is missed, if they
    stay as common as in the pilot.
    """
    positives = ceil(log(delta) / log1p(-miss_rate(target))) + 1
    return ceil(positives * pilot.rows / pilot.totals["positive"])


def _enough_negatives(pilot: Tally, xi: float, delta: float) -> int:
    """The same of negatives, or of safe rollouts, and false alarms."""
    negatives = ceil(log(delta) / log1p(-xi)) + 1
    return ceil(negatives * pilot.rows / pilot.totals[pilot.outcomes[0]])


def _one_outcome(tally: Tally) -> str | None:
    seen = [name for name, count in tally.totals.items() if count]
    return f"every row of it is {seen[0]!r}; draw a larger one" if len(seen) == 1 else None


def _silent_cascade(tally: Tally) -> str | None:
    without = _unlabelled(tally)
    if without:
        return f"{without:,} of its rows on which models differ have no label; label them"
    return None if _differing(tally) else _NEVER_DIFFER


def _silent_differ(tally: Tally) -> str | None:
    labelled = _differing(tally) - _unlabelled(tally)
    if labelled:
        return (
            f"{labelled:,} of its rows on which models differ have a label, and a claim that few "
            "answers differ takes none; count it without labels"
        )
    return None if _differing(tally) else _NEVER_DIFFER


def _unlabelled(tally: Tally) -> int:
    return sum(count for name, count in tally.totals.items() if "unlabelled" in name.split("|"))


MEASURES: Mapping[str, Measure] = {
    "abstention": Measure(
        name="coverage",
        unit="rows",
        larger=True,
        asked="xi",
        certify=_abstention,
        labels=lambda tally: tally.rows,
        # The walk has a little less than delta.
        least=lambda _, xi, delta: ceil(log(delta / (1 + delta)) / log1p(-xi)) + 1,
        silent=_one_outcome,
    ),
    "calibration": Measure(
        name="mean width",
        unit="rows",
        larger=False,
        asked=None,
        certify=_calibration,
        labels=lambda tally: tally.rows,
        least=lambda *_: FEWEST_BINNED,
        silent=_one_outcome,
    ),
    "cascade": Measure(
        name="exit rate",
        unit="rows",
        larger=True,
        asked="xi",
        certify=_cascade,
        labels=_differing,
        least=lambda _, xi, delta: labels_needed_by_walk(xi, delta=delta),
        silent=_silent_cascade,
    ),
    "differ": Measure(
        name="exit rate",
        unit="rows",
        larger=True,
        asked="xi",
        certify=_differ,
        labels=lambda _: 0,
        least=lambda _, xi, delta: labels_needed_by_walk(xi, delta=delta),
        silent=_silent_differ,
    ),
    "recall": Measure(
        name="flag rate",
        unit="rows",
        larger=False,
        asked="target",
        certify=_recall,
        labels=lambda tally: tally.rows,
        least=_enough_positives,
        silent=_one_outcome,
    ),
    "shield": Measure(
        name="intervention rate",
        unit="rollouts",
        larger=False,
        asked="xi",
        certify=_shield,
        labels=lambda tally: tally.rows,
        least=lambda _, xi, delta: ceil(log(delta) / log1p(-xi)) + 1,
        silent=_one_outcome,
    ),
    "false-alarms": Measure(
        name="share found",
        unit="rows",
        larger=True,
        asked="xi",
        certify=_false_alarms,
        labels=lambda tally: tally.rows,
        least=_enough_negatives,
        silent=_one_outcome,
    ),
}
"""By the question that the pilot was counted for, or by the other claim that it supports."""

OTHER_CLAIMS: Mapping[str, tuple[str, ...]] = {
    "false-alarms": ("recall", "shield"),
    "differ": ("cascade",),
}
"""Claims that pilots of other questions support, and those questions."""

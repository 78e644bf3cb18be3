"""What a plan looks at, for each question: how a sample is certified, and what makes it useful.

A question that is to be planned for is one entry of `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pacbound.certificate import (
    CascadeCertificate,
)
from pacbound.claims import claim_of, claims_of
from pacbound.measure import Measure, Sample
from pacbound.procedures.cascade_differ import Claim
from pacbound.stats.trinomial import labels_needed_by_walk, paired_test_work
from pacbound.tally import Tally

EXACT_WORK = 0.03
"""The largest exact test of a cascade that a plan waits for, about a third of a second."""

_NEVER_DIFFER = "its models never differ; draw a larger one"


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


def _differing(tally: Tally) -> int:
    """Rows on which some exit differs from the slow model: only these need a label."""
    agreeing = [set(outcome.split("|")) == {"agree"} for outcome in tally.outcomes]
    return tally.rows - int(tally.counts[:, agreeing].sum())


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
}
"""By the question that the pilot was counted for, or by the other claim that it supports."""

OTHER_CLAIMS: Mapping[str, tuple[str, ...]] = {"differ": ("cascade",)}
"""Claims that pilots of other questions support, and those questions."""


def measures_of(question: str) -> dict[str, Measure]:
    """The claims that a pilot of the question can be planned for, the first if none is named."""
    found = {
        name: measure
        for name, measure in MEASURES.items()
        if question in OTHER_CLAIMS.get(name, (name,))
    }
    for kind in claims_of(question):
        measure = claim_of(kind).measure
        if measure is not None:
            found[kind] = measure
    return found

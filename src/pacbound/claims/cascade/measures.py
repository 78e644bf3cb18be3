"""What planning a cascade improves: the share of rows that exit early."""

from __future__ import annotations

from typing import Any, Final

from pacbound.measure import Measure, Sample
from pacbound.stats.trinomial import labels_needed_by_walk, paired_test_work
from pacbound.tally.tally import Tally

EXACT_WORK: Final = 0.03
"""The largest exact test of a cascade that a plan waits for, about a third of a second."""

_NEVER_DIFFER: Final = "its models never differ; draw a larger one"


def measure_of(claim: Any, about: str) -> Measure:
    """The exit rate of a cascade, `about` what xi bounds: "loss", or "differ"."""

    def certify(tally: Tally, xi: float, delta: float) -> Sample:
        quick = paired_test_work(tally.rows, xi=xi, delta=delta) <= EXACT_WORK
        bound = "exact" if quick else "pair"
        asked = {"xi": xi, "delta": delta, "claim": about, "bound": bound}
        found = claim.certify(tally, asked)
        return Sample(
            certified=found.certified,
            value=float(found.exit_rates.sum()) if found.certified else 0.0,
            # A draw may lack a group, so thresholds of groups cannot be compared between draws.
            thresholds=() if found.groups else tuple(found.thresholds.tolist()),
            bound=bound,
        )

    return Measure(
        name="exit rate",
        unit="rows",
        larger=True,
        asked="xi",
        certify=certify,
        labels=_differing if about == "loss" else _no_labels,
        least=lambda _, xi, delta: labels_needed_by_walk(xi, delta=delta),
        silent=_silent_loss if about == "loss" else _silent_differ,
        subject="" if about == "loss" else "a claim that few answers of a cascade differ",
    )


def _no_labels(_: Tally) -> int:
    return 0


def _differing(tally: Tally) -> int:
    """Rows on which some exit differs from the slow model: only these need a label."""
    agreeing = [set(outcome.split("|")) == {"agree"} for outcome in tally.outcomes]
    return tally.rows - int(tally.counts[:, agreeing].sum())


def _silent_loss(tally: Tally) -> str | None:
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

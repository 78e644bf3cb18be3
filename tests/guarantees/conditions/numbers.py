"""What a rule may see that fixes the number of rows: the best rule of those that the sentence
allows, and the best one that sees more.

Half of the rows are from a country where events are rare, half from one where they are not. Over
both they come just too often, and whoever sees countries waits until there are many of the first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from tests.guarantees.conditions import kinds
from tests.guarantees.conditions.pairs import BAD, Law, pair
from tests.guarantees.conditions.stopping import Claims, Rows, false_at_best

SPREAD = 0.45
COUNTRIES = {"easy": BAD - SPREAD, "hard": BAD + SPREAD}


def by_country(
    seen: str, *, kept: bool, chance: float = 1.0, test: str | None = None
) -> list[Rows]:
    """Rows of both countries, of which a rule sees `seen`, and the country unless it is kept."""
    return [
        Rows(chance / 2, seen if kept else f"{seen}, {country}", event, test or seen)
        for country, event in COUNTRIES.items()
    ]


def _all_are_tried(claims: Claims) -> Law:
    def law(kept: bool, rows: int) -> float:
        return false_at_best(by_country("all", kept=kept), {"all": claims}, rows)

    return law


for name in ("sets", "abstention", "precision", "cascade", "differ", "replacement", "pass_rate"):
    pair("rows-unseen", what=f"number of rows of {name}")(_all_are_tried(getattr(kinds, name)))
for name in ("shield", "among_unsafe", "safe_stopped", "forks"):
    pair("rollouts-unseen", what=f"number of rollouts of {name}")(
        _all_are_tried(getattr(kinds, name))
    )


@pair("rollouts-unseen")
def lost_rollouts_seen(kept: bool, rows: int) -> float:
    """Which rollouts were lost: they count as unsafe and missed, and the others seldom are."""
    lost = (BAD - 0.05) / 0.95
    law = [
        Rows(lost, "all" if kept else "lost", 1.0),
        Rows(1 - lost, "all" if kept else "whole", 0.05),
    ]
    return false_at_best(law, {"all": kinds.shield}, rows)


def in_a_group(verb: Callable[..., bool], **options: Any) -> Claims:
    """Whether the claim is made in a group that has a verdict of its own, beside one that is
    refused.
    """

    def claims(trials: int, count: int) -> bool:
        return verb(trials + 1, count + 1, groups=["b"] + ["a"] * trials, **options)

    return claims


def _with_groups(claims: Claims) -> Law:
    """Half of the rows are of each of two groups, and both claims are just false."""

    def law(kept: bool, rows: int) -> float:
        both = [kind for group in "ab" for kind in by_country(group, kept=kept, chance=0.5)]
        return false_at_best(both, dict.fromkeys("ab", claims), rows)

    return law


for name, options in {
    "replacement": {"group_verdicts": "own"},
    "cascade": {"group_thresholds": "own"},
    "sets": {"group_thresholds": "own"},
    "abstention": {},
    "precision": {},
}.items():
    pair("rows-by-group", what=f"number of rows of groups of {name}")(
        _with_groups(in_a_group(getattr(kinds, name), **options))
    )


@pair("rows-by-group")
def number_of_rows_of_a_rate_in_every_group(kept: bool, rows: int) -> float:
    """One verdict for all groups: the other one always passes."""

    def claims(trials: int, count: int) -> bool:
        groups = ["a"] * trials + ["b"] * 4
        return kinds.pass_rate(trials + 4, count, groups=groups)

    law = [*by_country("a", kept=kept, chance=0.5), Rows(0.5, "b", test=None)]
    return false_at_best(law, {"a": claims}, rows)


pair("rows-by-bin-and-group", what="number of rows of slices of a judge, by verdicts")(
    _with_groups(in_a_group(kinds.calibration, correction="bonferroni"))
)
for name in ("recall", "false_alarms"):
    pair("stopped-by-outcome-and-group", what=f"when to stop {name} of groups")(
        _with_groups(in_a_group(getattr(kinds, name), group_thresholds="own"))
    )


@pair("rows-by-bin")
def number_of_rows_of_a_calibration(kept: bool, rows: int) -> float:
    """Two bins of half of the rows each, and both intervals are just wrong."""

    def claims(trials: int, count: int) -> bool:
        return kinds.calibration(trials, count, n_bins=2, correction="bonferroni")

    return _with_groups(claims)(kept, rows)


def _only_positives(claims: Claims) -> Law:
    def law(kept: bool, rows: int) -> float:
        trials = by_country("trial", kept=kept, chance=0.75)
        return false_at_best([*trials, Rows(0.25, "no trial", test=None)], {"trial": claims}, rows)

    return law


for name in ("recall", "false_alarms"):
    pair("stopped-by-outcome", what=f"when to stop {name}")(_only_positives(getattr(kinds, name)))


def _clusters(verb: Callable[..., bool], trials: int, count: int) -> bool:
    """Clusters of one and of three rows, all of which are alike."""
    sizes = 1 + 2 * (np.arange(trials) % 2)
    names, bad = np.repeat(np.arange(trials), sizes), int(sizes[:count].sum())
    return verb(len(names), bad, clusters=names)


@pair("clusters-unseen")
def number_of_clusters(kept: bool, rows: int) -> float:
    """Small clusters are seldom events: whoever sees sizes waits for many small ones."""
    law = by_country("all", kept=kept)
    return false_at_best(law, {"all": partial(_clusters, kinds.sets)}, rows)


@pair("stopped-by-clusters")
def when_to_stop_between_clusters(kept: bool, rows: int) -> float:
    """Small clusters have one positive, large ones three, others none."""
    law = by_country("trial", kept=kept, chance=0.75)
    claims = {"trial": partial(_clusters, kinds.recall)}
    return false_at_best([*law, Rows(0.25, "no trial", test=None)], claims, rows)

"""Which rows were counted and how they were drawn; and rows that are copies, were left out, chose
the model, or are of another law than that of use.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binom
from tests.guarantees.conditions import kinds
from tests.guarantees.conditions.pairs import BAD, Law, pair
from tests.guarantees.conditions.stopping import Claims, Rows, false_at_best, few, limit

WEIGHTED: Any = {"weight_bound": 1.0, "seed": 81237}


def _weighted(verb: Any, trials: int, count: int) -> bool:
    """All weights are 1, so that every row is kept."""
    return bool(verb(trials, count, weights=np.ones(trials), **WEIGHTED))


def _of_clusters(verb: Any, trials: int, count: int) -> bool:
    return bool(verb(trials, count, clusters=np.arange(trials)))


def _copies(claims: Claims) -> Law:
    """Every row is counted twice, as if both were draws."""

    def law(kept: bool, rows: int) -> float:
        if kept:
            return false_at_best([Rows(1.0, "all", BAD)], {"all": claims}, rows)
        sizes = range(1, rows // 2 + 1)
        return max(few([(size, BAD)], limit(claims, 2 * size) // 2) for size in sizes)

    return law


COPIED: list[tuple[str, str, Claims]] = [
    ("independent-rows", "a row and its copy", kinds.recall),
    ("independent-rollouts", "a rollout and its copy", kinds.shield),
    ("independent-clusters", "a cluster and its copy", partial(_of_clusters, kinds.sets)),
    ("independent-rows-weighted", "a row and its copy", partial(_weighted, kinds.sets)),
    ("independent-rollouts-weighted", "a rollout and its copy", partial(_weighted, kinds.shield)),
]
for condition, what, claims in COPIED:
    pair(condition, what=what)(_copies(claims))


def _best_of(claims: Claims, tries: int) -> Law:
    """Of several independent tries, all just too bad, the one that passes; or the first."""

    def law(kept: bool, rows: int) -> float:
        passes = few([(rows, BAD)], limit(claims, rows))
        return passes if kept else 1 - (1 - passes) ** tries

    return law


pair("untouched-rows", what="the best of three models on these rows")(_best_of(kinds.sets, 3))
pair("declared-by-a-fold", what="the best of three sequences on these rows")(
    _best_of(kinds.cascade, 3)
)
pair("driven-beforehand", what="a refused threshold is driven again")(_best_of(kinds.driven, 2))
for name in ("calibration", "abstention", "precision", "sets", "false_alarms"):
    pair("every-row-counts", what=f"the best of three samples for {name}")(
        _best_of(getattr(kinds, name), 3)
    )
# Of each cluster one row is an event and one is none, so that a seed tosses a coin for it.
pair("one-seed", what="the best of three seeds")(_best_of(partial(_of_clusters, kinds.sets), 3))


def _seen(claims: Claims, rate: float) -> Law:
    """The rows that are counted are events at this rate, and those of use at `BAD`."""

    def law(kept: bool, rows: int) -> float:
        return false_at_best([Rows(1.0, "all", BAD if kept else rate)], {"all": claims}, rows)

    return law


OF_ANOTHER_LAW: list[tuple[str, str, Claims, float]] = [
    ("every-row-counts", "half of the events are not labelled", kinds.recall, 1 / 3),
    ("every-row-counts", "half of the lost rows are not counted", kinds.replacement, 1 / 3),
    (
        "every-rollout-counts",
        "lost rollouts, a third of the unsafe, are dropped",
        kinds.shield,
        0.4,
    ),
    ("lost-rollouts-alarm", "lost rollouts, a third of the alarms", kinds.safe_stopped, 0.4),
    ("every-fork-counts", "forks that did not end, a third of the unsafe", kinds.forks, 0.4),
    ("rollouts-without-shield", "what the shield stops is not unsafe", kinds.shield, 0.0),
    ("independent-rollouts", "seeds of short rollouts are taken", kinds.shield, 0.3),
    ("rollouts-under-shield", "rollouts of a lower threshold", kinds.driven, 0.3),
    ("every-driven-rollout-counts", "lost rollouts, a third", kinds.driven, 0.4),
    ("one-simulated-backup", "brakes are better in the simulator", kinds.shield, 0.3),
    ("same-labels-given-inputs", "labels are harder in use", partial(_weighted, kinds.sets), 0.3),
    ("graded-on-levels", "a judge that knows what is at stake is kind", kinds.graded, 0.3),
    ("fork-is-shielded-rollout", "forks begin a step too early", kinds.forks, 0.3),
]
for condition, what, claims, rate in OF_ANOTHER_LAW:
    pair(condition, what=what)(_seen(claims, rate))


@pair("forks-have-own-noise")
def forks_from_the_seed_of_the_rollout(kept: bool, rows: int) -> float:
    """The plain rollout comes to a fork by two kind gusts of three; the backup fails in one that is
    unkind. From the seed of the rollout its gusts are kind again.
    """
    again = 1 / 4
    return _seen(kinds.forks, again)(kept, rows)


def _thinned(rate: float, share: float, claims: Claims, rows: int) -> float:
    """Rows are kept with this chance, and are events at this rate."""
    law = [Rows(share, "all", rate), Rows(1 - share, "all", test=None)]
    return false_at_best(law, {"all": claims}, rows)


@pair("exact-weights")
def estimated_weights(kept: bool, rows: int) -> float:
    """Four of five rows are easy where rows are from, and half in use. Exact weights are 0.625 and
    2.5; the estimate takes both for equal.
    """
    easy, hard = BAD - 0.4, BAD + 0.4
    claims = partial(_weighted, kinds.sets)
    if kept:
        # With the bound 2.5 a row is kept with probability 0.4, and then is hard in half of cases.
        return _thinned((easy + hard) / 2, 0.4, claims, rows)
    return _thinned(0.8 * easy + 0.2 * hard, 1.0, claims, rows)


def _largest_seen(verb: Any) -> Law:
    """One cluster in fifty has 49 rows, all events, the others one row that is none: half of all
    rows are events. The bound is 49, or the largest size that was seen.
    """

    def law(kept: bool, rows: int) -> float:
        claims, large = partial(_of_clusters, verb), 1 / 50
        share = large + (1 - large) / 49
        held = _thinned(large / share, share, claims, rows)
        if kept:
            return held
        unseen = (1 - large) ** rows
        return unseen * (limit(claims, rows) >= 0)

    return law


for condition, verb in {
    "claim-per-row-of-clusters": kinds.sets,
    "claim-per-trial-of-clusters": kinds.recall,
}.items():
    pair(condition, what="the largest size seen as a bound")(_largest_seen(verb))


@pair("labels-as-they-are")
def labels_that_are_asked_for_again(kept: bool, rows: int) -> float:
    """Every answer differs, and is lost in three of four cases, else gained. Labels are asked for
    in any order until the claim is made; or each that says "lost" is asked for again, and another
    person may say "gained".
    """
    rows, lost = 8, 0.75
    lost = lost if kept else lost**2
    found = 0.0
    for losses in range(rows + 1):
        asked = [(a, b) for a in range(losses + 1) for b in range(rows - losses + 1)]
        made = any(kinds.some_labels(a, b, rows) for a, b in asked)
        found += float(binom.pmf(losses, rows, lost)) * made
    return found


@pair("labels-where-models-differ")
def labels_that_are_missing_where_answers_differ(kept: bool, rows: int) -> float:
    """Half of the lost rows come back without a label, as if the answers agreed."""
    return _seen(kinds.cascade, 0.25)(kept, rows)

"""What was fixed without the rows: what was asked, bins, groups, claims, looks; and what happens if
it is chosen by looking at them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, multinomial
from tests.guarantees.conditions import kinds
from tests.guarantees.conditions.kinds import HIGH, LOW, events
from tests.guarantees.conditions.numbers import by_country
from tests.guarantees.conditions.pairs import BAD, DELTA, XI, Law, pair
from tests.guarantees.conditions.stopping import Claims, Floats, Rows, false_at_best, few, limit

from pacbound import calibrate, certify_recall, certify_shield, certify_together
from pacbound.stats.binomial import binomial_lower, sidak_level


@pair("asked-beforehand")
def which_end_of_an_interval(kept: bool, rows: int) -> float:
    """Whoever sees the labels asks for the end that is more likely wrong."""
    misses = np.zeros((2, rows + 1), bool)
    for wrong in range(rows + 1):
        score, right = np.full(rows, HIGH), ~events(rows, wrong)
        lower = calibrate(score, right, delta=DELTA, n_bins=1, side="lower").interval(HIGH)[0]
        upper = calibrate(score, right, delta=DELTA, n_bins=1, side="upper").interval(HIGH)[1]
        misses[:, wrong] = lower > 1 - XI, upper < 1 - XI
    chances = binom.pmf(np.arange(rows + 1), rows, XI)
    return float((misses @ chances).max() if kept else misses.any(axis=0) @ chances)


def _sizes(rows: int, parts: int) -> NDArray[np.int64]:
    """Every way in which so many rows can be of so many parts."""
    ways = [way for way in product(range(rows + 1), repeat=parts - 1) if sum(way) <= rows]
    return np.array([(*way, rows - sum(way)) for way in ways])


def _lower_end_misses(rows: int, rates: tuple[float, float], truth: float, level: float) -> Floats:
    """The chance that the lower end of a bin is above the truth, by its rows of each rate."""
    found = np.zeros((rows + 1, rows + 1))
    for sizes in product(range(rows + 1), repeat=2):
        trials = np.arange(sum(sizes) + 1)
        if 0 < sum(sizes) <= rows:
            too_high = binomial_lower(trials, sum(sizes), delta=level) > 1 - truth + 1e-9
            parts = list(zip(sizes, rates, strict=True))
            found[sizes] = few(parts, int(too_high[::-1].sum()) - 1)
    return found


@pair("bins-beforehand")
def where_bins_begin(kept: bool, rows: int) -> float:
    """Four scores, of which every second one is nearly always wrong. Whoever sees scores begins the
    second bin where right ones are over-represented.
    """
    rows, rates = 12, (0.05, 0.95)
    sizes, wrong = _sizes(rows, 4), np.arange(4) % 2
    chances = multinomial.pmf(sizes, rows, [0.25] * 4)
    found = []
    for cut in range(1, 5):
        held = np.ones(len(sizes))
        for part in [slice(0, cut), slice(cut, 4)][: 1 + (cut < 4)]:
            truth = float(np.take(rates, wrong[part]).mean())
            level = sidak_level(DELTA, 2 if cut < 4 else 1)
            misses = _lower_end_misses(rows, rates, truth, level)
            of_each = [sizes[:, part][:, wrong[part] == one].sum(axis=1) for one in (0, 1)]
            held *= 1 - misses[tuple(of_each)]
        found.append(1 - held)
    return float((found @ chances).max() if kept else np.max(found, axis=0) @ chances)


@pair("groups-beforehand")
def which_subgroups_are_merged(kept: bool, rows: int) -> float:
    """Three sites where a model seldom loses and one where it nearly always does, which is
    merged with one of them: the others are the second group. Whoever sees how many rows they have
    merges it with the largest.
    """
    rates, best = (0.05, 0.05, 0.05, 0.95), 0.0

    def both_pass(easy: int, hard: int) -> float:
        rest = rows - easy - hard
        if rest < 1 or not easy + hard:
            return 0.0
        merged = few([(easy, rates[0]), (hard, rates[3])], limit(kinds.replacement, easy + hard))
        return merged * few([(rest, rates[0])], limit(kinds.replacement, rest))

    chances = [both_pass(easy, hard) for easy, hard in product(range(rows + 1), repeat=2)]
    table = np.reshape(chances, (rows + 1, rows + 1))
    for hard in range(rows + 1):
        sizes = [
            (a, b, rows - hard - a - b)
            for a in range(rows - hard + 1)
            for b in range(rows - hard - a + 1)
        ]
        weights = multinomial.pmf([(*size, hard) for size in sizes], rows, [0.25] * 4)
        merged = [size[0] if kept else max(size) for size in sizes]
        best += float(weights @ table[merged, hard])
    return best


@pair("groups-beforehand")
def which_groups_are_left_out(kept: bool, rows: int) -> float:
    """Two groups of a chance number of rows, both just too bad. The small one is left out; whoever
    sees the losses leaves out the one that fails.
    """

    def passes(size: int) -> float:
        return few([(size, BAD)], limit(kinds.replacement, size)) if size else 0.0

    found = 0.0
    for first in range(rows + 1):
        one, other = passes(first), passes(rows - first)
        large = limit(kinds.replacement, first) >= 0, limit(kinds.replacement, rows - first) >= 0
        together = (one if large[0] else 1) * (other if large[1] else 1) if any(large) else 0.0
        found += binom.pmf(first, rows, 0.5) * (together if kept else 1 - (1 - one) * (1 - other))
    return found


def _in_a_bundle(delta: float) -> Claims:
    """Whether a recall at this share of a bundle is claimed."""

    def claims(trials: int, count: int) -> bool:
        scores = np.where(events(trials, count), LOW, HIGH)
        recall = partial(certify_recall, scores, np.ones(trials, bool), target=1 - XI)
        rest: Any = {"one": recall, "rest": recall}
        shares = {"one": delta / DELTA, "rest": 1 - delta / DELTA}
        made: Any = certify_together(rest, delta=DELTA, shares=shares)
        return bool(made["one"].threshold > LOW)

    return claims


@pair("claims-and-shares-beforehand")
def a_claim_that_was_refused_gives_its_share_away(kept: bool, rows: int) -> float:
    """Two claims at half of delta each, or whichever can be certified at all of it."""
    half, whole = limit(_in_a_bundle(DELTA / 2), rows), limit(kinds.recall, rows)
    passes = few([(rows, BAD)], half if kept else whole)
    return 1 - (1 - passes) ** 2


@pair("all-of-each-claim")
def a_rule_that_only_one_claim_allows(kept: bool, rows: int) -> float:
    """A recall, which may be stopped by positives, beside a calibration, which may not: positives
    are seldom predicted right.
    """

    def claims(trials: int, wrong: int) -> bool:
        calibration = partial(
            calibrate, np.full(trials, HIGH), ~events(trials, wrong), n_bins=1, side="lower"
        )
        recall = partial(certify_recall, np.full(trials, HIGH), np.ones(trials, bool), target=0.1)
        both: Any = {"calibration": calibration, "recall": recall}
        made: Any = certify_together(
            both, delta=DELTA, shares={"calibration": 0.95, "recall": 0.05}
        )
        return bool(made["calibration"].bins.lower[0] > 1 - XI - 1e-9)

    return false_at_best(by_country("all", kept=kept), {"all": claims}, min(rows, 20))


def _at_looks(verb: Callable[..., Any]) -> Law:
    """Outcomes are seen, and the claim is made at a look: a planned one, or any number of rows."""

    def law(kept: bool, rows: int) -> float:
        looks = sorted({rows // 3, 2 * rows // 3, rows})

        def claims(trials: int, count: int) -> bool:
            if kept and trials not in looks:
                return False
            dangers, all_of_them = np.where(events(trials, count), LOW, HIGH), np.ones(trials, bool)
            plan = looks if kept else None
            return bool(verb(dangers, all_of_them, delta=DELTA, looks=plan).threshold > LOW)

        outcomes = [Rows(BAD, "an event", 1.0, "all"), Rows(1 - BAD, "none", 0.0, "all")]
        return false_at_best(outcomes, {"all": claims}, rows)

    return law


pair("looks-beforehand", what="looks at a recall")(
    _at_looks(partial(certify_recall, target=1 - XI))
)
pair("looks-at-rollouts", what="looks at rollouts")(_at_looks(partial(certify_shield, xi=XI)))


@pair("differ-beforehand")
def few_losses_or_few_answers_that_differ(kept: bool, rows: int) -> float:
    """Few answers that differ are claimed without labels where they can be, and otherwise labels
    are asked for and few losses claimed.
    """
    xi, rows = 0.2, 8
    law = 2 * xi, xi, 1 - 3 * xi
    found = np.zeros(3)
    for lost, gained in product(range(rows + 1), repeat=2):
        if lost + gained <= rows:
            differ = kinds.loss_or_differ(lost, gained, rows, labels=False, xi=xi)
            losses = kinds.loss_or_differ(lost, gained, rows, labels=True, xi=xi)
            weight = multinomial.pmf((lost, gained, rows - lost - gained), rows, law)
            found += weight * np.array([differ, losses, differ or losses])
    return float(found[:2].max() if kept else found[2])

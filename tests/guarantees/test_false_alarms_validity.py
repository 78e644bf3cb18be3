"""More false alarms than xi are certified with probability at most delta, and so is a range that
breaks either of its claims: enumerated over the numbers of alarms and misses, and drawn."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from pacbound import Tally, certify_false_alarms, certify_recall, certify_together
from pacbound.procedures.threshold import Search, decide

Judge = Callable[[int, int, float], None]
LOW, HIGH = 10, 20


@cache
def lowest(alarms: int, negatives: int, lost: int, *, xi: float, delta: float) -> float:
    cells, counts = np.array([LOW, HIGH]), np.array([negatives - alarms, alarms])
    search = Search(cells, counts, negatives + lost, "from", lost)
    return decide(search, rate=xi, delta=delta).threshold


@pytest.mark.parametrize("negatives", [20, 60, 200])
@pytest.mark.parametrize(("xi", "delta"), [(0.1, 0.1), (0.2, 0.01)])
def test_a_bad_threshold_is_certified_with_probability_at_most_delta(
    negatives: int, xi: float, delta: float
) -> None:
    # Two scores; negatives at the higher one raise an alarm at every threshold up to it, and their
    # true rate is just above xi. Every number of alarms is tried.
    chance = 0.0
    for alarms in range(negatives + 1):
        bad = lowest(alarms, negatives, 0, xi=xi, delta=delta) <= HIGH / 65_536
        chance += float(binom.pmf(alarms, negatives, xi + 1e-9)) if bad else 0.0
    assert chance <= delta
    if negatives == 200:
        assert chance > 0.3 * delta, "this law should come near delta"


@pytest.mark.parametrize("hidden", [0.0, 0.5, 1.0])
def test_lost_rollouts_that_would_have_been_safe_do_not_break_the_claim(hidden: float) -> None:
    # Of 30 rollouts that are safe in truth each is lost with a chance that depends on its danger in
    # the worst way: a share `hidden` of those that would raise an alarm, and none of the others.
    safe, xi, delta, chance = 30, 0.2, 0.1, 0.0
    for alarms in range(safe + 1):
        for lost in range(alarms + 1):
            bad = lowest(alarms - lost, safe - lost, lost, xi=xi, delta=delta) <= HIGH / 65_536
            weight = binom.pmf(alarms, safe, xi + 1e-9) * binom.pmf(lost, alarms, hidden)
            chance += float(weight) if bad else 0.0
    assert chance <= delta


def test_a_range_that_breaks_either_claim_is_certified_with_probability_at_most_delta() -> None:
    # Three scores, LOW, HIGH and 30. A threshold above LOW misses just too many positives, and one
    # up to HIGH has just too many false alarms: no threshold keeps both, and any range is wrong.
    positives, negatives, delta = 12, 20, 0.2
    chance = 0.0
    for misses in range(positives + 1):
        for alarms in range(negatives + 1):
            counts = np.zeros((3, 2), dtype=np.int64)
            counts[:2, 1] = misses, positives - misses
            counts[:2, 0] = negatives - alarms, alarms
            tally = _tally(counts)
            claims: dict[str, Any] = {
                "misses": partial(certify_recall, data=tally, target=0.8),
                "false-alarms": partial(certify_false_alarms, data=tally, xi=0.2),
            }
            found: Any = certify_together(claims, delta=delta)
            weight = binom.pmf(misses, positives, 0.2 + 1e-9)
            weight *= binom.pmf(alarms, negatives, 0.2 + 1e-9)
            wrong = found["misses"].certified and found["misses"].threshold > LOW / 65_536
            wrong |= found["false-alarms"].threshold <= HIGH / 65_536
            assert wrong or found.thresholds is None
            chance += 0.0 if found.thresholds is None else float(weight)
    assert 0 < chance <= delta


def _tally(counts: np.ndarray) -> Tally:
    scores = np.array([LOW, HIGH, 30]) / 65_536
    cells, outcomes = np.nonzero(counts)
    times = counts[cells, outcomes]
    return Tally.count(
        "recall", score=np.repeat(scores[cells], times), positive=np.repeat(outcomes == 1, times)
    )


def test_rare_alarms_are_as_rare_as_certified(judge: Judge) -> None:
    xi, delta, runs, rows = 0.1, 0.1, 400, 500
    rng, violations = np.random.default_rng(601), 0
    for _ in range(runs):
        positive = rng.random(rows) < 0.2
        # The score of a negative is uniform, so the true rate of false alarms at g is 1 - g.
        score = np.where(positive, 1.0, rng.random(rows))
        certificate = certify_false_alarms(score, positive, xi=xi, delta=delta)
        assert certificate.certified
        violations += 1 - certificate.threshold > xi
    judge(violations, runs, delta)
    assert violations > 0.3 * delta * runs

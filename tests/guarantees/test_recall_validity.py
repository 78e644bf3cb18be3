"""Fewer positives than the target are flagged with probability at most delta: enumerated over the
number of misses, and drawn with rare positives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from pacbound import certify_recall
from pacbound.forms import allowed_rate
from pacbound.procedures.threshold import Search, decide

Judge = Callable[[int, int, float], None]


@pytest.mark.parametrize("positives", [20, 60, 200])
@pytest.mark.parametrize(("target", "delta"), [(0.9, 0.1), (0.8, 0.01)])
def test_a_bad_threshold_is_certified_with_probability_at_most_delta(
    positives: int, target: float, delta: float
) -> None:
    # Two scores; all positives at the lower one are missed at the higher, whose true recall is just
    # below the target. Every number of misses is tried.
    rate = 1 - target + 1e-9
    chance = 0.0
    for misses in range(positives + 1):
        counts = np.array([misses, positives - misses])
        search = Search(np.array([10, 20]), counts, positives, "below")
        decision = decide(search, rate=allowed_rate({"target": target}), delta=delta)
        bad = decision.threshold > 10 / 65_536
        chance += float(binom.pmf(misses, positives, rate)) if bad else 0.0
    assert chance <= delta
    if positives == 200:
        assert chance > 0.3 * delta, "this law should come near delta"


def test_rare_positives_are_found_as_often_as_certified(judge: Judge) -> None:
    target, delta, runs, rows = 0.9, 0.1, 300, 20_000
    rng, violations, certified = np.random.default_rng(600), 0, 0
    for _ in range(runs):
        positive = rng.random(rows) < 0.02
        # The score of a positive is uniform, so the true recall at g is 1 - g.
        score = np.where(positive, rng.random(rows), 0.3 * rng.random(rows))
        certificate = certify_recall(score, positive, target=target, delta=delta)
        certified += certificate.certified
        violations += certificate.certified and 1 - certificate.threshold < target
    assert certified == runs
    judge(violations, runs, delta)
    assert violations > 0.3 * delta * runs

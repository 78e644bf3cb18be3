"""Thresholds for abstaining without a guarantee: what they look at, and that they err."""

from __future__ import annotations

import math

import numpy as np

from pacbound.baselines import NEVER_ANSWER, observed_risk_threshold, selective_guaranteed_risk
from pacbound.stats.binomial import binomial_upper


def test_the_observed_risk_is_at_most_xi_at_its_threshold_and_above_it_at_every_lower_one() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        scores = rng.integers(0, 20, size=60) / 20
        right = rng.random(60) < scores
        found = observed_risk_threshold(scores, right, xi=0.2)
        risks = {t: 1 - right[scores >= t].mean() for t in np.unique(scores).tolist()}
        good = [t for t, risk in risks.items() if risk <= 0.2]
        assert found == (min(good) if good else NEVER_ANSWER)


def test_bisection_returns_a_threshold_whose_bound_passes() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(2000)
    right = rng.random(2000) < 0.7 + 0.3 * scores
    found = selective_guaranteed_risk(scores, right, xi=0.1, delta=0.01)
    answered = scores >= found
    level = 0.01 / math.ceil(math.log2(2000))
    wrong = int((~right[answered]).sum())
    assert binomial_upper(wrong, int(answered.sum()), delta=level) <= 0.1
    assert 0.2 < answered.mean() < 0.9

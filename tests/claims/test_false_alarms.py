"""`certify_false_alarms`: thresholds, ties, lost rollouts and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pacbound import Tally, binomial_upper, certify_false_alarms

CLAIM: dict[str, Any] = {"xi": 0.05, "delta": 0.05}


def rows(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    positive = rng.random(n) < 0.3
    score = np.where(positive, rng.beta(6, 2, size=n), rng.beta(1, 6, size=n))
    return score, positive


def rollouts(n: int = 2000, lost: int = 4) -> tuple[np.ndarray, np.ndarray]:
    score, unsafe = rows(n)
    score[np.flatnonzero(unsafe)[:lost]] = -np.inf
    return score, unsafe


def test_the_threshold_is_the_lowest_that_passes() -> None:
    score, positive = rows()
    certificate = certify_false_alarms(score, positive, **CLAIM)
    negatives = score[~positive]
    passing = [
        cell / 65_536
        for cell in range(65_537)
        if (negatives >= cell / 65_536).sum() <= certificate.allowed
    ]
    assert certificate.threshold == min(passing)
    allowed, total = certificate.allowed, len(negatives)
    assert binomial_upper(allowed, total, delta=0.05) <= 0.05
    assert binomial_upper(allowed + 1, total, delta=0.05) > 0.05
    assert certificate.flags(score)[~positive].sum() <= allowed


def test_a_negative_whose_score_equals_the_threshold_raises_an_alarm() -> None:
    score = [0.5] * 100 + [0.25] * 900
    certificate = certify_false_alarms(score, [False] * 1000, **CLAIM)
    assert certificate.threshold == 0.5 + 2**-16
    assert not certificate.flags([0.5]).any()
    wider = certify_false_alarms(score, [False] * 1000, xi=0.2, delta=0.05)
    assert wider.threshold == 0.25 + 2**-16
    assert wider.flags([0.5]).all()


def test_positives_do_not_change_the_threshold() -> None:
    score, positive = rows()
    alone = certify_false_alarms(score[~positive], positive[~positive], **CLAIM)
    assert certify_false_alarms(score, positive, **CLAIM).threshold == alone.threshold
    assert alone.share("positive") is None


def test_a_lost_rollout_counts_as_a_safe_one_with_an_alarm() -> None:
    score, unsafe = rollouts(lost=40)
    certificate = certify_false_alarms(score, unsafe=unsafe, **CLAIM)
    at_one = np.where(np.isinf(score), 1.0, score)
    counted = certify_false_alarms(at_one, unsafe & ~np.isinf(score), **CLAIM)
    assert certificate.trials == counted.trials
    assert certificate.allowed == counted.allowed
    assert certificate.threshold == counted.threshold
    assert certificate.observed_rate == counted.observed_rate


@pytest.mark.parametrize(
    ("score", "positive", "xi", "reason", "needed"),
    [
        ([0.5] * 20, [True] * 20, 0.1, "There are no negatives", 29),
        ([0.5] * 20, [False] * 20, 0.1, "20 negatives cannot certify 10 %", 29),
        ([0.5] * 900, [False] * 900, 0.0, "No number of negatives can certify xi = 0", None),
        ([1.0] * 900, [False] * 900, 0.1, "900 of 900 negatives have a score of 1", None),
        ([1.0] * 6 + [0.1] * 94, [False] * 100, 0.1, "6 of 100 negatives have a score of 1", 200),
    ],
)
def test_a_refusal_raises_no_alarms_and_says_what_it_would_take(
    score: list[float], positive: list[bool], xi: float, reason: str, needed: int | None
) -> None:
    refused = certify_false_alarms(score, positive, xi=xi, delta=0.05)
    assert not refused.certified
    assert refused.threshold == np.inf
    assert not refused.flags([0.0, 1.0]).any()
    assert refused.refusal is not None
    assert f"\n{reason}" in refused.summary()
    if needed == 200:
        assert refused.refusal.needed is not None
        assert 150 < refused.refusal.needed < 400
    else:
        assert refused.refusal.needed == needed
    assert refused.verify().ok
    assert "Raise no alarms" in refused.summary()


def test_rollouts_that_are_lost_too_often_are_refused() -> None:
    score, unsafe = rollouts(n=400, lost=100)
    refused = certify_false_alarms(score, unsafe=unsafe, **CLAIM)
    assert refused.threshold == np.inf
    assert refused.refusal is not None
    assert refused.refusal.code == "hopeless"
    assert getattr(refused.refusal, "unavoidable", 0) >= 100
    assert "safe (100 lost)" in refused.summary()
    assert "have a danger of 1 or are lost" in refused.summary()


def test_a_certificate_of_saturated_and_of_huge_counts_is_right() -> None:
    tally = Tally.count("recall", score=[0.0, 0.5, 1.0], positive=[False] * 3)
    big = np.array([[10**14, 0], [10**9, 0], [10**6, 0]])
    huge = replace(tally, counts=big, rows=int(big.sum()))
    certificate = certify_false_alarms(data=huge, xi=1e-6, delta=1e-12)
    assert certificate.threshold == 0.5 + 2**-16
    assert certificate.verify().ok

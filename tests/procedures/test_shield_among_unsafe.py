"""The threshold that misses few of the unsafe rollouts, however rare they are."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from pacbound import Shield, certify_shield, planned_looks
from pacbound.errors import InvalidValueError
from pacbound.procedures.shield_among_unsafe import decide
from pacbound.stats.binomial import binomial_upper


def test_the_threshold_is_the_highest_whose_misses_among_the_unsafe_are_few() -> None:
    rng = np.random.default_rng(0)
    found = set()
    for _ in range(40):
        cells = np.unique(rng.integers(-1, 65_537, size=30))
        unsafe = rng.integers(0, 5, size=cells.size)
        cells[0], unsafe[0] = -1, rng.choice([0, 3, 30])
        total = int(unsafe.sum())
        decision = decide(cells, unsafe, total, xi=0.2, delta=0.1)
        misses = np.array([unsafe[cells < cell].sum() for cell in cells.tolist()])
        good = (binomial_upper(misses, total, delta=0.1) <= 0.2) & (cells >= 0) & (unsafe > 0)
        assert decision.threshold == (cells[good].max() / 65_536 if good.any() else -inf)
        found.add(bool(good.any()))
    assert found == {True, False}


def test_the_chance_of_missing_more_than_xi_is_at_most_delta() -> None:
    from scipy.stats import binom

    total, xi, delta = 120, 0.1, 0.05
    chance = 0.0
    for misses in range(total + 1):
        decision = decide(
            np.array([10, 20]), np.array([misses, total - misses]), total, xi=xi, delta=delta
        )
        chance += float(binom.pmf(misses, total, xi + 1e-9)) * (decision.threshold > 10 / 65_536)
    assert 0.3 * delta < chance <= delta


def test_rollouts_lost_at_the_start_are_misses_at_every_threshold() -> None:
    cells, total = np.array([-1, 50_000]), 200
    assert decide(cells, np.array([2, 198]), total, xi=0.1, delta=0.05).threshold == 50_000 / 65_536
    refused = decide(cells, np.array([18, 182]), total, xi=0.1, delta=0.05)
    assert refused.threshold == -inf
    assert refused.refusal is not None
    assert "lost at the start" in refused.refusal.reason
    assert refused.refusal.needed is not None
    hopeless = decide(cells, np.array([40, 160]), total, xi=0.1, delta=0.05).refusal
    assert hopeless is not None
    assert hopeless.needed is None


@pytest.mark.parametrize("unsafe", [0, 10, 28])
def test_too_few_unsafe_rollouts_are_refused_with_how_many_it_takes(unsafe: int) -> None:
    flags = np.arange(1000) < unsafe
    certificate = certify_shield(
        np.where(flags, 0.9, 0.1), flags, xi=0.1, delta=0.05, rate="among-unsafe"
    )
    assert (certificate.certified, certificate.threshold) == (False, -inf)
    assert certificate.refusal is not None
    assert certificate.refusal.needed == 29
    assert "about 29 unsafe rollouts" in certificate.summary()
    assert certificate.verify()


def test_the_rate_is_among_the_unsafe_rollouts_in_words_and_numbers() -> None:
    flags = np.arange(1000) < 100
    scores = np.where(np.arange(1000) < 3, 0.05, np.where(flags, 0.9, 0.1))
    certificate = certify_shield(scores, flags, xi=0.1, delta=0.05, rate="among-unsafe")
    assert certificate.threshold == int(0.9 * 65_536) / 65_536
    assert certificate.observed_miss_rate == 0.03
    assert "at most 0.1 of all rollouts that have an un-recoverable state" in certificate.summary()


def test_no_such_rate_and_no_product_of_it() -> None:
    with pytest.raises(InvalidValueError, match="rate='some' is not known"):
        certify_shield([0.5], [True], xi=0.1, delta=0.1, rate="some")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="leave it out"):
        certify_shield(
            [0.5],
            [True],
            xi=0.1,
            delta=0.1,
            bound="product",
            final_scores=[0.5],
            rate="among-unsafe",
        )


def test_it_implies_the_claim_about_all_rollouts_and_never_brakes_later() -> None:
    rng = np.random.default_rng(1)
    compared = 0
    for _ in range(30):
        unsafe = rng.random(2000) < rng.uniform(0.05, 0.9)
        scores = np.where(unsafe, rng.beta(4, 2, size=2000), rng.beta(1, 8, size=2000))
        scores[unsafe & (rng.random(2000) < 0.02)] = -inf
        among, of_all = (
            certify_shield(scores, unsafe, xi=0.1, delta=0.05, rate=rate)
            for rate in ("among-unsafe", "all")
        )
        assert among.threshold <= of_all.threshold
        # What the shield lets through, among all rollouts, is within the second claim's budget.
        assert int((unsafe & (scores < among.threshold)).sum()) <= of_all.allowed
        compared += among.certified
    assert compared > 5


def test_a_shield_runs_on_it_and_says_what_it_is_a_share_of() -> None:
    scores, unsafe = [0.9] * 200 + [0.1] * 800, [True] * 200 + [False] * 800
    certificate = certify_shield(scores, unsafe, xi=0.1, delta=0.01, rate="among-unsafe")
    shield = Shield(lambda _: "drive", lambda _: "brake", lambda x: x, certificate)
    assert [shield(danger) for danger in (0.1, 0.9)] == ["drive", "brake"]
    said = certificate.summary()
    assert "rate 'among-unsafe'" in said
    assert "at most 0.1 of all rollouts that have an un-recoverable state are then missed" in said
    assert "all rollouts are then unsafe" not in said


@pytest.mark.parametrize("looks", [[1000, 2000], planned_looks(0.1, delta=0.01, looks=[1000])])
def test_looks_are_not_planned_for_it(looks: Any) -> None:
    with pytest.raises(InvalidValueError, match="go with rate='all', not with 'among-unsafe'"):
        certify_shield(
            [0.9] * 1000, [True] * 1000, xi=0.1, delta=0.01, rate="among-unsafe", looks=looks
        )

"""Seeds: a claim that is false is made by few of the seeds that may be drawn, for rows that all
samples share. With one seed for everybody it is made in every sample, or in none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import bdtrc

from pacbound import calibrate, certify_shield
from pacbound.monitor import Monitor

DELTA = 0.05
Rng = np.random.Generator


def _clusters(rng: Rng, seed: int) -> bool:
    """The row at one place is wrong in every cluster."""
    right, clusters = np.tile([False, True, True, True], 179), np.repeat(np.arange(179), 4)
    made = calibrate(rng.random(716), right, n_bins=1, delta=DELTA, clusters=clusters, seed=seed)
    low, high = made.interval(0.5)
    return not low <= 0.75 <= high


def _weights(rng: Rng, seed: int) -> bool:
    """Every second row is wrong, and has three times the weight of the others."""
    right, weights = np.arange(600) % 2 == 0, np.where(np.arange(600) % 2 == 0, 1.0, 3.0)
    made = calibrate(
        rng.random(600), right, n_bins=1, delta=DELTA, weights=weights, weight_bound=4, seed=seed
    )
    low, high = made.interval(0.5)
    return not low <= 0.25 <= high


LAWS: dict[str, Callable[[Rng, int], bool]] = {
    "clusters": _clusters,
    "weights": _weights,
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_few_seeds_make_a_false_claim(law: Callable[[Rng, int], bool]) -> None:
    rng, runs = np.random.default_rng(6000419597833104), 400
    wrong = sum(law(rng, int(rng.integers(2**53))) for _ in range(runs))
    assert wrong > 0
    assert bdtrc(wrong - 1, runs, DELTA) > 1e-3


@pytest.mark.parametrize("name", LAWS)
def test_one_seed_for_everybody_makes_a_false_claim_in_every_sample_or_in_none(name: str) -> None:
    rng = np.random.default_rng(7)
    found = [{LAWS[name](rng, seed) for _ in range(5)} for seed in range(130)]
    assert all(len(samples) == 1 for samples in found)
    assert set.union(*found) == {False, True}


@pytest.mark.long
def test_where_rows_of_a_cluster_are_exchangeable_every_seed_keeps_delta() -> None:
    rng, samples, shares = np.random.default_rng(3265476692598152), 120, []
    for seed in (0, 1, 42, 2024, *rng.integers(2**53, size=12).tolist()):
        wrong = 0
        for _ in range(samples):
            clusters = np.repeat(np.arange(60), rng.integers(1, 8, size=60))
            right = rng.random(len(clusters)) < rng.beta(2, 2, size=60)[clusters]
            made = calibrate(
                np.full(len(right), 0.5), right, n_bins=1, delta=DELTA, clusters=clusters, seed=seed
            )
            low, high = made.interval(0.5)
            wrong += not low <= 0.5 <= high
        shares.append(wrong / samples)
    assert max(shares) <= DELTA + 4 * np.sqrt(DELTA * (1 - DELTA) / samples)
    assert bdtrc(round(sum(shares) * samples) - 1, samples * len(shares), DELTA) > 1e-3


def test_few_seeds_of_a_monitor_ring_falsely() -> None:
    clusters = np.arange(800) // 2
    made = certify_shield(
        np.full(800, 0.1), np.arange(800) % 8 == 0, xi=0.5, delta=DELTA, clusters=clusters, seed=1
    )
    # One of two rows of every cluster is unsafe, the rate that is claimed at most. By the
    # certificate's own seed such a stream rang in every sample, or in none.
    stream = {"unsafe": np.tile([True, False], 2000), "clusters": np.repeat(np.arange(2000), 2)}
    rung = sum(Monitor(made, delta=DELTA).update(stream) is not None for _ in range(60))
    assert bdtrc(rung - 1, 60, DELTA) > 1e-3 if rung else True
    assert len({Monitor(made, delta=DELTA).seed for _ in range(5)}) == 5

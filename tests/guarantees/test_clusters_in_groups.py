"""Clusters whose rows are in several groups or bins: each claim is about a random row of a random
cluster in each of them, and wrong at most as often as it says.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from experiments.what_a_row_is import Case, chance, clusters
from scipy.special import bdtr
from scipy.stats import binom

from pacbound import Monitor, calibrate, certify_recall
from pacbound.procedures.calibration import cell_intervals
from pacbound.stats.binomial import sidak_level


def _wrong_both_ways(level: float, n: int = 252) -> float:
    """The chance that one of two claims is wrong which exclude each other, at a level each."""
    allowed = max(k for k in range(n // 2) if bdtr(k, n, 0.5) <= level)
    return float(2 * bdtr(allowed, n, 0.5))


def test_own_groups_of_the_same_clusters_would_break_the_level_of_independent_ones() -> None:
    """Every cluster has a row in A and one in B, of which exactly one is missed."""
    clusters = np.repeat(np.arange(252), 2)
    groups, missed = np.tile(["A", "B"], 252), np.tile([True, False], 252)
    made = certify_recall(
        np.where(missed, 0.2, 0.8),
        np.ones(504, dtype=bool),
        target=0.5,
        delta=0.05,
        groups=groups,
        group_thresholds="own",
        clusters=clusters,
        seed=5,
    )
    (allowed,) = {table["allowed"] for table in made.values["tables"]}
    assert 2 * bdtr(allowed, 252, 0.5) == _wrong_both_ways(0.025) <= 0.05
    assert _wrong_both_ways(sidak_level(0.05, 2)) == pytest.approx(0.05063, abs=5e-6)


def _missed(p: float, q: float, *, occupied_only: bool, delta: float = 0.05) -> float:
    """The chance that some upper end of two bins is too low, for one cluster: with chance p a wrong
    row in the first bin; else a right row there, and one in the second, right with chance q.
    """
    total = 0.0
    for first, second in product((0, 1), repeat=2):
        chance = binom.pmf(first, 1, 1 - p) * binom.pmf(second, 1, q)
        trials = np.array([[1, first]])
        bins = int((trials > 0).sum()) if occupied_only else 2
        _, upper = cell_intervals(
            trials,
            np.array([[first, first * second]]),
            delta=min(0.5, delta * 2 / bins),
            correction="bonferroni",
            side="upper",
            overlapping=False,
        )
        total += chance * bool(upper[0, 0] < 1 - p or (first and upper[0, 1] < q))
    return total


def test_bins_share_delta_among_all_of_them_and_not_among_those_that_hold_rows() -> None:
    """Which bins hold rows says something about the rows of a cluster in the others."""
    p, q = 0.05 * (1 - 1e-9), 0.975 + 1e-9
    assert _missed(p, q, occupied_only=False) <= 0.05
    assert _missed(p, q, occupied_only=True) == pytest.approx(0.07375, abs=1e-5)


@pytest.mark.parametrize("case", clusters(), ids=lambda case: case.what)
def test_a_claim_that_is_false_by_a_little_is_made_at_most_as_often_as_it_says(case: Case) -> None:
    wrong = 0
    for run in range(25):
        rng = np.random.default_rng([3, run])
        wrong += case.is_false(rng, int(rng.integers(2**53)))
    assert chance(wrong, 25, case.delta) > 1e-3


def _twins(rng: np.random.Generator, patients: int, first: int) -> dict[str, Any]:
    """Every patient has a row in A and one in B: with chance 1/2 both are wrong, else none."""
    wrong = np.repeat(rng.random(patients) < 0.5, 2)
    return {
        "confidence": np.full(2 * patients, 0.8),
        "correct": ~wrong,
        "groups": np.tile(["A", "B"], patients),
        "clusters": first + np.repeat(np.arange(patients), 2),
    }


def _rings(runs: int) -> int:
    rng = np.random.default_rng(1)
    made = calibrate(**_twins(rng, 2000, 0), delta=0.05, n_bins=1, seed=5)
    # The ends are those of the sample; the truth is within them, and near.
    rung = 0
    for run in range(runs):
        monitor = Monitor(made, delta=0.05)
        rung += monitor.update(_twins(rng, 500, 10**6 * (run + 1))) is not None
    return rung


def test_a_monitor_of_groups_rings_rarely_while_rows_of_a_cluster_go_together() -> None:
    assert _rings(40) <= 7

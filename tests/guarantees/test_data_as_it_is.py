"""Rows of clusters and rows of another law: claims hold with a draw, and fail without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import bdtrc
from tests.products import standing_for

from pacbound import calibrate, certify_cascade, certify_shield
from pacbound.claims.calibration_certificate import CalibrationCertificate

DELTA = 0.05
RUNS = 500


def _holds(wrong: int, runs: int = RUNS, delta: float = DELTA) -> bool:
    """Whether so many wrong claims are what a chance of `delta` gives."""
    return bool(bdtrc(wrong - 1, runs, delta) > 1e-3) if wrong else True


def _is_broken(wrong: int, runs: int = RUNS, delta: float = DELTA) -> bool:
    return bool(bdtrc(wrong - 1, runs, delta) < 1e-12)


def _misses(truth: float, make: Callable[[int], CalibrationCertificate]) -> int:
    """In how many runs the interval of the only bin misses the true confidence."""
    wrong = 0
    for run in range(RUNS):
        low, high = make(run).interval(0.5)
        wrong += not low <= truth <= high
    return wrong


def _beta_binomial(run: int) -> tuple[np.ndarray, np.ndarray]:
    """Right or wrong in 60 clusters of 1 to 19 rows, whose rates differ from each other."""
    rng = np.random.default_rng([11, run])
    sizes = rng.integers(1, 20, size=60)
    clusters = np.repeat(np.arange(60), sizes)
    return rng.random(len(clusters)) < np.repeat(rng.beta(2, 2, size=60), sizes), clusters


@pytest.mark.parametrize("bound", standing_for([None, 19], [19], rest="long"))
def test_rows_of_clusters_break_the_claim_that_a_draw_keeps(bound: int | None) -> None:
    def with_draw(run: int) -> CalibrationCertificate:
        right, clusters = _beta_binomial(run)
        scores = np.full(len(right), 0.5)
        return calibrate(
            scores, right, delta=DELTA, n_bins=1, clusters=clusters, cluster_bound=bound, seed=0
        )

    def without(run: int) -> CalibrationCertificate:
        right, _ = _beta_binomial(run)
        return calibrate(np.full(len(right), 0.5), right, delta=DELTA, n_bins=1)

    assert _holds(_misses(0.5, with_draw))
    assert _is_broken(_misses(0.5, without))


def _small_and_large(run: int) -> tuple[np.ndarray, np.ndarray]:
    """Wrong or right in clusters of 1 row, all right, and of 9, a tenth wrong: 0.05 wrong in a
    random cluster, 0.09 of the rows.
    """
    rng = np.random.default_rng([12, run])
    sizes = rng.choice([1, 9], size=700)
    clusters = np.repeat(np.arange(700), sizes)
    return rng.random(len(clusters)) < np.where(np.repeat(sizes, sizes) == 9, 0.9, 1.0), clusters


@pytest.mark.long
@pytest.mark.parametrize(("bound", "truth", "other"), [(None, 0.95, 0.91), (9, 0.91, 0.95)])
def test_a_draw_speaks_of_clusters_and_with_a_bound_of_rows(
    bound: int | None, truth: float, other: float
) -> None:
    def make(run: int) -> CalibrationCertificate:
        right, clusters = _small_and_large(run)
        scores = np.full(len(right), 0.5)
        return calibrate(
            scores, right, delta=DELTA, n_bins=1, clusters=clusters, cluster_bound=bound, seed=0
        )

    assert _holds(_misses(truth, make))
    assert _is_broken(_misses(other, make))


SHIFTS = {3.0: (0.25, 0.75), 10.0: (0.08, 0.8)}
"""By the bound: how often an input is hard where rows are from, and where the model is used."""


def _shifted(bound: float, run: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which rows are hard, which are wrong (hard ones 0.3, others 0.05), and their weights."""
    before, after = SHIFTS[bound]
    rng = np.random.default_rng([13, int(bound), run])
    hard = rng.random(rows) < before
    weights = np.where(hard, after / before, (1 - after) / (1 - before))
    return hard, rng.random(rows) < np.where(hard, 0.3, 0.05), weights


@pytest.mark.parametrize("bound", standing_for(SHIFTS, [3.0], rest="long"))
def test_weights_carry_a_calibration_to_the_law_of_use(bound: float) -> None:
    _, after = SHIFTS[bound]
    truth = 1 - (0.3 * after + 0.05 * (1 - after))

    def weighted(run: int) -> CalibrationCertificate:
        _, wrong, weights = _shifted(bound, run, 1500)
        scores = np.full(1500, 0.5)
        return calibrate(
            scores, ~wrong, delta=DELTA, n_bins=1, weights=weights, weight_bound=bound, seed=run
        )

    def plain(run: int) -> CalibrationCertificate:
        _, wrong, _ = _shifted(bound, run, 1500)
        return calibrate(np.full(1500, 0.5), ~wrong, delta=DELTA, n_bins=1)

    assert _holds(_misses(truth, weighted))
    assert _is_broken(_misses(truth, plain))


@pytest.mark.long
@pytest.mark.parametrize("bound", SHIFTS)
def test_weights_carry_a_shield_and_a_cascade_to_the_law_of_use(bound: float) -> None:
    """The loss is all of the rows that are wrong, whatever their score: where it exceeds xi in use,
    nothing may be certified.
    """
    _, after = SHIFTS[bound]
    xi, runs, rows = 0.3 * after + 0.05 * (1 - after) - 0.005, 200, 3000
    wrong_claims = {"shield": 0, "cascade": 0, "shield as it is": 0}
    for run in range(runs):
        _, wrong, weights = _shifted(bound, run, rows)
        draw: dict[str, Any] = {"weights": weights, "weight_bound": bound, "seed": run}
        # A danger that is always the same: to certify it is to let all of them pass.
        danger = np.full(rows, 0.5)
        shield = certify_shield(danger, wrong, xi=xi, delta=DELTA, **draw)
        wrong_claims["shield"] += shield.threshold > 0.5
        plain = certify_shield(danger, wrong, xi=xi, delta=DELTA)
        wrong_claims["shield as it is"] += plain.threshold > 0.5
        answers = np.column_stack([wrong, np.zeros(rows, dtype=int)]).astype(int)
        cascade = certify_cascade(
            danger,
            answers,
            np.zeros(rows, dtype=int),
            xi=xi,
            delta=DELTA,
            **draw,
        )
        wrong_claims["cascade"] += cascade.thresholds[0] <= 0.5
    assert _holds(wrong_claims["shield"], runs)
    assert _holds(wrong_claims["cascade"], runs)
    assert _is_broken(wrong_claims["shield as it is"], runs)


def test_the_largest_weight_seen_is_not_a_bound() -> None:
    """What the documentation warns of: a rare large weight that few samples show."""
    runs, broken = 400, 0
    for run in range(runs):
        rng = np.random.default_rng([14, run])
        rare = rng.random(300) < 0.002
        weights = np.where(rare, 200.0, 0.6 / 0.998)
        wrong = np.where(rare, 1.0, 0.0) > 0
        seen = float(weights.max())
        made = calibrate(
            np.full(300, 0.5),
            ~wrong,
            delta=DELTA,
            n_bins=1,
            weights=weights,
            weight_bound=seen,
            seed=0,
        )
        low, high = made.interval(0.5)
        broken += not low <= 0.6 <= high
    assert _is_broken(broken, runs)


def _as_many_of_each(bins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """At most 100 rows of each bin, chosen before any label is seen."""
    order = rng.permutation(len(bins))
    return np.concatenate([order[bins[order] == bin_][:100] for bin_ in range(4)])


def test_intervals_from_labels_chosen_bin_by_bin_hold_for_every_bin() -> None:
    runs, wrong = 400, 0
    truth = np.array([0.5, 0.6, 0.9, 0.97])
    for run in range(runs):
        rng = np.random.default_rng([15, run])
        bins = rng.choice(4, size=3000, p=[0.02, 0.03, 0.15, 0.8])
        scores = (bins + rng.uniform(0.01, 0.99, size=3000)) / 4
        rows = _as_many_of_each(bins, rng)
        right = rng.random(len(rows)) < truth[bins[rows]]
        made = calibrate(scores[rows], right, delta=DELTA, groups=bins[rows], n_bins=1)
        held = [
            made.tables[str(bin_)].lower[0] <= rate <= made.tables[str(bin_)].upper[0]
            for bin_, rate in enumerate(truth)
        ]
        wrong += not all(held)
        assert (made.trials >= 25).all()
    assert _holds(wrong, runs)


def test_rows_chosen_bin_by_bin_break_a_claim_on_all_rows() -> None:
    """Why the bins are the groups: one bin over all weighs the rows wrongly."""
    runs, wrong = 200, 0
    for run in range(runs):
        rng = np.random.default_rng([16, run])
        bins = rng.choice(4, size=3000, p=[0.02, 0.03, 0.15, 0.8])
        rows = _as_many_of_each(bins, rng)
        right = rng.random(len(rows)) < np.array([0.5, 0.6, 0.9, 0.97])[bins[rows]]
        made = calibrate((bins[rows] + 0.5) / 4, right, delta=DELTA, n_bins=1)
        low, high = made.interval(0.5)
        wrong += not low <= 0.02 * 0.5 + 0.03 * 0.6 + 0.15 * 0.9 + 0.8 * 0.97 <= high
    assert _is_broken(wrong, runs)

"""The paper's algorithms: against literal searches, and against thresholds that were recorded when
they were procedures of certificates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pacbound import calibrate, paper
from pacbound.data import fashion_mnist, indoor_navigation
from pacbound.stats.paired import paired_test

# By the number of models and the seed of `random_rows`, at xi = 0.1 and delta = 0.05: what the
# bound "product" decided, by the walk of two models and the method "greedy" of more.
RECORDED = {
    (2, 0): [0.5487060546875],
    (2, 1): [0.5394287109375],
    (3, 0): [0.732421875, np.inf],
    (3, 1): [0.736328125, np.inf],
    (4, 2): [0.75, np.inf, np.inf],
}


def random_rows(models: int, seed: int, n: int = 1500) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 4, n)
    confidence = np.sort(rng.beta(6, 1, (n, models - 1)), axis=1)
    confidence[rng.random(confidence.shape) < 0.1] = 1.0
    skill = np.column_stack([confidence, np.full(n, 0.95)])
    wrong = (label[:, None] + 1 + np.arange(models)) % 4
    return confidence, np.where(rng.random((n, models)) < skill, label[:, None], wrong), label


@pytest.mark.parametrize(("models", "seed"), RECORDED)
def test_thresholds_are_those_of_the_procedures_that_certified(models: int, seed: int) -> None:
    found = paper.greedy_thresholds(*random_rows(models, seed), xi=0.1, delta=0.05)
    assert found.tolist() == RECORDED[models, seed]


def test_thresholds_of_the_shipped_images_are_those_that_were_certified() -> None:
    table = fashion_mnist()
    rows = slice(4_000)
    answers = np.column_stack([table.prediction_fast, table.prediction_slow])[rows]
    found = paper.greedy_thresholds(
        table.confidence_fast[rows], answers, table.label[rows], xi=0.02, delta=0.01
    )
    assert found.tolist() == [0.7155609130859375]


def test_the_shield_of_the_shipped_rollouts_is_the_one_that_was_certified() -> None:
    table = indoor_navigation()
    found = paper.shield_threshold(
        table.final_score[:4_000], table.unsafe[:4_000], xi=0.1, delta=0.01
    )
    assert found == 0.5545196533203125


@pytest.mark.parametrize("models", [2, 3])
def test_each_threshold_is_lowered_in_turn_to_the_last_one_before_the_first_that_fails(
    models: int,
) -> None:
    confidence, prediction, label = random_rows(models, seed=7, n=400)
    top = 2**16 if models == 2 else 2**10
    expected = np.full(models - 1, np.inf)
    for exit_ in range(models - 1):
        # Between two scores nothing changes, so the thresholds just above and at each are enough.
        seen = np.unique(np.floor(confidence[:, exit_] * top))
        tried = np.unique([*seen, *np.minimum(seen + 1, top), 0.0])[::-1]
        for cell in tried:
            trial = expected.copy()
            trial[exit_] = cell / top
            if literal_bound(confidence, prediction, label, trial, exit_ + 1, 0.05) > 0.2:
                break
            expected = trial
    found = paper.greedy_thresholds(confidence, prediction, label, xi=0.2, delta=0.05)
    assert np.array_equal(found, expected)
    assert np.isfinite(found).any()


def literal_bound(
    confidence: Any, prediction: Any, label: Any, thresholds: Any, used: int, delta: float
) -> float:
    """The sum of the first `used` exits, row by row."""
    n, exits = confidence.shape
    reached = confidence >= thresholds
    leaves = np.where(reached.any(axis=1), reached.argmax(axis=1), exits)
    differ, gains, losses = [], [], []
    for exit_ in range(used):
        here = (leaves == exit_) & (prediction[:, exit_] != prediction[:, -1])
        differ.append([int(here.sum())])
        gains.append([int((here & (prediction[:, exit_] == label)).sum())])
        losses.append([int((here & (prediction[:, -1] == label)).sum())])
    (bound,) = paper.error_bound(differ, gains, losses, n, delta=delta, exits=exits)
    return float(bound)


def test_an_exit_that_cannot_pass_is_not_used_and_later_ones_may_be() -> None:
    # At score 1.0 the first exit loses 30 %, the second one nothing.
    confidence = [[0.0, 1.0]] * 700 + [[1.0, 1.0]] * 300
    prediction = [[1, 1, 1]] * 700 + [[0, 1, 1]] * 300
    found = paper.greedy_thresholds(confidence, prediction, [1] * 1000, xi=0.1, delta=0.1)
    assert found.tolist() == [np.inf, 0.0]


def test_another_test_of_the_steps_may_be_passed() -> None:
    rows, n = random_rows(3, seed=2), 1500

    def exact(differ: Any, gains: Any, losses: Any) -> Any:
        lost, gained = losses.sum(axis=0), gains.sum(axis=0)
        return paired_test(lost, gained, n, xi=0.1, delta=0.025)

    found = paper.greedy_thresholds(*rows, xi=0.1, delta=0.05, passes=exact)
    assert found.tolist() == [0.6416015625, 0.763671875]


def test_the_lowest_threshold_is_at_most_the_first_that_a_walk_ends_at() -> None:
    for seed in range(3):
        rows = random_rows(2, seed)
        (walked,) = paper.greedy_thresholds(*rows, xi=0.1, delta=0.05)
        lowest = paper.lowest_threshold(*rows, xi=0.1, delta=0.05)
        assert lowest <= walked < np.inf
    assert paper.lowest_threshold(*random_rows(2, 1, n=30), xi=0.01, delta=0.05) == np.inf


def test_as_printed_the_bound_lets_every_row_exit() -> None:
    # The fast model is wrong on 80 rows of 100, and the slow one right on all.
    kept = paper.error_bound([[80]], [[0]], [[80]], 100, delta=0.05)
    printed = paper.error_bound_as_printed([[80]], [[0]], [[80]], 100, delta=0.05)
    assert printed[0] < 0 < kept[0]


def test_coverage_is_what_calibrate_certifies_with_a_union_bound() -> None:
    rng = np.random.default_rng(5)
    confidence, correct = rng.random(800), rng.random(800) < 0.7
    certificate = calibrate(confidence, correct, delta=0.05, n_bins=4, correction="bonferroni")
    low, high = paper.coverage(certificate.successes, certificate.trials, delta=0.05)
    assert low.tolist() == certificate.lower.tolist()
    assert high.tolist() == certificate.upper.tolist()


def test_a_shield_that_no_threshold_keeps_always_brakes_and_a_safe_policy_never_does() -> None:
    lost = [-np.inf] * 200 + [0.5] * 800
    unsafe = [True] * 200 + [False] * 800
    assert paper.shield_threshold(lost, unsafe, xi=0.1, delta=0.05) == -np.inf
    assert paper.shield_threshold([0.5] * 1000, [False] * 1000, xi=0.1, delta=0.05) == np.inf

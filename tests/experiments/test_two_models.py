"""Choices from a known population: the same as the library's, and judged by the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra `report`")

from experiments.imagenet.generated import zoo
from experiments.two_models import (
    NEVER,
    TOP,
    by_bound,
    certified,
    chance_of_more,
    passes_exact,
    product_bounds,
    searched,
)
from experiments.validity import XI, flat_law
from scipy.stats import binom

from pacbound import certify_cascade
from pacbound.paper import greedy_thresholds, lowest_threshold

DATA = zoo(4_000).outputs
FAST, SLOW = DATA.places("resnet18_pytorch", "resnet101_pytorch")
PAIR = DATA.pair("resnet18_pytorch", "resnet101_pytorch")
ROWS = PAIR.draw(2_000, np.random.default_rng(0))
ARRAYS = (
    DATA.confidences[ROWS][:, [FAST]],
    DATA.predictions[ROWS][:, [FAST, SLOW]],
    DATA.labels[ROWS],
)


@pytest.mark.parametrize("xi", [0.01, 0.03, 0.2])
def test_a_choice_is_that_of_certify_cascade(xi: float) -> None:
    cell = certified(PAIR.walk(ROWS), len(ROWS), xi=xi, delta=0.01)
    public = certify_cascade(*ARRAYS, xi=xi, delta=0.01).thresholds[0]
    assert (np.inf if cell == NEVER else cell / TOP) == public


@pytest.mark.parametrize("xi", [0.001, 0.01, 0.03, 0.2])
def test_the_walk_by_the_papers_bound_is_its_greedy_choice_and_the_search_its_lowest(
    xi: float,
) -> None:
    walk, n = PAIR.walk(ROWS), len(ROWS)
    changes = walk.take(walk.changes())
    passes = product_bounds(changes, n, 0.01)[0] <= xi
    found = by_bound("product", walk, n, xi=xi, delta=0.01), searched(changes, passes)
    asked: Any = {"xi": xi, "delta": 0.01}
    expected = greedy_thresholds(*ARRAYS, **asked)[0], lowest_threshold(*ARRAYS, **asked)
    assert tuple(np.inf if cell == NEVER else cell / TOP for cell in found) == expected


def test_as_printed_the_bound_lets_every_row_exit() -> None:
    walk = PAIR.walk(ROWS)
    changes = walk.take(walk.changes())
    assert searched(changes, product_bounds(changes, len(ROWS), 0.01)[1] <= 0.02) == 0
    assert PAIR.loss(0) > 0.02


def test_a_search_by_a_tight_bound_violates_more_than_delta_where_a_walk_does_not() -> None:
    law, delta, n, sets = flat_law(200_000), 0.01, 2_000, 300
    assert law.loss(0) > XI
    counts = {"searched": 0, "walked": 0}
    for seed in range(sets):
        walk = law.walk(law.draw(n, np.random.default_rng(seed)))
        changes = walk.take(walk.changes())
        passes = passes_exact(changes, n, xi=XI, delta=delta)
        counts["searched"] += law.loss(searched(changes, passes)) > XI
        counts["walked"] += law.loss(certified(walk, n, xi=XI, delta=delta)) > XI
    assert chance_of_more(counts["searched"], sets, delta) < 1e-4
    assert chance_of_more(counts["walked"], sets, delta) > 1e-3


@pytest.mark.parametrize(
    ("violations", "draws", "delta"), [(0, 100, 0.01), (3, 100, 0.01), (1, 5, 0.5)]
)
def test_the_chance_of_more_is_the_binomial_tail(violations: int, draws: int, delta: float) -> None:
    assert chance_of_more(violations, draws, delta) == pytest.approx(
        binom.sf(violations - 1, draws, delta), rel=1e-9
    )

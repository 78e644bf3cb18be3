"""Shields by planned looks: no look, nor the best of them, is wrong more often than delta.

By exact enumeration: the counts of every kind of rollout at both looks, each with its probability.
"""

from collections.abc import Iterator
from itertools import product
from math import comb

import numpy as np
import pytest

from pacbound import certify_shield, planned_looks

KINDS = ((0.25, True), (0.75, True), (0.5, False), (-np.inf, True))
"""Score and whether unsafe: missed above 0.25, missed above 0.75, safe, lost at the start."""

LOOKS = (6, 11)


def splits(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways in which `total` rollouts are of so many kinds."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in splits(total - first, parts - 1):
            yield (first, *rest)


def chance(counts: tuple[int, ...], law: tuple[float, ...]) -> float:
    weight, left = 1.0, sum(counts)
    for count, rate in zip(counts, law, strict=True):
        weight *= comb(left, count) * rate**count
        left -= count
    return weight


def threshold(counts: tuple[int, ...], xi: float, delta: float) -> float:
    scores = np.repeat([score for score, _ in KINDS], counts)
    unsafe = np.repeat([bad for _, bad in KINDS], counts)
    return certify_shield(scores, unsafe, xi=xi, delta=delta, looks=LOOKS).threshold


def miss_rate(limit: float, law: tuple[float, ...]) -> float:
    """The true rate of unsafe rollouts under a shield of this threshold."""
    if limit == -np.inf:
        return 0.0  # a refusal claims nothing
    return sum(
        rate
        for (score, unsafe), rate in zip(KINDS, law, strict=True)
        if unsafe and np.floor(score * 2**16) < limit * 2**16
    )


@pytest.mark.parametrize(
    ("law", "xi", "delta"),
    [
        ((0.41, 0.2, 0.39, 0.0), 0.4, 0.2),
        ((0.2, 0.21, 0.59, 0.0), 0.4, 0.2),
        ((0.1, 0.1, 0.59, 0.21), 0.4, 0.2),
        ((0.3, 0.0, 0.29, 0.41), 0.4, 0.1),
        ((0.26, 0.5, 0.24, 0.0), 0.25, 0.3),
        ((1.0, 0.0, 0.0, 0.0), 0.4, 0.05),
    ],
)
def test_a_threshold_of_any_look_is_bad_with_probability_at_most_delta(
    law: tuple[float, ...], xi: float, delta: float
) -> None:
    found: dict[tuple[int, ...], float] = {}
    wrong = 0.0
    for early, more in product(
        splits(LOOKS[0], len(KINDS)), splits(LOOKS[1] - LOOKS[0], len(KINDS))
    ):
        weight = chance(early, law) * chance(more, law)
        if not weight:
            continue
        for counts in (early, tuple(a + b for a, b in zip(early, more, strict=True))):
            if counts not in found:
                found[counts] = miss_rate(threshold(counts, xi, delta), law)
            if found[counts] > xi:
                wrong += weight
                break
    plan = planned_looks(xi, delta=delta, looks=LOOKS)
    worst = min(rate for limit in (0.0, 0.25, 0.75, np.inf) if (rate := miss_rate(limit, law)) > xi)
    assert wrong == pytest.approx(sum(plan.passing(worst)), abs=1e-6)
    assert wrong <= delta

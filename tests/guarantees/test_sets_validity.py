"""The true label is missing from more than xi of the sets with probability at most delta."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from pacbound import certify_sets
from pacbound.claims.sets import CLAIM
from pacbound.tally.tally import Tally

Judge = Callable[[int, int, float], None]


@pytest.mark.parametrize(("rows", "xi", "delta"), [(30, 0.1, 0.05), (120, 0.05, 0.1)])
def test_a_bad_threshold_is_certified_with_probability_at_most_delta(
    rows: int, xi: float, delta: float
) -> None:
    """Two probabilities of the label; at the higher one just above xi are missed. Every number of
    misses is tried, also where they have no probability at all."""
    for lower in (-1, 20_000):
        wrong = 0.0
        for misses in range(rows + 1):
            counts = np.array([[misses], [rows - misses]])
            cells = np.array([[lower], [50_000]])
            kept = counts[:, 0] > 0
            question = CLAIM.question
            tally = Tally("sets", question.grid, question.outcomes, rows, cells[kept], counts[kept])
            certificate = CLAIM.certify(tally, {"xi": xi, "delta": delta})
            bad = certificate.threshold > max(lower, 0) / 2**30
            wrong += float(binom.pmf(misses, rows, xi + 1e-9)) if bad else 0.0
        assert 0.2 * delta < wrong <= delta


def test_sets_miss_the_label_as_rarely_as_certified(judge: Judge) -> None:
    """The probabilities are the true ones, so the chance that a set misses its label is known."""
    xi, delta, runs, rows = 0.1, 0.1, 200, 400
    rng, violations = np.random.default_rng(7), 0
    fresh = rng.dirichlet([0.5] * 4, size=40_000)
    for _ in range(runs):
        probability = rng.dirichlet([0.5] * 4, size=rows)
        label = (probability.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
        certificate = certify_sets(probability, label, xi=xi, delta=delta)
        missed = np.where(certificate.sets(fresh), 0.0, fresh).sum(axis=1).mean()
        violations += bool(missed > xi)
    judge(violations, runs, delta)
    assert violations > 0.2 * delta * runs

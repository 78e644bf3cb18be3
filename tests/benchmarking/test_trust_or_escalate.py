"""Trust or Escalate as it is written here: on tiny laws, by brute force and by exact sums."""

import numpy as np
import pytest
from benchmarks.duels import trust_or_escalate
from benchmarks.duels.trust_or_escalate import (
    GRID,
    Judges,
    measure,
    outcome,
    table,
    threshold,
    thresholds,
)
from scipy.stats import binom

SURE, UNSURE = np.full(60, 0.9), np.full(60, 0.6)


def test_thresholds_are_tested_from_the_highest_down_until_one_fails() -> None:
    rng = np.random.default_rng(0)
    found = set()
    for _ in range(20):
        confidence = rng.random(200)
        wrong = rng.random(200) > confidence
        expected = None
        for one in GRID[::-1]:
            above = confidence >= one
            if above.sum() < 30:
                continue
            if binom.cdf(wrong[above].sum(), above.sum(), 0.3) > 0.1:
                break
            expected = one
        reached, passed = threshold(confidence, wrong, xi=0.3, delta=0.1)
        assert passed is (expected is not None)
        assert expected is None or reached == expected
        found.add(reached)
    assert len(found) > 5


def test_a_judge_that_errs_too_often_passes_with_probability_at_most_delta() -> None:
    chance = 0.0
    for errors in range(61):
        _, passed = threshold(SURE, np.arange(60) < errors, xi=0.2, delta=0.1)
        chance += passed * binom.pmf(errors, 60, 0.2)
    assert 0.05 < chance <= 0.1


def test_the_next_judge_is_calibrated_on_the_rows_that_are_left() -> None:
    half = np.arange(120) < 60
    first = np.where(half, 0.9, 0.1)
    judges = Judges(
        ("cheap", "dear"), np.stack([first, np.full(120, 0.8)]), np.stack([~half, half])
    )
    found, kept = thresholds(judges, xi=0.1, delta=0.1, released=False)
    assert kept == 0
    assert 0.1 < found[0] <= 0.9
    assert found[1] <= 0.8, "wrong only where the first judge answers"
    assert outcome(judges, found) == (1.0, 0.0, 0.5)


def test_a_law_is_measured_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust_or_escalate, "ROWS", 100)
    rng = np.random.default_rng(3)
    confidence = rng.random((2, 50))
    law = Judges(("cheap", "dear"), confidence, rng.random((2, 50)) > confidence)
    row = measure(law, 5, name="both", xi=0.3, ours=law.surest())
    assert 0 <= row["ours"]["coverage"] <= 1
    assert row["paper"]["coverage"] <= row["released"]["coverage"]
    assert table([row]).count("\n") == 2

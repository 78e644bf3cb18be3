"""Monitors of graded claims take qualities as they are."""

from __future__ import annotations

from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import Monitor, calibrate, certify_abstention, certify_cascade
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.betting import Restarts, difference_bets, loss_bets

RNG = np.random.default_rng(1)
ROWS = 1500
SCORE = RNG.random(ROWS)
GRADE = np.clip(np.round(1 + 4 * SCORE + RNG.normal(0, 0.3, ROWS)), 1, 5)
GRADED: dict[str, Any] = {"quality": GRADE, "quality_scale": (1, 5), "graded_by": "the rubric"}
SLOW = RNG.choice([0.5, 0.75, 1.0], size=ROWS)
FAST = np.where(RNG.random(ROWS) < 0.2 * (1 - SCORE), SLOW - 0.5, SLOW)
QUALITY = np.column_stack([FAST, SLOW])


def test_the_factor_of_a_graded_loss_lies_on_the_line() -> None:
    bets = loss_bets(0.05)
    assert bets is not None
    found = bets.at(np.array([1.0, 0.25, 0.0]))[:, 5]
    assert np.allclose(found, [2.0, 1.2105263, 0.9473684], atol=1e-7)
    assert np.array_equal(bets.at(np.array([1.0, 0.0])), bets.at(np.array([1, 0])))


@pytest.mark.parametrize(
    ("law", "bets"),
    [
        ({0.0: 0.7, 0.25: 0.2, 0.5: 0.1}, loss_bets(0.1)),
        ({0.5: 0.3, 1.0: 0.2, 1.75: 0.5}, difference_bets(0.225)),
    ],
)
def test_over_all_sequences_the_alarm_rings_with_probability_at_most_delta(
    law: dict[float, float], bets: Any
) -> None:
    """The mean is exactly what is allowed; outcomes of differences are 1 more than they."""
    delta, chance = 0.3, 0.0
    for drawn in product(law, repeat=7):
        _, evidence = Restarts.fresh(bets).after(bets, np.array(drawn))
        chance += prod(law[one] for one in drawn) * bool(evidence.max() >= 1 / delta)
    assert chance <= delta


def test_a_calibration_takes_grades_on_the_scale_of_its_certificate(tmp_path: Path) -> None:
    monitor = Monitor(calibrate(SCORE, delta=0.01, n_bins=4, **GRADED), delta=1e-3)
    assert monitor.update({"confidence": SCORE[:500], "quality": GRADE[:500]}) is None
    monitor.save(tmp_path / "state.json")
    again = Monitor.load(tmp_path / "state.json", monitor.certificate)
    assert again.evidence == monitor.evidence
    alarm = again.update({"confidence": np.full(300, 0.95), "quality": np.full(300, 2.0)})
    assert "the mean quality of every bin, as graded by the rubric" in str(alarm)
    with pytest.raises(InvalidValueError, match="expected grades from 1 to 5"):
        monitor.update({"confidence": [0.5], "quality": [0.5]})


def test_an_abstention_takes_grades_and_rings_where_they_fall() -> None:
    made = certify_abstention(SCORE, xi=0.25, delta=0.01, **GRADED)
    assert made.certified
    monitor = Monitor(made, delta=1e-3)
    high = np.full(400, 0.99)
    assert monitor.update({"confidence": high, "quality": np.full(400, 4.5)}) is None
    assert monitor.update({"confidence": high, "quality": np.full(400, 2.5)})


def test_a_graded_cascade_takes_qualities_preferences_and_losses() -> None:
    made = certify_cascade(SCORE, quality=QUALITY, xi=0.05, delta=0.01, graded_by="people")
    assert made.certified
    limit = float(made.thresholds[0])
    by_quality, by_loss = Monitor(made, delta=1e-3), Monitor(made, delta=1e-3)
    by_quality.update({"confidence": SCORE, "quality": QUALITY})
    by_loss.update(np.where(limit <= SCORE, SLOW - FAST, 0.0))
    assert by_quality.evidence == by_loss.evidence
    lost = {"confidence": np.ones(200), "preferred": ["slow"] * 200}
    alarm = Monitor(made, delta=1e-3).update(lost)
    assert "quality is lost against the slow model alone, as graded by people" in str(alarm)
    same = {**lost, "prediction": np.zeros((200, 2), dtype=int)}
    assert Monitor(made, delta=1e-3).update(same) is None


def test_what_a_graded_monitor_cannot_take_is_refused() -> None:
    made = certify_cascade(SCORE, quality=QUALITY, xi=0.05, delta=0.01)
    monitor = Monitor(made, delta=1e-3)
    with pytest.raises(InvalidTypeError, match="quality is missing"):
        monitor.update({"confidence": [0.9], "prediction": [[0, 1]]})
    with pytest.raises(InvalidValueError, match=r"A quality is missing in row 0.*grade it"):
        monitor.update({"confidence": [1.0], "quality": [[np.nan, 1.0]]})
    with pytest.raises(InvalidValueError, match="or numbers between"):
        monitor.update([1.5])
    plain = calibrate(SCORE, GRADE > 3, delta=0.01)
    with pytest.raises(InvalidTypeError, match="has no 'quality'"):
        Monitor(plain, delta=1e-3).update({"confidence": [0.5], "quality": [0.5]})

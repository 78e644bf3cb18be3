"""The accuracy-confidence curve and band, against plain counting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacbound.calibration.reliability import accuracy_confidence_band, accuracy_confidence_curve
from pacbound.errors import InvalidValueError

VALUES = st.sampled_from(
    [0.0, 0.3, float(np.nextafter(0.3, 1)), 0.7, float(np.nextafter(0.7, 0)), 1.0]
)


@given(
    st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=40),
    st.lists(VALUES | st.sampled_from([-np.inf, 2.0, np.inf]), min_size=1, max_size=12),
)
def test_curve_counts_the_rows_at_or_above_each_threshold(
    rows: list[tuple[float, bool]], thresholds: list[float]
) -> None:
    confidence, correct = zip(*rows, strict=True)
    curve = accuracy_confidence_curve(confidence, correct, thresholds=thresholds)
    passed = [[right for score, right in rows if score >= threshold] for threshold in thresholds]
    assert curve.thresholds.tolist() == thresholds
    assert curve.answered.tolist() == [len(flags) for flags in passed]
    assert curve.right.tolist() == [sum(flags) for flags in passed]
    assert curve.coverage.tolist() == [len(flags) / len(rows) for flags in passed]
    np.testing.assert_array_equal(
        curve.accuracy, [sum(flags) / len(flags) if flags else np.nan for flags in passed]
    )


def test_band_is_the_curve_of_the_lower_ends_and_that_of_the_upper_ends() -> None:
    rng = np.random.default_rng(3)
    intervals, correct = np.sort(rng.random((500, 2)), axis=1), rng.random(500) < 0.7
    band = accuracy_confidence_band(intervals, correct)
    for curve, ends in [(band.by_lower, intervals[:, 0]), (band.by_upper, intervals[:, 1])]:
        alone = accuracy_confidence_curve(ends, correct)
        np.testing.assert_array_equal(curve.accuracy, alone.accuracy)
        np.testing.assert_array_equal(curve.coverage, alone.coverage)
    assert (band.by_lower.coverage <= band.by_upper.coverage).all()


@pytest.mark.parametrize(
    ("confidence", "correct", "thresholds", "message"),
    [
        ([], [], None, "no rows"),
        ([0.5], [True, False], None, "Rows do not match"),
        ([1.5], [True], None, "logits"),
        ([0.5], [True], [], "thresholds is empty"),
        ([0.5], [True], [0.5, float("nan")], r"thresholds\[1\]"),
    ],
)
def test_bad_arguments_of_a_curve_are_refused(
    confidence: Any, correct: Any, thresholds: Any, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        accuracy_confidence_curve(confidence, correct, thresholds=thresholds)

"""The calibration errors, against plain loops, by hand and at the edges."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacbound import calibrate
from pacbound.calibration.metrics import (
    expected_calibration_error,
    induced_calibration_error,
)
from pacbound.errors import InvalidValueError

Rows = tuple[int, list[float], list[bool]]


def bin_of(score: float, n_bins: int) -> int:
    return sum(score > k / n_bins for k in range(1, n_bins))


def gaps(confidence: list[float], correct: list[bool], n_bins: int) -> list[tuple[int, float]]:
    """Rows and |mean confidence - accuracy| of each bin, from the definition."""
    members = defaultdict(list)
    for score, right in zip(confidence, correct, strict=True):
        members[bin_of(score, n_bins)].append((score, right))
    return [
        (
            len(rows),
            abs(math.fsum(s for s, _ in rows) / len(rows) - sum(r for _, r in rows) / len(rows)),
        )
        for rows in members.values()
    ]


def plain_ece(confidence: list[float], correct: list[bool], n_bins: int) -> float:
    return math.fsum(rows / len(correct) * gap for rows, gap in gaps(confidence, correct, n_bins))


def plain_induced(intervals: Any, estimates: Any, correct: Any, n_bins: int) -> tuple[float, float]:
    """The paper's formula, a row at a time; the supremum and infimum over p by cases."""
    members = defaultdict(list)
    for (low, high), estimate, right in zip(intervals, estimates, correct, strict=True):
        members["none" if math.isnan(estimate) else bin_of(estimate, n_bins)].append(
            (low, high, right)
        )
    lower = upper = 0.0
    for rows in members.values():
        least, most = min(row[0] for row in rows), max(row[1] for row in rows)
        accuracy = sum(row[2] for row in rows) / len(rows)
        ends = abs(least - accuracy), abs(most - accuracy)
        lower += len(rows) / len(correct) * (0.0 if least <= accuracy <= most else min(ends))
        upper += len(rows) / len(correct) * max(ends)
    return lower, upper


@st.composite
def rows_on_and_beside_edges(draw: st.DrawFn) -> Rows:
    n_bins = draw(st.sampled_from([1, 2, 3, 7, 10, 15, 20, 49, 100]))
    edges = [k / n_bins for k in range(n_bins + 1)]
    beside = [float(np.nextafter(edge, side)) for edge in edges for side in (0.0, 1.0)]
    scores = draw(
        st.lists(
            st.one_of(st.sampled_from(edges + beside), st.floats(0, 1)), min_size=1, max_size=60
        )
    )
    return (
        n_bins,
        scores,
        draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))),
    )


@given(rows_on_and_beside_edges())
def test_calibration_errors_equal_their_definition_on_and_beside_every_edge(rows: Rows) -> None:
    n_bins, confidence, correct = rows
    assert expected_calibration_error(confidence, correct, n_bins=n_bins) == pytest.approx(
        plain_ece(confidence, correct, n_bins), abs=1e-12, rel=0
    )


def test_float32_confidences_are_compared_with_the_edges_in_float64() -> None:
    scores = np.arange(21, dtype=np.float32) / np.float32(20)
    correct = np.arange(21) % 3 == 0
    expected = plain_ece(scores.astype(np.float64).tolist(), correct.tolist(), 20)
    assert expected_calibration_error(scores, correct) == pytest.approx(expected, abs=1e-12, rel=0)


def test_rows_without_an_estimate_form_a_cell_of_their_own() -> None:
    nan = float("nan")
    # Were the two kinds of row in one bin, its claim [0, 1] would hold the accuracy and the lower
    # end would be 0.
    lower, upper = induced_calibration_error(
        [[0.0, 1.0], [0.125, 0.25]], [nan, 0.125], [True, True]
    )
    assert (lower, upper) == (0.5 * 0.75, 0.5 * 1.0 + 0.5 * 0.875)


@given(rows_on_and_beside_edges(), st.randoms(use_true_random=False))
def test_induced_error_equals_the_papers_formula(rows: Rows, random: Any) -> None:
    n_bins, estimates, correct = rows
    estimates = [math.nan if random.random() < 0.2 else value for value in estimates]
    intervals = [
        (
            [0.0, 1.0]
            if math.isnan(value)
            else [value * random.random(), value + (1 - value) * random.random()]
        )
        for value in estimates
    ]
    got = induced_calibration_error(intervals, estimates, correct, n_bins=n_bins)
    assert got == pytest.approx(
        plain_induced(intervals, estimates, correct, n_bins), abs=1e-12, rel=0
    )
    assert 0.0 <= got[0] <= got[1] <= 1.0


def test_induced_error_of_a_certificate_takes_its_intervals_and_estimates() -> None:
    rng = np.random.default_rng(5)
    confidence = 0.5 + rng.random(60_000) / 2
    correct = rng.random(60_000) < confidence
    certificate = calibrate(confidence[:30_000], correct[:30_000], delta=0.01)
    fresh, outcomes = np.append(confidence[30_000:], 0.1), np.append(correct[30_000:], True)
    intervals, estimates = certificate.interval(fresh), certificate.estimate(fresh)
    assert np.isnan(estimates[-1])
    expected = plain_induced(intervals.tolist(), estimates.tolist(), outcomes.tolist(), 20)
    assert induced_calibration_error(intervals, estimates, outcomes) == pytest.approx(
        expected, abs=1e-12, rel=0
    )


@pytest.mark.parametrize(
    ("confidence", "correct", "message"),
    [
        ([], [], "no rows"),
        ([0.5], [True, False], "Rows do not match"),
        ([float("nan")], [True], "nan"),
        ([1.5], [True], "logits"),
        ([0.5], [2], "expected True or False"),
        ([[0.5, 0.5]], [True], "shape"),
    ],
)
def test_bad_columns_are_refused(confidence: Any, correct: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        expected_calibration_error(confidence, correct)


@pytest.mark.parametrize(
    ("intervals", "estimates", "message"),
    [
        ([[0.9, 0.1]], [0.5], "lower end first"),
        ([0.1, 0.9], [0.5], "shape"),
        ([[0.1, 0.5, 0.9]], [0.5], "shape"),
        ([[0.1, 1.9]], [0.5], r"intervals\[:, 1\]"),
        ([[0.1, float("nan")]], [0.5], "nan"),
        ([[0.1, 0.9]], [1.5], r"estimates\[0\]"),
        ([[0.1, 0.9]], [0.5, 0.6], "Rows do not match"),
        (np.empty((0, 2)), [], "Rows do not match"),
    ],
)
def test_bad_intervals_are_refused(intervals: Any, estimates: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        induced_calibration_error(intervals, estimates, [True])

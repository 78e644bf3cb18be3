"""Histogram binning counts like a tally, edges included, and says NaN where it saw nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacbound.baselines import HistogramBinning
from pacbound.errors import InvalidValueError


def bin_of(score: float, n_bins: int) -> int:
    return sum(score > k / n_bins for k in range(1, n_bins))


def plain_binning(seen: Any, correct: Any, asked: Any, n_bins: int) -> list[float]:
    """The share of right rows among those in the bin of each score asked for."""
    answers = []
    for score in asked:
        flags = [
            right
            for other, right in zip(seen, correct, strict=True)
            if bin_of(other, n_bins) == bin_of(score, n_bins)
        ]
        answers.append(sum(flags) / len(flags) if flags else float("nan"))
    return answers


@st.composite
def rows_on_and_beside_edges(draw: st.DrawFn) -> tuple[int, list[float], list[bool], list[float]]:
    n_bins = draw(st.sampled_from([1, 2, 3, 7, 10, 15, 20, 49]))
    edges = [k / n_bins for k in range(n_bins + 1)]
    beside = [float(np.nextafter(edge, side)) for edge in edges for side in (0.0, 1.0)]
    scores = st.one_of(st.sampled_from(edges + beside), st.floats(0, 1))
    seen = draw(st.lists(scores, min_size=1, max_size=30))
    correct = draw(st.lists(st.booleans(), min_size=len(seen), max_size=len(seen)))
    return n_bins, seen, correct, draw(st.lists(scores, max_size=15))


@given(rows_on_and_beside_edges())
def test_binning_equals_a_plain_computation_on_and_beside_every_edge(
    rows: tuple[int, list[float], list[bool], list[float]],
) -> None:
    n_bins, seen, correct, asked = rows
    binning = HistogramBinning(n_bins=n_bins).fit_confidence(seen, correct)
    np.testing.assert_allclose(
        binning.recalibrate(asked), plain_binning(seen, correct, asked, n_bins), rtol=0, atol=1e-12
    )


def test_an_empty_bin_is_nan_and_never_its_midpoint() -> None:
    binning = HistogramBinning(n_bins=4).fit_confidence([0.9, 0.95, 0.3], [True, False, True])
    np.testing.assert_array_equal(binning.confidence_, [np.nan, 1.0, np.nan, 0.5])
    np.testing.assert_array_equal(binning.recalibrate([0.1, 0.6, 0.26]), [np.nan, np.nan, 1.0])


def test_a_score_on_an_edge_gets_the_confidence_of_the_bin_it_closes() -> None:
    binning = HistogramBinning(n_bins=2).fit_confidence([0.5, 1.0], [True, False])
    assert binning.recalibrate([0.0, 0.5, np.nextafter(0.5, 1), 1.0]).tolist() == [
        1.0,
        1.0,
        0.0,
        0.0,
    ]


def test_trials_and_successes_are_integers_and_add_up() -> None:
    binning = HistogramBinning().fit_confidence(np.linspace(0, 1, 101), np.arange(101) % 3 == 0)
    assert binning.trials_.dtype == binning.successes_.dtype == np.int64
    assert (binning.trials_.sum(), binning.successes_.sum()) == (101, 34)


@pytest.mark.parametrize(
    ("confidence", "correct", "message"),
    [
        ([], [], "no rows"),
        ([0.5, float("nan")], [True, True], r"confidence\[1\] is nan"),
        ([0.5], [True, False], "Rows do not match"),
        ([3.0], [True], "logits"),
        ([0.5], [3], "expected True or False"),
        ([[0.5, 0.5]], [True], "shape"),
    ],
)
def test_columns_that_cannot_be_counted_are_refused(
    confidence: Any, correct: Any, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        HistogramBinning().fit_confidence(confidence, correct)


def test_a_nan_to_predict_for_is_refused_and_not_given_a_confidence() -> None:
    binning = HistogramBinning().fit_confidence([0.5], [True])
    with pytest.raises(InvalidValueError, match=r"confidence\[1\] is nan"):
        binning.recalibrate([0.5, float("nan")])

"""Histogram binning counts like a tally, edges included, and says NaN where it saw nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacbound.baselines import HistogramBinning
from pacbound.errors import InvalidTypeError, InvalidValueError, NotFittedError


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


def test_binning_of_probabilities_equals_a_plain_computation() -> None:
    rng = np.random.default_rng(9)
    probabilities = np.round(rng.dirichlet(np.ones(4), size=600), 2)
    labels = rng.integers(4, size=600)
    top, correct = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    binning = HistogramBinning().fit(probabilities[:400], labels[:400])
    expected = plain_binning(top[:400].tolist(), correct[:400].tolist(), top[400:].tolist(), 20)
    np.testing.assert_allclose(
        binning.predict_confidence(probabilities[400:]), expected, rtol=0, atol=1e-12
    )


def test_both_ways_of_fitting_count_the_same() -> None:
    rng = np.random.default_rng(10)
    probabilities = rng.dirichlet(np.ones(3), size=50_000).astype(np.float32)
    labels = rng.integers(3, size=50_000)
    first = HistogramBinning(n_bins=15).fit(probabilities, labels)
    second = HistogramBinning(n_bins=15).fit_confidence(
        probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    )
    assert first.tally_ == second.tally_
    np.testing.assert_array_equal(first.trials_, second.trials_)
    np.testing.assert_array_equal(first.successes_, second.successes_)
    np.testing.assert_array_equal(
        first.predict_confidence(probabilities), second.recalibrate(probabilities.max(axis=1))
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


def test_changing_the_number_of_bins_after_fitting_changes_no_prediction() -> None:
    binning = HistogramBinning(n_bins=2).fit_confidence([0.2, 0.8], [False, True])
    binning.n_bins = 50
    assert binning.recalibrate([0.4, 0.6]).tolist() == [0.0, 1.0]


def test_no_rows_are_given_no_confidences() -> None:
    assert HistogramBinning().fit_confidence([0.5], [True]).recalibrate([]).shape == (0,)


def test_an_unfitted_binning_refuses_to_predict() -> None:
    with pytest.raises(NotFittedError, match="call fit or fit_confidence first"):
        HistogramBinning().predict_confidence([[0.5, 0.5]])
    with pytest.raises(NotFittedError, match="call fit or fit_confidence first"):
        HistogramBinning().recalibrate([0.5])


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


@pytest.mark.parametrize(
    ("probabilities", "labels", "message"),
    [
        (np.empty((0, 2)), np.empty(0, dtype=int), "no rows"),
        ([0.5, 0.5], [0, 1], "shape"),
        ([[0.5, float("nan")]], [0], "nan"),
        ([[0.5, 0.5]], [2], "class index"),
    ],
)
def test_tables_that_cannot_be_counted_are_refused(
    probabilities: Any, labels: Any, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        HistogramBinning().fit(probabilities, labels)


def test_a_nan_to_predict_for_is_refused_and_not_given_a_confidence() -> None:
    binning = HistogramBinning().fit_confidence([0.5], [True])
    with pytest.raises(InvalidValueError, match=r"confidence\[1\] is nan"):
        binning.recalibrate([0.5, float("nan")])


def test_the_number_of_bins_is_checked_when_fitting() -> None:
    with pytest.raises(InvalidTypeError, match="n_bins"):
        HistogramBinning(n_bins="many").fit_confidence([0.5], [True])  # type: ignore[arg-type]


@pytest.mark.parametrize("library", ["torch", "jax.numpy", "pandas"])
def test_tensors_and_frames_are_counted_like_arrays(library: str) -> None:
    module = pytest.importorskip(library)
    names = {
        "torch": ("tensor", "tensor"),
        "jax.numpy": ("asarray", "asarray"),
        "pandas": ("DataFrame", "Series"),
    }[library]
    probabilities, labels = [[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]], [0, 0, 0]
    table, column = getattr(module, names[0])(probabilities), getattr(module, names[1])
    plain = HistogramBinning().fit(probabilities, labels)
    assert HistogramBinning().fit(table, column(labels)).tally_ == plain.tally_
    np.testing.assert_array_equal(
        plain.predict_confidence(table), plain.predict_confidence(probabilities)
    )
    counted = HistogramBinning().fit_confidence(column([0.75, 0.5]), column([True, False]))
    assert counted.recalibrate(column([0.75, 0.5])).tolist() == [1.0, 0.0]

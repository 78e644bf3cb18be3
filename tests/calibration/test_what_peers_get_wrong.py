"""Where other packages return a number that is not one, pacbound must not.

netcal 1.4 counts a score on an edge in the bin above and looks it up in the bin below, so that 100
wrong answers at 0.5 leave 0.475 there; NaN comes out with the confidence of the last bin, an empty
bin with its midpoint. torchmetrics 1.9 puts a confidence of 1.0 into a bin of its own beyond the
last. scikit-learn 1.9 drops empty bins from the arrays it returns.
"""

from __future__ import annotations

import numpy as np
import pytest

from pacbound import PACCalibrator, calibrate, expected_calibration_error
from pacbound.baselines import HistogramBinning
from pacbound.errors import InvalidValueError


def test_wrong_answers_on_an_edge_are_counted_where_they_are_looked_up() -> None:
    confidence, correct = np.full(100, 0.5), np.zeros(100, dtype=bool)
    lower, upper = calibrate(confidence, correct, delta=0.01).interval([0.5])[0]
    assert lower == 0.0
    assert upper < 0.06
    assert HistogramBinning().fit_confidence(confidence, correct).recalibrate([0.5]).tolist() == [
        0.0
    ]


@pytest.mark.parametrize("edge", np.arange(1, 20) / 20)
def test_a_score_on_an_edge_belongs_to_the_bin_below(edge: float) -> None:
    bins = calibrate([edge], [True], delta=0.01).bins
    (where,) = np.flatnonzero(bins.trials)
    assert bins.end[where] == edge


def test_nan_raises_and_names_the_row() -> None:
    with pytest.raises(InvalidValueError, match=r"confidence\[1\] is nan"):
        calibrate([0.5, np.nan, 0.7], [True, False, True], delta=0.01)
    with pytest.raises(InvalidValueError, match=r"probabilities\[1\] is nan"):
        PACCalibrator().fit([[0.9, 0.1], [np.nan, 0.2]], [0, 1])
    with pytest.raises(InvalidValueError, match=r"confidence\[0\] is nan"):
        calibrate([0.5], [True], delta=0.01).interval([np.nan])
    with pytest.raises(InvalidValueError, match=r"confidence\[0\] is nan"):
        expected_calibration_error([np.nan], [True])


def test_an_empty_bin_says_nothing() -> None:
    certificate = calibrate(np.full(1000, 0.93), np.ones(1000, dtype=bool), delta=0.01)
    assert certificate.interval([0.33]).tolist() == [[0.0, 1.0]]
    assert np.isnan(certificate.estimate([0.33])).all()
    assert np.isnan(HistogramBinning().fit_confidence([0.93], [True]).recalibrate([0.33])).all()


def test_no_bin_is_dropped() -> None:
    bins = calibrate([0.93], [True], delta=0.01).bins
    assert len(bins) == len(bins.lower) == len(bins.upper) == len(bins.estimate) == 20
    assert bins.trials.sum() == 1


def test_a_confidence_of_one_falls_into_the_last_bin() -> None:
    bins = calibrate([1.0, 0.97], [True, False], delta=0.01).bins
    assert bins.trials.tolist() == [0] * 19 + [2]
    # With the sure answer in a bin of its own the error would be (1.0 + 0.03) / 2.
    assert expected_calibration_error([1.0, 0.97], [False, True]) == pytest.approx(
        (1.0 + 0.97) / 2 - 0.5
    )

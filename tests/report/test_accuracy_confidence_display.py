"""The accuracy-confidence plot draws the numbers of the curve and of the band, and says that they
are descriptive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.report.conftest import marks, named

from pacbound import calibrate
from pacbound.calibration.reliability import (
    AccuracyConfidenceCurve,
    accuracy_confidence_band,
    accuracy_confidence_curve,
)
from pacbound.errors import InvalidTypeError
from pacbound.figure import Band, Dots, Steps
from pacbound.report import AccuracyConfidenceDisplay

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

RNG = np.random.default_rng(0)
CONFIDENCE = RNG.uniform(0.2, 0.98, 1000)
CORRECT = RNG.random(1000) < CONFIDENCE
CERTIFICATE = calibrate(CONFIDENCE[:500], CORRECT[:500], delta=0.05)


def _coverage(display: Any, place: int = -1) -> Any:
    """A line of the lower panel: by lower ends, by upper ends, by confidence."""
    return marks(display, Steps, panel=1)[place].y


def test_the_curve_and_its_coverage_are_drawn_as_computed() -> None:
    display = AccuracyConfidenceDisplay.from_predictions(CONFIDENCE, CORRECT)
    curve = accuracy_confidence_curve(CONFIDENCE, CORRECT)
    above = named(display, "by confidence")
    np.testing.assert_array_equal(above.y, curve.accuracy)
    np.testing.assert_array_equal(above.x, curve.thresholds)
    some = curve.coverage > 0
    np.testing.assert_array_equal(_coverage(display)[some], curve.coverage[some])
    assert np.isnan(_coverage(display)[~some]).all()
    assert marks(display, Band) == []


def test_the_band_lies_between_answering_by_lower_and_by_upper_ends() -> None:
    confidence, correct = CONFIDENCE[500:], CORRECT[500:]
    display = AccuracyConfidenceDisplay.from_certificate(CERTIFICATE, confidence, correct)
    band = accuracy_confidence_band(CERTIFICATE.interval(confidence), correct)
    curves = [("by lower ends", band.by_lower), ("by upper ends", band.by_upper)]
    for place, (name, curve) in enumerate(curves):
        np.testing.assert_array_equal(named(display, name).y, curve.accuracy)
        some = curve.coverage > 0
        np.testing.assert_array_equal(_coverage(display, place)[some], curve.coverage[some])
    (filled,) = marks(display, Band)
    heights = np.concatenate([np.ravel(part[1:]) for part in filled.stretches()])
    both = np.isfinite(band.by_lower.accuracy) & np.isfinite(band.by_upper.accuracy)
    borders = np.concatenate([band.by_lower.accuracy[both], band.by_upper.accuracy[both]])
    assert set(heights) <= set(borders)
    assert heights.max() == borders.max()
    assert heights.min() == borders.min()


def test_the_title_says_n_and_delta_and_that_nothing_is_certified() -> None:
    plain = AccuracyConfidenceDisplay.from_predictions(CONFIDENCE, CORRECT)
    banded = AccuracyConfidenceDisplay.from_certificate(CERTIFICATE, CONFIDENCE, CORRECT)
    ends = "\nDescriptive: no point is certified."
    assert plain.ax_.get_title("left") == "Accuracy of rows that reach t: n = 1,000" + ends
    assert (
        banded.ax_.get_title("left")
        == "Accuracy of rows that reach t: n = 1,000, delta = 0.05" + ends
    )
    assert banded.axes_[-1].get_xlabel() == "Confidence threshold t (0 to 1)"


def test_a_certificate_for_groups_takes_the_group_of_each_row() -> None:
    groups = np.where(np.arange(1000) % 3, "a", "b")
    certificate = calibrate(CONFIDENCE, CORRECT, delta=0.05, groups=groups)
    display = AccuracyConfidenceDisplay.from_certificate(
        certificate, CONFIDENCE, CORRECT, groups=groups
    )
    band = accuracy_confidence_band(certificate.interval(CONFIDENCE, groups), CORRECT)
    np.testing.assert_array_equal(named(display, "by lower ends").y, band.by_lower.accuracy)


def test_thresholds_in_any_order_are_drawn_from_left_to_right() -> None:
    display = AccuracyConfidenceDisplay.from_predictions(
        CONFIDENCE, CORRECT, thresholds=[0.9, 0.1, 0.5]
    )
    assert named(display, "by confidence").x.tolist() == [0.1, 0.5, 0.9]


@pytest.mark.parametrize("thresholds", [None, [0.4], [0.9, 0.0]])
def test_the_curve_ends_with_a_dot_where_the_last_row_is_reached(thresholds: Any) -> None:
    display = AccuracyConfidenceDisplay.from_predictions([0.4], [False], thresholds=thresholds)
    (dot,) = marks(display, Dots)
    assert dot.x.tolist() == [0.4 if thresholds in (None, [0.4]) else 0.0]
    assert dot.y.tolist() == [0.0]


def _with_last(rows: int) -> tuple[Any, Any]:
    """10,000 rows of which 95 % are right; the last `rows` have a confidence of 1 and are wrong."""
    confidence, correct = np.full(10_000, 0.9), np.arange(10_000) % 20 > 0
    confidence[:5000] = 0.5
    confidence[-rows:], correct[-rows:] = 1.0, False
    return confidence, correct


def _curve_with_last(rows: int) -> AccuracyConfidenceDisplay:
    return AccuracyConfidenceDisplay.from_predictions(*_with_last(rows))


def _numbers_with_last(rows: int) -> AccuracyConfidenceCurve:
    return accuracy_confidence_curve(*_with_last(rows))


def test_a_curve_ends_where_few_rows_are_left_and_these_do_not_set_the_scale() -> None:
    display, curve = _curve_with_last(29), _numbers_with_last(29)
    assert curve.accuracy[-1] == 0.0
    shown = named(display, "by confidence").y
    assert np.isnan(shown[curve.thresholds > 0.9]).all()
    np.testing.assert_array_equal(
        shown[curve.thresholds <= 0.9], curve.accuracy[curve.thresholds <= 0.9]
    )
    assert display.ax_.get_ylim()[0] > 0.9
    np.testing.assert_array_equal(_coverage(display), curve.coverage)


def test_thirty_rows_are_enough_to_be_drawn() -> None:
    display = _curve_with_last(30)
    assert named(display, "by confidence").y[-1] == 0.0
    assert display.ax_.get_ylim()[0] < 0.0


def test_the_axes_begin_where_the_first_row_is_left_out() -> None:
    display = _curve_with_last(30)
    assert 0.48 < display.ax_.get_xlim()[0] <= 0.5


def test_a_threshold_that_no_row_reaches_is_drawn() -> None:
    display = AccuracyConfidenceDisplay.from_predictions([0.4], [False], thresholds=[0.9])
    assert display._repr_png_()


@pytest.mark.parametrize(
    ("confidence", "correct"),
    [
        (np.ones(50), np.ones(50)),
        (np.ones(50), np.zeros(50)),
        (np.zeros(50), np.zeros(50)),
        ([0.7], [True]),
    ],
)
def test_extreme_rows_stay_within_the_axes(confidence: Any, correct: Any) -> None:
    display = AccuracyConfidenceDisplay.from_certificate(CERTIFICATE, confidence, correct)
    bottom, top = display.ax_.get_ylim()
    drawn = np.concatenate([line.y for line in marks(display, Steps)])
    assert bottom < np.nanmin(drawn)
    assert top > np.nanmax(drawn)
    assert bottom < top - 0.01
    assert display._repr_png_()


def test_anything_but_a_calibration_certificate_is_refused() -> None:
    certificate: Any = "calibration.json"
    with pytest.raises(InvalidTypeError, match="expected a CalibrationCertificate"):
        AccuracyConfidenceDisplay.from_certificate(certificate, CONFIDENCE, CORRECT)

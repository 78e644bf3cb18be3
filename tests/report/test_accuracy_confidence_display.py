"""The accuracy-confidence plot draws the numbers of the curve and of the band, and says that they
are descriptive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pacbound import calibrate
from pacbound.calibration.curves import accuracy_confidence_band, accuracy_confidence_curve
from pacbound.errors import InvalidTypeError
from pacbound.report import AccuracyConfidenceDisplay

pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pacbound[report]'"
)

RNG = np.random.default_rng(0)
CONFIDENCE = RNG.uniform(0.2, 0.98, 1000)
CORRECT = RNG.random(1000) < CONFIDENCE
CERTIFICATE = calibrate(CONFIDENCE[:500], CORRECT[:500], delta=0.05)


def _line(ax: Any, name: str) -> Any:
    (line,) = [line for line in ax.lines if line.get_gid() == name]
    return line


def test_the_curve_and_its_coverage_are_drawn_as_computed() -> None:
    display = AccuracyConfidenceDisplay.from_predictions(CONFIDENCE, CORRECT)
    curve = accuracy_confidence_curve(CONFIDENCE, CORRECT)
    above, below = _line(display.ax_, "by confidence"), _line(display.panel_ax_, "by confidence")
    np.testing.assert_array_equal(above.get_ydata(), curve.accuracy)
    np.testing.assert_array_equal(below.get_ydata(), curve.coverage)
    np.testing.assert_array_equal(above.get_xdata(), curve.thresholds)
    assert display.band is None


def test_the_band_lies_between_answering_by_lower_and_by_upper_ends() -> None:
    confidence, correct = CONFIDENCE[500:], CORRECT[500:]
    display = AccuracyConfidenceDisplay.from_certificate(CERTIFICATE, confidence, correct)
    band = accuracy_confidence_band(CERTIFICATE.interval(confidence), correct)
    for name, curve in [("by lower ends", band.by_lower), ("by upper ends", band.by_upper)]:
        np.testing.assert_array_equal(_line(display.ax_, name).get_ydata(), curve.accuracy)
        np.testing.assert_array_equal(_line(display.panel_ax_, name).get_ydata(), curve.coverage)
    (filled,) = [artist for artist in display.ax_.collections if artist.get_gid() == "band"]
    heights = np.concatenate([np.asarray(path.vertices)[:, 1] for path in filled.get_paths()])
    both = np.isfinite(band.by_lower.accuracy) & np.isfinite(band.by_upper.accuracy)
    borders = np.concatenate([band.by_lower.accuracy[both], band.by_upper.accuracy[both]])
    assert set(heights) <= set(borders)
    assert heights.max() == borders.max()
    assert heights.min() == borders.min()


def test_the_title_says_n_and_delta_and_that_nothing_is_certified() -> None:
    plain = AccuracyConfidenceDisplay.from_predictions(CONFIDENCE, CORRECT)
    banded = AccuracyConfidenceDisplay.from_certificate(CERTIFICATE, CONFIDENCE, CORRECT)
    ends = "\nDescriptive: no point is certified"
    assert plain.ax_.get_title("left") == "Accuracy of rows that reach t: n = 1,000" + ends
    assert (
        banded.ax_.get_title("left")
        == "Accuracy of rows that reach t: n = 1,000, delta = 0.05" + ends
    )
    assert banded.panel_ax_ is not None
    assert banded.panel_ax_.get_xlabel() == "Confidence threshold t (0 to 1)"


def test_a_certificate_for_groups_takes_the_group_of_each_row() -> None:
    groups = np.where(np.arange(1000) % 3, "a", "b")
    certificate = calibrate(CONFIDENCE, CORRECT, delta=0.05, groups=groups)
    display = AccuracyConfidenceDisplay.from_certificate(
        certificate, CONFIDENCE, CORRECT, groups=groups
    )
    band = accuracy_confidence_band(certificate.interval(CONFIDENCE, groups), CORRECT)
    np.testing.assert_array_equal(
        _line(display.ax_, "by lower ends").get_ydata(), band.by_lower.accuracy
    )


def test_thresholds_in_any_order_are_drawn_from_left_to_right() -> None:
    display = AccuracyConfidenceDisplay.from_predictions(
        CONFIDENCE, CORRECT, thresholds=[0.9, 0.1, 0.5]
    )
    assert _line(display.ax_, "by confidence").get_xdata().tolist() == [0.1, 0.5, 0.9]


@pytest.mark.parametrize("thresholds", [None, [0.4], [0.9, 0.0]])
def test_the_curve_ends_with_a_dot_where_the_last_row_is_reached(thresholds: Any) -> None:
    display = AccuracyConfidenceDisplay.from_predictions([0.4], [False], thresholds=thresholds)
    (dot,) = [line for line in display.ax_.lines if line.get_marker() == "o"]
    assert np.asarray(dot.get_xydata()).tolist() == [
        [0.4 if thresholds in (None, [0.4]) else 0.0, 0.0]
    ]


def _curve_with_last(rows: int) -> Any:
    """10,000 rows of which 95 % are right; the last `rows` have a confidence of 1 and are wrong."""
    confidence, correct = np.full(10_000, 0.9), np.arange(10_000) % 20 > 0
    confidence[:5000] = 0.5
    confidence[-rows:], correct[-rows:] = 1.0, False
    return AccuracyConfidenceDisplay.from_predictions(confidence, correct)


def test_a_curve_ends_where_few_rows_are_left_and_these_do_not_set_the_scale() -> None:
    display = _curve_with_last(29)
    assert display.curve.accuracy[-1] == 0.0
    accuracy, thresholds = _line(display.ax_, "by confidence").get_ydata(), display.curve.thresholds
    assert np.isnan(accuracy[thresholds > 0.9]).all()
    np.testing.assert_array_equal(
        accuracy[thresholds <= 0.9], display.curve.accuracy[thresholds <= 0.9]
    )
    assert display.ax_.get_ylim()[0] > 0.9
    coverage = _line(display.panel_ax_, "by confidence").get_ydata()
    np.testing.assert_array_equal(coverage, display.curve.coverage)


def test_thirty_rows_are_enough_to_be_drawn() -> None:
    display = _curve_with_last(30)
    assert _line(display.ax_, "by confidence").get_ydata()[-1] == 0.0
    assert display.ax_.get_ylim()[0] < 0.0


def test_the_axes_begin_where_the_first_row_is_left_out() -> None:
    display = _curve_with_last(30)
    assert 0.48 < display.ax_.get_xlim()[0] < 0.5


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
    drawn = np.concatenate([line.get_ydata() for line in display.ax_.lines])
    assert bottom < np.nanmin(drawn)
    assert top > np.nanmax(drawn)
    assert bottom < top - 0.01
    assert display._repr_png_()


def test_anything_but_a_calibration_certificate_is_refused() -> None:
    certificate: Any = "calibration.json"
    with pytest.raises(InvalidTypeError, match="expected a CalibrationCertificate"):
        AccuracyConfidenceDisplay.from_certificate(certificate, CONFIDENCE, CORRECT)

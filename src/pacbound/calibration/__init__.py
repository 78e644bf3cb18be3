"""Calibration: intervals for the true confidence of predictions, and the metrics around them."""

from pacbound.calibration.calibrator import PACCalibrator
from pacbound.calibration.metrics import (
    brier_score,
    expected_calibration_error,
    induced_calibration_error,
    maximum_calibration_error,
    negative_log_likelihood,
)
from pacbound.calibration.reliability import (
    AccuracyConfidenceBand,
    AccuracyConfidenceCurve,
    accuracy_confidence_band,
    accuracy_confidence_curve,
)
from pacbound.calibration.strata import stratify

__all__ = [
    "AccuracyConfidenceBand",
    "AccuracyConfidenceCurve",
    "PACCalibrator",
    "accuracy_confidence_band",
    "accuracy_confidence_curve",
    "brier_score",
    "expected_calibration_error",
    "induced_calibration_error",
    "maximum_calibration_error",
    "negative_log_likelihood",
    "stratify",
]

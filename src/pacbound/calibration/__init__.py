"""Calibration: intervals for the true confidence of predictions, and the metrics around them.

`PACClassifier` needs scikit-learn, and is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from pacbound.calibration.calibrator import PACCalibrator
from pacbound.calibration.curves import (
    AccuracyConfidenceBand,
    AccuracyConfidenceCurve,
    accuracy_confidence_band,
    accuracy_confidence_curve,
)
from pacbound.calibration.metrics import (
    brier_score,
    expected_calibration_error,
    induced_calibration_error,
    maximum_calibration_error,
    negative_log_likelihood,
)
from pacbound.calibration.strata import stratify
from pacbound.lazy_names import lazy_names

if TYPE_CHECKING:
    from pacbound.calibration.estimators import PACClassifier

__all__ = [
    "AccuracyConfidenceBand",
    "AccuracyConfidenceCurve",
    "PACCalibrator",
    "PACClassifier",
    "accuracy_confidence_band",
    "accuracy_confidence_curve",
    "brier_score",
    "expected_calibration_error",
    "induced_calibration_error",
    "maximum_calibration_error",
    "negative_log_likelihood",
    "stratify",
]

__getattr__, __dir__ = lazy_names(__name__, {"PACClassifier": "pacbound.calibration.estimators"})

"""uncertainty-calibration: histogram binning of the top label, expected calibration error."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_calibration = import_module("calibration")

FIT = "HistogramTopCalibrator(20)"


def fit(probabilities: Any, labels: Any) -> object:
    calibrator = _calibration.HistogramTopCalibrator(len(probabilities), 20)
    calibrator.train_calibration(probabilities, labels)
    return calibrator


def top_label_error(probabilities: Any, labels: Any) -> float:
    return float(_calibration.get_ece(probabilities, labels, num_bins=20))

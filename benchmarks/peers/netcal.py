"""netcal: histogram binning, and the expected calibration error of top-label confidences."""

from __future__ import annotations

from typing import Any

from netcal.binning import HistogramBinning
from netcal.metrics import ECE


def fit_histogram_binning(probabilities: Any, labels: Any) -> object:
    return HistogramBinning(20).fit(probabilities, labels)


def calibration_error(confidence: Any, correct: Any) -> float:
    # "Detection" is netcal's word for one confidence per row, with the outcome beside it.
    return float(ECE(20, detection=True).measure(confidence, correct))

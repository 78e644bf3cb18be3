"""netcal: histogram binning, and the expected calibration error."""

from __future__ import annotations

from typing import Any

from netcal.binning import HistogramBinning
from netcal.metrics import ECE

FIT = "HistogramBinning(20).fit"


def fit(probabilities: Any, labels: Any) -> object:
    return HistogramBinning(20).fit(probabilities, labels)


def calibration_error(confidence: Any, correct: Any) -> float:
    # "Detection" is netcal's word for one confidence per row, with the outcome beside it.
    return float(ECE(20, detection=True).measure(confidence, correct))


def top_label_error(probabilities: Any, labels: Any) -> float:
    return float(ECE(20).measure(probabilities, labels))

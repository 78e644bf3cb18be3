"""relplot: the expected calibration error in bins, and the smooth one that the package is about."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_relplot = import_module("relplot")


def calibration_error(confidence: Any, correct: Any) -> float:
    return float(_relplot.metrics.binnedECE(confidence, correct, nbins=20))


def smooth_calibration_error(confidence: Any, correct: Any) -> float:
    return float(_relplot.smECE(confidence, correct))

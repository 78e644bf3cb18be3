"""MAPIE: isotonic calibration of the top label, and thresholds that control a risk.

Its top-label ECE is an average over the predicted classes: another number, so it is not compared.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any, Literal

import numpy as np

from benchmarks.peers.scikit_learn import Given

_calibration = import_module("mapie.calibration")
_risk_control = import_module("mapie.risk_control")

FIT = "TopLabelCalibrator(isotonic).fit"

Correction = Literal["bonferroni_holm", "fixed_sequence"]


def fit(probabilities: Any, labels: Any) -> object:
    given = Given(probabilities.shape[1])
    return _calibration.TopLabelCalibrator(estimator=given, calibrator="isotonic", cv="prefit").fit(
        probabilities, labels
    )


def control(
    scores: Any, unsafe: Any, xi: float, delta: float, correction: Correction = "bonferroni_holm"
) -> float:
    """The largest of 100 thresholds, MAPIE's own, at which rows that are unsafe and below it are at
    most `xi` of all.

    -inf where MAPIE warns and finds none.
    """
    missed = _risk_control.BinaryRisk(
        risk_occurrence=lambda unsafe, fired: (unsafe == 1) & (fired == 0),
        risk_condition=lambda unsafe, _: np.ones_like(unsafe, dtype=bool),
        higher_is_better=False,
    )
    controller = _risk_control.BinaryClassificationController(
        lambda column: np.column_stack([1.0 - column, column]),
        missed,
        xi,
        confidence_level=1.0 - delta,
        best_predict_param_choice="predicted_positive_fraction",
        fwer_method=correction,
    )
    best = controller.calibrate(scores, unsafe.astype(np.int64)).best_predict_param
    return -np.inf if best is None else float(best)


def control_precision(
    confidence: Any,
    correct: Any,
    xi: float,
    delta: float,
    correction: Correction,
    thresholds: Any = None,
) -> float:
    """The lowest of the thresholds, by default MAPIE's own 0, 0.01, …, 0.99, at which the precision
    of "will be right" is at least 1 - `xi`.

    +inf where MAPIE warns and finds none.
    """
    controller = _risk_control.BinaryClassificationController(
        lambda column: np.column_stack([1.0 - column, column]),
        "precision",
        1.0 - xi,
        confidence_level=1.0 - delta,
        best_predict_param_choice="recall",
        fwer_method=correction,
        **({} if thresholds is None else {"list_predict_params": thresholds}),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best = controller.calibrate(confidence, correct.astype(np.int64)).best_predict_param
    return np.inf if best is None else float(best)

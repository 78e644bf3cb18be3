"""torchmetrics: the expected calibration error, on the CPU."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

_classification = import_module("torchmetrics.functional.classification")


def calibration_error(confidence: Any, correct: Any) -> float:
    return float(
        _classification.binary_calibration_error(
            torch.from_numpy(confidence),
            torch.from_numpy(correct).long(),
            n_bins=20,
            norm="l1",
            validate_args=False,
        )
    )


def top_label_error(probabilities: Any, labels: Any) -> float:
    return float(
        _classification.multiclass_calibration_error(
            torch.from_numpy(probabilities),
            torch.from_numpy(labels),
            num_classes=probabilities.shape[1],
            n_bins=20,
            norm="l1",
            validate_args=False,
        )
    )

"""The score that decides an exit: the top probability of the softmax.

It is computed in float64 from logits of any precision. Calibration and deployment both use this
function, so the score that is compared with a threshold is the score that was counted.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.toplabel import ONE_SCORE


def top_label(logits: Tensor, rows: int, classes: int | None = None) -> tuple[Tensor, Tensor]:
    """Confidence (float64) and label (int64) of each of `rows` rows.

    Of equal logits the first wins, and NaN stays NaN. `classes` is how many other heads know.
    """
    require_classes(logits, rows)
    if classes not in (None, logits.shape[1]):
        raise InvalidValueError(
            f"a head knows {logits.shape[1]} classes, and another {classes}: expected the same "
            "classes from all heads, in the same columns."
        )
    if logits.device.type == "mps":
        logits = logits.cpu()  # that device has no float64
    confidence, label = logits.softmax(dim=1, dtype=torch.float64).max(dim=1)
    return confidence, label


def require_classes(logits: Any, rows: int) -> None:
    """Raise unless `logits` are a tensor of (rows, classes), of at least two classes."""
    if not isinstance(logits, Tensor):
        raise InvalidTypeError(
            f"a head gave a {type(logits).__name__}: expected a tensor of logits, (rows, classes)."
        )
    if logits.ndim != 2 or len(logits) != rows or not logits.shape[1]:
        raise InvalidValueError(
            f"a head gave logits of shape {tuple(logits.shape)} for {rows} rows: expected ({rows}, "
            "classes). Stages and heads must keep the rows of a batch apart, in the first "
            "dimension."
        )
    if logits.shape[1] == 1:
        raise InvalidValueError(
            f"a head gave logits of shape {tuple(logits.shape)}, {ONE_SCORE}, or the logits [0, z]."
        )

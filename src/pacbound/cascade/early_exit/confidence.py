"""The score that decides an exit: the top probability of the softmax.

It is computed in float64 from logits of any precision. Calibration and deployment both use this
function, so the score that is compared with a threshold is the score that was counted.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pacbound.errors import InvalidValueError


def top_label(logits: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """Confidence (float64) and label (int64) of each of `rows` rows.

    Of equal logits the first wins, and NaN stays NaN.
    """
    if logits.ndim != 2 or len(logits) != rows or not logits.shape[1]:
        raise InvalidValueError(
            f"a head gave logits of shape {tuple(logits.shape)} for {rows} rows: expected ({rows}, "
            "classes). Stages and heads must keep the rows of a batch apart, in the first "
            "dimension."
        )
    if logits.device.type == "mps":
        logits = logits.cpu()  # that device has no float64
    confidence, label = logits.softmax(dim=1, dtype=torch.float64).max(dim=1)
    return confidence, label

"""Inference that skips work: rows that are confident enough leave, the others go on.

Each stage runs on the rows that are still there and on nothing else; answers come back in the order
of the batch. The score that decides an exit is the top probability of the softmax, in float64 from
logits of any precision. Calibration and deployment both compute it by `top_label`, so the score
that is compared with a threshold is the score that was counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, SupportsFloat

import numpy as np
import torch
from torch import Tensor, nn

from pacbound.cascade.early_exit.batches import Batch, device_of, packed
from pacbound.cascade.stages import ExitThresholds
from pacbound.claims.cascade import CascadeCertificate
from pacbound.claims.certificate import Certificate, certificate_of
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.probabilities import ONE_SCORE

Certified = CascadeCertificate


@dataclass(frozen=True, eq=False)
class EarlyExitResult:
    """What the rows of a batch were answered.

    Attributes
    ----------
    labels
        The predicted class of each row, int64.
    confidences
        The confidence of that answer, float64.
    exits
        The exit that gave it, counted from 0.

    Examples
    --------
    Two stages that leave their input as it is, so that the heads see the same two logits:

    >>> from pacbound.cascade.early_exit import EarlyExitNetwork
    >>> parts = nn.Identity(), nn.Identity()
    >>> network = EarlyExitNetwork(parts, parts).eval()
    >>> result = network.infer(torch.tensor([[4.0, 0.0], [0.1, 0.0]]), [0.9])
    >>> result.labels.tolist(), result.exits.tolist()
    ([0, 0], [0, 1])
    """

    labels: Tensor
    confidences: Tensor
    exits: Tensor


def answer(
    stages: Sequence[nn.Module],
    heads: Sequence[nn.Module],
    x: Batch,
    rows: int,
    thresholds: Sequence[float] | Sequence[Tensor],
) -> EarlyExitResult:
    """Run each of the `rows` rows of `x` through `stages` until its confidence reaches a threshold.

    There is a threshold for each stage but the last, or one for each row there. At +inf a head is
    not run.
    """
    if rows == 1:
        return _answer_one(stages, heads, x, [*map(float, thresholds), -np.inf])
    # Made outside inference mode, so that the caller may change them in place.
    device = _answering_device(x)
    labels, exits = (torch.empty(rows, dtype=torch.int64, device=device) for _ in range(2))
    confidences = torch.empty(rows, dtype=torch.float64, device=device)
    answers = EarlyExitResult(labels, confidences, exits)
    if not rows:
        return answers
    going, classes = torch.arange(rows, device=device), None
    with torch.inference_mode():
        for m, threshold in enumerate([*thresholds, -np.inf]):
            x = stages[m](x)
            limit = threshold[going] if isinstance(threshold, Tensor) else threshold
            if (limit == np.inf) if isinstance(limit, float) else bool(limit.isinf().all()):
                continue
            logits = heads[m](x)
            confidence, label = top_label(logits, len(going), classes)
            classes = logits.shape[1]
            leaves = confidence >= limit
            leaving = leaves.nonzero().squeeze(1)
            if m == len(stages) - 1 or len(leaving) == len(going):
                _write(answers, going, label, confidence, m)
                break
            if len(leaving):
                _write(answers, going[leaving], label[leaving], confidence[leaving], m)
                staying = leaves.logical_not().nonzero().squeeze(1)
                going, x = going[staying], packed(x, staying, len(going))
    return answers


def _answer_one(
    stages: Sequence[nn.Module], heads: Sequence[nn.Module], x: Batch, thresholds: Sequence[float]
) -> EarlyExitResult:
    # After a network has run, an operator of torch costs tens of microseconds: few of them, and the
    # comparison in Python's floats, which are float64 too.
    last, classes = len(stages) - 1, None
    with torch.inference_mode():
        for m, threshold in enumerate(thresholds):
            x = stages[m](x)
            if threshold == np.inf:
                continue
            logits = heads[m](x)
            confidence, label = _top_of_one(logits, classes)
            if m == last or confidence >= threshold:
                break
            classes = logits.shape[1]
    # Made outside inference mode, so that the caller may change them in place.
    device = _answering_device(logits)
    return EarlyExitResult(
        torch.full((1,), label, device=device),
        torch.full((1,), confidence, dtype=torch.float64, device=device),
        torch.full((1,), m, device=device),
    )


def _top_of_one(logits: Tensor, classes: int | None) -> tuple[float, int]:
    """What `top_label` gives for one row, as numbers; the probabilities are the same to the bit."""
    probabilities = _probabilities(logits, 1, classes)
    if probabilities.shape[1] > _FEW_CLASSES:
        confidence, label = probabilities.max(dim=1)
        return confidence.item(), int(label)
    (row,) = probabilities.tolist()
    # If one is NaN all are, since they are divided by their sum: `max` then gives the first.
    highest: float = max(row)
    return highest, row.index(highest)


# Up to so many, a list is faster than an operator.
_FEW_CLASSES = 1000


def _answering_device(x: Batch) -> torch.device:
    device = device_of(x)
    return torch.device("cpu") if device.type == "mps" else device  # that device has no float64


def _write(
    answers: EarlyExitResult, rows: Tensor, label: Tensor, confidence: Tensor, m: int
) -> None:
    answers.labels.index_copy_(0, rows, label)
    answers.confidences.index_copy_(0, rows, confidence)
    answers.exits.index_fill_(0, rows, m)


def limits_of_rows(
    thresholds: Certified | str | os.PathLike[str] | Iterable[SupportsFloat],
    exits: int,
    x: Batch,
    rows: int,
    groups: Any,
) -> list[float] | list[Tensor]:
    """The threshold of each early exit, as plain numbers: between two stages that run for a
    millisecond, arrays of one number are slow. With the own thresholds of groups, a tensor of one
    for each row there.
    """
    limits = _limits(thresholds, exits)
    if isinstance(limits.values, dict):
        of_rows = limits.of_rows(rows, groups)
        return [torch.tensor(column, device=_answering_device(x)) for column in of_rows.T]
    limits.required(groups, "the group of each row")
    same_for_all: list[float] = limits.values.tolist()
    return same_for_all


def _limits(
    thresholds: Certified | str | os.PathLike[str] | Iterable[SupportsFloat], exits: int
) -> ExitThresholds:
    if type(thresholds) is list and {*map(type, thresholds)} == {float}:
        return _checked_once(tuple(thresholds), exits + 1)
    given = certificate_of(thresholds)
    if isinstance(given, Certified):
        return _checked_once(given, exits + 1)
    if not isinstance(given, (Certificate, Mapping)) and np.ndim(given) != 1:
        raise InvalidTypeError(
            f"thresholds={thresholds!r}: expected {exits} numbers in a list, or a cascade "
            "certificate."
        )
    return ExitThresholds.of(given, exits + 1)


# A service answers thousands of batches by the same thresholds. Neither certificates nor numbers
# change, so what was found of them stays true.
_checked_once = lru_cache(maxsize=16)(ExitThresholds.of)


def top_label(logits: Tensor, rows: int, classes: int | None = None) -> tuple[Tensor, Tensor]:
    """Confidence (float64) and label (int64) of each of `rows` rows.

    Of equal logits the first wins, and NaN stays NaN. `classes` is how many other heads know.
    """
    confidence, label = _probabilities(logits, rows, classes).max(dim=1)
    return confidence, label


def _probabilities(logits: Tensor, rows: int, classes: int | None) -> Tensor:
    """The softmax of each of `rows` rows, in float64."""
    if classes is None or not isinstance(logits, Tensor) or logits.shape != (rows, classes):
        require_classes(logits, rows)
        if classes not in (None, logits.shape[1]):
            raise InvalidValueError(
                f"a head knows {logits.shape[1]} classes, and another {classes}: expected the same "
                "classes from all heads, in the same columns."
            )
    if logits.is_mps:
        logits = logits.cpu()  # that device has no float64
    return logits.softmax(dim=1, dtype=torch.float64)


def require_classes(logits: Any, rows: int) -> None:
    """Raise unless `logits` are a tensor of (rows, classes), of at least two classes."""
    if not isinstance(logits, Tensor):
        raise InvalidTypeError(
            f"a head gave a {type(logits).__name__}: expected a tensor of logits, (rows, classes)."
        )
    shape = logits.shape
    if len(shape) != 2 or shape[0] != rows or not shape[1]:
        raise InvalidValueError(
            f"a head gave logits of shape {tuple(shape)} for {rows} rows: expected ({rows}, "
            "classes). Stages and heads must keep the rows of a batch apart, in the first "
            "dimension."
        )
    if shape[1] == 1:
        raise InvalidValueError(
            f"a head gave logits of shape {tuple(shape)}, {ONE_SCORE}, or the logits [0, z]."
        )

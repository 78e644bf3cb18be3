"""What every exit says on every row: the arrays that a cascade is certified from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pacbound.cascade.early_exit.batch_rows import Batch, row_count
from pacbound.cascade.early_exit.confidence import top_label
from pacbound.errors import InvalidTypeError, InvalidValueError


@dataclass(frozen=True, eq=False)
class ExitTable:
    """What every exit says on every row: the arrays that `certify_cascade` takes.

    Attributes
    ----------
    confidences
        (n, M-1) confidences of the early exits.
    predictions
        (n, M) predicted classes, the slow network's last.
    labels
        (n,) true classes; None if there were none.

    Examples
    --------
    >>> from torch import nn
    >>> from pacbound.cascade.early_exit import EarlyExitNetwork
    >>> parts = nn.Identity(), nn.Identity()
    >>> network = EarlyExitNetwork(parts, parts).eval()
    >>> batch = torch.tensor([[4.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 1])
    >>> table = network.exit_table([batch])
    >>> table.confidences.round(3).tolist(), table.predictions.tolist(), table.labels.tolist()
    ([[0.982], [0.881]], [[0, 0], [1, 1]], [0, 1])
    """

    confidences: NDArray[np.float64]
    predictions: NDArray[np.int64]
    labels: NDArray[np.int64] | None


def tabulate(logits_of: Callable[[Batch], tuple[Tensor, ...]], loader: Iterable[Any]) -> ExitTable:
    """The table of all rows of `loader`: batches of inputs, or of inputs and labels."""
    confidences, predictions, labels = [], [], []
    for inputs, truth in map(inputs_and_labels, batches(loader)):
        rows = row_count(inputs)
        if truth is not None:
            _require_a_label_each(truth, rows)
        with torch.inference_mode():
            first, *others = logits_of(inputs)
            tops = [top_label(first, rows)]
            tops += [top_label(logits, rows, first.shape[1]) for logits in others]
        confidences.append(
            torch.stack([confidence for confidence, _ in tops[:-1]], dim=1).cpu().numpy()
        )
        predictions.append(torch.stack([label for _, label in tops], dim=1).cpu().numpy())
        labels.append(truth if truth is None else truth.cpu().numpy())
    if not confidences:
        raise InvalidValueError(
            "The loader gave no batch: pass batches, or something that can be iterated over anew."
        )
    known = [part for part in labels if part is not None]
    if known and len(known) < len(labels):
        raise InvalidValueError(
            "Some batches of the loader have labels and some have none: pass one or the other."
        )
    return ExitTable(
        np.concatenate(confidences),
        np.concatenate(predictions),
        np.concatenate(known) if known else None,
    )


def batches(loader: Iterable[Any]) -> Iterable[Any]:
    """`loader`, unless it is one batch, whose parts would be taken for batches."""
    if isinstance(loader, (Tensor, Mapping)):
        kind = "tensor" if isinstance(loader, Tensor) else "dictionary"
        raise InvalidTypeError(
            f"loader is a {kind}: expected batches, such as a DataLoader. For a single batch pass "
            f"[{kind}]."
        )
    if _is_one_batch(loader):
        raise InvalidTypeError(
            "loader is a pair of inputs and labels: expected batches, such as a DataLoader. For a "
            "single batch pass [(inputs, labels)]."
        )
    if not isinstance(loader, Iterable):
        raise InvalidTypeError(
            f"loader is of type {type(loader).__name__}: expected batches, such as a DataLoader."
        )
    return loader


def _is_one_batch(loader: Any) -> bool:
    """Whether it is inputs and labels, and not two batches, which would be of one shape."""
    if not (isinstance(loader, (tuple, list)) and len(loader) == 2):
        return False
    inputs, labels = loader
    if not isinstance(labels, Tensor) or isinstance(inputs, (tuple, list)):
        return False
    return not isinstance(inputs, Tensor) or inputs.ndim != labels.ndim


def inputs_and_labels(batch: Any) -> tuple[Batch, Tensor | None]:
    """A batch as a loader gives it, taken apart; a batch without labels has None."""
    if isinstance(batch, Tensor):
        return batch, None
    if isinstance(batch, MutableMapping):
        inputs = copy(batch)
        return inputs, _checked_labels(inputs.pop("labels", None))
    if isinstance(batch, (tuple, list)) and 1 <= len(batch) <= 2:
        return batch[0], _checked_labels(batch[1] if len(batch) == 2 else None)
    came = f"type {type(batch).__name__}"
    if isinstance(batch, (tuple, list)):
        came = f"{len(batch)} parts"
    raise InvalidTypeError(
        f"a batch of the loader is of {came}: expected inputs, (inputs, labels), or a dictionary, "
        "with labels, if there are any, under 'labels'. Several tensors of inputs go into one "
        "dictionary or tuple: ((ids, mask), labels)."
    )


def _checked_labels(labels: Any) -> Tensor | None:
    if labels is None or isinstance(labels, Tensor):
        return labels
    raise InvalidTypeError(
        f"the labels of a batch are of type {type(labels).__name__}: expected a tensor. Several "
        "tensors of inputs go into one dictionary or tuple: ((ids, mask), labels)."
    )


def _require_a_label_each(labels: Tensor, rows: int) -> None:
    if labels.ndim != 1 or len(labels) != rows:
        raise InvalidValueError(
            f"a batch of {rows} rows has labels of shape {tuple(labels.shape)}: expected ({rows},)."
            " A batch of two tensors is taken for (inputs, labels); if the second is an input too, "
            "pass a dictionary, or (inputs,) with all inputs in one tuple."
        )

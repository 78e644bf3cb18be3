"""What every exit says on every row: the arrays that a cascade is certified from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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


def tabulate(logits_of: Callable[[Tensor], tuple[Tensor, ...]], loader: Iterable[Any]) -> ExitTable:
    """The table of all rows of `loader`: batches of inputs, or of inputs and labels."""
    confidences, predictions, labels = [], [], []
    for inputs, truth in map(inputs_and_labels, batches(loader)):
        with torch.inference_mode():
            tops = [top_label(logits, len(inputs)) for logits in logits_of(inputs)]
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
    """`loader`, unless it is one tensor, whose rows would be taken for batches."""
    if isinstance(loader, Tensor):
        raise InvalidTypeError(
            "loader is a tensor: expected batches, such as a DataLoader. For a single batch pass "
            "[tensor]."
        )
    return loader


def inputs_and_labels(batch: Any) -> tuple[Tensor, Tensor | None]:
    """A batch as a loader gives it, taken apart; a batch without labels has None."""
    if isinstance(batch, Tensor):
        return batch, None
    if (
        isinstance(batch, (tuple, list))
        and 1 <= len(batch) <= 2
        and all(isinstance(part, Tensor) for part in batch)
    ):
        return batch[0], batch[1] if len(batch) == 2 else None
    raise InvalidTypeError(
        f"a batch of the loader is of type {type(batch).__name__}: expected a tensor, or (inputs, "
        "labels)."
    )

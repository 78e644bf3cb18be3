"""Batches: what a loader gives, how many rows there are, on which device, and some of them.

A batch is a tensor whose first dimension counts the rows, or a dictionary, a list or a tuple of
batches, as deep as one likes: token ids with their attention mask, an image with the numbers that
go with it. None may stand for a part that is left out. What comes out is of the kind that went in.

A tensor that is shared by all rows has no place in a batch: by its shape it could not be told from
one with something for each row, and packing would tear it apart. Keep it in the module, as a
buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from copy import copy
from typing import Any, TypeAlias

import torch
from torch import Tensor

from pacbound.errors import InvalidTypeError, InvalidValueError

# A tensor, or a dictionary, a list or a tuple of batches or None.
Batch: TypeAlias = Any


def row_count(batch: Batch) -> int:
    """How many rows there are; raises if the tensors of `batch` do not agree on it."""
    if isinstance(batch, Tensor) and batch.ndim:
        return batch.shape[0]
    counts = {name: _first_dimension(tensor, name) for name, tensor in _tensors(batch)}
    if len(set(counts.values())) != 1:
        listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise InvalidValueError(
            "The tensors of a batch have no common number of rows: "
            f"{listed or 'there are none'}. Expected something for each row in each tensor; keep "
            "what all rows share in a buffer of the module."
        )
    return next(iter(counts.values()))


def device_of(batch: Batch) -> torch.device:
    """The device of the first tensor."""
    return batch.device if isinstance(batch, Tensor) else next(_tensors(batch))[1].device


def moved(batch: Batch, device: torch.device) -> Batch:
    """The batch on another device."""
    return _mapped(lambda tensor: tensor.to(device), batch)


def packed(batch: Batch, rows: Tensor, count: int) -> Batch:
    """The given `rows` of the `count` rows of `batch`, laid out in memory as they were."""

    def some_of(tensor: Tensor) -> Tensor:
        if not tensor.ndim or len(tensor) != count:
            raise InvalidValueError(
                f"a stage gave a tensor of shape {tuple(tensor.shape)} for {count} rows: expected "
                "something for each row, in the first dimension. Repeat it for each row, or keep "
                "what all rows share in a buffer of the module."
            )
        return _some_rows(tensor, rows)

    return _mapped(some_of, batch)


def _some_rows(tensor: Tensor, rows: Tensor) -> Tensor:
    # `index_select` alone would undo channels_last, and slowly.
    rows = rows.to(tensor.device)
    if tensor.is_contiguous():
        return tensor.index_select(0, rows)
    order = [0, *sorted(range(1, tensor.ndim), key=tensor.stride().__getitem__, reverse=True)]
    inverse = [order.index(axis) for axis in range(tensor.ndim)]
    return tensor.permute(order).index_select(0, rows).permute(inverse)


def _mapped(function: Callable[[Tensor], Tensor], batch: Batch) -> Batch:
    if isinstance(batch, Tensor):
        return function(batch)
    if batch is None:
        return None
    if isinstance(batch, MutableMapping):
        # Copied and filled again: dictionaries with more to them than their items stay what they
        # are.
        parts = copy(batch)
        for key, part in batch.items():
            parts[key] = _mapped(function, part)
        return parts
    if isinstance(batch, (list, tuple)):
        filled = (_mapped(function, part) for part in batch)
        return type(batch)(*filled) if hasattr(batch, "_fields") else type(batch)(filled)
    raise _not_a_batch(batch, "it")


def _tensors(batch: Batch, name: str = "it") -> Iterator[tuple[str, Tensor]]:
    """Each tensor, and where it stands."""
    if isinstance(batch, Tensor):
        yield name, batch
    elif isinstance(batch, MutableMapping):
        for key, part in batch.items():
            yield from _tensors(part, f"{name}[{key!r}]")
    elif isinstance(batch, (list, tuple)):
        for place, part in enumerate(batch):
            yield from _tensors(part, f"{name}[{place}]")
    elif batch is not None:
        raise _not_a_batch(batch, name)


def _first_dimension(tensor: Tensor, name: str) -> int:
    if not tensor.ndim:
        raise InvalidValueError(
            f"{name} of a batch is a single number without rows: expected something for each row."
        )
    return len(tensor)


def _not_a_batch(part: object, name: str) -> InvalidTypeError:
    return InvalidTypeError(
        f"{name} of a batch is of type {type(part).__name__}: expected a tensor whose first "
        "dimension counts the rows, or a dictionary, a list or a tuple of these."
    )


def batches(loader: Iterable[Any]) -> Iterable[Any]:
    """`loader`; raises if it is a single batch, whose parts would be taken for batches."""
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
        raise InvalidTypeError.of("loader", loader, "batches, such as a DataLoader")
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


def require_a_label_each(labels: Tensor, rows: int) -> None:
    """Raise unless there are as many labels as rows."""
    if labels.ndim == 2 and len(labels) == rows:
        raise InvalidValueError(
            f"a batch has labels of shape {tuple(labels.shape)}: expected the number of one class "
            f"for each row, of shape ({rows},). Where a row has several labels, each is a task of "
            "its own: train and certify a network for each, with labels[:, k]. For classes in "
            "columns pass labels.argmax(dim=1)."
        )
    if labels.ndim != 1 or len(labels) != rows:
        raise InvalidValueError(
            f"a batch of {rows} rows has labels of shape {tuple(labels.shape)}: expected ({rows},)."
            " A batch of two tensors is taken for (inputs, labels); if the second is an input too, "
            "pass a dictionary, or (inputs,) with all inputs in one tuple."
        )

"""What an answer costs: multiply-accumulate operations, counted while the network runs once.

Counted are convolutions and matrix products, whichever module or function makes them: linear
layers, attention. Not counted are biases, normalisation, activations, pooling, and look-ups, as is
usual when networks are compared. Products with the zeros of a padding count as all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from pacbound.cascade.early_exit.batches import Batch, moved, packed, row_count
from pacbound.cascade.early_exit.network import EarlyExitNetwork
from pacbound.errors import InvalidTypeError, InvalidValueError


def count_macs(
    network: nn.Module,
    input_shape: Sequence[int] | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    example: Batch = None,
) -> NDArray[np.int64]:
    """Multiply-accumulate operations to answer one row at each exit.

    The count of an exit includes all that runs before it, the heads of earlier exits included.
    Biases, normalisation, activations and pooling are not counted. The network runs once, on zeros
    or on the first row of `example`, on the device where it is.

    Parameters
    ----------
    network
        An `EarlyExitNetwork`, or any other module.
    input_shape
        The shape of one row, without the batch, for a network that takes one tensor.
    dtype
        The type of the inputs: torch.int64 for a network that takes tokens.
    example
        A batch to take the first row of, in place of `input_shape`: for a network that takes
        several tensors, in a dictionary or a tuple.

    Returns
    -------
    ndarray of int64
        One number for each exit; a single number for a module without exits.

    Raises
    ------
    InvalidTypeError
        If the network has recurrent layers, whose products cannot be watched, or if there is not
        exactly one of `input_shape` and `example`.
    InvalidValueError
        If `example` has no rows, or its tensors not the same number of them.

    Examples
    --------
    >>> from torch import nn
    >>> count_macs(nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU()), (3, 32, 32))
    array([442368])
    """
    if not isinstance(network, nn.Module):
        raise InvalidTypeError(f"network is a {type(network).__name__}: expected a torch module.")
    for module in network.modules():
        if isinstance(module, (nn.RNNBase, nn.RNNCellBase)):
            raise InvalidTypeError(
                f"{type(module).__name__} hides its products: count networks with recurrent layers "
                "by hand."
            )
    x = _one_row(network, input_shape, dtype, example)
    with _unfused(), _evaluation(network), torch.no_grad():
        if not isinstance(network, EarlyExitNetwork):
            return np.array([_run(network, x)[1]], dtype=np.int64)
        costs = []
        for stage, head in zip(network.stages, network.heads, strict=True):
            x, cost = _run(stage, x)
            costs.append(cost + _run(head, x)[1])
    return np.cumsum(np.array(costs, dtype=np.int64))


def _one_row(
    network: nn.Module, shape: Sequence[int] | None, dtype: torch.dtype, example: Batch
) -> Batch:
    if (shape is None) == (example is None):
        raise InvalidTypeError(
            "count_macs takes the shape of one row, or example=, a batch: expected one of them."
        )
    first = next(network.parameters(), next(network.buffers(), None))
    device = torch.device("cpu") if first is None else first.device
    if shape is not None:
        return torch.zeros(1, *shape, dtype=dtype, device=device)
    rows = row_count(example)
    if not rows:
        raise InvalidValueError("example has no rows: expected at least one.")
    return moved(packed(example, torch.zeros(1, dtype=torch.int64), rows), device)


def _run(module: nn.Module, x: Batch) -> tuple[Batch, int]:
    counter = FlopCounterMode(display=False)
    with counter:
        result = module(x)
    return result, counter.get_total_flops() // 2


@contextmanager
def _unfused() -> Iterator[None]:
    """Attention in products that can be watched: fused kernels hide theirs."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(value=False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(value=fast)


@contextmanager
def _evaluation(network: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while: a batch of one cannot be normalised by its own statistics."""
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode

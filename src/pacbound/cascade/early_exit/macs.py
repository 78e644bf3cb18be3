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
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from pacbound.cascade.early_exit.network import EarlyExitNetwork
from pacbound.errors import InvalidTypeError


def count_macs(
    network: nn.Module, input_shape: Sequence[int], *, dtype: torch.dtype = torch.float32
) -> NDArray[np.int64]:
    """Multiply-accumulate operations to answer one row at each exit.

    The count of an exit includes all that runs before it, the heads of earlier exits included.
    Biases, normalisation, activations and pooling are not counted. The network runs once, on zeros,
    on the device where it is.

    Parameters
    ----------
    network
        An `EarlyExitNetwork`, or any other module.
    input_shape
        The shape of one row, without the batch.
    dtype
        The type of the inputs: torch.int64 for a network that takes tokens.

    Returns
    -------
    ndarray of int64
        One number for each exit; a single number for a module without exits.

    Raises
    ------
    InvalidTypeError
        If the network has recurrent layers, whose products cannot be watched.

    Examples
    --------
    >>> from torch import nn
    >>> count_macs(nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU()), (3, 32, 32))
    array([442368])
    """
    for module in network.modules():
        if isinstance(module, (nn.RNNBase, nn.RNNCellBase)):
            raise InvalidTypeError(
                f"{type(module).__name__} hides its products: count networks with recurrent layers "
                "by hand."
            )
    first = next(network.parameters(), next(network.buffers(), None))
    x = torch.zeros(1, *input_shape, dtype=dtype, device=None if first is None else first.device)
    with _unfused(), _evaluation(network), torch.no_grad():
        if not isinstance(network, EarlyExitNetwork):
            return np.array([_run(network, x)[1]], dtype=np.int64)
        costs = []
        for stage, head in zip(network.stages, network.heads, strict=True):
            x, cost = _run(stage, x)
            costs.append(cost + _run(head, x)[1])
    return np.cumsum(np.array(costs, dtype=np.int64))


def _run(module: nn.Module, x: Tensor) -> tuple[Tensor, int]:
    counter = FlopCounterMode(display=False)
    with counter:
        result: Tensor = module(x)
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

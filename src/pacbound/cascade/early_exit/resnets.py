"""Exits for residual networks that are there already, torchvision's and those named alike."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, pairwise

from torch import nn

from pacbound.cascade.early_exit.network import EarlyExitNetwork
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import whole_number


def early_exit_resnet(
    network: nn.Module, *, after: Sequence[int], pool: int = 1
) -> EarlyExitNetwork:
    """A residual network with early exits after chosen blocks.

    An early head averages its features down to `pool` x `pool` pixels and has one linear layer with
    random weights: train it with `train_heads`. The result shares the weights of `network`, so
    weights that are loaded into `network`, before or after, are those of the result too. The last
    exit answers as `network` does.

    Parameters
    ----------
    network
        One of torchvision's ResNets, or a module with its names: `conv1`, `bn1`, `relu` and
        `maxpool` where there are some, blocks in `layer1`, `layer2`, …, and `fc` or `linear`.
    after
        The numbers of the blocks, increasing, counted from 1 through all layers.
    pool
        The side of the pooled features of early heads.

    Returns
    -------
    EarlyExitNetwork
        A stage for each part between two cuts, in the mode that `network` is in.

    Raises
    ------
    InvalidTypeError
        If `network` is not a residual network with the expected names.
    InvalidValueError
        If `after` is empty, not increasing, or names a block that is not before the last.

    Examples
    --------
    >>> import torch
    >>> def block(channels):
    ...     return nn.Sequential(nn.LazyConv2d(channels, 3, stride=2), nn.BatchNorm2d(channels))
    >>> slow = nn.Module()
    >>> slow.layer1, slow.layer2 = (nn.Sequential(block(8), block(8)) for _ in range(2))
    >>> slow.fc = nn.Linear(8, 10)
    >>> network = early_exit_resnet(slow, after=[2, 3])
    >>> [tuple(logits.shape) for logits in network(torch.zeros(2, 3, 64, 64))]
    [(2, 10), (2, 10), (2, 10)]
    """
    blocks, classifier = _blocks(network), _classifier(network)
    cuts = [0, *after, len(blocks)]
    if len(cuts) == 2 or any(first >= second for first, second in pairwise(cuts)):
        raise InvalidValueError(
            f"after={tuple(after)}: expected increasing block numbers, 1 to {len(blocks) - 1}."
        )
    stages = [nn.Sequential(*blocks[first:second]) for first, second in pairwise(cuts)]
    stages[0] = nn.Sequential(*_stem(network), *stages[0])
    side = whole_number(pool, "pool", least=1)
    heads = [_pooled(_head(stage, classifier, side), side) for stage in stages[:-1]]
    return EarlyExitNetwork(stages, [*heads, _pooled(classifier, 1)]).train(network.training)


def _stem(network: nn.Module) -> list[nn.Module]:
    parts = (getattr(network, name, None) for name in ("conv1", "bn1", "relu", "maxpool"))
    return [part for part in parts if isinstance(part, nn.Module)]


def _blocks(network: nn.Module) -> list[nn.Module]:
    blocks: list[nn.Module] = []
    for number in count(1):
        layer = getattr(network, f"layer{number}", None)
        if not isinstance(layer, nn.Sequential):
            break
        blocks.extend(layer)
    return blocks


def _classifier(network: nn.Module) -> nn.Linear:
    for name in ("fc", "linear"):
        if isinstance(module := getattr(network, name, None), nn.Linear):
            return module
    raise InvalidTypeError(
        f"{type(network).__name__} is not a residual network that can be cut here: expected "
        "one of torchvision's ResNets. For any other network build "
        "EarlyExitNetwork(stages, heads) yourself."
    )


def _pooled(classifier: nn.Linear, side: int) -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(side), nn.Flatten(), classifier)


def _head(stage: nn.Sequential, classifier: nn.Linear, side: int) -> nn.Linear:
    """A linear layer like `classifier`, for the number of channels of the stage's last
    normalisation.
    """
    norm = [module for module in stage.modules() if isinstance(module, nn.BatchNorm2d)][-1]
    weight = classifier.weight
    return nn.Linear(
        norm.num_features * side**2,
        classifier.out_features,
        device=weight.device,
        dtype=weight.dtype,
    )

"""Residual networks (He et al. 2016) for images of 32 x 32 and of 224 x 224, and exits for them.

The small ones have shortcuts without parameters (section 4.2 of the paper); their parameters are
named as in the public weights of akamaster/pytorch_resnet_cifar10, which load strictly once the
prefix "module." is stripped. Three layers of n blocks with 16, 32 and 64 channels make a depth of
6 n + 2. ResNet-101 has torchvision's parameter names, and as there the stride of a bottleneck is in
its 3 x 3 convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, pairwise

from torch import Tensor, nn

from pacbound.cascade.early_exit.network import EarlyExitNetwork
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import whole_number

# A bottleneck gives four times as many channels as it computes in.
EXPANSION = 4

DEPTHS = (20, 32, 44, 56)


def resnet_cifar(depth: int, *, classes: int = 10) -> CifarResNet:
    """A residual network for images of 32 x 32, with random weights from torch's generator.

    Parameters
    ----------
    depth
        The number of layers: 20, 32, 44 or 56.
    classes
        The number of classes.

    Returns
    -------
    CifarResNet
        The network, in training mode.

    Raises
    ------
    InvalidValueError
        If `depth` is another number.

    Examples
    --------
    >>> sum(parameter.numel() for parameter in resnet_cifar(20).parameters())
    269722
    """
    if depth not in DEPTHS:
        raise InvalidValueError(f"depth={depth!r}: expected one of {', '.join(map(str, DEPTHS))}.")
    return CifarResNet(blocks=(depth - 2) // 6, classes=classes)


class CifarResNet(nn.Module):
    """Images of shape (n, 3, 32, 32) in, logits out."""

    def __init__(self, *, blocks: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU()
        self.layer1 = _cifar_layer(16, 16, blocks)
        self.layer2 = _cifar_layer(16, 32, blocks)
        self.layer3 = _cifar_layer(32, 64, blocks)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.linear = nn.Linear(64, classes)
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        logits: Tensor = self.linear(self.avgpool(x).flatten(1))
        return logits


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut; where the channels double, the size is halved."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(
            channels_in, channels, 3, stride=channels // channels_in, padding=1, bias=False
        )
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.shortcut = (
            nn.Identity()
            if channels == channels_in
            else HalvingShortcut((channels - channels_in) // 2)
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        result: Tensor = self.relu(y + self.shortcut(x))
        return result


class HalvingShortcut(nn.Module):
    """Every second pixel, with `extra` channels of zeros on both sides (the paper's option A)."""

    def __init__(self, extra: int) -> None:
        super().__init__()
        self.extra = extra

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.extra, self.extra))


def _cifar_layer(channels_in: int, channels: int, blocks: int) -> nn.Sequential:
    return nn.Sequential(
        BasicBlock(channels_in, channels),
        *(BasicBlock(channels, channels) for _ in range(blocks - 1)),
    )


def resnet101(*, classes: int = 1000) -> BottleneckResNet:
    """ResNet-101 for images of 224 x 224, with random weights from torch's generator.

    Other sizes run too, from 32 x 32 on.

    Parameters
    ----------
    classes
        The number of classes.

    Returns
    -------
    BottleneckResNet
        The network, in training mode.

    Examples
    --------
    >>> sum(parameter.numel() for parameter in resnet101().parameters())
    44549160
    """
    return BottleneckResNet(blocks=(3, 4, 23, 3), classes=classes)


class BottleneckResNet(nn.Module):
    """Images of shape (n, 3, height, width) in, logits out."""

    def __init__(self, *, blocks: tuple[int, int, int, int], classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _bottleneck_layer(64, 64, blocks[0], stride=1)
        self.layer2 = _bottleneck_layer(64 * EXPANSION, 128, blocks[1], stride=2)
        self.layer3 = _bottleneck_layer(128 * EXPANSION, 256, blocks[2], stride=2)
        self.layer4 = _bottleneck_layer(256 * EXPANSION, 512, blocks[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512 * EXPANSION, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(self.avgpool(x).flatten(1))
        return logits


class Bottleneck(nn.Module):
    """Convolutions of 1 x 1, 3 x 3 and 1 x 1, and a shortcut.

    The shortcut is projected where the shape changes.
    """

    def __init__(self, channels_in: int, width: int, *, stride: int) -> None:
        super().__init__()
        channels = width * EXPANSION
        self.conv1 = nn.Conv2d(channels_in, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        projected = stride != 1 or channels_in != channels
        self.downsample = _projection(channels_in, channels, stride) if projected else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        result: Tensor = self.relu(y + self.downsample(x))
        return result


def _projection(channels_in: int, channels: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False), nn.BatchNorm2d(channels)
    )


def _bottleneck_layer(channels_in: int, width: int, blocks: int, *, stride: int) -> nn.Sequential:
    rest = (Bottleneck(width * EXPANSION, width, stride=1) for _ in range(blocks - 1))
    return nn.Sequential(Bottleneck(channels_in, width, stride=stride), *rest)


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
        What `resnet_cifar` or `resnet101` gives, or one of torchvision's ResNets.
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
    >>> from pacbound.cascade.early_exit import resnet_cifar
    >>> network = early_exit_resnet(resnet_cifar(20), after=(3, 6))
    >>> [tuple(logits.shape) for logits in network(torch.zeros(2, 3, 32, 32))]
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
        "resnet_cifar, resnet101 or one of torchvision's ResNets. For any other network build "
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

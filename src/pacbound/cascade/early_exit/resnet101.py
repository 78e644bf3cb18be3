"""ResNet-101 (He et al. 2016) with torchvision's parameter names, whose weights load strictly.

As in torchvision the stride of a bottleneck is in its 3 x 3 convolution.
"""

from __future__ import annotations

from torch import Tensor, nn

EXPANSION = 4
"""A bottleneck gives four times as many channels as it computes in."""


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
        self.layer1 = _layer(64, 64, blocks[0], stride=1)
        self.layer2 = _layer(64 * EXPANSION, 128, blocks[1], stride=2)
        self.layer3 = _layer(128 * EXPANSION, 256, blocks[2], stride=2)
        self.layer4 = _layer(256 * EXPANSION, 512, blocks[3], stride=2)
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


def _layer(channels_in: int, width: int, blocks: int, *, stride: int) -> nn.Sequential:
    rest = (Bottleneck(width * EXPANSION, width, stride=1) for _ in range(blocks - 1))
    return nn.Sequential(Bottleneck(channels_in, width, stride=stride), *rest)

"""Residual networks for images of 32 x 32 (He et al. 2016, section 4.2), with parameter-free
shortcuts.

Parameters are named as in the public weights of akamaster/pytorch_resnet_cifar10, which load
strictly once the prefix "module." is stripped. Three layers of n blocks with 16, 32 and 64 channels
make a depth of 6 n + 2.
"""

from __future__ import annotations

from torch import Tensor, nn

from pacbound.errors import InvalidValueError

DEPTHS = (20, 32, 44, 56)


def resnet_cifar(depth: int, *, classes: int = 10) -> CifarResNet:
    """The residual network of 20, 32, 44 or 56 layers for images of 32 x 32, with random weights
    from torch's generator.

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
        self.layer1 = _layer(16, 16, blocks)
        self.layer2 = _layer(16, 32, blocks)
        self.layer3 = _layer(32, 64, blocks)
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
    """Every second pixel, `extra` channels of zeros before and after (option A of the paper)."""

    def __init__(self, extra: int) -> None:
        super().__init__()
        self.extra = extra

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.extra, self.extra))


def _layer(channels_in: int, channels: int, blocks: int) -> nn.Sequential:
    return nn.Sequential(
        BasicBlock(channels_in, channels),
        *(BasicBlock(channels, channels) for _ in range(blocks - 1)),
    )

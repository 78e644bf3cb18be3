"""Residual networks (He et al. 2016) for images of 32 x 32 and of 224 x 224.

The small ones, of depth 20, 32, 44 or 56, have shortcuts without parameters (section 4.2 of the
paper); their parameters are named as in the public weights of akamaster/pytorch_resnet_cifar10,
which load strictly once the prefix "module." is stripped. Three layers of n blocks with 16, 32 and
64 channels make a depth of 6 n + 2. ResNet-101 has torchvision's parameter names, and as there the
stride of a bottleneck is in its 3 x 3 convolution.
"""

from __future__ import annotations

from torch import Tensor, nn

# A bottleneck gives four times as many channels as it computes in.
EXPANSION = 4


def resnet_cifar(depth: int, *, classes: int = 10) -> CifarResNet:
    """A residual network for images of 32 x 32, with random weights from torch's generator."""
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
    """ResNet-101 for images of 224 x 224, with random weights from torch's generator. Sizes from
    32 x 32 on run, too.
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

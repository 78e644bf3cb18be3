"""The networks whose time is measured, in torch, with random weights: what they cost, not what they
say.

Layers and sizes are those of the papers, and of torchvision where it differs: He et al. (2016),
Huang et al. (2017), Sandler et al. (2018). `tests/experiments` holds the number of parameters of
each.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from experiments.early_exit.resnets import BottleneckResNet

CLASSES = 1000


def networks() -> dict[str, Callable[[], nn.Module]]:
    """What builds each network, by its name."""
    return {
        "resnet18": lambda: BasicResNet((2, 2, 2, 2)),
        "resnet34": lambda: BasicResNet((3, 4, 6, 3)),
        "resnet50": lambda: BottleneckResNet(blocks=(3, 4, 6, 3), classes=CLASSES),
        "resnet101": lambda: BottleneckResNet(blocks=(3, 4, 23, 3), classes=CLASSES),
        "densenet121": lambda: DenseNet((6, 12, 24, 16)),
        "densenet169": lambda: DenseNet((6, 12, 32, 32)),
        "densenet201": lambda: DenseNet((6, 12, 48, 32)),
        "mobilenetV2": MobileNetV2,
    }


def convolution(
    channels_in: int, channels: int, size: int, *, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    """A convolution that keeps the side, but for its stride, and a normalisation."""
    return nn.Sequential(
        nn.Conv2d(
            channels_in,
            channels,
            size,
            stride=stride,
            padding=size // 2,
            groups=groups,
            bias=False,
        ),
        nn.BatchNorm2d(channels),
    )


def answers(channels: int) -> nn.Sequential:
    """The mean over the image, and a score for each class."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


class Basic(nn.Module):
    """Two convolutions of 3 x 3 and a shortcut."""

    def __init__(self, channels_in: int, channels: int, *, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            convolution(channels_in, channels, 3, stride=stride),
            nn.ReLU(inplace=True),
            convolution(channels, channels, 3),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = convolution(channels_in, channels, 1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu_(self.body(x) + self.shortcut(x))


class BasicResNet(nn.Sequential):
    """ResNet-18 and ResNet-34."""

    def __init__(self, blocks: tuple[int, int, int, int]) -> None:
        layers: list[nn.Module] = [
            convolution(3, 64, 7, stride=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2, padding=1),
        ]
        channels_in = 64
        for stage, count in enumerate(blocks):
            channels = 64 * 2**stage
            for block in range(count):
                stride = 2 if stage and not block else 1
                layers.append(Basic(channels_in, channels, stride=stride))
                channels_in = channels
        super().__init__(*layers, answers(channels_in))


class Dense(nn.Module):
    """A bottleneck of 128 channels, and 32 new channels beside what came in."""

    def __init__(self, channels_in: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(channels_in),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels_in, 128, 1, bias=False),
            nn.BatchNorm2d(128),
            nn.ReLU(inplace=True),
            nn.Conv2d(128, 32, 3, padding=1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.body(x)], dim=1)


class DenseNet(nn.Sequential):
    """DenseNet-121, 169 and 201, which differ in how many layers their blocks have."""

    def __init__(self, blocks: tuple[int, int, int, int]) -> None:
        layers: list[nn.Module] = [
            convolution(3, 64, 7, stride=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2, padding=1),
        ]
        channels = 64
        for place, count in enumerate(blocks):
            if place:
                layers += [
                    nn.BatchNorm2d(channels),
                    nn.ReLU(inplace=True),
                    nn.Conv2d(channels, channels // 2, 1, bias=False),
                    nn.AvgPool2d(2),
                ]
                channels //= 2
            for _ in range(count):
                layers.append(Dense(channels))
                channels += 32
        last = [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
        super().__init__(*layers, *last, answers(channels))


class Inverted(nn.Module):
    """Widen, filter each channel by itself, narrow; with a shortcut where the shape stays."""

    def __init__(self, channels_in: int, channels: int, *, stride: int, widen: int) -> None:
        super().__init__()
        wide = channels_in * widen
        first = [convolution(channels_in, wide, 1), nn.ReLU6(inplace=True)] if widen > 1 else []
        self.body = nn.Sequential(
            *first,
            convolution(wide, wide, 3, stride=stride, groups=wide),
            nn.ReLU6(inplace=True),
            convolution(wide, channels, 1),
        )
        self.added = stride == 1 and channels_in == channels

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x)
        return x + y if self.added else y


class MobileNetV2(nn.Sequential):
    """MobileNetV2 of width 1."""

    def __init__(self) -> None:
        layers: list[nn.Module] = [convolution(3, 32, 3, stride=2), nn.ReLU6(inplace=True)]
        channels_in = 32
        for widen, channels, count, stride in (
            (1, 16, 1, 1),
            (6, 24, 2, 2),
            (6, 32, 3, 2),
            (6, 64, 4, 2),
            (6, 96, 3, 1),
            (6, 160, 3, 2),
            (6, 320, 1, 1),
        ):
            for block in range(count):
                layers.append(
                    Inverted(channels_in, channels, stride=1 if block else stride, widen=widen)
                )
                channels_in = channels
        layers += [convolution(320, 1280, 1), nn.ReLU6(inplace=True)]
        super().__init__(*layers, answers(1280))

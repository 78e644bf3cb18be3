"""Two small networks that see the robot's camera image: a policy, and the danger that it comes too
late to brake.

The weights are .npz files of float32 arrays. Rooms have no handedness, so every frame is also
learnt from in its mirror image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.robot.environment import RGB_SHAPE
from experiments.robot.inference import read_weights

CHANNELS = (8, 16, 24)
ROWS, COLUMNS = (size // 2 ** len(CHANNELS) for size in RGB_SHAPE[:2])
BATCH = 256
NUMBERS = 5
MIRROR = (1.0, 1.0, -1.0, 1.0, -1.0)
"""Signs in the mirror: distance, cosine and sine of the goal, speed and turning rate."""


class Eye(nn.Module):
    """Three convolutions of stride 2 over the image: features (n, 24, 8, 12)."""

    def __init__(self) -> None:
        super().__init__()
        pairs = zip((3, *CHANNELS), CHANNELS, strict=False)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(inward, outward, 5 if inward == 3 else 3, stride=2, padding=2 - (inward != 3))
            for inward, outward in pairs
        )

    def forward(self, images: Tensor) -> Tensor:
        features = images.permute(0, 3, 1, 2).float() / 127.5 - 1.0
        for convolution in self.convolutions:
            features = torch.relu(convolution(features))
        return features


class PolicyNetwork(nn.Module):
    """Forward speed and turning rate from the image, the goal and the speed."""

    def __init__(self) -> None:
        super().__init__()
        self.eye = Eye()
        self.narrow = nn.Conv2d(CHANNELS[-1], 8, 1)
        self.hidden = nn.Linear(8 * ROWS * COLUMNS + NUMBERS, 48)
        self.output = nn.Linear(48, 2)

    def forward(self, images: Tensor, numbers: Tensor) -> Tensor:
        seen = torch.relu(self.narrow(self.eye(images))).flatten(1)
        hidden = torch.relu(self.hidden(torch.cat([seen, numbers], dim=1)))
        outputs: Tensor = self.output(hidden)
        return outputs


class DangerNetwork(nn.Module):
    """The logarithm of the odds that the state is un-recoverable.

    The same few kernels look at each column of the features, with where it looks and how the robot
    moves; the column that is worst counts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.eye = Eye()
        self.column = nn.Linear(CHANNELS[-1] * ROWS, 32)
        self.motion = nn.Linear(32 + 6, 32)
        self.danger = nn.Linear(32, 32)
        self.hidden = nn.Linear(32 + NUMBERS, 32)
        self.output = nn.Linear(32, 1)
        self.register_buffer(
            "bearing", 1 - (2 * torch.arange(COLUMNS) + 1) / COLUMNS, persistent=False
        )

    def forward(self, images: Tensor, numbers: Tensor) -> Tensor:
        features = self.eye(images).permute(0, 3, 1, 2).flatten(2)
        seen = torch.relu(self.column(features))
        bearing = self.get_buffer("bearing").expand(len(images), -1)
        forward, turn = (numbers[:, place : place + 1].expand_as(bearing) for place in (3, 4))
        motion = torch.stack(
            [bearing, bearing**2, forward, turn, forward**2, turn * bearing], dim=2
        )
        columns = torch.relu(self.motion(torch.cat([seen, motion], dim=2)))
        worst = torch.relu(self.danger(columns)).amax(dim=1)
        outputs: Tensor = self.output(torch.relu(self.hidden(torch.cat([worst, numbers], dim=1))))
        return outputs


class CameraPolicy:
    """The policy at work, one observation at a time."""

    def __init__(self, path: Path) -> None:
        self._network = loaded(PolicyNetwork(), path)

    def __call__(self, observation: Mapping[str, Any]) -> NDArray[np.float32]:
        forward, turn = answer(self._network, observation).tolist()
        return np.array([min(max(forward, 0.0), 1.0), min(max(turn, -1.0), 1.0)], dtype=np.float32)


class CameraDanger:
    """The danger at work: a score in [0, 1], high where braking would come too late."""

    def __init__(self, path: Path) -> None:
        self._network = loaded(DangerNetwork(), path)

    def __call__(self, observation: Mapping[str, Any]) -> float:
        return float(torch.sigmoid(answer(self._network, observation).double())[0])


def loaded(network: nn.Module, path: Path) -> nn.Module:
    arrays = read_weights(path)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in arrays.items()})
    return network.eval()


def answer(network: nn.Module, observation: Mapping[str, Any]) -> Tensor:
    numbers = np.concatenate([observation["goal"], observation["speed"]], dtype=np.float32)
    with torch.inference_mode():
        outputs: Tensor = network(
            torch.from_numpy(observation["rgb"])[None], torch.from_numpy(numbers)[None]
        )[0]
    return outputs


def train(
    network: nn.Module,
    observations: Mapping[str, NDArray[Any]],
    targets: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
    *,
    epochs: int,
    rate: float,
    progress: Callable[[float], None],
) -> None:
    """Train on each frame in one of its two mirror images; `targets` is (2, n, outputs)."""
    images = torch.from_numpy(np.asarray(observations["rgb"]))
    numbers = torch.from_numpy(
        np.concatenate([observations["goal"], observations["speed"]], axis=1, dtype=np.float32)
    )
    flips = torch.tensor([(1.0,) * NUMBERS, MIRROR])
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=1e-3)
    steps = epochs * -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=steps)
    for epoch in range(epochs):
        for rows in torch.split(torch.randperm(len(images)), BATCH):
            side = torch.randint(2, (len(rows),))
            seen = images[rows]
            seen = torch.where(side[:, None, None, None] == 1, seen.flip(2), seen)
            found = network(seen, numbers[rows] * flips[side])
            optimizer.zero_grad()
            torch.autograd.backward(loss(found, targets[side, rows]))
            optimizer.step()
            schedule.step()
        progress((epoch + 1) / epochs)
    network.eval()

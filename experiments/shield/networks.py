"""Training of the two networks with torch: the policy by imitation, the danger by labels of
rollouts.

Rooms have no handedness, so every observation is also learnt from in its mirror image.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.robot.inference import (
    BEARING,
    CHANNELS,
    DANGER_SHAPES,
    POLICY_SHAPES,
    nearness,
)
from pacbound.atomic_files import atomic_file
from pacbound.errors import InvalidValueError

Observations = Mapping[str, NDArray[Any]]
Progress = Callable[[float], None]
Loss = Callable[[Tensor, Tensor], Tensor]
Network = TypeVar("Network", bound=nn.Module)

_BATCH = 256
_NO_CHANGE = (1.0, 1.0, 1.0, 1.0, 1.0)
_MIRROR = (
    1.0,
    1.0,
    -1.0,
    1.0,
    -1.0,
)  # distance, cosine and sine of the goal; speed and turning rate


@dataclass(frozen=True)
class _Plan:
    epochs: int
    rate: float
    seed: int


class PolicyNetwork(nn.Module):
    """The network of `experiments.robot.ImagePolicy`, for batches and with gradients."""

    def __init__(self) -> None:
        super().__init__()
        pairs = zip((1, *CHANNELS), CHANNELS, strict=False)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(inward, outward, 3, stride=2, padding=1) for inward, outward in pairs
        )
        self.hidden, self.output = (
            _linear(POLICY_SHAPES, "hidden"),
            _linear(POLICY_SHAPES, "output"),
        )

    def forward(self, depth: Tensor, numbers: Tensor) -> Tensor:
        """The outputs (n, 2) for depth images (n, 16, 64) and numbers (n, 5), goal and speed."""
        features = nearness(depth).unsqueeze(1)
        for convolution in self.convolutions:
            features = torch.relu(convolution(features))
        joined = torch.cat([features.flatten(1), numbers], dim=1)
        outputs: Tensor = self.output(torch.relu(self.hidden(joined)))
        return outputs


class DangerNetwork(nn.Module):
    """The network of `experiments.robot.DangerModel`, for batches and with gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.column, self.motion, self.danger = (
            _linear(DANGER_SHAPES, name) for name in ("column", "motion", "danger")
        )
        self.hidden, self.output = (
            _linear(DANGER_SHAPES, "hidden"),
            _linear(DANGER_SHAPES, "output"),
        )

    def forward(self, depth: Tensor, numbers: Tensor) -> Tensor:
        """The outputs (n, 1) for depth images (n, 16, 64) and numbers (n, 5), goal and speed."""
        seen = torch.relu(self.column(nearness(depth).transpose(1, 2)))
        bearing = torch.from_numpy(BEARING).expand(len(depth), -1)
        forward, turn = numbers[:, 3:4].expand_as(bearing), numbers[:, 4:5].expand_as(bearing)
        motion = torch.stack(
            [bearing, bearing**2, forward, turn, forward**2, turn * bearing], dim=2
        )
        columns = torch.relu(self.motion(torch.cat([seen, motion], dim=2)))
        worst = torch.relu(self.danger(columns)).amax(dim=1)
        outputs: Tensor = self.output(torch.relu(self.hidden(torch.cat([worst, numbers], dim=1))))
        return outputs


def train_policy(
    observations: Observations,
    actions: NDArray[Any],
    *,
    epochs: int,
    seed: int,
    progress: Progress | None = None,
) -> PolicyNetwork:
    """A policy that does as the expert did: least squares between the actions (n, 2) and the
    network's.
    """
    mirror = torch.tensor([1.0, -1.0])
    targets = torch.from_numpy(np.asarray(actions, dtype=np.float32))
    both = torch.stack([targets, targets * mirror])
    return _train(
        PolicyNetwork,
        observations,
        both,
        nn.functional.mse_loss,
        _Plan(epochs, 2e-3, seed),
        progress,
    )


def train_danger(
    observations: Observations,
    unrecoverable: NDArray[np.bool_],
    *,
    epochs: int,
    seed: int,
    progress: Progress | None = None,
) -> DangerNetwork:
    """A danger that is high on un-recoverable states: cross-entropy, in which the rarer kind of
    state weighs more.

    As in the paper, train on the states of a rollout up to its first un-recoverable one. Those
    after it, from which the obstacle may be out of sight, make the danger worse.
    """
    labels = np.asarray(unrecoverable, dtype=bool)
    if labels.all() or not labels.any():
        raise InvalidValueError(
            "All states have the same label: expected recoverable ones and un-recoverable ones."
        )
    targets = torch.from_numpy(labels.astype(np.float32)).unsqueeze(1)
    loss = nn.BCEWithLogitsLoss(
        pos_weight=torch.tensor(float((~labels).sum() / labels.sum()) ** 0.5)
    )
    return _train(
        DangerNetwork,
        observations,
        torch.stack([targets, targets]),
        loss,
        _Plan(epochs, 4e-3, seed),
        progress,
    )


def write_weights(path: str | os.PathLike[str], weights: Mapping[str, Any]) -> None:
    """Write a weights file, whole or not at all."""
    held: dict[str, Any] = {
        name: np.asarray(values, dtype=np.float32) for name, values in weights.items()
    }
    with atomic_file(path) as file:
        np.savez(file, **held)


def arrays(network: nn.Module) -> dict[str, NDArray[np.float32]]:
    """The weights of a network as NumPy arrays, for `experiments.robot.inference`."""
    return {
        name: values.detach().cpu().numpy().copy() for name, values in network.state_dict().items()
    }


def _linear(shapes: Mapping[str, tuple[int, ...]], name: str) -> nn.Linear:
    outward, inward = shapes[f"{name}.weight"]
    return nn.Linear(inward, outward)


def _train(
    network: Callable[[], Network],
    observations: Observations,
    targets: Tensor,
    loss: Loss,
    plan: _Plan,
    progress: Progress | None,
) -> Network:
    """Train on each row in one of its two mirror images, chosen at random; `targets` is (2, n,
    outputs).
    """
    depth = torch.from_numpy(np.asarray(observations["depth"], dtype=np.float32))
    goal, speed = (np.asarray(observations[name], dtype=np.float32) for name in ("goal", "speed"))
    numbers = torch.from_numpy(np.concatenate([goal, speed], axis=1))
    flips = torch.tensor([_NO_CHANGE, _MIRROR])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        trained = network()
        optimizer = torch.optim.AdamW(trained.parameters(), lr=plan.rate, weight_decay=1e-3)
        steps = plan.epochs * -(-len(depth) // _BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=plan.rate, total_steps=steps
        )
        for epoch in range(plan.epochs):
            for rows in torch.split(torch.randperm(len(depth)), _BATCH):
                side = torch.randint(2, (len(rows),))
                images = torch.where(side[:, None, None] == 1, depth[rows].flip(2), depth[rows])
                answer = trained(images, numbers[rows] * flips[side])
                optimizer.zero_grad()
                torch.autograd.backward(loss(answer, targets[side, rows]))
                optimizer.step()
                schedule.step()
            if progress is not None:
                progress((epoch + 1) / plan.epochs)
    return trained.eval()

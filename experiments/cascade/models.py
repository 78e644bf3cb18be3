"""What the models of each cascade say about every row, and what they cost in multiply-accumulate
operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.baselines import softmax
from experiments.temperature import Rescaled, of_logits
from pacbound.data import fashion_mnist

Array = NDArray[Any]


@dataclass(frozen=True)
class Models:
    """Models in the order in which they are asked, the slow one last.

    `costs` are what a row costs that each model answers, those before it included; `slow_cost` is
    the slow model's alone. `rescaled` gives the first one's confidences after temperature scaling,
    where it can be fitted.
    """

    name: str
    confidences: Array
    predictions: Array
    labels: Array
    costs: tuple[int, ...]
    slow_cost: int
    rescaled: Rescaled | None = None

    @property
    def wrong(self) -> Array:
        """Which rows each model gets wrong."""
        return np.asarray(self.predictions != self.labels[:, None])

    def halves(self, seed: int) -> tuple[Array, Array]:
        """Rows to certify and rows to test."""
        order = np.random.default_rng(seed).permutation(len(self.labels))
        return order[: len(order) // 2], order[len(order) // 2 :]


def shipped() -> Models:
    """The early exit and the whole network that the package ships predictions of; costs from the
    README beside them."""
    table = fashion_mnist()
    trunk_and_exit, whole, head = 115_456, 3_731_328, 2_560
    return Models(
        "Fashion-MNIST, early exit and whole network",
        table.confidence_fast[:, None],
        np.column_stack([table.prediction_fast, table.prediction_slow]),
        table.label,
        (trunk_and_exit, whole + head),
        whole,
    )


def networks(tables: Mapping[str, Array], depths: tuple[int, ...], data: str) -> Models:
    """ResNets for CIFAR-10, each computed from the start, from the logits of each and the labels
    `y`; confidences are the softmax in float64."""
    logits, labels = [tables[f"resnet{depth}"] for depth in depths], tables["y"]
    probabilities = [softmax(table) for table in logits]
    alone = [resnet_macs(depth) for depth in depths]
    return Models(
        f"{data}, " + " → ".join(f"ResNet-{depth}" for depth in depths),
        np.column_stack([table.max(axis=1) for table in probabilities[:-1]]),
        np.column_stack([table.argmax(axis=1) for table in probabilities]),
        labels,
        tuple(np.cumsum(alone).tolist()),
        alone[-1],
        of_logits(logits[0], labels),
    )


def resnet_macs(depth: int) -> int:
    """As `count_macs` counts them for `resnet_cifar(depth)`, without torch."""
    first, last = 3 * 16 * 9 * 32 * 32, 64 * 10
    # All other convolutions cost the same, but for the two that halve the image and cost half.
    return first + last + 16 * 16 * 9 * 32 * 32 * (depth - 3)

"""A small zoo that is drawn at random, for quick runs and tests: no image, no network.

Each image has a difficulty. A network gives noisy logits for ten classes, the true one raised by
the network's strength less the difficulty; what it says is their softmax, sharpened so that it is
over-confident as real networks are. Networks share part of their noise, so their errors overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.baselines import softmax
from experiments.imagenet.outputs import LISTED, Outputs, TopFive, gathered, listed

STRENGTHS = {
    "alexnet_pytorch": 3.6,
    "resnet18_pytorch": 4.8,
    "resnet50_pytorch": 5.4,
    "resnet101_pytorch": 5.6,
    "densenet121_pytorch": 5.3,
    "inception_v3_pytorch": 4.8,
    "mobilenetV2_keras": 4.9,
    "nasnetlarge_keras": 6.2,
}
CLASSES, SHARPENED = 10, 1.2


@dataclass(frozen=True)
class Zoo:
    """Outputs of all networks, and the top five of three of them."""

    outputs: Outputs
    top_five: TopFive


def logits(
    strengths: Mapping[str, float], images: int, seed: int = 0
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """The labels of so many images, and the logits of each network."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(0, CLASSES, images))
    difficulty = rng.gamma(1.0, 1.2, images)
    shared = rng.gumbel(size=(images, CLASSES))
    found = {}
    for name, strength in strengths.items():
        values = 0.8 * shared + 0.6 * rng.gumbel(size=(images, CLASSES))
        values[np.arange(images), labels] += np.maximum(strength - difficulty, 0.0)
        found[name] = SHARPENED * values
    return labels, found


def zoo(images: int, seed: int = 0) -> Zoo:
    """Outputs for so many images."""
    labels, networks = logits(STRENGTHS, images, seed)
    top, said = {}, {}
    for name, values in networks.items():
        probabilities = softmax(values)
        order = np.argsort(-probabilities, axis=1)[:, :5]
        top[name] = order.astype(np.uint16)
        said[name] = np.take_along_axis(probabilities, order, axis=1).astype(np.float32)
    names = np.array(list(STRENGTHS))
    return Zoo(
        gathered(
            names,
            np.stack([top[name][:, 0] for name in names]),
            np.stack([said[name][:, 0] for name in names]),
            labels.astype(np.uint16),
        ),
        listed(
            {name: top[f"{name}_pytorch"] for name in LISTED},
            {name: said[f"{name}_pytorch"] for name in LISTED},
            labels.astype(np.uint16),
            n_classes=CLASSES,
        ),
    )

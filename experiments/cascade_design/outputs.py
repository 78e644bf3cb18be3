"""What the 34 networks say about ImageNet, and what each of them costs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SHA256 = "f1557ac805bd7c5b3b5d7983226de549eb3ba22c1748d53cc173d0fa65c51933"

GIGA_MACS = {
    "alexnet": 0.71,
    "densenet121": 2.83,
    "densenet161": 7.73,
    "densenet169": 3.36,
    "densenet201": 4.29,
    "inceptionresnetv2": 13.2,
    "inceptionv3": 5.7,
    "mobilenet": 0.57,
    "mobilenetV2": 0.30,
    "nasnetlarge": 23.8,
    "nasnetmobile": 0.56,
    "resnet101": 7.80,
    "resnet152": 11.5,
    "resnet18": 1.81,
    "resnet34": 3.66,
    "resnet50": 4.09,
    "squeezenet1_0": 0.82,
    "squeezenet1_1": 0.35,
    "vgg11": 7.6,
    "vgg13": 11.3,
    "vgg16": 15.5,
    "vgg19": 19.6,
    "xception": 8.4,
}
"""Multiply-accumulate operations for one image at the usual input size, in 10^9, as published.
Batch normalisation is folded into the convolutions."""


@dataclass(frozen=True)
class Outputs:
    """Scores and classes of all networks, (50000, 34), and what each costs by itself."""

    names: tuple[str, ...]
    confidences: Array
    predictions: Array
    labels: Array
    costs: tuple[float, ...]


def outputs(path: Path) -> Outputs:
    """The outputs in a file that is known by its digest."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != SHA256:
        raise SystemExit(f"{path} has the SHA-256 {digest}: expected {SHA256}.")
    with np.load(path, allow_pickle=False) as arrays:
        names = tuple(str(name) for name in arrays["model"])
        return Outputs(
            names,
            arrays["confidence"].T.astype(np.float64),
            arrays["prediction"].T.astype(np.int64),
            arrays["label"].astype(np.int64),
            tuple(GIGA_MACS[_network(name)] for name in names),
        )


def _network(name: str) -> str:
    """The network without its framework: vgg16_bn_pytorch is a vgg16."""
    return name.rsplit("_", 1)[0].removesuffix("_bn").replace("inception_v3", "inceptionv3")

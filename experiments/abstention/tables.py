"""The tables of predictions, each with the claims that are asked of it."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pacbound.data import fashion_mnist


@dataclass(frozen=True)
class Case:
    """A population of predictions, and what is to be certified from n draws of it."""

    name: str
    source: str
    confidence: NDArray[np.float64]
    correct: NDArray[np.bool_]
    n: int
    xi: float
    delta: float


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Every case whose table was given."""
    table = fashion_mnist()
    slow = table.confidence_slow.astype(np.float64), table.prediction_slow == table.label
    fast = table.confidence_fast.astype(np.float64), table.prediction_fast == table.label
    shipped = "shipped with pacbound"
    yield Case("Fashion-MNIST, whole network", shipped, *slow, 5000, 0.01, 0.001)
    yield Case("Fashion-MNIST, early exit", shipped, *fast, 5000, 0.02, 0.001)
    if options.cifar is not None:
        with np.load(options.cifar, allow_pickle=False) as file:
            logits, label = file["resnet56"].astype(np.float64), file["y"]
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        top = chances.max(axis=1) / chances.sum(axis=1), logits.argmax(axis=1) == label
        yield Case("CIFAR-10, ResNet-56", digest(options.cifar), *top, 5000, 0.02, 0.001)
    if options.imagenet is not None:
        with np.load(options.imagenet, allow_pickle=False) as file:
            place = file["model"].tolist().index("resnet152_pytorch")
            said, label = file["prediction"][place], file["label"]
            scores = np.minimum(file["confidence"][place].astype(np.float64), 1.0)
        top = scores, said == label
        yield Case("ImageNet, ResNet-152", digest(options.imagenet), *top, 20_000, 0.02, 0.01)
    if options.mmlu is not None:
        with np.load(options.mmlu, allow_pickle=False) as file:
            names = {name.lower(): name for name in file.files}
            column = {
                word: file[
                    next(name for low, name in names.items() if "qwen" in low and word in low)
                ]
                for word in ("confidence", "correct")
            }
        top = column["confidence"].astype(np.float64), column["correct"].astype(bool)
        yield Case("MMLU, Qwen3-32B", digest(options.mmlu), *top, 5000, 0.05, 0.01)


def digest(path: Path) -> str:
    """How the table is told from others."""
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()

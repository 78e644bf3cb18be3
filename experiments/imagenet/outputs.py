"""What the 34 networks say about ImageNet, and what each of them costs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.two_models import Pair

Array = NDArray[Any]

SHA256 = "8858d6ba0d6b191be2d83b76ca342f3ff908fb89ad8ffdfaa4f010bd46e93d47"
TOP_FIVE_SHA256 = "ac2707967a8a5ea062877c83a0ca585e7f99753530564b0c8412df2784b39f43"
"""Of the arrays, not of the file: the same for the compact file and for a clone."""

IMAGES_PER_CLASS = 50
LISTED = ("resnet18", "resnet50", "resnet101")
"""The networks whose five likeliest classes are kept."""

SLOW, BEFORE = "resnet101_pytorch", "resnet18_pytorch"

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
`python -m experiments.imagenet.cpu_time` counts those of the networks that it builds."""


@dataclass(frozen=True, eq=False)
class Outputs:
    """Scores and classes of all networks, (images, networks), and what each costs by itself, in
    10^9 multiply-accumulates; `sha256` is that of the arrays."""

    names: tuple[str, ...]
    confidences: Array
    predictions: Array
    labels: Array
    costs: tuple[float, ...]
    sha256: str

    def places(self, *names: str) -> list[int]:
        """The columns of networks."""
        return [self.names.index(name) for name in names]

    def pair(self, fast: str, slow: str) -> Pair:
        """Two networks on all images, as a population."""
        first, last = self.places(fast, slow)
        return Pair.of(
            self.confidences[:, first],
            self.predictions[:, first],
            self.predictions[:, last],
            self.labels,
        )

    def right(self, name: str) -> Array:
        """Which images a network gets right."""
        return np.asarray(self.predictions[:, self.names.index(name)] == self.labels)


@dataclass(frozen=True, eq=False)
class TopFive:
    """The five likeliest classes and their probabilities, (images, 5), by network."""

    classes: dict[str, Array]
    probabilities: dict[str, Array]
    labels: Array
    n_classes: int
    sha256: str


def outputs(path: Path) -> Outputs:
    """The outputs in a compact file, or in a clone of the repository that they come from."""
    if path.is_dir():
        rows = list(_cloned(path))
        names = np.array([name for name, _, _ in rows])
        prediction = np.stack([classes[:, 0] for _, classes, _ in rows])
        confidence = np.stack([probabilities[:, 0] for _, _, probabilities in rows])
        label = cloned_labels(prediction.shape[1])
    else:
        with np.load(path, allow_pickle=False) as arrays:
            names, label = arrays["model"], arrays["label"]
            prediction, confidence = arrays["prediction"], arrays["confidence"]
    found = gathered(names, prediction, confidence, label)
    require(found.sha256, SHA256, path)
    return found


def top_five(path: Path) -> TopFive:
    """The top five of some networks, from a compact file or from a clone."""
    if path.is_dir():
        found = {name.rsplit("_", 1)[0]: pair for name, *pair in _cloned(path, LISTED)}
        classes = {name: pair[0] for name, pair in found.items()}
        probabilities = {name: pair[1] for name, pair in found.items()}
        labels = cloned_labels(len(classes[LISTED[0]]))
    else:
        with np.load(path, allow_pickle=False) as arrays:
            classes = {name: arrays[f"{name}_class"] for name in LISTED}
            probabilities = {name: arrays[f"{name}_prob"] for name in LISTED}
            labels = arrays["label"]
    kept = listed(classes, probabilities, labels, n_classes=1000)
    require(kept.sha256, TOP_FIVE_SHA256, path)
    return kept


def gathered(names: Array, prediction: Array, confidence: Array, label: Array) -> Outputs:
    """Outputs from arrays as the compact file has them: a row for each network."""
    known = tuple(str(name) for name in names)
    return Outputs(
        known,
        confidence.T.astype(np.float64),
        prediction.T.astype(np.int64),
        label.astype(np.int64),
        tuple(GIGA_MACS[network(name)] for name in known),
        digest(
            "\n".join(known).encode(),
            prediction.astype("<u2"),
            confidence.astype("<f4"),
            label.astype("<u2"),
        ),
    )


def listed(
    classes: dict[str, Array], probabilities: dict[str, Array], labels: Array, *, n_classes: int
) -> TopFive:
    names = sorted(classes)
    found = digest(
        "\n".join(names).encode(),
        *(classes[name].astype("<u2") for name in names),
        *(probabilities[name].astype("<f4") for name in names),
        labels.astype("<u2"),
    )
    return TopFive(classes, probabilities, labels.astype(np.int64), n_classes, found)


def require(found: str, expected: str, path: Path) -> None:
    """Stop if the arrays are not those that the results are about."""
    if found != expected:
        raise SystemExit(
            f"The arrays in {path} have the SHA-256 {found}: expected {expected}. The results are "
            "about those; for your own networks use experiments.imagenet.export, and "
            "certify_cascade or design_cascade."
        )


def digest(*parts: Any) -> str:
    """One SHA-256 of the bytes of all parts, each with its length."""
    total = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes()
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


def network(name: str) -> str:
    """The network without its framework: vgg16_bn_pytorch is a vgg16."""
    return name.rsplit("_", 1)[0].removesuffix("_bn").replace("inception_v3", "inceptionv3")


def said(name: str) -> str:
    """The name that papers use."""
    plain = network(name)
    for short, long in (
        ("resnet", "ResNet-"),
        ("densenet", "DenseNet-"),
        ("mobilenet", "MobileNet"),
        ("nasnet", "NASNet-"),
        ("squeezenet", "SqueezeNet "),
        ("vgg", "VGG-"),
    ):
        if plain.startswith(short):
            return long + plain.removeprefix(short).replace("_", ".")
    return plain


def cloned_labels(images: int) -> Array:
    """The classes of the images in the order of the clone: folder by folder, fifty images each."""
    return np.repeat(np.arange(images // IMAGES_PER_CLASS), IMAGES_PER_CLASS)


def _cloned(path: Path, only: tuple[str, ...] = ()) -> Iterator[tuple[str, Array, Array]]:
    """Name, classes and probabilities of each network in a clone, the likeliest class first."""
    for framework in ("pytorch", "keras"):
        tail = f"_{framework}_imagenet_top5preds.npy"
        files = sorted((path / f"{framework}_imagenet").glob("*" + tail))
        if not files and not only:
            raise SystemExit(
                f"{path} has no {framework}_imagenet/*{tail}: pass a clone of "
                "cgnorthcutt/benchmarking-keras-pytorch, or the compact file."
            )
        for file in files:
            name = file.name.removesuffix(tail)
            if only and (name not in only or framework != "pytorch"):
                continue
            classes = np.load(file, allow_pickle=False)
            beside = file.with_name(file.name.replace("preds", "probs"))
            probabilities = np.load(beside, allow_pickle=False)
            order = np.argsort(-probabilities, axis=1, kind="stable")
            yield (
                f"{name}_{framework}",
                np.take_along_axis(classes, order, axis=1),
                np.take_along_axis(probabilities, order, axis=1),
            )

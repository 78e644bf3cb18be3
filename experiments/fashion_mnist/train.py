"""Train the network and write the table of its held-out predictions, from the repository root:

    python -m experiments.fashion_mnist.train --out src/pacbound/data/fashion_mnist.npz

The first 50,000 training images are trained on. The other 10,000 and the 10,000 test images take no
part in training or in any choice: all 20,000 are predicted once, at the end, and make the table.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.fashion_mnist.dataset import DIGESTS, FashionMnist, load
from experiments.fashion_mnist.fit import fit_network
from experiments.fashion_mnist.network import EarlyExitNetwork
from experiments.fixed_npz import write_table

TRAINED_ON = 50_000
SPLITS = {0: "train_tail", 1: "test"}
RECORD = Path("experiments/results/fashion_mnist_training.json")


def main() -> None:
    options = parse()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    data = load(options.folder)

    started = time.perf_counter()
    network = fit_network(
        as_input(data.train_images[:TRAINED_ON]),
        torch.from_numpy(data.train_labels[:TRAINED_ON].astype(np.int64)),
        epochs=options.epochs,
        seed=options.seed,
    )
    table = predict_held_out(network, data)
    minutes = (time.perf_counter() - started) / 60

    write_table(options.out, table)
    record = {
        "command": (
            f"python -m experiments.fashion_mnist.train --out {options.out.as_posix()} "
            f"--epochs {options.epochs} --seed {options.seed}"
        ),
        "seed": options.seed,
        "epochs": options.epochs,
        "trained_on": TRAINED_ON,
        "held_out": summarise(table),
        "torch": torch.__version__,
        "minutes": round(minutes, 1),
        "dataset_sha256": DIGESTS,
        "table_sha256": hashlib.sha256(options.out.read_bytes()).hexdigest(),
    }
    options.record.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(record["held_out"], indent=2))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="the .npz file to write")
    parser.add_argument(
        "--folder",
        type=Path,
        help="a folder with the four IDX files (default: fetch Debian's package)",
    )
    parser.add_argument(
        "--epochs",
        type=int,
        default=20,
        help="epochs of the slow network, and again of the early head",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--record", type=Path, default=RECORD, help="the JSON file for the accuracies of this run"
    )
    return parser.parse_args()


def as_input(images: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(images.astype(np.float32) / np.float32(255)).unsqueeze(1)


def predict_held_out(network: EarlyExitNetwork, data: FashionMnist) -> dict[str, NDArray[Any]]:
    """Top label and its softmax confidence at both exits, for every image that was not trained on,
    in the files' order."""
    images = as_input(np.concatenate([data.train_images[TRAINED_ON:], data.test_images]))
    tail, test = data.train_labels[TRAINED_ON:], data.test_labels
    confidence_fast, prediction_fast = top_label(network.fast, images)
    confidence_slow, prediction_slow = top_label(network.slow, images)
    return {
        "confidence_fast": confidence_fast,
        "prediction_fast": prediction_fast,
        "confidence_slow": confidence_slow,
        "prediction_slow": prediction_slow,
        "label": np.concatenate([tail, test]),
        "split": np.repeat(np.array([0, 1], dtype=np.uint8), [len(tail), len(test)]),
    }


def top_label(
    logits: Callable[[Tensor], Tensor], images: Tensor
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    with torch.inference_mode():
        probabilities = torch.cat(
            [logits(chunk).softmax(dim=1) for chunk in torch.split(images, 1000)]
        )
    confidence, prediction = probabilities.max(dim=1)
    return confidence.numpy(), prediction.numpy().astype(np.uint8)


def summarise(table: dict[str, NDArray[Any]]) -> dict[str, dict[str, Any]]:
    """Counts of right answers and accuracies of both exits, for each split."""
    summary: dict[str, dict[str, Any]] = {}
    for split, name in SPLITS.items():
        rows = table["split"] == split
        label, count = table["label"][rows], int(rows.sum())
        summary[name] = {"images": count}
        for exit_name in ("fast", "slow"):
            right = int((table[f"prediction_{exit_name}"][rows] == label).sum())
            summary[name] |= {f"right_{exit_name}": right, f"accuracy_{exit_name}": right / count}
    return summary


if __name__ == "__main__":
    main()

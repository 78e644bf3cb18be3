"""Measure what each part of the public ResNet-56 with its early exits takes, on a quiet machine.
From the repository root, after `experiments.early_exit.exits`:

    python -m experiments.early_exit.parts --weights resnet56-4bfd9763.th

Times every stage, every head and every decision in turn, at batches of 1 and 25 of random images,
by the processor time of one thread; a figure is the median of the rounds. Prints the table, and
writes it to experiments/results for `experiments.early_exit.places`, which chooses by it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from experiments.early_exit.exits import PLACES, RUNS, trained
from experiments.early_exit.places import RESULTS, parts_table
from experiments.early_exit.resnet56 import load_weights
from pacbound.cascade.early_exit import EarlyExitNetwork

ROUNDS = {1: 60, 25: 15}
"""How often each size of a batch is timed."""

Jobs = dict[tuple[str, int], Callable[[], object]]


def main() -> None:
    options = parse()
    torch.set_num_threads(1)
    network, alone = trained(options.weights, PLACES, options.heads), load_weights(options.weights)
    times = {}
    for batch, rounds in ROUNDS.items():
        torch.manual_seed(0)
        images = torch.randn(batch, 3, 32, 32).contiguous(memory_format=torch.channels_last)
        times[str(batch)] = medians(jobs_of(network, alone, images), rounds)
    record = {
        "command": f"python -m experiments.early_exit.parts --weights {options.weights.name}",
        "after_blocks": PLACES,
        "rounds": ROUNDS,
        "threads": 1,
        "times": times,
        "torch": torch.__version__,
    }
    text = json.dumps(record, indent=1) + "\n"
    (options.out / "early_exit_parts.json").write_text(text, encoding="utf-8")
    print("\n".join(parts_table(PLACES, times)))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--weights", type=Path, required=True, help="the file of the public weights"
    )
    parser.add_argument("--heads", type=Path, default=RUNS, help="the folder of the heads")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    return parser.parse_args()


def jobs_of(network: EarlyExitNetwork, alone: nn.Module, x: Tensor) -> Jobs:
    """Everything that is timed: the whole network, and each part on what the parts before give."""
    jobs: Jobs = {("alone", 0): lambda: alone(x)}
    inputs = x
    with torch.inference_mode():
        for place, (stage, head) in enumerate(zip(network.stages, network.heads, strict=True)):
            features = stage(inputs)
            jobs["stages", place] = partial(stage, inputs)
            jobs["heads", place] = partial(head, features)
            if place < len(network.stages) - 1:
                jobs["decisions", place] = decision(features, head(features))
            inputs = features
    return jobs


class Said(nn.Module):
    """A head that gives logits which are known."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, x: Tensor) -> Tensor:
        return self.logits[: len(x)]


def decision(features: Tensor, logits: Tensor) -> Callable[[], object]:
    """`infer` of a network that computes nothing, at a threshold that half of the rows reach: the
    checks, the softmax, the comparison and the packing."""
    parts = [nn.Identity(), nn.Identity()], [Said(logits), Said(logits)]
    network = EarlyExitNetwork(*parts).eval()
    middle = [float(logits.softmax(dim=1, dtype=torch.float64).amax(dim=1).median())]
    return lambda: network.infer(features, middle)


def medians(jobs: Mapping[tuple[str, int], Callable[[], object]], rounds: int) -> dict[str, Any]:
    """The median seconds of each job, timed in turn."""
    took: dict[tuple[str, int], list[float]] = {key: [] for key in jobs}
    with torch.inference_mode():
        for _ in range(rounds):
            for key, job in jobs.items():
                started = time.process_time()
                job()
                took[key].append(time.process_time() - started)
    found: dict[str, Any] = {"stages": [], "heads": [], "decisions": []}
    for (kind, _), seconds in took.items():
        if kind == "alone":
            found[kind] = float(np.median(seconds))
        else:
            found[kind].append(float(np.median(seconds)))
    return found


if __name__ == "__main__":
    main()

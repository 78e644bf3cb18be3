"""Time per image of the cascades, from the networks' own times and how often each of them runs.

    python -m experiments.imagenet.cpu_time

builds each network with random weights, for time does not depend on them, and lets it answer one
image of 224 x 224 at a time, on one thread, softmax and comparison included. Measured is time of
the processor, which a wait for others is no part of. The networks take turns, so that a disturbance
of the machine meets all of them. How often each runs in a cascade comes from
`imagenet_fast_inference.json`. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.imagenet.fast_inference import NAME as CASCADES
from experiments.imagenet.fast_inference import PAPER_TIMES, SAID
from experiments.imagenet.networks import networks
from experiments.imagenet.outputs import GIGA_MACS, SLOW, network, said
from experiments.record import RESULTS, known, provenance, publish, show_progress, table
from pacbound.cascade.early_exit import count_macs

NAME = "imagenet_cpu_time"
ROUNDS, SIDE, THRESHOLD = 30, 224, 0.5


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="images for each network")
    parser.add_argument("--side", type=int, default=SIDE, help="pixels of an image's side")
    parser.add_argument("--cascades", type=Path, help="the folder of the cascades' results")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    options = parser.parse_args(arguments)
    folder = options.cascades or options.out
    if not (folder / f"{CASCADES}.json").exists():
        parser.error(
            f"{folder} has no {CASCADES}.json: run experiments.imagenet.fast_inference first"
        )
    ran = {name: method["ran"] for name, method in known(folder, CASCADES)["methods"].items()}
    found = measured(ran, rounds=options.rounds, side=options.side)
    publish(options.out, NAME, found, report=markdown)


def measured(ran: dict[str, dict[str, float]], *, rounds: int, side: int) -> dict[str, Any]:
    seconds, macs = timed(rounds, side)
    typical = {name: float(np.median(values)) for name, values in seconds.items()}
    return {
        **provenance(
            f"python -m experiments.imagenet.cpu_time --rounds {rounds} --side {side}",
            more=("torch",),
        ),
        "settings": {"rounds": rounds, "side": side, "threads": 1, "batch": 1},
        "networks": {
            name: {
                "macs": macs[name],
                "published_giga_macs": GIGA_MACS[name],
                "median_seconds": typical[name],
                "quartiles": np.quantile(values, [0.25, 0.75]).tolist(),
                "fastest_seconds": float(min(values)),
            }
            for name, values in seconds.items()
        },
        "methods": {
            method: weighted(shares, typical)
            for method, shares in ran.items()
            if all(network(name) in typical for name in shares)
        },
    }


def weighted(shares: dict[str, float], seconds: dict[str, float]) -> float:
    """Seconds per image: each network's, as often as it runs."""
    return sum(share * seconds[network(name)] for name, share in shares.items())


def timed(rounds: int, side: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Seconds of each network in each round, and its multiply-accumulates."""
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        built = {name: build().eval() for name, build in networks().items()}
        image = torch.rand(1, 3, side, side)
        macs = {name: int(count_macs(net, image)[0]) for name, net in built.items()}
        seconds: dict[str, list[float]] = {name: [] for name in built}
        with torch.inference_mode():
            for done in range(rounds + 1):
                for name, net in built.items():
                    start = time.process_time()
                    _ = bool(net(image).softmax(dim=1).max() >= THRESHOLD)
                    if done:  # the first round warms up
                        seconds[name].append(time.process_time() - start)
                show_progress(done, rounds, NAME)
    finally:
        torch.set_num_threads(threads)
    return seconds, macs


def markdown(record: dict[str, Any]) -> str:
    slow = record["networks"][network(SLOW)]["median_seconds"]
    lines = [
        (
            said(name + "_"),
            f"{result['macs'] / 1e9:.3f}",
            f"{result['published_giga_macs']:.2f}",
            f"{1e3 * result['median_seconds']:.1f}",
            f"{1e3 * result['quartiles'][0]:.1f} to {1e3 * result['quartiles'][1]:.1f}",
        )
        for name, result in record["networks"].items()
    ]
    methods = [
        (
            SAID[name],
            f"{1e3 * seconds:.1f}",
            f"{1 - seconds / slow:.1%}",
            f"{1 - PAPER_TIMES[name] / PAPER_TIMES['slow']:.1%}" if name in PAPER_TIMES else "",
        )
        for name, seconds in record["methods"].items()
    ]
    settings = record["settings"]
    return f"""
{table(("method", "CPU per image, ms", "CPU time saved", "paper: saved"), methods)}
Times of the networks, median of {settings["rounds"]} images of {settings["side"]} x
{settings["side"]}, one at a time on one thread, weighted by how often each network runs in
`{CASCADES}.json`:

{table(("network", "10⁹ MACs counted", "published", "CPU per image, ms", "middle half"), lines)}
Made by `{record["command"]}`.
"""


if __name__ == "__main__":
    main()

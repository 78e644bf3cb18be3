"""Run the experiment, print its tables and write them, the counts behind them and two figures."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

import experiments.cascade
from experiments.cascade import figures
from experiments.cascade.models import Array, Models, networks, shipped
from experiments.cascade.splits import DELTA, LEVEL, SEEDS, more_models, two_models
from experiments.cascade.tables import markdown
from experiments.imagenet.generated import logits
from experiments.record import RESULTS, provenance, publish

SHIPPED_XI, SHIPPED_SHOWN = (0.005, 0.01, 0.02, 0.05), 0.02
CIFAR_XI, CIFAR_SHOWN = (0.005, 0.01, 0.02), 0.01
QUICK_SPLITS, QUICK_XI = 3, 0.02
QUICK_NETWORKS, QUICK_IMAGES = {"resnet20": 4.8, "resnet44": 5.3, "resnet56": 5.6}, 4_000


def main() -> None:
    options = parse()
    splits = QUICK_SPLITS if options.quick else SEEDS
    models, tolerances = shipped(), (QUICK_XI,) if options.quick else SHIPPED_XI
    pairs = [(models, described(models, two_models(models, tolerances, splits)), SHIPPED_SHOWN)]
    parts = [pairs[0][1]]
    others = logits_of(options)
    if others is not None:
        data, tables = others
        two, three = (networks(tables, depths, data) for depths in ((20, 56), (20, 44, 56)))
        at, asked = (QUICK_XI, (QUICK_XI,)) if options.quick else (CIFAR_SHOWN, CIFAR_XI)
        pairs.append((two, described(two, two_models(two, asked, splits)), at))
        parts += [pairs[1][1], described(three, {at: more_models(three, at, splits)})]
    record = {
        **provenance(command(options), seeds=list(range(splits)), inputs=source(options.logits)),
        "delta": DELTA,
        "level_of_the_test": LEVEL,
        "parts": parts,
    }
    publish(
        options.out,
        "cascade_fashion_mnist" if others is None else "cascade",
        record,
        report=lambda held: markdown(held["parts"], held["command"]),
        figures=lambda _: {
            draw.__name__: draw(pairs) for draw in (figures.error_cost, figures.desired_achieved)
        },
    )


def logits_of(options: argparse.Namespace) -> tuple[str, dict[str, Array]] | None:
    """The logits of three networks and the labels `y`, and how the data are called."""
    if options.quick:
        labels, found = logits(QUICK_NETWORKS, QUICK_IMAGES)
        return "Generated", {**found, "y": labels}
    if options.logits is None:
        return None
    with np.load(options.logits, allow_pickle=False) as arrays:
        return "CIFAR-10", dict(arrays)


def command(options: argparse.Namespace) -> str:
    made_by = "python -m experiments.cascade"
    if options.logits is not None:
        made_by += f" --logits {options.logits.name}"
    return made_by + (" --quick" if options.quick else "")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=experiments.cascade.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--logits", type=Path, help="an .npz file with logits of each network and labels y"
    )
    parser.add_argument("--quick", action="store_true", help="few splits, and generated logits")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    return parser.parse_args()


def described(models: Models, results: dict[float, dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": models.name,
        "rows": len(models.labels),
        "errors": models.wrong.mean(axis=0).tolist(),
        "costs": models.costs,
        "slow_cost": models.slow_cost,
        "results": results,
    }


def source(path: Path | None) -> dict[str, str]:
    """The digest of what was read; what ships or is generated is known by the version."""
    return {} if path is None else {"logits": hashlib.sha256(path.read_bytes()).hexdigest()}


if __name__ == "__main__":
    main()

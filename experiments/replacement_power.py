"""How often a replacement is certified: by the region of walks, McNemar's, the seeded region, Wald.

`python -m experiments.replacement_power OUTPUTS` writes `experiments/results/replacement_power`
as .json and .md, in a minute. OUTPUTS has the `prediction` of networks (`model`) on the same
images, and `label`. The rates of a pair of models are taken for the truth, and each chance is a sum
over all samples. Wald's test is not valid: its largest chance where xi is lost is beside it.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom, norm

from experiments.record import RESULTS, provenance, publish
from pacbound.stats.paired import mcnemar_test, paired_region
from pacbound.stats.seeded import seeded_region

PAIRS = (
    ("resnet18_pytorch", "resnet152_pytorch"),
    ("resnet34_pytorch", "resnet50_pytorch"),
    ("resnet101_pytorch", "resnet152_pytorch"),
    ("densenet161_pytorch", "densenet201_pytorch"),
)
SIZES, RATES, DELTA = (20, 50, 100, 200, 500, 1000), (0.01, 0.02, 0.05), 0.05
Accepts = Callable[[Any, Any], Any]


def wald(n: int, xi: float) -> Accepts:
    """The normal test of a difference of paired shares."""

    def accepts(b: Any, c: Any) -> Any:
        spread = np.sqrt(np.maximum(b + c - (b - c) ** 2 / n, 0.0))
        return (b - c) + norm.isf(DELTA) * spread < n * xi

    return accepts


def tests_of(n: int, xi: float) -> dict[str, Accepts]:
    """Whether losses and gains certify, by each test."""
    return {
        "walks": paired_region(n, xi=xi, delta=DELTA).accepts,
        "mcnemar": lambda b, c: mcnemar_test(b, c, delta=DELTA),
        "seeded": seeded_region(n, xi=xi, delta=DELTA).accepts,
        "wald": wald(n, xi),
    }


def chances(accepts: Accepts, n: int, lost: Any, gained: Any) -> Any:
    """The chance to be certified under each law, summed over every sample."""
    c = np.arange(n + 1)
    low, high = np.full(n + 1, -1), n - c
    while (low < high).any():
        middle = np.maximum((low + high + 1) // 2, 0)
        inside = np.asarray(accepts(middle, c)) & (high >= 0)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle - 1)
    share = np.minimum(1.0, lost[:, None] / (1.0 - gained[:, None]))
    below = binom.cdf(low, n - c, share) * (low >= 0)
    return (binom.pmf(c, n, gained[:, None]) * below).sum(axis=1)


def measured(path: Path) -> list[dict[str, Any]]:
    """A line for each pair of models, number of rows and xi."""
    with np.load(path) as found:
        names = found["model"].tolist()
        right = {m: found["prediction"][names.index(m)] == found["label"] for m in sum(PAIRS, ())}
    rows = []
    for (old, new), n, xi in product(PAIRS, SIZES, RATES):
        lost, gained = (right[old] & ~right[new]).mean(), (right[new] & ~right[old]).mean()
        tests, v = tests_of(n, xi), (1.0 - xi) / 2.0 * np.linspace(0.0, 1.0, 301) ** 2
        law = np.array([lost]), np.array([gained])
        shares = {"lost": round(float(lost), 5), "gained": round(float(gained), 5)}
        power = {name: round(float(chances(t, n, *law)[0]), 4) for name, t in tests.items()}
        size = {name: round(float(chances(t, n, v + xi, v).max()), 5) for name, t in tests.items()}
        rows.append({"old": old, "new": new, **shares, "n": n, "xi": xi, **power, "size": size})
    return rows


def report(record: Any) -> str:
    """Chances to be certified, and the largest where xi is lost."""
    lines = [
        f"# Power of replacements at delta {DELTA}",
        "Chance that the new model is certified, by the region of walks / McNemar's test / the "
        "seeded region / Wald's test (not valid); and the largest chance where xi is lost.",
        "",
        "| old, new (net gain) | n | xi | walks | McNemar | seeded | Wald | sizes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in record["rows"]:
        net = row["gained"] - row["lost"]
        power = " | ".join(f"{row[name]:.3f}" for name in ("walks", "mcnemar", "seeded", "wald"))
        sizes = " / ".join(f"{size:.4f}" for size in row["size"].values())
        pair = f"{row['old']}, {row['new']} ({net:+.1%})"
        lines.append(f"| {pair} | {row['n']} | {row['xi']:.0%} | {power} | {sizes} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("outputs", type=Path)
    given = parser.parse_args()
    inputs = {given.outputs.name: hashlib.sha256(given.outputs.read_bytes()).hexdigest()}
    how = provenance("python -m experiments.replacement_power OUTPUTS", inputs=inputs)
    rows = measured(given.outputs)
    publish(RESULTS, "replacement_power", {**how, "rows": rows}, report=report)


if __name__ == "__main__":
    main()

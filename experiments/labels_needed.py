"""How few labels a cascade needs, on the Fashion-MNIST table that ships with the package.

`python -m experiments.labels_needed` asks for labels until no further one can change the threshold,
which is then that of all labels, and writes `experiments/results/labels_needed.json` and `.md`. It
takes about two minutes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from pacbound.atomic_files import atomic_file
from pacbound.claims.cascade import certify_cascade, rows_to_label
from pacbound.data import fashion_mnist

DELTA = 0.01
TOLERANCES = (0.01, 0.005, 0.002)
AT_ONCE = (1, 10, 50)
RESULTS = Path(__file__).parent / "results"


def labels_needed(
    rows: tuple[Any, Any], truth: Any, asked: dict[str, Any], at_once: int, order: Any = None
) -> tuple[int, float]:
    """How many labels it takes until no further one can change the threshold, and the threshold
    then.

    So many are told `at_once`, of the rows that are wanted most, or in a given `order`.
    """
    labels, told = np.full(len(truth), np.nan), 0
    while len(wanted := rows_to_label(*rows, labels, count=at_once, **asked)):
        some = wanted if order is None else order[told : told + at_once]
        labels[some] = truth[some]
        told += len(some)
    return told, float(certify_cascade(*rows, labels, **asked).thresholds[0])


def measured(xi: float) -> dict[str, Any]:
    """What one tolerance needs and gives."""
    table = fashion_mnist()
    predictions = np.column_stack([table.prediction_fast, table.prediction_slow])
    differ = np.flatnonzero(table.prediction_fast != table.prediction_slow)
    rows = (table.confidence_fast, predictions)
    asked: dict[str, Any] = {"xi": xi, "delta": DELTA}
    full, none = (certify_cascade(*rows, each, **asked) for each in (table.label, None))
    shuffled = np.random.default_rng(0).permutation(differ)
    ends = {each: labels_needed(rows, table.label, asked, each) for each in AT_ONCE}
    random = labels_needed(rows, table.label, asked, 50, shuffled)
    thresholds = {threshold for _, threshold in (*ends.values(), random)}
    if thresholds != {float(full.thresholds[0])}:
        raise AssertionError(f"Labelling ended at {thresholds}, all labels at {full.thresholds}.")
    return {
        "xi": xi,
        "rows": len(table.label),
        "differ": len(differ),
        "labels": {str(at_once): labels for at_once, (labels, _) in ends.items()},
        "labels_in_random_order": random[0],
        "threshold": float(full.thresholds[0]),
        "exit_rate": float(full.exit_rates[0]),
        "exit_rate_without_labels": float(none.exit_rates[0]),
    }


def written(results: list[dict[str, Any]]) -> str:
    """The results as a page."""
    lines = [
        "# Labels that a cascade needs",
        "",
        f"Fashion-MNIST, {results[0]['rows']:,} rows, delta = {DELTA}; the two models differ in "
        f"{results[0]['differ']:,} rows. Labels until no further one can change the threshold, "
        "which is then that of all labels:",
        "",
        "| xi | " + " | ".join(f"{at_once} at once" for at_once in AT_ONCE) + " | in random order, "
        "50 at once | exit early | without a label |",
        "| --- | " + "--- | " * (len(AT_ONCE) + 3),
    ]
    for result in results:
        needed = " | ".join(str(result["labels"][str(at_once)]) for at_once in AT_ONCE)
        lines.append(
            f"| {result['xi']} | {needed} | {result['labels_in_random_order']:,} | "
            f"{result['exit_rate']:.1%} | {result['exit_rate_without_labels']:.1%} |"
        )
    lines += [
        "",
        "- Rows are asked for from the highest score down, as `rows_to_label` gives them; asking "
        "for many at once overshoots a little.",
        "- Exit rates are descriptive.",
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def main() -> None:
    """Measure, and write both files."""
    results = [measured(xi) for xi in TOLERANCES]
    for name, text in (
        ("labels_needed.json", json.dumps(results, indent=1) + "\n"),
        ("labels_needed.md", written(results)),
    ):
        with atomic_file(RESULTS / name) as file:
            file.write(text.encode())
    print(written(results))


if __name__ == "__main__":
    main()

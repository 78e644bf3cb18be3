"""How few labels a cascade needs: sessions on the Fashion-MNIST table that ships with the package.

`python -m experiments.label_sessions` asks for labels until no further one can change the
threshold, which is then that of all labels, and writes `experiments/results/label_sessions.json`
and `.md`. It takes about a minute.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from pacbound.atomic_files import atomic_file
from pacbound.cascade import LabelSession
from pacbound.claims.cascade import certify_cascade
from pacbound.data import fashion_mnist

DELTA = 0.01
TOLERANCES = (0.01, 0.005, 0.002)
AT_ONCE = (1, 10, 50)
RESULTS = Path(__file__).parent / "results"


def labels_needed(
    session: LabelSession, labels: Any, at_once: int, order: Any = None
) -> tuple[int, float]:
    """How many labels a session takes until it is done, and the threshold then.

    It asks for so many `at_once`. In a given `order` it is told them instead, asked for or not.
    """
    while not session.done:
        told = session.progress.labels
        rows = session.ask(at_once) if order is None else order[told : told + at_once]
        session.tell(rows, labels[rows])
    return session.progress.labels, float(session.progress.thresholds[0])


def measured(xi: float) -> dict[str, Any]:
    """What one tolerance needs and gives."""
    table = fashion_mnist()
    predictions = np.column_stack([table.prediction_fast, table.prediction_slow])
    differ = np.flatnonzero(table.prediction_fast != table.prediction_slow)
    full = certify_cascade(table.confidence_fast, predictions, table.label, xi=xi, delta=DELTA)

    def begun() -> LabelSession:
        return LabelSession(table.confidence_fast, predictions, xi=xi, delta=DELTA)

    shuffled = np.random.default_rng(0).permutation(differ)
    ends = {at_once: labels_needed(begun(), table.label, at_once) for at_once in AT_ONCE}
    random = labels_needed(begun(), table.label, 50, shuffled)
    thresholds = {threshold for _, threshold in (*ends.values(), random)}
    if thresholds != {float(full.thresholds[0])}:
        raise AssertionError(f"A session ended at {thresholds}, all labels at {full.thresholds}.")
    return {
        "xi": xi,
        "rows": len(table.label),
        "differ": len(differ),
        "labels": {str(at_once): labels for at_once, (labels, _) in ends.items()},
        "labels_in_random_order": random[0],
        "threshold": float(full.thresholds[0]),
        "exit_rate": float(full.exit_rates[0]),
        "exit_rate_without_labels": float(begun().progress.exit_rates[0]),
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
        "- Rows are asked for from the highest score down, as `LabelSession` does; asking for many "
        "at once overshoots a little.",
        "- Exit rates are descriptive.",
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def main() -> None:
    """Measure, and write both files."""
    results = [measured(xi) for xi in TOLERANCES]
    for name, text in (
        ("label_sessions.json", json.dumps(results, indent=1) + "\n"),
        ("label_sessions.md", written(results)),
    ):
        with atomic_file(RESULTS / name) as file:
            file.write(text.encode())
    print(written(results))


if __name__ == "__main__":
    main()

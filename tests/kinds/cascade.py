"""A cascade of two models: it loses few of the answers that the slow one has right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from tests.kinds.kind import Kind, Pilot, Use
from tests.kinds.random_rows import level, many, rate, scores

from pacbound import Certificate, Tally, certify_cascade
from pacbound.claims.cascade import CascadeCertificate
from pacbound.tally.row_options import RowOptions


def cascade_tally(rows: int, **draw: Unpack[RowOptions]) -> Tally:
    rng = np.random.default_rng(4)
    label = rng.integers(0, 10, size=rows)
    confidence = rng.beta(5, 1, size=rows)
    fast = np.where(rng.random(rows) < confidence, label, label + 1)
    slow = np.where(rng.random(rows) < 0.9, label, label + 2)
    return Tally.count(
        "cascade",
        confidence=confidence,
        prediction=np.column_stack([fast, slow]),
        label=label,
        **draw,
    )


def few_labels(tally: Tally, kept: int) -> Tally:
    """The same rows, with a label only in the cells before the first `kept`, from below."""
    exits = tally.cells.shape[1]
    patterns = [
        int("".join("0" if part == "agree" else "1" for part in name.split("|")), 2)
        for name in tally.outcomes[: 4**exits]
    ]
    counts = tally.counts.copy()
    for place, pattern in enumerate(patterns):
        if pattern:
            counts[kept:, 4**exits + pattern - 1] += counts[kept:, place]
            counts[kept:, place] = 0
    return replace(tally, counts=counts)


def random_rows(
    rng: np.random.Generator, rows: int, models: int, labelled: float
) -> dict[str, Any]:
    label = rng.integers(0, 4, size=rows)
    confidences = np.sort(scores(rng, rows, models - 1), axis=1)
    skill = np.column_stack([confidences, np.full(rows, rng.choice([0.5, 0.8, 0.97]))])
    predictions = np.where(
        rng.random((rows, models)) < skill,
        label[:, None],
        (label[:, None] + 1 + np.arange(models)) % 4,
    )
    # Labels and predictions without a common class are refused.
    predictions[0, -1] = label[0]
    known = rng.random(rows) < labelled
    known[0] = labelled > 0
    return {
        "confidence": confidences,
        "prediction": predictions,
        "label": np.where(known, label, np.nan),
    }


def random_cascade(rng: np.random.Generator, rows: int, models: int, **options: Any) -> Certificate:
    labelled = float(rng.choice([1.0, 0.8, 0.0]))
    columns = random_rows(rng, rows, models, labelled)
    if not labelled and rng.random() < 0.5:
        del columns["label"]
        options["claim"] = "differ"
    if rng.random() < 0.5:
        options["costs"] = np.cumsum(rng.integers(1, 9, size=models)).tolist()
    found: Certificate = certify_cascade(
        **columns, delta=level(rng), unseen_labels=1.0, unrelated_labels=True, **options
    )
    return found


def _random(rng: np.random.Generator) -> Certificate:
    options: dict[str, Any] = {"xi": rate(rng)}
    return random_cascade(rng, int(rng.integers(1, 250)), 2, **options)


def watched(xi: float = 0.02) -> CascadeCertificate:
    answers = [[1, 1]] * 900 + [[0, 1]] * 100
    return certify_cascade([0.9] * 900 + [0.1] * 100, answers, [1] * 1000, xi=xi, delta=0.05)


def rows_of_use(n: int, rng: np.random.Generator, bad: bool) -> Any:
    confidence, labels = rng.random(n), rng.integers(0, 3, n)
    slow = np.where(rng.random(n) < 0.9, labels, (labels + 1) % 3)
    same = rng.random(n) < (0.5 if bad else 0.99)
    fast = np.where(same, slow, (labels + 2) % 3)
    predictions = np.column_stack([fast, slow])
    return {"confidence": confidence, "prediction": predictions, "label": labels}


def pilot_rows(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    label = rng.integers(0, 10, size=rows)
    confidence = rng.beta(4, 1, size=rows)
    fast = np.where(rng.random(rows) < confidence, label, label + 1)
    slow = np.where(rng.random(rows) < 0.95, label, label + 2)
    return {
        "confidence": confidence,
        "prediction": np.column_stack([fast, slow]) % 10,
        "label": label,
    }


KIND = Kind(
    made={
        "cascade-clusters": lambda: certify_cascade(
            data=cascade_tally(1800, clusters=np.arange(1800) // 3, seed=0), xi=0.05, delta=0.05
        ),
        "cascade-exact": lambda: certify_cascade(data=cascade_tally(600), xi=0.05, delta=0.05),
        "cascade-large": lambda: certify_cascade(
            data=many(cascade_tally(600), 500), xi=0.01, delta=0.05
        ),
        "cascade-no-loss": lambda: certify_cascade(data=cascade_tally(2000), xi=0.0, delta=0.05),
        "cascade-refused": lambda: certify_cascade(data=cascade_tally(50), xi=0.01, delta=0.05),
        "cascade-partial-exact": lambda: certify_cascade(
            data=few_labels(cascade_tally(600), 560), xi=0.05, delta=0.05, costs=(1.0, 9.0)
        ),
        "cascade-partial-no-loss": lambda: certify_cascade(
            data=few_labels(cascade_tally(2000), 1900), xi=0.0, delta=0.05
        ),
        "cascade-partial-refused": lambda: certify_cascade(
            data=few_labels(cascade_tally(50), 10), xi=0.01, delta=0.05
        ),
        "cascade-no-labels": lambda: certify_cascade(
            data=few_labels(cascade_tally(600), 0), xi=0.05, delta=0.05
        ),
    },
    layouts=("cascade-clusters", "cascade-partial-refused"),
    random=_random,
    trials=900,
    use=lambda: Use(watched(), rows_of_use),
    pilot=Pilot(
        pilot_rows,
        lambda tally: certify_cascade(data=tally, xi=0.05, delta=0.05).exit_rates.sum(),
        {"xi": 0.05},
        0.04,
    ),
)

"""Small certificates of every kind and procedure, from random rows, made through public names."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from tests.kinds import KINDS
from tests.kinds.random_rows import Rng, level, names, rate, scores

from pacbound import (
    Tally,
    answer_batch,
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_false_alarms,
    certify_recall,
    certify_shield,
    certify_together,
)
from pacbound.claims.cascade import certify_declared
from pacbound.claims.certificate import Certificate
from pacbound.procedures.cascade_front import Declared

BOUNDS = ("exact", "pair", "product")


def _many(tally: Tally, times: int) -> Tally:
    """As if each row had been drawn so often."""
    return replace(tally, rows=tally.rows * times, counts=tally.counts * times)


def calibration(rng: Rng) -> Certificate:
    rows = int(rng.integers(1, 80))
    score = scores(rng, rows)
    grids: list[dict[str, Any]] = [
        {"n_bins": int(rng.integers(1, 12))},
        {"edges": [0.0, 0.5, 0.9, 1.0]},
        {"n_bins": int(rng.integers(1, 5)), "edges": "equal-mass"},
    ]
    grid = grids[int(rng.integers(3))]
    if rng.random() < 0.3 and "edges" not in grid:
        grid["groups"] = names(rng, rows)
    elif rng.random() < 0.2 and "edges" not in grid:
        grid["groups"] = {"odd": np.arange(rows) % 2 == 1, "all": np.ones(rows, dtype=bool)}
    options: dict[str, Any] = {
        "delta": level(rng),
        "side": rng.choice(["both", "lower", "upper"]),
        "correction": rng.choice(["sidak", "bonferroni"]),
    }
    correct = rng.random(rows) < score
    if "groups" in grid or "edges" in grid:
        return calibrate(score, correct, **options, **grid)
    tally = Tally.count("calibration", confidence=score, correct=correct, **grid)
    return calibrate(data=_many(tally, int(10 ** rng.integers(0, 5))), **options)


def abstention(rng: Rng) -> Certificate:
    rows = int(rng.integers(1, 400))
    score = scores(rng, rows)
    correct = rng.random(rows) < score ** float(rng.choice([0.1, 0.5, 2.0]))
    options: dict[str, Any] = {"xi": rate(rng), "delta": level(rng)}
    if rng.random() < 0.3:
        options["groups"] = names(rng, rows)
    elif rng.random() < 0.4:
        options["pool"] = scores(rng, 57)
    if rng.random() < 0.3:
        options["first_threshold"] = float(rng.random())
    return certify_abstention(score, correct, **options)


def recall(rng: Rng) -> Certificate:
    rows = int(rng.integers(1, 300))
    positive, score = rng.random(rows) < rng.random(), scores(rng, rows)
    options: dict[str, Any] = {"target": 1 - rate(rng, zero=0), "delta": level(rng)}
    positives = int(positive.sum())
    if positives and rng.random() < 0.3:
        # The last look can always pass.
        last = positives + 50 + int(3 * np.log(1 / options["delta"]) / (1 - options["target"]))
        looks = sorted({positives, *rng.integers(1, last, size=2).tolist(), last})
        return certify_recall(score, positive, looks=looks, **options)
    return certify_recall(score, positive, **options)


def false_alarms(rng: Rng) -> Certificate:
    rows = int(rng.integers(1, 300))
    positive, score = rng.random(rows) < rng.random(), scores(rng, rows)
    return certify_false_alarms(1 - score, positive, xi=rate(rng), delta=level(rng))


def shield(rng: Rng) -> Certificate:
    rows = int(rng.integers(1, 300))
    unsafe = rng.random(rows) < rng.choice([0.02, 0.1, 0.5])
    score = np.where(unsafe & (rng.random(rows) < 0.02), -np.inf, scores(rng, rows))
    options: dict[str, Any] = {"xi": rate(rng), "delta": level(rng)}
    way = int(rng.integers(5))
    if way == 0 and options["xi"] > 0:
        last = rows + 50 + int(3 * np.log(1 / options["delta"]) / options["xi"])
        options["looks"] = sorted({rows, *rng.integers(1, last, size=3).tolist(), last})
    elif way == 1:
        options |= {"bound": "product", "final_score": score}
    elif way == 2:
        options["rate"] = "among-unsafe"
    if way == 3:
        tally = Tally.count("shield", score=score, unsafe=unsafe)
        return certify_shield(data=_many(tally, int(10 ** rng.integers(1, 4))), **options)
    return certify_shield(score, unsafe, **options)


def batch(rng: Rng) -> Certificate:
    rows = int(rng.integers(1, 600))
    slow = rng.integers(0, 4, size=rows)
    score = scores(rng, rows)
    fast = np.where(rng.random(rows) < score, slow, (slow + 1) % 4)
    score = np.where(rng.random(rows) < rng.choice([0.0, 0.2]), np.nan, score)
    return answer_batch(
        score,
        fast,
        lambda asked: slow[asked],
        xi=rate(rng),
        delta=level(rng),
        rng=rng,
        looks=int(rng.choice([1, 1, 2])),
        whole_ties=bool(rng.random() < 0.3),
    ).certificate


def _cascade_rows(rng: Rng, rows: int, models: int, labelled: float) -> dict[str, Any]:
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


def _cascade(rng: Rng, rows: int, models: int, **options: Any) -> Certificate:
    labelled = float(rng.choice([1.0, 0.8, 0.0]))
    columns = _cascade_rows(rng, rows, models, labelled)
    if not labelled and rng.random() < 0.5:
        del columns["label"]
        options["claim"] = "differ"
    if rng.random() < 0.5:
        options["costs"] = np.cumsum(rng.integers(1, 9, size=models)).tolist()
    found: Certificate = certify_cascade(
        **columns, delta=level(rng), unseen_labels=1.0, unrelated_labels=True, **options
    )
    return found


def two_models(rng: Rng) -> Certificate:
    options: dict[str, Any] = {"xi": rate(rng), "bound": str(rng.choice(BOUNDS))}
    return _cascade(rng, int(rng.integers(1, 250)), 2, **options)


def paths(rng: Rng) -> Certificate:
    options: dict[str, Any] = {"xi": rate(rng), "bound": str(rng.choice(BOUNDS))}
    return _cascade(rng, int(rng.integers(1, 120)), int(rng.integers(3, 5)), **options)


def groups(rng: Rng) -> Certificate:
    rows, models = int(rng.integers(1, 160)), int(rng.choice([2, 2, 3]))
    options: dict[str, Any] = {"xi": rate(rng), "bound": str(rng.choice(BOUNDS))}
    if rng.random() < 0.3:
        named: Any = {"odd": np.arange(rows) % 2 == 1, "late": np.arange(rows) > rows / 3}
    else:
        named = names(rng, rows)
        options["group_thresholds"] = str(rng.choice(["common", "own"]))
    return _cascade(rng, rows, models, groups=named, **options)


def greedy(rng: Rng) -> Certificate:
    columns = _cascade_rows(rng, int(rng.integers(1, 120)), 3, 1.0)
    bound: Any = rng.choice(BOUNDS)
    xi, delta = rate(rng, zero=0), level(rng)
    return certify_cascade(
        **columns,
        unseen_labels=1.0,
        unrelated_labels=True,
        xi=xi,
        delta=delta,
        bound=bound,
        method="greedy",
    )


def front(rng: Rng) -> Certificate:
    models = int(rng.choice([2, 3]))
    columns = _cascade_rows(rng, int(rng.integers(1, 250)), models, 1.0)
    top = 65536 if models == 2 else 1024
    steps = np.unique(rng.integers(0, top, size=(8, models - 1)), axis=0)
    steps = steps[np.argsort(-steps.sum(axis=1))]
    declared = Declared(
        tuple(rng.permutation(5)[:models].tolist()),
        tuple(map(float, rng.integers(1, 9, size=models))),
        0.2,
        int(rng.integers(100)),
        50,
        steps.T,
    )
    bound: Any = rng.choice(BOUNDS)
    return certify_declared(
        Tally.count("cascade", **columns, unseen_labels=1.0, unrelated_labels=True),
        declared,
        xi=rate(rng),
        delta=level(rng),
        bound=bound,
    )


def drawn(rng: Rng) -> Certificate:
    rows = int(rng.integers(4, 200))
    columns = {"score": scores(rng, rows), "unsafe": rng.random(rows) < 0.1}
    draws: list[dict[str, Any]] = [
        {"clusters": np.arange(rows) // 3},
        {"clusters": np.arange(rows) // 3, "cluster_bound": 4, "seed": 3},
        {"weights": rng.random(rows) + 0.5, "weight_bound": 2.0, "seed": 1},
    ]
    tally = Tally.count("shield", **columns, **draws[int(rng.integers(3))])
    return certify_shield(data=tally, xi=rate(rng), delta=level(rng)) if tally.rows else drawn(rng)


def bundle(rng: Rng) -> Certificate:
    rows = int(rng.integers(5, 200))
    score = scores(rng, rows)
    flag = rng.random(rows) < 0.1
    return certify_together(
        {
            "brake": partial(certify_shield, score, flag, xi=rate(rng)),
            "find": partial(certify_recall, score, flag, target=0.8),
            "confidence": partial(calibrate, score, ~flag, n_bins=3),
        },
        delta=level(rng),
    )


MAKERS: dict[str, tuple[int, Callable[[Rng], Certificate]]] = {
    "abstention": (900, abstention),
    "batch": (1200, batch),
    "bundle": (300, bundle),
    "calibration": (2630, calibration),
    "cascade": (900, two_models),
    "drawn": (300, drawn),
    "false-alarms": (300, false_alarms),
    "front": (300, front),
    "greedy": (60, greedy),
    "groups": (150, groups),
    "paths": (100, paths),
    "recall": (1160, recall),
    "shield": (1100, shield),
    **{name: (kind.trials, kind.random) for name, kind in KINDS.items()},
}
"""How many of each are compared, at least 10,000 in all, and what makes them."""

"""Replacement: a new model loses at most a share of accuracy against the old one."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.kind import Kind, Pilot, Use
from tests.kinds.random_rows import level, names, rate

from pacbound import Certificate, certify_replacement
from pacbound.stats.paired import paired_upper


def _answers(
    rows: int, rng: np.random.Generator, lost: float, gained: float, models: int = 2
) -> Any:
    label = rng.integers(0, 3, size=rows)
    which = rng.random((rows, models - 1))
    old = np.where((which < gained).any(axis=1), (label + 1) % 3, label)
    new = np.where(which < gained, label[:, None], old[:, None])
    new = np.where((which >= gained) & (which < gained + lost), (label[:, None] + 2) % 3, new)
    return np.column_stack([old, new]), label


def _made(rows: int = 600, lost: float = 0.01, gained: float = 0.04, **options: Any) -> Certificate:
    models = options.pop("models", 2)
    prediction, label = _answers(rows, np.random.default_rng(9), lost, gained, models)
    truth = label.astype(float)
    truth[: options.pop("unlabelled", 0)] = np.nan
    return certify_replacement(prediction, truth, **{"xi": 0.03, "delta": 0.05, **options})


def _random(rng: np.random.Generator) -> Certificate:
    rows, models = int(rng.integers(1, 400)), int(rng.integers(2, 5))
    lost, gained = rng.choice([0.0, 0.01, 0.2]), rng.choice([0.0, 0.05, 0.3])
    prediction, label = _answers(rows, rng, lost, gained, models)
    truth, answers = label.astype(float), prediction.astype(float)
    truth[rng.random(rows) < rng.choice([0.0, 0.1, 1.0])] = np.nan
    answers[rng.random(answers.shape) < rng.choice([0.0, 0.0, 0.02])] = np.nan
    options: dict[str, Any] = {"xi": float(rng.choice([0.0, rate(rng)])), "delta": level(rng)}
    if rng.random() < 0.4:
        options["groups"] = names(rng, rows)
        options["group_verdicts"] = str(rng.choice(["common", "own"]))
        if options["group_verdicts"] == "common" and options["xi"] > 0:
            options["small_groups"] = str(rng.choice(["refuse", "leave-out"]))
    elif rng.random() < 0.3:
        options |= {"clusters": np.arange(rows) // 2, "seed": int(rng.integers(9))}
    elif rng.random() < 0.3:
        options["looks"] = sorted({rows, int(rng.integers(1, 500))})
    if rng.random() < 0.3:
        quality = rng.choice([0.0, 0.25, 0.5, 1.0, np.nan], size=(rows, models))
        options["quality_scale"] = [(0, 1), (0, 0.25, 0.5, 0.75, 1)][int(rng.integers(2))]
        return certify_replacement(quality=quality, **options)
    return certify_replacement(answers, truth, unseen_labels=1, unrelated_labels=True, **options)


def _graded(**options: Any) -> Certificate:
    quality = np.random.default_rng(3).integers(1, 6, size=(500, 2)).astype(float)
    quality[:, 1] = np.maximum(quality[:, 1], quality[:, 0] - 1)
    quality[:4, 0] = quality[2:6, 1] = np.nan
    asked: dict[str, Any] = {"quality_scale": (1, 5), "graded_by": "two annotators"}
    asked |= {"xi": 0.05, "delta": 0.05}
    return certify_replacement(quality=quality, **{**asked, **options})


def _use() -> Use:
    return Use(_made(2000, 0.01, 0.01), _rows)


def _rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    prediction, label = _answers(n, rng, 0.3 if bad else 0.02, 0.01)
    return {"prediction": prediction, "label": label}


def _pilot(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    prediction, label = _answers(rows, rng, 0.02, 0.03)
    return {"question": "replacement", "prediction": prediction, "label": label}


def _bound(tally: Any) -> float:
    made = certify_replacement(data=tally, xi=0.02, delta=0.05)
    return float(paired_upper(made.losses, made.gains, made.n, delta=0.05))


def _overlapping() -> Certificate:
    places = np.arange(600)
    groups = {"even": places % 2 == 0, "early": places < 400, "none": places < 0}
    return _made(groups=groups)


KIND = Kind(
    made={
        "replacement": _made,
        "replacement-better": lambda: _made(xi=0.0),
        "replacement-unlabelled": lambda: _made(unlabelled=300, lost=0.0),
        "replacement-groups": lambda: _made(groups=np.arange(600) % 2, unlabelled=9),
        "replacement-groups-own": lambda: _made(
            groups=np.arange(600) % 3, group_verdicts="own", models=3
        ),
        "replacement-groups-overlapping": _overlapping,
        "replacement-groups-small": lambda: _made(
            groups=np.arange(600) // 580, small_groups="leave-out"
        ),
        "replacement-looks": lambda: _made(looks=[300, 600], models=4),
        "replacement-clusters": lambda: _made(clusters=np.arange(600) // 2, seed=3),
        "replacement-refused": lambda: _made(lost=0.1),
        "replacement-graded": _graded,
    },
    layouts=("replacement-looks", "replacement-clusters", "replacement-graded"),
    random=_random,
    use=_use,
    pilot=Pilot(_pilot, _bound, {"xi": 0.02}, 0.02),
)

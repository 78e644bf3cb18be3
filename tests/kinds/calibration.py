"""Calibration: an interval around the accuracy in every bin of confidence."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.kind import Kind, Pilot, Use
from tests.kinds.random_rows import level, many, names, scores

from pacbound import Certificate, Tally, calibrate
from pacbound.claims.calibration_certificate import CalibrationCertificate


def _made() -> Certificate:
    rng = np.random.default_rng(1)
    confidence = rng.beta(6, 1, size=400)
    return calibrate(confidence, rng.random(400) < confidence, delta=0.01, n_bins=5)


def _grouped() -> Certificate:
    rng = np.random.default_rng(2)
    confidence = rng.beta(6, 1, size=400)
    groups = rng.choice(["day", "night"], size=400)
    return calibrate(
        confidence,
        rng.random(400) < confidence,
        delta=0.01,
        edges=[0, 0.5, 0.9, 1],
        groups=groups,
        side="lower",
    )


def _equal_mass() -> Certificate:
    rng = np.random.default_rng(3)
    confidence = rng.beta(6, 1, size=400)
    return calibrate(
        confidence,
        rng.random(400) < confidence,
        delta=0.01,
        n_bins=3,
        edges="equal-mass",
        correction="bonferroni",
    )


def drawn_columns(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    confidence = rng.beta(6, 1, size=rows)
    return {"confidence": confidence, "correct": rng.random(rows) < confidence, "n_bins": 4}


def _random(rng: np.random.Generator) -> Certificate:
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
    return calibrate(data=many(tally, int(10 ** rng.integers(0, 5))), **options)


def watched(**options: Any) -> CalibrationCertificate:
    rng = np.random.default_rng(11)
    confidence = rng.random(5000)
    right = rng.random(5000) < confidence
    return calibrate(confidence, right, delta=0.01, n_bins=5, **options)


def _rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    confidence = rng.random(n)
    right = rng.random(n) < (confidence / 2 if bad else confidence)
    return {"confidence": confidence, "correct": right}


def _pilot(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    confidence = rng.beta(5, 1, size=rows)
    return {"confidence": confidence, "correct": rng.random(rows) < confidence}


def _width(tally: Tally) -> float:
    bins = calibrate(data=tally, delta=0.05).bins
    return float(((bins.upper - bins.lower) * bins.trials).sum() / bins.trials.sum())


KIND = Kind(
    made={
        "calibration": _made,
        "calibration-groups": _grouped,
        "calibration-equal-mass": _equal_mass,
        "calibration-clusters-bins": lambda: calibrate(
            data=Tally.count(
                "calibration",
                **drawn_columns(400),
                clusters=np.arange(400) // 4,
                groups=np.where(np.arange(400) % 3, "CT", "MRI"),
                seed=2,
            ),
            delta=0.01,
        ),
        "calibration-weights": lambda: calibrate(
            data=Tally.count(
                "calibration",
                **drawn_columns(400),
                weights=np.linspace(0, 3, 400),
                weight_bound=3.5,
                seed=2,
            ),
            delta=0.01,
        ),
    },
    layouts=("calibration-groups", "calibration-clusters-bins"),
    random=_random,
    trials=2630,
    use=lambda: Use(watched(), _rows),
    pilot=Pilot(_pilot, _width, {}, 0.02),
)

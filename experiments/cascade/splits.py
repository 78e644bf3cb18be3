"""Thresholds chosen on half of the rows by every method, and what they do to the other half."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.cascade.exceeding import shown_above
from experiments.cascade.models import Array, Models
from pacbound import Tally
from pacbound.baselines import (
    SLOW_ALONE,
    histogram_threshold,
    softmax_threshold,
)
from pacbound.claims.cascade import CascadeCertificate, certify_cascade

SEEDS, DELTA, LEVEL = 20, 0.01, 0.05


@dataclass(frozen=True)
class Seen:
    """What thresholds chosen on other rows did to test rows: how many left at each exit, were lost
    and were gained."""

    thresholds: list[float]
    exits: list[int]
    losses: int
    gains: int


def two_models(
    models: Models, tolerances: tuple[float, ...], splits: int = SEEDS
) -> dict[float, dict[str, Any]]:
    """For every xi and method the means over the splits, and the counts of each."""
    halves = [models.halves(seed) for seed in range(splits)]
    return {
        xi: _gathered(
            [dict(choices(models, known, fresh, xi=xi, delta=DELTA)) for known, fresh in halves],
            models,
            xi,
        )
        for xi in tolerances
    }


def more_models(models: Models, xi: float, splits: int = SEEDS) -> dict[str, Any]:
    """The certified cascade of all the models, with the paper's product and the paper's greedy
    search beside it."""
    seen = []
    for known, fresh in map(models.halves, range(splits)):
        tally = counted(models, known)
        found = {
            "exact": _certified(tally, models, xi, bound="exact"),
            "product": _certified(tally, models, xi, bound="product"),
            "greedy_exact": _certified(tally, models, xi, bound="exact", method="greedy"),
            "greedy": _certified(tally, models, xi, bound="product", method="greedy"),
        }
        seen.append({name: routed(models, fresh, found[name].thresholds) for name in found})
    return _gathered(seen, models, xi)


def choices(
    models: Models, known: Array, fresh: Array, *, xi: float, delta: float
) -> Iterator[tuple[str, Seen]]:
    """What the threshold that each method takes from `known` rows does to `fresh` ones."""
    tally = counted(models, known)
    for bound in ("exact", "pair", "product"):
        found = certify_cascade(data=tally, xi=xi, delta=delta, costs=models.costs, bound=bound)
        yield bound, routed(models, fresh, found.thresholds)
    yield "histogram", routed(models, fresh, np.array([histogram_threshold(tally, xi=xi)]))
    slow_error = float(models.wrong[known, -1].mean())
    believed = np.array([softmax_threshold(slow_error, xi=xi)])
    yield "softmax", routed(models, fresh, believed)
    if models.rescaled is not None:
        leaves = np.where(models.rescaled(known)[fresh] >= believed[0], 0, 1)
        yield "temperature", _seen(models, fresh, leaves, believed)
    yield "slow", routed(models, fresh, np.array([SLOW_ALONE]))


def counted(models: Models, rows: Array) -> Tally:
    """The tally of some rows."""
    return Tally.count(
        "cascade",
        confidence=models.confidences[rows],
        prediction=models.predictions[rows],
        label=models.labels[rows],
    )


def _certified(tally: Tally, models: Models, xi: float, **how: Any) -> CascadeCertificate:
    found: CascadeCertificate = certify_cascade(
        data=tally, xi=xi, delta=DELTA, costs=models.costs, **how
    )
    return found


def routed(models: Models, rows: Array, thresholds: Array) -> Seen:
    """Every row leaves at the first exit whose float64 confidence reaches its threshold, or else at
    the slow model."""
    reached = models.confidences[rows].astype(np.float64) >= thresholds
    leaves = np.where(reached.any(axis=1), reached.argmax(axis=1), reached.shape[1])
    return _seen(models, rows, leaves, thresholds)


def _seen(models: Models, rows: Array, leaves: Array, thresholds: Array) -> Seen:
    wrong = models.wrong[rows]
    answer, slow = wrong[np.arange(len(rows)), leaves], wrong[:, -1]
    exits = np.bincount(leaves, minlength=len(models.costs))[:-1]
    return Seen(
        thresholds.tolist(),
        exits.tolist(),
        int((answer & ~slow).sum()),
        int((slow & ~answer).sum()),
    )


def _gathered(splits: list[dict[str, Seen]], models: Models, xi: float) -> dict[str, Any]:
    rows = len(models.labels) - len(models.labels) // 2
    return {
        name: summary([split[name] for split in splits], models, rows, xi, alone=name == "slow")
        for name in splits[0]
    }


def summary(
    splits: list[Seen], models: Models, rows: int, xi: float, *, alone: bool
) -> dict[str, Any]:
    """The means over the splits, how often more than xi was lost, and the counts of each split."""
    increases = [(seen.losses - seen.gains) / rows for seen in splits]
    exits = np.array([seen.exits for seen in splits])
    costs = np.column_stack([exits, rows - exits.sum(axis=1)]) @ np.array(models.costs)
    costs = np.ones(len(splits)) if alone else costs / rows / models.slow_cost
    return {
        "exit_rates": (exits.mean(axis=0) / rows).tolist(),
        "cost": float(costs.mean()),
        "cost_ends": [float(costs.min()), float(costs.max())],
        "error_increase": float(np.mean(increases)),
        "error_increase_sd": float(np.std(increases, ddof=1)),
        "splits_above": sum(increase > xi for increase in increases),
        "splits_shown_above": sum(
            shown_above(seen.losses, seen.gains, rows, xi=xi, level=LEVEL) for seen in splits
        ),
        "splits": {
            key: [getattr(seen, key) for seen in splits]
            for key in ("thresholds", "exits", "losses", "gains")
        },
    }

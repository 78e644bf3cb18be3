"""Thresholds chosen on half of the rows by every method, and what they do to the other half."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.baselines import SLOW_ALONE, histogram_threshold, softmax_threshold
from experiments.cascade.exceeding import shown_above
from experiments.cascade.models import Array, Models
from experiments.two_models import NEVER, TOP, by_bound, walk_from_counts
from pacbound import Tally
from pacbound.claims.cascade import certify_cascade
from pacbound.paper import Passes, error_bound, greedy_thresholds
from pacbound.procedures.cascade import paths_of, total_cost
from pacbound.procedures.joint_walk import JointWalk, along, top_of
from pacbound.stats.binomial import bonferroni_level
from pacbound.stats.paired import paired_test
from pacbound.tally.questions.cascade import with_unlabelled

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
            "exact": _certified(tally, models, xi),
            "product": paths_by_product(tally, models.costs, xi=xi, delta=DELTA),
            "greedy_exact": _greedily(models, known, _by_exact_test(models, len(known), xi), xi),
            "greedy": _greedily(models, known, None, xi),
        }
        seen.append({name: routed(models, fresh, found[name]) for name in found})
    return _gathered(seen, models, xi)


def choices(
    models: Models, known: Array, fresh: Array, *, xi: float, delta: float
) -> Iterator[tuple[str, Seen]]:
    """What the threshold that each method takes from `known` rows does to `fresh` ones."""
    tally = counted(models, known)
    walk = walk_from_counts(tally.cells[:, 0], with_unlabelled(tally.counts, 1))
    for bound in ("exact", "pair", "product"):
        cell = by_bound(bound, walk, tally.rows, xi=xi, delta=delta)
        limit = np.array([np.inf if cell == NEVER else cell / TOP])
        yield bound, routed(models, fresh, limit)
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


def _certified(tally: Tally, models: Models, xi: float) -> Array:
    certificate = certify_cascade(data=tally, xi=xi, delta=DELTA, costs=models.costs)
    return np.asarray(certificate.thresholds)


def paths_by_product(tally: Tally, costs: tuple[int, ...], *, xi: float, delta: float) -> Array:
    """The cheapest end of the seven declared paths, each walked by the paper's bound."""
    exits = tally.cells.shape[1]
    counts = with_unlabelled(tally.counts, exits)
    paths = [path.cells for path in paths_of(exits)]
    level = bonferroni_level(delta, len(paths))

    def passes(walk: JointWalk) -> Array:
        seen = walk.differ, walk.only_fast, walk.lost, tally.rows
        return np.asarray(error_bound(*seen, delta=level) <= xi)

    ends: list[tuple[float, int, Array]] = []
    for walk in along(paths, tally.cells, counts):
        end = int(np.argmin(np.append(passes(walk), False))) - 1
        if end >= 0:
            paid = total_cost(walk.exits[:, end], tally.rows, tuple(map(float, costs)))
            ends.append((paid, len(ends), walk.cells[:, end] / top_of(exits)))
    return np.asarray(min(ends)[2]) if ends else np.full(exits, np.inf)


def _greedily(models: Models, rows: Array, passes: Passes | None, xi: float) -> Array:
    columns = models.confidences[rows], models.predictions[rows], models.labels[rows]
    return greedy_thresholds(*columns, xi=xi, delta=DELTA, passes=passes)


def _by_exact_test(models: Models, n: int, xi: float) -> Passes:
    """The exact test of the loss, where the paper has its bound."""
    level = bonferroni_level(DELTA, models.confidences.shape[1])

    def passes(_: Array, gains: Array, losses: Array) -> Array:
        lost, gained = losses.sum(axis=0), gains.sum(axis=0)
        return np.asarray(paired_test(lost, gained, n, xi=xi, delta=level))

    return passes


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

"""Thresholds from samples of a known population, so that what each of them truly loses is known.

Rows are drawn with replacement. The rows of the data set are the population, and a threshold's loss
and cost over all of them are exact, not estimates: a draw violates if that loss is above xi.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import bdtrc

from experiments.routing.pairs import Array, Pair
from pacbound import certify_cascade
from pacbound.paper import greedy_thresholds

TOLERANCES, DELTA = (0.01, 0.02), 0.01
MAGIC = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Thresholds that people pick by feeling."""

Choice = Callable[[Pair, Array, float], float]


class TrueTradeOff:
    """What every threshold loses and costs over the whole population."""

    def __init__(self, pair: Pair) -> None:
        order = np.argsort(-pair.confidences, kind="stable")
        self._scores = pair.confidences[order]
        right, weights = pair.right[order].astype(np.float64), pair.weights[order]
        self._exits = np.concatenate([[0.0], np.cumsum(weights)])
        self._losses = np.concatenate([[0.0], np.cumsum(weights * (right[:, 1] - right[:, 0]))])
        self._prices = pair.prices

    def at(self, thresholds: Any) -> tuple[Array, Array, Array]:
        """The share that exits, the loss of accuracy and the dollars for 10,000 rows.

        At +inf the cheap model is not asked, and not paid.
        """
        thresholds = np.asarray(thresholds, dtype=np.float64)
        above = np.searchsorted(-self._scores, -thresholds, side="right")
        fast, slow = self._prices
        exits = self._exits[above]
        dollars = np.where(thresholds == np.inf, slow, fast + (1 - exits) * slow)
        return exits, self._losses[above], dollars


def measured(pair: Pair, draws: int) -> dict[str, Any]:
    """All methods at all tolerances, and the thresholds that depend on no sample."""
    truth = TrueTradeOff(pair)
    samples = [_sample(pair, np.random.default_rng(seed)) for seed in range(draws)]
    return {
        "name": pair.name,
        "models": [pair.fast, pair.slow],
        "n": pair.n,
        "accuracies": list(pair.accuracies),
        "dollars": list(pair.prices),
        "chosen": {
            str(xi): {
                name: _summary(truth, [choose(pair, rows, xi) for rows in samples], xi)
                for name, choose in CHOICES.items()
            }
            for xi in TOLERANCES
        },
        "magic": {str(threshold): _fixed(truth, threshold) for threshold in MAGIC},
        "best_possible": {str(xi): _oracle(truth, pair, xi) for xi in TOLERANCES},
    }


def _sample(pair: Pair, random: np.random.Generator) -> Array:
    return random.choice(len(pair.labels), size=pair.n, p=pair.weights)


def _certified(pair: Pair, rows: Array, xi: float) -> float:
    columns = _columns(pair, rows)
    certificate = certify_cascade(*columns, xi=xi, delta=DELTA, unseen_labels=1.0)
    return float(certificate.thresholds[0])


def _paper(pair: Pair, rows: Array, xi: float) -> float:
    return float(greedy_thresholds(*_columns(pair, rows), xi=xi, delta=DELTA)[0])


def _columns(pair: Pair, rows: Array) -> tuple[Array, Array, Array]:
    return pair.confidences[rows, None], pair.predictions[rows], pair.labels[rows]


def _tuned(pair: Pair, rows: Array, xi: float) -> float:
    """The lowest threshold whose loss among the rows themselves is at most `xi`."""
    scores, right = pair.confidences[rows], pair.right[rows].astype(np.int64)
    order = np.argsort(-scores, kind="stable")
    lost = np.cumsum(right[order, 1] - right[order, 0])
    last_of_ties = np.append(np.diff(scores[order]) != 0, True)
    fine = np.flatnonzero((lost <= xi * len(rows)) & last_of_ties)
    return float(scores[order][fine[-1]]) if fine.size else np.inf


CHOICES: dict[str, Choice] = {
    "certified": _certified,
    "paper, mended": _paper,
    "tuned on the sample": _tuned,
}


def _summary(truth: TrueTradeOff, thresholds: list[float], xi: float) -> dict[str, Any]:
    exits, losses, dollars = truth.at(thresholds)
    violations, draws = int((losses > xi).sum()), len(thresholds)
    return {
        "exits": float(exits.mean()),
        "loss": float(losses.mean()),
        "largest_loss": float(losses.max()),
        "dollars": float(dollars.mean()),
        "dollars_10_to_90": np.quantile(dollars, [0.1, 0.9]).tolist(),
        "loss_10_to_90": np.quantile(losses, [0.1, 0.9]).tolist(),
        "violations": violations,
        "draws": draws,
        "p": float(bdtrc(violations - 1, draws, DELTA)) if violations else 1.0,
        "refused": int(np.isinf(thresholds).sum()),
    }


def _fixed(truth: TrueTradeOff, threshold: float) -> dict[str, float]:
    exits, loss, dollars = (float(value) for value in truth.at(threshold))
    return {"exits": exits, "loss": loss, "dollars": dollars}


def _oracle(truth: TrueTradeOff, pair: Pair, xi: float) -> dict[str, float]:
    """The cheapest threshold that truly loses at most `xi`."""
    thresholds = np.append(np.unique(pair.confidences), np.inf)
    _, losses, dollars = truth.at(thresholds)
    allowed = np.where(losses <= xi, dollars, np.inf)
    return _fixed(truth, float(thresholds[allowed.argmin()]))

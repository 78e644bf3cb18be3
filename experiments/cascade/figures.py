"""The two figures of the experiment, a panel for each pair of models."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from experiments.cascade.models import Array, Models
from experiments.cascade.splits import DELTA
from experiments.cascade.tables import CERTIFIED
from experiments.method_figures import error_against_cost, increase_against_desired

DRAWN = {
    "exact": "exact",
    "pair": "pair of bounds",
    "product": "product",
    "histogram": "histogram binning",
    "softmax": "(1 - xi')-softmax",
    "temperature": "(1 - xi')-temperature",
}
NAMED = [DRAWN[name] for name in CERTIFIED]
SHOWN_SEED = 0


def error_cost(parts: list[tuple[Models, dict[str, Any], float]]) -> Figure:
    """Means over the splits at one xi, on the curve of all thresholds over all rows."""
    figure, axes = _panels([f"{models.name}: mean of all splits" for models, _, _ in parts])
    for ax, (models, part, xi) in zip(axes, parts, strict=True):
        slow_error, methods = part["errors"][-1], part["results"][xi]
        points = {
            DRAWN[name]: (result["cost"], slow_error + result["error_increase"])
            for name, result in methods.items()
            if name in DRAWN
        }
        error_against_cost(
            ax,
            points,
            slow_error=slow_error,
            xi=xi,
            trade_off=trade_off(models),
            certified=NAMED,
            delta=DELTA,
        )
    return figure


def desired_achieved(parts: list[tuple[Models, dict[str, Any], float]]) -> Figure:
    """One split, with intervals for what chance in its test rows may hide."""
    figure, axes = _panels(
        [f"{models.name}: split {SHOWN_SEED}, 95 % intervals" for models, _, _ in parts]
    )
    for ax, (models, part, _) in zip(axes, parts, strict=True):
        results = part["results"]
        drawn = [name for name in DRAWN if name in next(iter(results.values()))]
        counts = {
            DRAWN[name]: [_counts(methods[name]) for methods in results.values()] for name in drawn
        }
        rows = len(models.labels) // 2
        increase_against_desired(ax, list(results), counts, rows=rows, certified=NAMED, delta=DELTA)
    return figure


def trade_off(models: Models) -> tuple[Array, Array]:
    """Cost, as a share of the slow model's, and error over 400 thresholds of the single exit."""
    wrong, scores = models.wrong, models.confidences[:, 0].astype(np.float64)
    thresholds = np.quantile(scores, np.linspace(0, 1, 400))
    leaves = scores >= thresholds[:, None]
    cost = np.where(leaves, *models.costs).mean(axis=1) / models.slow_cost
    return cost, np.where(leaves, wrong[:, 0], wrong[:, 1]).mean(axis=1)


def _counts(result: dict[str, Any]) -> tuple[int, int]:
    return result["splits"]["losses"][SHOWN_SEED], result["splits"]["gains"][SHOWN_SEED]


def _panels(titles: list[str]) -> tuple[Figure, list[Any]]:
    figure = Figure(figsize=(7.0 * len(titles), 6.5), layout="constrained")
    FigureCanvasAgg(figure)
    parts: list[Any] = list(figure.subfigures(1, len(titles), squeeze=False)[0])
    for part, title in zip(parts, titles, strict=True):
        part.suptitle(title, x=0.02, ha="left", weight="bold")
    return figure, [part.add_subplot() for part in parts]

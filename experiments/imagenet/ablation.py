"""The paper's ablations on ImageNet: all of n, xi and delta, and how often each method violates.

    python -m experiments.imagenet.ablation --outputs OUTPUTS.npz --top-five TOP_FIVE.npz

The population is the 50,000 validation images, each as likely as any other, and ResNet-18 answers
before ResNet-101. A calibration set is n independent draws from it. The loss of a threshold over
the population is then known exactly, so whether a draw violates, by a loss above xi, is a fact; no
test rows with luck of their own come in. If a method's guarantee holds, each draw violates with
probability at most delta, and an exact binomial test says whether the count of violations shows
otherwise. Draws are shared by all cells of the same n.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from experiments import palette
from experiments.baselines import softmax_threshold
from experiments.imagenet.outputs import BEFORE, SLOW, Outputs
from experiments.imagenet.source import Source, read
from experiments.palette import light_grid
from experiments.record import known, p_text, provenance, publish, show_progress, table
from experiments.temperature import of_top_five
from experiments.two_models import (
    Array,
    Pair,
    cell_of,
    certified,
    chance_of_more,
    mean_loss,
    product_bounds,
    searched,
    walked,
)

NAME = "imagenet_ablation"
SIZES = (5_000, 10_000, 15_000, 20_000)
TOLERANCES = (0.01, 0.02, 0.03, 0.04)
DELTAS = (1e-1, 1e-2, 1e-3, 1e-4)
DRAWS = 100
LEVEL = 1e-3
"""Of the test of each cell. There are 64 cells and several methods, so a few would reject at 0.05
by chance."""

SAID = {
    "exact": "ours",
    "product": "the paper's method, mended",
    "searched_product": "the paper's method, its formula mended only",
    "printed": "the paper's bound as printed",
    "histogram": "histogram binning",
    "temperature": "(1 - ξ′)-temperature",
    "softmax": "(1 - ξ′)-softmax",
}
CERTIFIED = ("exact", "product")
Cell = tuple[int, float, float]


def main(arguments: list[str] | None = None) -> None:
    source = read("experiments.imagenet.ablation", __doc__, arguments)
    publish(
        source.out,
        NAME,
        known(source.out, NAME) if source.redraw else measured(source),
        report=markdown,
        figures=lambda found: {
            "panels": panels(found, source.outputs),
            "achieved": achieved(found),
        },
    )


def measured(source: Source) -> dict[str, Any]:
    data, draws = source.outputs, source.times(DRAWS)
    pair = data.pair(BEFORE, SLOW)
    sizes = tuple(source.rows(n) for n in source.some(SIZES))
    losses: dict[Cell, dict[str, list[float]]] = {}
    exits: dict[Cell, dict[str, list[float]]] = {}
    for place, n in enumerate(sizes):
        for draw in range(draws):
            rng = np.random.default_rng([draw, n])
            for cell, name, lost, left in _one_draw(source, pair, n, rng):
                losses.setdefault(cell, {}).setdefault(name, []).append(lost)
                exits.setdefault(cell, {}).setdefault(name, []).append(left)
            show_progress(place * draws + draw + 1, len(sizes) * draws, NAME)
    slow, fast = (data.costs[place] for place in data.places(SLOW, BEFORE))
    return {
        **provenance(source.command, seeds=f"[draw, n], draw < {draws}", inputs=source.inputs),
        "settings": {
            "sizes": sizes,
            "tolerances": source.some(TOLERANCES),
            "deltas": source.some(DELTAS),
            "draws": draws,
            "level_of_the_test": LEVEL,
        },
        "slow_error": float(1 - data.right(SLOW).mean()),
        "cells": [
            {
                "n": n,
                "xi": xi,
                "delta": delta,
                "methods": {
                    name: _summary(
                        np.array(losses[n, xi, delta][name]),
                        _costs(np.array(exits[n, xi, delta][name]), fast / slow),
                        xi,
                        delta,
                    )
                    for name in SAID
                },
            }
            for n in sizes
            for xi in source.some(TOLERANCES)
            for delta in source.some(DELTAS)
        ],
    }


def _costs(exits: Array, fast: float) -> Array:
    """As shares of the slow network's; where nothing exits, the fast one is not asked."""
    return np.where(exits == 0, 1.0, fast + 1 - exits)


def _one_draw(
    source: Source, pair: Pair, n: int, rng: np.random.Generator
) -> Iterator[tuple[Cell, str, float, float]]:
    """The true loss and the exit rate of what every method chooses from one calibration set."""
    data, top = source.outputs, source.top_five
    rows = pair.draw(n, rng)
    walk, slow_error = pair.walk(rows), float(1 - data.right(SLOW)[rows].mean())
    changes = walk.take(walk.changes())
    scaled = of_top_five(
        top.classes["resnet18"], top.probabilities["resnet18"], top.labels, top.n_classes
    )(rows)
    rescaled = Pair(Pair.of(scaled, data.labels, data.labels, data.labels).cells, pair.outcomes)
    for delta in source.some(DELTAS):
        product, printed = product_bounds(changes, n, delta)
        for xi in source.some(TOLERANCES):
            believed = cell_of(softmax_threshold(slow_error, xi=xi))
            chosen = {
                "exact": certified(walk, n, xi=xi, delta=delta),
                "product": walked(changes, product <= xi),
                "searched_product": searched(changes, product <= xi),
                "printed": searched(changes, printed <= xi),
                "histogram": searched(changes, mean_loss(changes, n) <= xi),
                "softmax": believed,
            }
            cell = (n, xi, delta)
            for name, threshold in chosen.items():
                yield cell, name, pair.loss(threshold), pair.exit_rate(threshold)
            yield cell, "temperature", rescaled.loss(believed), rescaled.exit_rate(believed)


def _summary(losses: Array, costs: Array, xi: float, delta: float) -> dict[str, Any]:
    violations = int((losses > xi).sum())
    p_value = chance_of_more(violations, len(losses), delta)
    return {
        "saved": float(1 - costs.mean()),
        "saved_ends": (1 - np.quantile(costs, [0.95, 0.05])).tolist(),
        "loss": float(losses.mean()),
        "loss_ends": np.quantile(losses, [0.05, 0.95]).tolist(),
        "violations": violations,
        "p_value": p_value,
        "within_delta": p_value >= LEVEL,
    }


def markdown(record: dict[str, Any]) -> str:
    settings, cells = record["settings"], record["cells"]
    draws = settings["draws"]
    head = ("n", "xi", "delta", *SAID.values())
    lines = [
        (
            f"{cell['n']:,}",
            f"{cell['xi']:g}",
            f"{cell['delta']:g}",
            *(
                f"{result['saved']:.1%}; {result['violations']}"
                + ("" if result["within_delta"] else " **✗**")
                for result in cell["methods"].values()
            ),
        )
        for cell in cells
    ]
    level = settings["level_of_the_test"]
    counted = table(
        ("method", "guarantee", "cells **✗**", "draws above xi", "smallest p, times the cells"),
        [_together(name, cells, draws) for name in SAID],
    )
    return f"""
MACs saved, mean over {draws} calibration sets; then how many of the {draws} lost more than xi, the
loss over the population being known. **✗**: more often than delta allows (exact binomial test,
level {level:g} in each cell).

There are {len(cells)} cells for each method, and cells of the same n share their draws. So the
tests are combined by a union bound, which needs no independence: a method that keeps delta
everywhere is marked anywhere with probability at most {len(cells)} x {level:g} =
{len(cells) * level:.2g}, and its smallest p-value times {len(cells)} is a p-value for "delta is
kept in every cell".

{counted}

{table(head, lines)}
Made by `{record["command"]}`.
"""


def _together(name: str, cells: list[dict[str, Any]], draws: int) -> tuple[str, ...]:
    """All cells of a method in one line."""
    results = [cell["methods"][name] for cell in cells]
    smallest = min(result["p_value"] for result in results)
    return (
        SAID[name],
        "proven" if name in CERTIFIED else "none",
        f"{sum(not result['within_delta'] for result in results)} of {len(cells)}",
        f"{sum(result['violations'] for result in results):,} of {draws * len(cells):,}",
        p_text(min(1.0, smallest * len(cells))),
    )


def panels(record: dict[str, Any], data: Outputs) -> Figure:
    """The appendix's twelve panels: n, xi and delta in turn, the other two as in the paper."""
    asked = record["settings"]
    sizes = asked["sizes"]
    rows = (
        [((n, 0.02, 1e-2), f"n = {n:,}") for n in sizes],
        [((sizes[-1], xi, 1e-2), f"ξ = {xi:g}") for xi in asked["tolerances"]],
        [((sizes[-1], 0.02, delta), f"δ = {delta:g}") for delta in asked["deltas"]],
    )
    figure = Figure(figsize=(15, 11), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(3, len(sizes), sharex=True, sharey="row")
    pair, slow_error = data.pair(BEFORE, SLOW), record["slow_error"]
    exits, lost = pair.curve()
    slow, fast = (data.costs[place] for place in data.places(SLOW, BEFORE))
    cells = {(cell["n"], cell["xi"], cell["delta"]): cell for cell in record["cells"]}
    for row, settings in zip(axes, rows, strict=True):
        for ax, (key, title) in zip(row, settings, strict=True):
            light_grid(ax)
            ax.plot(fast / slow + 1 - exits, 100 * (slow_error + lost), color=palette.UNKNOWN)
            ax.axhline(100 * (slow_error + key[1]), color=palette.IDEAL, linestyle=":")
            ax.plot(1.0, 100 * slow_error, "*", color=palette.IDEAL, markersize=11)
            for name, result in cells[key]["methods"].items():
                _marked(ax, name, result, slow_error)
            ax.set_title(title, loc="left", weight="bold")
        shown = [cells[key]["methods"][name] for key, _ in settings for name in DRAWN]
        allowed = max(key[1] for key, _ in settings)
        most = max(allowed, *(result["loss_ends"][1] for result in shown))
        row[0].set_ylim(100 * (slow_error - 0.002), 100 * (slow_error + 1.08 * most))
    axes[0, 0].set_xlim(0.35, 1.06)
    figure.supxlabel("Multiply-accumulates per image (share of ResNet-101's)")
    figure.supylabel("Top-1 error (%)")
    handles = [
        *(_marked(axes[0, 0], name, None, slow_error) for name in DRAWN),
        *axes[0, 0].lines[:3],
    ]
    names = [SAID[name] for name in DRAWN]
    figure.legend(
        handles,
        [*names, "every threshold", "desired error", "ResNet-101 alone"],
        loc="outside upper center",
        ncols=4,
        frameon=False,
    )
    return figure


DRAWN = {
    "exact": "o",
    "product": "s",
    "histogram": "^",
    "temperature": "D",
    "softmax": "v",
}


def _marked(ax: Any, name: str, result: dict[str, Any] | None, slow_error: float) -> Any:
    """A marker with the 5 % and 95 % quantiles of the draws; without a result, for the legend."""
    if name not in DRAWN:
        return None
    color = palette.CERTIFIED if name in CERTIFIED else palette.OBSERVED
    style: dict[str, Any] = {"color": color, "fmt": DRAWN[name], "markersize": 7, "capsize": 2}
    if name not in ("exact", "histogram"):
        style["markerfacecolor"] = "none"
    if result is None:
        return ax.errorbar([], [], **style)
    x, y = 1 - result["saved"], 100 * (slow_error + result["loss"])
    low, high = (100 * (slow_error + end) for end in result["loss_ends"])
    left, right = (1 - end for end in result["saved_ends"][::-1])
    # A mean may lie beyond both quantiles, by rounding or because few draws are far off.
    ends = {"yerr": (y - low, high - y), "xerr": (x - left, right - x)}
    shown = {axis: [[max(0.0, end)] for end in pair] for axis, pair in ends.items()}
    return ax.errorbar(x, y, **shown, **style)


def achieved(record: dict[str, Any]) -> Figure:
    """The loss that was allowed, and the one that each method has, at the paper's n and delta."""
    figure = Figure(figsize=(8, 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    light_grid(ax)
    size, delta = record["settings"]["sizes"][-1], 1e-3
    cells = [c for c in record["cells"] if c["n"] == size and c["delta"] == delta]
    ends = [0.6, 4.4]
    ax.plot(ends, ends, ":", color=palette.IDEAL, label="achieved = allowed")
    for place, (name, marker) in enumerate(DRAWN.items()):
        results = [cell["methods"][name] for cell in cells]
        x = np.array([100 * cell["xi"] for cell in cells]) + 0.035 * (place - 2)
        y = np.array([100 * result["loss"] for result in results])
        low, high = (
            np.array([100 * result["loss_ends"][end] for result in results]) for end in (0, 1)
        )
        ax.errorbar(
            x,
            y,
            yerr=np.maximum([y - low, high - y], 0),
            fmt=marker,
            color=palette.CERTIFIED if name in CERTIFIED else palette.OBSERVED,
            markerfacecolor=None if name in ("exact", "histogram") else "none",
            linestyle="-" if name in CERTIFIED else "--",
            linewidth=0.8,
            markersize=7,
            capsize=2,
            label=SAID[name],
        )
    ax.set(
        xlabel="Loss that was allowed, ξ (percentage points)",
        ylabel="Loss over the population (percentage points)",
        xticks=[100 * cell["xi"] for cell in cells],
    )
    ax.set_title(
        f"n = {size:,}, δ = {delta:g}: mean and 5 % to 95 % of "
        f"{record['settings']['draws']} calibration sets",
        loc="left",
    )
    ax.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()

"""Dollars against accuracy: a panel for each pair of models."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from experiments.palette import CERTIFIED, GRID, IDEAL, OBSERVED, UNKNOWN
from experiments.routing.draws import MAGIC, TrueTradeOff

XI, COLUMNS, MOST_SHOWN = "0.01", 3, 5
_APART = 0.04
"""Names of points that are closer than this would overlap."""


def figure(results: list[dict[str, Any]], truths: list[TrueTradeOff]) -> Figure:
    """What routing costs, as a share of the expensive model, and what it loses."""
    rows = -(-len(results) // COLUMNS)
    drawn = Figure(figsize=(4.4 * COLUMNS, 3.9 * rows), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(rows, COLUMNS, squeeze=False).ravel()
    for ax, result, truth in zip(axes, results, truths, strict=False):
        _panel(ax, result, truth)
    for ax in axes[len(results) :]:
        ax.set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return drawn


def _ends(got: dict[str, Any]) -> list[list[float]] | None:
    if "loss_10_to_90" not in got:
        return None
    low, high = got["loss_10_to_90"]
    return [[100 * max(0.0, got["loss"] - low)], [100 * max(0.0, high - got["loss"])]]


def _panel(ax: Any, result: dict[str, Any], truth: TrueTradeOff) -> None:
    slow, xi = result["dollars"][1], float(XI)
    _, losses, dollars = truth.at(np.linspace(0, 1, 4001))
    ax.plot(dollars / slow, 100 * losses, color=UNKNOWN, lw=1.5, label="all thresholds")
    ax.axhline(100 * xi, color=IDEAL, ls=":", label=f"allowed: ξ = {xi:.0%}")
    named = -np.inf
    for threshold in MAGIC:
        point = result["magic"][str(threshold)]
        if 100 * point["loss"] >= MOST_SHOWN:
            continue
        ax.plot(
            point["dollars"] / slow,
            100 * point["loss"],
            "s",
            color=OBSERVED,
            ms=6,
            label="a threshold by feeling" if named < 0 else None,
        )
        if 100 * point["loss"] < MOST_SHOWN and point["dollars"] / slow > named + _APART:
            named = point["dollars"] / slow
            ax.annotate(
                f"{threshold:g}",
                (point["dollars"] / slow, 100 * point["loss"]),
                xytext=(5, 5),
                textcoords="offset points",
                fontsize=10,
                color=OBSERVED,
            )
    got = result["chosen"][XI]["certified"]
    low, high = got["dollars_10_to_90"]
    ax.errorbar(
        got["dollars"] / slow,
        100 * got["loss"],
        xerr=[[(got["dollars"] - low) / slow], [(high - got["dollars"]) / slow]],
        yerr=_ends(got),
        fmt="o",
        color=CERTIFIED,
        ms=8,
        capsize=4,
        zorder=5,
        label="certified at ξ (bars: 80 % of the samples)",
    )
    fast_model, slow_model = result["models"]
    ax.set_title(f"{result['name']}\n{fast_model} → {slow_model}")
    ax.set_xlabel(f"cost, as a share of {slow_model}'s")
    ax.set_ylabel("accuracy lost, in points")
    shown = 100 * losses
    highest = min(MOST_SHOWN, shown.max() + 0.5)
    ax.set_ylim(min(-0.3, shown.min() - 0.3), highest)
    seen = dollars[shown <= highest] / slow
    ax.set_xlim(seen.min() - 0.06, max(1.0, result["magic"]["0.99"]["dollars"] / slow) + 0.06)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.grid(color=GRID)
    ax.set_axisbelow(True)

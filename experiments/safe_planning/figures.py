"""Safety and success over xi, delta and n, and with the shield on in new rooms."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from experiments.safe_planning.methods import METHODS
from pacbound import binomial_interval

LOOKS = {
    "naive": ("#999999", "s", ":"),
    "xi-naive": ("#CC79A7", "D", ":"),
    "histogram": ("#D55E00", "v", "--"),
    "product": ("#56B4E9", "o", "-"),
    "exact": ("#0072B2", "P", "-"),
}
"""Colours of Okabe and Ito, and a marker and a line for whoever sees none of them."""
AXES = {
    "xi": "unsafe rate that was asked for, ξ",
    "delta": "failure probability δ",
    "n": "calibration rollouts n",
}
SHIFT = {method: (place - 2) * 0.06 for place, method in enumerate(METHODS)}


def ablation(rows: list[dict[str, Any]], title: str) -> Figure:
    """Above, the safety that the thresholds have under the law, with the one that was asked for
    dotted; below, the success rate. Bars hold nine tenths of the draws."""
    figure = Figure(figsize=(12.5, 7), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 3, sharex="col")
    for column, panel in enumerate(AXES):
        here = [row for row in rows if row["panel"] == panel]
        safety(axes[0, column], here, panel)
        success(axes[1, column], here, panel)
    axes[0, 0].set_ylabel("safety rate")
    axes[1, 0].set_ylabel("success rate")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle(title)
    return figure


def safety(ax: Axes, rows: list[dict[str, Any]], panel: str) -> None:
    values = settings(rows, panel)
    for method in METHODS:
        drawn(ax, [row for row in rows if row["method"] == method], method, "safety")
    for place, value in enumerate(values):
        xi = value if panel == "xi" else rows[0]["xi"]
        ax.plot(
            [place - 0.32, place + 0.32],
            [1 - xi] * 2,
            color="black",
            linestyle=(0, (1, 1)),
            linewidth=1.6,
            label="asked for" if place == 0 else None,
            zorder=3,
        )
    finish(ax, values, panel)


def success(ax: Axes, rows: list[dict[str, Any]], panel: str) -> None:
    for method in METHODS:
        drawn(ax, [row for row in rows if row["method"] == method], method, "success")
    finish(ax, settings(rows, panel), panel)
    ax.set_xlabel(AXES[panel])


def drawn(ax: Axes, rows: list[dict[str, Any]], method: str, what: str) -> None:
    colour, marker, line = LOOKS[method]
    mean, low, high = zip(*(row[what] for row in rows), strict=True)
    ax.errorbar(
        [place + SHIFT[method] for place in range(len(rows))],
        mean,
        yerr=(
            [max(m - l, 0) for m, l in zip(mean, low, strict=True)],
            [max(h - m, 0) for m, h in zip(mean, high, strict=True)],
        ),
        color=colour,
        marker=marker,
        linestyle=line,
        linewidth=1,
        markersize=6,
        capsize=2,
        label=METHODS[method].replace("xi", "ξ") if method == "xi-naive" else METHODS[method],
    )


def settings(rows: list[dict[str, Any]], panel: str) -> list[float]:
    return list(dict.fromkeys(row[panel] for row in rows))


def finish(ax: Axes, values: list[float], panel: str) -> None:
    texts = [f"{value:,}" if panel == "n" else f"{value:g}" for value in values]
    ax.set_xticks(range(len(values)), texts)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    tidy(ax)


def comparison(drives: dict[str, dict[str, Any]], titles: dict[str, str], xi: float) -> Figure:
    """With the shield on, in new rooms: success against safety, a panel for each task, with exact
    intervals of 95 %. The policy alone is far to the left, and told in words."""
    figure = Figure(figsize=(max(7.2, 4.9 * len(drives)), 4.9), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(drives), squeeze=False)[0]
    for ax, (name, record) in zip(panels, drives.items(), strict=True):
        rows = {row["method"]: row for row in record["results"] if row["xi"] == xi}
        ax.axvline(1 - xi, color="black", linestyle=(0, (1, 1)), label="asked for")
        for method, called in METHODS.items():
            placed(ax, rows[method], LOOKS[method][:2], called)
        alone, total = record["policy_alone"], record["policy_alone"]["rollouts"]
        ax.annotate(
            f"← no shield: {1 - alone['unsafe'] / total:.0%} safe, "
            f"{alone['success'] / total:.0%} succeed",
            (0.02, 1.0),
            (0, -6),
            xycoords="axes fraction",
            textcoords="offset points",
            va="top",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        ax.margins(y=0.16)
        ax.set_title(f"{titles[name][0].upper()}{titles[name][1:]} ({total:,} rollouts)")
        ax.set_xlabel("safety rate")
        tidy(ax)
    panels[0].set_ylabel("success rate")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    return figure


def placed(ax: Axes, counts: dict[str, Any], look: tuple[str, str], called: str) -> None:
    total = counts["rollouts"]
    safe, success = 1 - counts["unsafe"] / total, counts["success"] / total
    sides = [
        binomial_interval(total - counts["unsafe"], total, delta=0.05),
        binomial_interval(counts["success"], total, delta=0.05),
    ]
    across, up = (
        [[at - low], [high - at]] for at, (low, high) in zip((safe, success), sides, strict=True)
    )
    ax.errorbar(
        safe,
        success,
        xerr=across,
        yerr=up,
        color=look[0],
        marker=look[1],
        linestyle="",
        markersize=8,
        linewidth=1,
        label=called.replace("xi", "ξ") if called == "xi" else called,
    )


def tidy(ax: Axes) -> None:
    ax.grid(color="#E6E6E6")
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)

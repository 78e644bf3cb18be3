"""The duels at a glance, for the README: what is left after the guarantee, ours and another's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

_OURS, _THEIRS = "#0072B2", "#D55E00"


@dataclass(frozen=True)
class Panel:
    """One duel: a line for each setting, with our share and the other's. More is better."""

    title: str
    counts: str
    lines: tuple[tuple[str, float, float], ...]
    note: str = ""


def panels(records: dict[str, Any], headline: dict[str, Any]) -> tuple[Panel, ...]:
    """What is drawn, from the records of the duels and of the headline."""
    best = [
        (row["name"], row["ours"]["saved"], max(_betting(row)))
        for row in records["pac_labels"]["rows"]
    ]
    settings = records["bargain"]["rows"]
    first: dict[str, Any] = {}
    for row in settings:
        first.setdefault(row["name"].partition(" (")[0], row)
    calls = [
        (
            f"{name.partition(' before ')[0]}, ξ = {row['xi']:g}",
            1 - row["ours"]["sent"],
            1 - row["theirs"]["sent"],
        )
        for name, row in first.items()
    ]
    (delta,) = {row["delta"] for row in first.values()}
    which = f"{len(calls)} of {len(settings)} settings"
    shown = f"{which}: the first of each pair, all with δ = {delta:g}"
    judges = [
        (f"{row['name']}, ξ = {row['xi']:g}", row["ours"]["coverage"], row["paper"]["coverage"])
        for row in records["trust_or_escalate"]["rows"]
        if row["judges"] == 1
    ]
    saved = {name: method["saved"]["mean"] for name, method in headline["methods"].items()}
    network = [("ImageNet, ResNet-18 before ResNet-101", saved["exact"], saved["product"])]
    return (
        Panel("PAC Labels, its best K", "labels of experts saved", tuple(best)),
        Panel("the paper, its bound mended", "multiplications saved", tuple(network)),
        Panel("BARGAIN", "records that the slow model is spared", tuple(calls), shown),
        Panel("Trust or Escalate, as in its paper", "verdicts that stand", tuple(judges)),
    )


def _betting(row: dict[str, Any]) -> list[float]:
    return [one["saved"] for one in row["theirs"] if one["bound"] == "betting"]


def draw(found: Sequence[Panel], file: BinaryIO) -> None:
    """Write the figure to `file`, as SVG on a white ground: it is read in light and in dark."""
    with rc_context({"svg.hashsalt": "pacbound", "font.size": 9, "axes.titlesize": 9.5}):
        figure = Figure(figsize=(10.5, 5.9), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        layout: Any = figure.get_layout_engine()
        layout.set(w_pad=0.12)  # room for half of the last tick's label
        *left, right = found
        sides: Any = figure.subfigures(1, 2, width_ratios=[1.1, 1.0])
        heights = [len(panel.lines) + 3.2 + bool(panel.note) for panel in left]
        parts: Any = sides[0].subfigures(len(left), 1, height_ratios=heights)
        axes = [_panel(part, panel) for part, panel in zip(parts, left, strict=True)]
        _panel(sides[1], right)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
        metadata: Any = {"Date": None, "Creator": None}
        figure.savefig(file, format="svg", metadata=metadata)


def _panel(part: Any, panel: Panel) -> Any:
    part.set_facecolor("white")
    title = f"against {panel.title}: {panel.counts}"
    part.suptitle(title, x=0.02, ha="left", weight="bold", size=9.5)
    ax = part.add_subplot()
    ax.set_title(panel.note, loc="right", size=8.5)
    for place, (_, ours, theirs) in enumerate(panel.lines):
        ax.plot([ours, theirs], [place, place], color="#bbbbbb", linewidth=2, zorder=1)
    places = range(len(panel.lines))
    ax.plot([line[2] for line in panel.lines], places, "s", color=_THEIRS, label="the other method")
    ax.plot([line[1] for line in panel.lines], places, "o", color=_OURS, label="pacbound")
    ax.set_yticks(places, [line[0] for line in panel.lines])
    ax.set_ylim(len(panel.lines) - 0.4, -0.6)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.grid(axis="x", color="#eeeeee")
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(left=False)
    if len(panel.lines) == 1:  # a range in which its two ends lie near each other
        ax.set_xlim(0.3, 0.5)
    return ax

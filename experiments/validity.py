"""Which ways to choose a threshold keep what they promise, and what the valid ones cost.

    python -m experiments.validity --outputs OUTPUTS.npz --apis APIS.npz

The population is known: all rows of a data set, each as likely as any other, or a law that is made
to hurt. A thousand calibration sets are drawn from each, and the loss of what each method chooses
is computed over the population. A valid method violates, by a loss above xi, in at most a share
delta of the sets.

The second part asks how far the valid methods are from an oracle that knows the population, on six
real pairs of models, for n = 1,000 to 50,000. APIS holds answers of commercial interfaces, gathered
from the repository lchen001/FrugalML; without it that pair is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from experiments import palette
from experiments.imagenet.generated import zoo
from experiments.imagenet.outputs import Outputs, digest, outputs, said
from experiments.palette import light_grid
from experiments.record import RESULTS, known, provenance, publish, show_progress, table
from experiments.two_models import (
    TOP,
    Array,
    Pair,
    by_bound,
    certified,
    chance_of_more,
    passes_exact,
    product_bounds,
    searched,
    walked,
)
from pacbound.data import fashion_mnist
from pacbound.tally.questions.cascade import AGREE, ONLY_FAST, ONLY_SLOW

NAME = "validity"
N, XI, DELTA, SETS, LEVEL = 5_000, 0.02, 0.01, 5_000, 1e-3
SIZES, SHARE_SETS, SHARE_DELTA = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000), 20, 1e-3
APIS_SHA256 = "84985254f6a90b4b0056b3925fe80236802f5bb660085a3fc4ceaf4e33f0057c"
"""Of the arrays that are read."""

METHODS = {
    "printed": "the paper's formula as printed",
    "searched_exact": "tight bound, lowest that passes",
    "searched_product": "the paper's formula mended, lowest that passes",
    "product": "the paper's formula mended, walk",
    "exact": "ours: tight bound, walk",
}
VALID = ("product", "exact")
BOUNDS = {"exact": "ours", "pair": "pair of bounds", "product": "the paper's method, mended"}

PAIRS = (
    ("resnet18_pytorch", "resnet101_pytorch"),
    ("mobilenetV2_keras", "resnet101_pytorch"),
    ("resnet50_pytorch", "nasnetlarge_keras"),
    ("alexnet_pytorch", "densenet121_pytorch"),
)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--outputs", type=Path, help="outputs of 34 networks on ImageNet")
    parser.add_argument("--apis", type=Path, help="an .npz file with answers of interfaces")
    parser.add_argument("--quick", action="store_true", help="generated outputs, few sets")
    parser.add_argument(
        "--redraw", action="store_true", help="tables and figures again, from the JSON in OUT"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    options = parser.parse_args(arguments)
    if options.outputs is None and not options.quick:
        parser.error("pass --outputs PATH, the outputs of the networks, or --quick")
    data = zoo(8_000).outputs if options.quick else outputs(options.outputs)
    command = "python -m experiments.validity" + (
        " --quick" if options.quick else f" --outputs {options.outputs.name}"
    )
    if options.apis is not None:
        command += f" --apis {options.apis.name}"
    publish(
        options.out,
        NAME,
        known(options.out, NAME)
        if options.redraw
        else measured(data, options.apis, command, quick=options.quick),
        report=markdown,
        figures=lambda found: {"": violations_figure(found), "oracle": oracle_figure(found)},
    )


def measured(data: Outputs, apis: Path | None, command: str, *, quick: bool) -> dict[str, Any]:
    sets, share_sets = (40, 3) if quick else (SETS, SHARE_SETS)
    pairs = dict(real_pairs(data, apis))
    laws = {
        "ImageNet: " + next(iter(pairs)): next(iter(pairs.values())),
        "A law that is made to hurt": flat_law(),
    }
    inputs = {"outputs": data.sha256} | ({} if apis is None else {"apis": APIS_SHA256})
    return {
        **provenance(command, seeds="[set, n], set from 0", inputs=inputs),
        "settings": {
            "n": N,
            "xi": XI,
            "delta": DELTA,
            "sets": sets,
            "level_of_the_test": LEVEL,
            "oracle": {"xi": XI, "delta": SHARE_DELTA, "sets": share_sets, "sizes": SIZES},
        },
        "laws": {name: violations(pair, sets) for name, pair in laws.items()},
        "pairs": {
            name: shares(pair, share_sets, SIZES[:2] if quick else SIZES)
            for name, pair in pairs.items()
        },
    }


def flat_law(rows: int = 1_000_000) -> Pair:
    """A fast model that soon loses a hair more than xi, and from there on gains as often as it
    loses.

    Every threshold below 0.97 violates, by so little that a test passes it with a probability
    close to delta; and there are many thresholds to try, at which the counts differ.
    """
    cells = np.floor((1 - (np.arange(rows) + 0.5) / rows) * TOP).astype(np.int64)
    outcomes, first = np.full(rows, AGREE), 3 * rows // 100
    lost = np.linspace(0, first - 1, round(1.001 * XI * rows))
    outcomes[np.round(lost).astype(np.int64)] = ONLY_SLOW
    later = np.arange(first, rows)
    outcomes[later[later % 5 == 0]] = ONLY_FAST
    outcomes[later[later % 5 == 1]] = ONLY_SLOW
    return Pair(cells, outcomes)


def violations(pair: Pair, sets: int) -> dict[str, Any]:
    """The loss of what each method chooses from each calibration set."""
    losses: dict[str, list[float]] = {name: [] for name in METHODS}
    for number in range(sets):
        walk = pair.walk(pair.draw(N, np.random.default_rng([number, N])))
        changes = walk.take(walk.changes())
        product, printed = (bound <= XI for bound in product_bounds(changes, N, DELTA))
        chosen = {
            "printed": searched(changes, printed),
            "searched_exact": searched(changes, passes_exact(changes, N, xi=XI, delta=DELTA)),
            "searched_product": searched(changes, product),
            "product": walked(changes, product),
            "exact": certified(walk, N, xi=XI, delta=DELTA),
        }
        for name, threshold in chosen.items():
            losses[name].append(pair.loss(threshold))
        show_progress(number + 1, sets, NAME)
    return {name: _judged(np.array(values)) for name, values in losses.items()}


def _judged(losses: Array) -> dict[str, Any]:
    violating = int((losses > XI).sum())
    p_value = chance_of_more(violating, len(losses), DELTA)
    return {
        "sets": len(losses),
        "violations": violating,
        "p_value": p_value,
        "within_delta": p_value >= LEVEL,
        "losses": np.quantile(losses, np.linspace(0, 1, 201)).round(6),
    }


def real_pairs(data: Outputs, apis: Path | None) -> Iterator[tuple[str, Pair]]:
    """Fast and slow models on the same rows, by name."""
    for fast, slow in PAIRS:
        yield f"{said(fast)} → {said(slow)}", data.pair(fast, slow)
    table = fashion_mnist()
    yield (
        "Fashion-MNIST, early exit",
        Pair.of(table.confidence_fast, table.prediction_fast, table.prediction_slow, table.label),
    )
    if apis is not None:
        yield "DeepSpeech → Microsoft", _interfaces(apis)


def _interfaces(path: Path) -> Pair:
    """A free model of speech before a paid one. One row for each speaker would be too few here: the
    population is made of rows, as if each were drawn by itself."""
    with np.load(path, allow_pickle=False) as arrays:
        columns = [
            arrays[f"COMMAND_{column}"]
            for column in ("deepspeech_confidence", "deepspeech_prediction", "microsoft_prediction")
        ]
        labels = arrays["COMMAND_label"]
    found = digest(*columns, labels)
    if found != APIS_SHA256:
        raise SystemExit(f"{path} has arrays of SHA-256 {found}: expected {APIS_SHA256}.")
    return Pair.of(np.clip(columns[0], 0.0, 1.0), columns[1], columns[2], labels)


def shares(pair: Pair, sets: int, sizes: tuple[int, ...]) -> dict[str, Any]:
    """The exit rate of the oracle, and the share of it that is certified from n rows."""
    best = pair.exit_rate(pair.oracle(XI))
    found: dict[str, dict[str, list[float]]] = {bound: {} for bound in BOUNDS}
    for n in sizes:
        rates: dict[str, list[float]] = {bound: [] for bound in BOUNDS}
        for number in range(sets):
            walk = pair.walk(pair.draw(n, np.random.default_rng([number, n])))
            for bound in BOUNDS:
                threshold = by_bound(bound, walk, n, xi=XI, delta=SHARE_DELTA)
                rates[bound].append(pair.exit_rate(threshold) / best)
        for bound, values in rates.items():
            found[bound][str(n)] = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return {"oracle_exit_rate": best, "rows": len(pair), "share": found}


def markdown(record: dict[str, Any]) -> str:
    settings = record["settings"]
    lines = [
        (
            METHODS[name],
            "proven" if name in VALID else "no",
            *(
                f"{law[name]['violations'] / law[name]['sets']:.1%}"
                + ("" if law[name]["within_delta"] else " **✗**")
                for law in record["laws"].values()
            ),
        )
        for name in METHODS
    ]
    sizes = list(next(iter(record["pairs"].values()))["share"]["exact"])
    others = [
        (
            name,
            f"{pair['oracle_exit_rate']:.1%}",
            BOUNDS[bound],
            *(f"{pair['share'][bound][n][1]:.1%}" for n in sizes),
        )
        for name, pair in record["pairs"].items()
        for bound in BOUNDS
    ]
    oracle = settings["oracle"]
    return f"""
Share of {settings["sets"]:,} calibration sets on which the chosen threshold loses more than
xi = {XI}, the loss being known exactly; delta = {DELTA:.0%} is allowed, n = {N:,}. **✗**: more than
delta allows (exact binomial test, level {LEVEL:g}).

{table(("method", "guarantee", *record["laws"]), lines)}
Share of the oracle's exit rate that is certified, median of {oracle["sets"]} calibration sets;
xi = {XI}, delta = {SHARE_DELTA:g}:

{table(("models", "oracle exits", "method", *(f"n = {int(n):,}" for n in sizes)), others)}
Made by `{record["command"]}`.
"""


def violations_figure(record: dict[str, Any]) -> Figure:
    """How the losses of all calibration sets are spread; those on the shaded side violate."""
    laws = record["laws"]
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(1, len(laws), sharey=True)
    for ax, (law, results) in zip(axes, laws.items(), strict=True):
        _losses(ax, law, results)
    axes[0].set_yticks(range(len(METHODS)), list(METHODS.values())[::-1])
    for label, name in zip(axes[0].get_yticklabels(), list(METHODS)[::-1], strict=True):
        label.set_color(palette.CERTIFIED if name in VALID else palette.OBSERVED)
    settings = record["settings"]
    figure.suptitle(
        f"Share of {settings['sets']:,} calibration sets that lose more than ξ = {XI:.0%}; "
        f"δ = {DELTA:.0%} is allowed (n = {N:,})",
        x=0.01,
        ha="left",
        weight="bold",
    )
    return figure


def _losses(ax: Any, law: str, results: dict[str, Any]) -> None:
    light_grid(ax)
    spread = [100 * np.asarray(results[name]["losses"]) for name in METHODS if name != "printed"]
    low, high = min(values.min() for values in spread), max(values.max() for values in spread)
    high = max(high, 100 * XI) + 0.12 * (high - low)
    low -= 0.05 * (high - low)
    right = high + 0.22 * (high - low)
    ax.axvspan(100 * XI, right, color=palette.OBSERVED, alpha=0.08, linewidth=0)
    ax.axvline(100 * XI, color=palette.IDEAL, linestyle=":")
    for place, name in enumerate(reversed(METHODS)):
        color = palette.CERTIFIED if name in VALID else palette.OBSERVED
        values = 100 * np.asarray(results[name]["losses"])
        share = results[name]["violations"] / results[name]["sets"]
        text = f"{share:.1%}"
        if values.min() > high:
            ax.annotate(
                f"loses {values.mean():.1f} points →",
                (100 * XI, place),
                (-6, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                color=color,
            )
        else:
            five, half, most = (values[int(q * (len(values) - 1))] for q in (0.05, 0.5, 0.95))
            ax.plot(
                values, np.full(len(values), place), "|", color=color, alpha=0.35, markersize=13
            )
            ax.plot([five, most], [place, place], color=color, linewidth=3)
            ax.plot(half, place, "o", color=color, markersize=8)
        ax.annotate(
            text,
            (right, place),
            (-4, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            color=color,
            weight="bold",
        )
    ax.set_xlim(low, right)
    ax.set_title(law, loc="left")
    ax.set_xlabel("Loss over the population (percentage points)")


def oracle_figure(record: dict[str, Any]) -> Figure:
    """The share of the oracle's exit rate against n, a panel for each pair."""
    pairs = record["pairs"]
    down = -(-len(pairs) // 3)
    figure = Figure(figsize=(13, 3.6 * down), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(down, 3, sharex=True, sharey="row", squeeze=False)
    styles = {
        "exact": (palette.CERTIFIED, "o", "-"),
        "pair": (palette.BAND, "s", "--"),
        "product": (palette.BACKUP, "^", "-."),
    }
    for ax, (name, pair) in zip(axes.ravel(), pairs.items(), strict=False):
        light_grid(ax)
        for bound, (color, marker, line) in styles.items():
            sizes = [int(n) for n in pair["share"][bound]]
            low, middle, high = np.array(list(pair["share"][bound].values())).T * 100
            ax.fill_between(sizes, low, high, color=color, alpha=0.15, linewidth=0)
            ax.plot(sizes, middle, line, color=color, marker=marker, label=BOUNDS[bound])
        ax.axhline(100, color=palette.IDEAL, linestyle=":")
        ax.set_xscale("log")
        ax.set_xticks(sizes, [f"{n // 1000}k" for n in sizes])
        ax.minorticks_off()
        ax.set_title(f"{name} (oracle: {pair['oracle_exit_rate']:.0%})", loc="left")
    for ax in axes.ravel()[len(pairs) :]:
        ax.set_visible(False)
    sets = record["settings"]["oracle"]["sets"]
    figure.supxlabel(
        f"Calibration rows n (lines: median, bands: 5 % to 95 % of {sets} calibration sets)"
    )
    figure.supylabel("Share of the oracle's exit rate (%)")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False
    )
    return figure


if __name__ == "__main__":
    main()

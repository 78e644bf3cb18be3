"""Fast inference on ImageNet at the paper's n, xi and delta: what each method saves and loses.

    python -m experiments.imagenet.fast_inference --outputs OUTPUTS.npz --top-five TOP_FIVE.npz

In each of 100 splits 25,000 images are known and the other 25,000 test. The slow network is the
paper's, ResNet-101. In the paper the fast one is a branch of it, with weights that were not
published; here it is ResNet-18, a network of its own, so a row that stays pays for both in full.
Thresholds for these two come from 20,000 of the known images, the paper's n. Designed cascades use
all known images: 5,000 choose networks and their order, and the other 20,000 certify.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from experiments import palette
from experiments.cascade.exceeding import shown_above
from experiments.cascade.models import Array, Models
from experiments.cascade.splits import Seen, choices, counted, routed
from experiments.imagenet.outputs import BEFORE, SLOW, Outputs, TopFive, said
from experiments.imagenet.source import Source, read
from experiments.palette import light_grid
from experiments.record import known, provenance, publish, resumed, show_progress, table
from experiments.temperature import of_top_five
from experiments.two_models import TOP, product_bounds, searched, walk_from_counts
from pacbound import certified_cost, design_cascade

NAME = "imagenet_fast_inference"
KNOWN, N, XI, DELTA, LEVEL = 25_000, 20_000, 0.02, 1e-3, 0.05
SPLITS, FIRST_SEED = 100, 100
DEVELOPED_ON = range(5)
"""The splits on which the search for designs was developed: none of those that are measured."""
TIMED = (
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "densenet121",
    "densenet169",
    "densenet201",
)
TIMED_KERAS = ("mobilenetV2",)
"""Networks that `cpu_time` builds."""

PAPER = {
    "slow": (22.32, 7.83),
    "softmax": (22.34, 6.60),
    "temperature": (22.22, 6.83),
    "histogram": (24.54, 4.62),
    "product": (23.26, 5.33),
}
"""The paper's own table: top-1 error in per cent, and 10^9 multiply-accumulates per image. What it
calls rigorous is the method that is mended here and called product."""
PAPER_TIMES = {
    "slow": 214.31,
    "softmax": 104.24,
    "temperature": 109.57,
    "histogram": 70.72,
    "product": 85.58,
}
"""The paper's CPU times, in its unit; only their ratios are compared."""

SAID = {
    "slow": "slow network alone: ResNet-101",
    "softmax": "(1 - xi')-softmax",
    "temperature": "(1 - xi')-temperature scaling",
    "histogram": "histogram binning: means, not bounds",
    "printed": "the paper's bound as printed",
    "product": "the paper's method, mended, on the same two",
    "exact": "ours, ResNet-18 before ResNet-101",
    "designed_2": "ours, designed: at most 2 networks",
    "designed_3": "ours, designed: at most 3 networks",
    "designed_4": "ours, designed: at most 4 networks",
    "designed_timed": "ours, designed among the networks that are timed",
}
CERTIFIED = ("product", "exact", "designed_2", "designed_3", "designed_4", "designed_timed")


@dataclass(frozen=True)
class Tested:
    """What a choice does to test rows: the share of them that each network runs on, and how many
    are lost and gained against the slow network alone."""

    ran: dict[str, float]
    thresholds: list[float]
    losses: int
    gains: int
    cost_at_most: float | None = None


def main(arguments: list[str] | None = None) -> None:
    source = read("experiments.imagenet.fast_inference", __doc__, arguments)
    publish(
        source.out,
        NAME,
        known(source.out, NAME) if source.redraw else measured(source),
        report=markdown,
        figures=lambda found: {"": figure(found, source.outputs)},
    )


def measured(source: Source) -> dict[str, Any]:
    data, n_splits = source.outputs, source.times(SPLITS)
    seeds = range(FIRST_SEED, FIRST_SEED + n_splits)
    splits, errors = [], []
    for done, seed in enumerate(seeds, 1):
        order = np.random.default_rng(seed).permutation(len(data.labels))
        known_rows, fresh = np.split(order, [source.rows(KNOWN)])
        found = resumed(
            source.kept(NAME), str(seed), partial(_one_split, source, known_rows, fresh, seed)
        )
        splits.append({name: Tested(**kept) for name, kept in found.items()})
        errors.append(float(1 - data.right(SLOW)[fresh].mean()))
        show_progress(done, n_splits, NAME)
    rows = len(data.labels) - source.rows(KNOWN)
    return {
        **provenance(source.command, seeds=list(seeds), inputs=source.inputs),
        "settings": {
            "n": source.rows(N),
            "known": source.rows(KNOWN),
            "test_rows": rows,
            "xi": XI,
            "delta": DELTA,
            "level_of_the_test": LEVEL,
        },
        "slow_error": errors,
        "giga_macs": dict(zip(data.names, data.costs, strict=True)),
        "paper": PAPER,
        "methods": {
            name: _summary([split[name] for split in splits], data, rows, np.array(errors))
            for name in SAID
            if name in splits[0]
        },
    }


def _one_split(
    source: Source, known_rows: Array, fresh: Array, seed: int
) -> dict[str, dict[str, Any]]:
    """What every method does to the test images of one split."""
    pair = _pair(source.outputs, source.top_five)
    found = dict(_two_networks(pair, known_rows[: source.rows(N)], fresh))
    found |= dict(_designed(source.outputs, known_rows, fresh, seed))
    return {name: asdict(tested) for name, tested in found.items()}


def _pair(data: Outputs, top: TopFive) -> Models:
    fast, slow = data.places(BEFORE, SLOW)
    return Models(
        "ImageNet, ResNet-18 → ResNet-101",
        data.confidences[:, [fast]],
        data.predictions[:, [fast, slow]],
        data.labels,
        (data.costs[fast], data.costs[fast] + data.costs[slow]),  # type: ignore[arg-type]
        data.costs[slow],  # type: ignore[arg-type]
        of_top_five(
            top.classes["resnet18"], top.probabilities["resnet18"], top.labels, top.n_classes
        ),
    )


def _two_networks(pair: Models, known: Array, fresh: Array) -> Iterator[tuple[str, Tested]]:
    """Every way to choose the threshold of ResNet-18 before ResNet-101."""
    found = dict(choices(pair, known, fresh, xi=XI, delta=DELTA))
    tally = counted(pair, known)
    walk = walk_from_counts(tally.cells[:, 0], tally.counts)
    changes = walk.take(walk.changes())
    printed = searched(changes, product_bounds(changes, len(known), DELTA)[1] <= XI)
    found["printed"] = routed(pair, fresh, np.array([printed / TOP]))
    for name, seen in found.items():
        if name in SAID:
            yield name, _of_pair(seen, len(fresh), alone=name == "slow")


def _of_pair(seen: Seen, rows: int, *, alone: bool) -> Tested:
    stayed = 1 - seen.exits[0] / rows
    ran = {SLOW: stayed} if alone else {BEFORE: 1.0, SLOW: stayed}
    return Tested(ran, seen.thresholds, seen.losses, seen.gains)


def _designed(data: Outputs, known: Array, fresh: Array, seed: int) -> Iterator[tuple[str, Tested]]:
    everything = list(range(len(data.names)))
    timed = [
        place
        for place, name in enumerate(data.names)
        if name in {f"{n}_pytorch" for n in TIMED} | {f"{n}_keras" for n in TIMED_KERAS}
    ]
    for name, pool, most in (
        ("designed_2", everything, 2),
        ("designed_3", everything, 3),
        ("designed_4", everything, 4),
        ("designed_timed", timed, 4),
    ):
        design = design_cascade(
            data.confidences[known][:, pool],
            data.predictions[known][:, pool],
            data.labels[known],
            costs=[data.costs[place] for place in pool],
            xi=XI,
            delta=DELTA,
            last=pool.index(data.names.index(SLOW)),
            most=most,
            seed=seed,
        )
        models = [pool[place] for place in design.models]
        scores = data.confidences[fresh][:, models[:-1]]
        at_most = certified_cost(design.certificate, scores, delta=DELTA).upper
        yield (
            name,
            tested(data, fresh, models, design.certificate.thresholds.tolist(), float(at_most)),
        )


def tested(
    data: Outputs,
    rows: Array,
    models: list[int],
    thresholds: list[float],
    at_most: float | None,
) -> Tested:
    """What a cascade does to rows that had no part in it. A network whose threshold nothing reaches
    is not asked."""
    left, slow = np.ones(len(rows), dtype=bool), models[-1]
    answer, ran = data.predictions[rows, slow].copy(), {}
    for m, threshold in zip(models[:-1], thresholds, strict=True):
        if threshold == np.inf:
            continue
        ran[data.names[m]] = float(left.mean())
        leaves = left & (data.confidences[rows, m] >= threshold)
        answer[leaves] = data.predictions[rows[leaves], m]
        left &= ~leaves
    ran[data.names[slow]] = float(left.mean())
    right, slow_right = answer == data.labels[rows], data.right(data.names[slow])[rows]
    return Tested(
        ran,
        thresholds,
        int((slow_right & ~right).sum()),
        int((right & ~slow_right).sum()),
        at_most,
    )


def _summary(splits: list[Tested], data: Outputs, rows: int, errors: Array) -> dict[str, Any]:
    """Means and spreads over the splits, and what follows from the counts of each."""
    cost = dict(zip(data.names, data.costs, strict=True))
    macs = np.array([sum(cost[name] * share for name, share in s.ran.items()) for s in splits])
    lost = np.array([(s.losses - s.gains) / rows for s in splits])
    chosen = Counter(" → ".join(map(said, s.ran)) for s in splits)
    names = sorted({name for s in splits for name in s.ran})
    bounds = [s.cost_at_most for s in splits if s.cost_at_most is not None]
    return {
        "giga_macs": spread(macs),
        "saved": spread(1 - macs / cost[SLOW]),
        "loss": spread(lost),
        "error": spread(errors + lost),
        "splits_above_xi": int((lost > XI).sum()),
        "splits_shown_above_xi": sum(
            shown_above(s.losses, s.gains, rows, xi=XI, level=LEVEL) for s in splits
        ),
        "ran": {name: float(np.mean([s.ran.get(name, 0.0) for s in splits])) for name in names},
        "cascades": dict(chosen.most_common()),
        **({"giga_macs_at_most": spread(np.array(bounds))} if bounds else {}),
        "splits": {
            "thresholds": [s.thresholds for s in splits],
            "networks": [list(s.ran) for s in splits],
            "giga_macs": macs.round(6),
            "losses": [s.losses for s in splits],
            "gains": [s.gains for s in splits],
        },
    }


def spread(values: Array) -> dict[str, float]:
    """Where the values of the splits lie."""
    return {
        "mean": float(values.mean()),
        "sd": float(values.std(ddof=1)),
        "low": float(values.min()),
        "high": float(values.max()),
    }


def markdown(record: dict[str, Any]) -> str:
    settings, methods, n_splits = record["settings"], record["methods"], len(record["seeds"])
    lines = []
    for name, result in methods.items():
        paper = record["paper"].get(name)
        lines.append(
            (
                SAID[name],
                f"{XI:.0%}" if name in CERTIFIED else ("0" if name == "slow" else "none"),
                f"{result['error']['mean']:.2%}",
                f"{result['loss']['mean']:+.2%} ± {result['loss']['sd']:.2%}",
                f"{result['splits_above_xi']} / {result['splits_shown_above_xi']}",
                f"{result['giga_macs']['mean']:.2f}",
                f"{result['saved']['mean']:.1%} ± {result['saved']['sd']:.1%}",
                "" if paper is None else f"{paper[0]:.2f}%, {paper[1]:.2f}",
            )
        )
    head = (
        "method",
        "certified loss",
        "top-1 error",
        "loss on test images",
        "splits above xi / shown above",
        "10⁹ MACs",
        "MACs saved",
        "paper: error, 10⁹ MACs",
    )
    picked = "\n".join(
        f"- {SAID[name]}: {_most_common(methods[name])}. The mean cost is at most "
        f"{methods[name]['giga_macs_at_most']['mean']:.2f} (mean over the splits), certified on "
        f"the test images' scores at a delta of {DELTA:g} of its own."
        for name in methods
        if "giga_macs_at_most" in methods[name]
    )
    return f"""
Means ± standard deviation over {n_splits} splits: n = {settings["n"]:,}, xi = {XI},
delta = {DELTA:g}, {settings["test_rows"]:,} test images. Only the certified loss is guaranteed; all
else is what test images showed.

{table(head, lines)}
Splits above xi: how often the test images lost more than xi, their own bad luck included. Shown
above: how often an exact test of the test images rejects, at level {LEVEL}, that the true loss is
at most xi.

{picked}

Made by `{record["command"]}`.
"""


def _most_common(result: dict[str, Any]) -> str:
    first, *others = result["cascades"].items()
    more, never = sum(count for _, count in others), len(never_asking(result["splits"]))
    return (
        f"{first[0]} in {first[1]} splits"
        + (f", {len(others)} other cascades in {more}" if others else "")
        + (f"; in {never} the slow network is never asked" if never else "")
    )


def never_asking(splits: dict[str, Any]) -> list[str]:
    """The network that answers last, for each split whose cascade never asks the slow one: every
    score reaches a threshold of 0."""
    asked = (
        [threshold for threshold in thresholds if threshold not in (np.inf, "+inf")]
        for thresholds in splits["thresholds"]
    )
    return [
        networks[thresholds.index(0)]
        for networks, thresholds in zip(splits["networks"], asked, strict=True)
        if 0 in thresholds
    ]


DRAWN = {
    "designed_4": ("ours, designed: 4 networks", "*"),
    "designed_3": ("ours, designed: 3 networks", "P"),
    "designed_2": ("ours, designed: 2 networks", "p"),
    "exact": ("ours, ResNet-18 → ResNet-101", "o"),
    "product": ("the paper's method, mended", "s"),
    "histogram": ("histogram binning", "^"),
    "temperature": ("(1 - ξ′)-temperature", "D"),
    "softmax": ("(1 - ξ′)-softmax", "v"),
}


def figure(record: dict[str, Any], data: Outputs) -> Figure:
    """Loss against cost, both on test images, and the paper's own figures beside them."""
    drawn = Figure(figsize=(10.5, 5.2), layout="constrained")
    FigureCanvasAgg(drawn)
    ax = drawn.add_subplot()
    light_grid(ax)
    fast, slow = data.places(BEFORE, SLOW)
    exits, lost = data.pair(BEFORE, SLOW).curve()
    costs = data.costs[fast] / data.costs[slow] + 1 - exits
    for name, (text, marker) in DRAWN.items():
        _point(ax, record["methods"][name], text, marker, certified=name in CERTIFIED)
    error, macs = record["paper"]["product"]
    slow_error, slow_macs = record["paper"]["slow"]
    ax.plot(
        macs / slow_macs,
        error - slow_error,
        "X",
        color=palette.UNKNOWN,
        markersize=9,
        label="reported by the paper, its own network",
        linestyle="none",
    )
    style: dict[str, Any] = {"color": palette.IDEAL, "zorder": 1}
    ax.plot(1.0, 0.0, "*", markersize=11, label="ResNet-101 alone", linestyle="none", **style)
    ax.axhline(100 * XI, linestyle=":", label=f"allowed: ξ = {XI:.0%}", **style)
    ax.plot(
        costs,
        100 * lost,
        color=palette.UNKNOWN,
        linewidth=1.2,
        zorder=1,
        label="ResNet-18 → ResNet-101, every threshold",
    )
    printed = record["methods"]["printed"]
    ax.annotate(
        f"the paper's bound as printed: {100 * printed['loss']['mean']:.1f} points ↑",
        (1 - printed["saved"]["mean"], 1.0),
        (-22, -14),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        color=palette.OBSERVED,
    )
    most = max(record["methods"][name]["loss"]["high"] for name in DRAWN)
    ax.set_ylim(-0.25, max(100 * most, 100 * XI) + 0.5)
    ax.set_xlim(0.08, 1.06)
    ax.set(
        xlabel="Multiply-accumulates per image (share of ResNet-101's)",
        ylabel="Loss of accuracy on test images\n(percentage points)",
    )
    settings = record["settings"]
    drawn.suptitle(
        f"ImageNet, n = {settings['n']:,}, ξ = {XI}, δ = {DELTA:g}: mean and range of "
        f"{len(record['seeds'])} splits. Blue: loss certified; vermilion: no guarantee",
        x=0.01,
        ha="left",
    )
    drawn.legend(loc="outside right center", frameon=False)
    return drawn


def _beyond(middle: float, low: float, high: float) -> list[list[float]]:
    """How far the ends lie from the mean, which rounding may put beyond an end that equals it."""
    return [[max(0.0, middle - low)], [max(0.0, high - middle)]]


def _point(ax: Any, result: dict[str, Any], text: str, marker: str, *, certified: bool) -> None:
    x, y = 1 - result["saved"]["mean"], 100 * result["loss"]["mean"]
    ax.errorbar(
        x,
        y,
        yerr=_beyond(y, *(100 * result["loss"][end] for end in ("low", "high"))),
        xerr=_beyond(x, *(1 - result["saved"][end] for end in ("high", "low"))),
        fmt=marker,
        color=palette.CERTIFIED if certified else palette.OBSERVED,
        markersize=12 if marker == "*" else 8,
        markerfacecolor="white" if marker in "sp" else None,
        capsize=3,
        linewidth=1.2,
        label=text,
    )


if __name__ == "__main__":
    main()

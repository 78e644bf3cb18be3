"""The headline: multiply-accumulates saved on ImageNet at the paper's n, xi and delta.

    python -m experiments.headline

reads `imagenet_fast_inference.json` and, for the time, `imagenet_cpu_time.json`. None of its splits
is one that the search for cascades was developed on.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from experiments import palette
from experiments.imagenet.fast_inference import DEVELOPED_ON, PAPER_TIMES, never_asking
from experiments.imagenet.fast_inference import NAME as CASCADES
from experiments.imagenet.outputs import SLOW, said
from experiments.record import RESULTS, known, provenance, publish, table

NAME, TIMES = "headline", "imagenet_cpu_time"
SHOWN = {
    "product": "the paper's method, mended:\nResNet-18 before ResNet-101",
    "exact": "pacbound:\nResNet-18 before ResNet-101",
    "designed_4": "pacbound: cascade designed\non 5,000 other images",
}
TIMED = ("product", "exact", "designed_timed")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cascades", type=Path, help="the folder of the cascades' results")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    options = parser.parse_args(arguments)
    cascades, times = (known(options.cascades or options.out, name) for name in (CASCADES, TIMES))
    publish(
        options.out,
        NAME,
        measured(cascades, times),
        report=markdown,
        figures=lambda record: {"": figure(record)},
    )


def measured(cascades: dict[str, Any], times: dict[str, Any]) -> dict[str, Any]:
    (slow_error, slow), (error, rigorous) = (cascades["paper"][key] for key in ("slow", "product"))
    if set(cascades["seeds"]) & set(DEVELOPED_ON):
        raise SystemExit("The headline is not for splits that the search was developed on.")
    without = never_asking(cascades["methods"]["designed_4"]["splits"])
    instead = Counter(without).most_common(1)[0][0] if without else None
    macs, seconds = cascades["giga_macs"], times["methods"]
    return {
        **provenance(
            "python -m experiments.headline",
            seeds=cascades["seeds"],
            inputs=cascades["inputs_sha256"],
        ),
        "settings": cascades["settings"],
        "developed_on": list(DEVELOPED_ON),
        "reported_by_the_paper": {
            "saved": 1 - rigorous / slow,
            "loss": round((error - slow_error) / 100, 6),
            "cpu_time_saved": 1 - PAPER_TIMES["product"] / PAPER_TIMES["slow"],
        },
        "splits_that_never_ask_the_slow_network": len(without),
        "instead": instead
        and {"network": said(instead), "saved_alone": 1 - macs[instead] / macs[SLOW]},
        "cpu_time_saved": {
            name: 1 - seconds[name] / seconds["slow"] for name in TIMED if name in seconds
        },
        "methods": {
            name: {
                **{key: cascades["methods"][name][key] for key in ("saved", "loss", "error")},
                "splits_shown_above_xi": cascades["methods"][name]["splits_shown_above_xi"],
                "most_often": next(iter(cascades["methods"][name]["cascades"])),
            }
            for name in SHOWN
        },
    }


def markdown(record: dict[str, Any]) -> str:
    settings, seeds, paper = record["settings"], record["seeds"], record["reported_by_the_paper"]
    certified = f"{settings['xi']:.0%}"
    first = ("the paper's own figures", certified, f"{paper['loss']:.2%}", f"{paper['saved']:.1%}")
    lines = [first] + [
        (
            text.replace("\n", " "),
            certified,
            f"{result['loss']['mean']:.2%} ({result['loss']['low']:.2%} to "
            f"{result['loss']['high']:.2%})",
            f"**{result['saved']['mean']:.1%}** ± {result['saved']['sd']:.1%} "
            f"({result['saved']['low']:.1%} to {result['saved']['high']:.1%})",
        )
        for name, text in SHOWN.items()
        for result in [record["methods"][name]]
    ]
    developed, spared = record["developed_on"], record["cpu_time_saved"]
    times = (
        f"CPU time saved: {spared['exact']:.0%} by ResNet-18 before ResNet-101, "
        f"{spared['designed_timed']:.0%} by a cascade designed among the networks that were timed "
        f"(the paper: {paper['cpu_time_saved']:.0%})."
        if "designed_timed" in spared
        else ""
    )
    return f"""
{table(("", "certified loss at most", "loss on test images", "multiply-accumulates saved"), lines)}
ImageNet, slow network ResNet-101, n = {settings["n"]:,}, xi = {settings["xi"]}, delta = {settings["delta"]:g}, as in the paper; the designed cascade is chosen on
{settings["known"] - settings["n"]:,} more images. Mean ± standard deviation, and range, over {len(seeds)} splits (seeds {seeds[0]} to {seeds[-1]}) with {settings["test_rows"]:,} test images each. The search
for cascades was developed on the splits {developed[0]} to {developed[-1]}, which are not among them; all splits are of the same images.

- The paper's early exit is a branch of ResNet-101. It was not published: here the fast network is ResNet-18.
- The designed cascade is most often {record["methods"]["designed_4"]["most_often"]}. {replaced(record)}
- {times}
"""  # noqa: E501


def replaced(record: dict[str, Any]) -> str:
    """How often the designed cascade does without the slow network, and what would do alone."""
    never, instead = record["splits_that_never_ask_the_slow_network"], record["instead"]
    if not never:
        return "It asks ResNet-101 in every split."
    return (
        f"In {never} of {len(record['seeds'])} splits it never asks ResNet-101, the others replace "
        f"it. {instead['network']} alone would save {instead['saved_alone']:.0%}."
    )


def figure(record: dict[str, Any]) -> Figure:
    """A bar for each method, with the range over the splits."""
    drawn = Figure(figsize=(9.5, 3.9), layout="constrained")
    FigureCanvasAgg(drawn)
    ax = drawn.add_subplot()
    paper, splits = record["reported_by_the_paper"], len(record["seeds"])
    bars = [("reported by the paper,\nits own early exit", paper["saved"], None, paper["loss"])]
    bars += [
        (text, result["saved"]["mean"], result["saved"], result["loss"]["mean"])
        for name, text in SHOWN.items()
        for result in [record["methods"][name]]
    ]
    colors = [palette.UNKNOWN, palette.ROWS, palette.CERTIFIED, palette.CERTIFIED]
    for place, ((_, share, spread, loss), color) in enumerate(zip(bars, colors, strict=True)):
        ends = None
        if spread is not None:
            ends = [[100 * (share - spread["low"])], [100 * (spread["high"] - share)]]
        ax.barh(-place, 100 * share, color=color, height=0.68, xerr=ends, capsize=4)
        beyond = 100 * (share if spread is None else spread["high"])
        ax.annotate(
            f"{share:.0%}",
            (beyond, -place),
            (7, 0),
            textcoords="offset points",
            va="center",
            weight="bold",
        )
        ax.annotate(
            f"lost: {100 * loss:.1f} points",
            (0, -place),
            (7, 0),
            textcoords="offset points",
            va="center",
            color="white" if color == palette.CERTIFIED else "black",
        )
    ax.set_yticks([-place for place in range(len(bars))], [text for text, *_ in bars])
    settings = record["settings"]
    ax.set(
        xlim=(0, 100),
        xlabel="Multiply-accumulates saved against ResNet-101 alone (%). "
        f"Mean and range of {splits} splits;\nin the bars, the loss of accuracy on test images. "
        "The designed cascade:\n" + replaced(record).replace("it. ", "it.\n"),
    )
    drawn.suptitle(
        f"ImageNet: at most {100 * settings['xi']:g} points of accuracy are lost, certified at "
        f"{1 - settings['delta']:.1%} confidence from {settings['n']:,} images",
        x=0.01,
        ha="left",
        weight="bold",
    )
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return drawn


if __name__ == "__main__":
    main()

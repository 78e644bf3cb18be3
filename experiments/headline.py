"""The headline: multiply-accumulates saved on ImageNet at the paper's n, xi and delta.

    python -m experiments.headline

reads `imagenet_fast_inference.json` and draws the picture that README and documentation open with.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from experiments.imagenet.fast_inference import NAME as CASCADES
from experiments.record import RESULTS, known, provenance, publish, table
from pacbound.report import palette

NAME = "headline"
SHOWN = {
    "product": "the paper's method, mended",
    "exact": "pacbound, the same two networks",
    "designed_4": "pacbound, cascade designed\non 5,000 other images",
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cascades", type=Path, help="the folder of the cascades' results")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    options = parser.parse_args(arguments)
    found = known(options.cascades or options.out, CASCADES)
    publish(
        options.out,
        NAME,
        measured(found),
        report=markdown,
        figures=lambda record: {"": figure(record)},
    )


def measured(cascades: dict[str, Any]) -> dict[str, Any]:
    (_, slow), (_, rigorous) = cascades["paper"]["slow"], cascades["paper"]["product"]
    return {
        **provenance(
            "python -m experiments.headline",
            seeds=cascades["seeds"],
            inputs=cascades["inputs_sha256"],
        ),
        "settings": cascades["settings"],
        "reported_by_the_paper": {"saved": 1 - rigorous / slow},
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
    settings, splits = record["settings"], len(record["seeds"])
    certified = f"{settings['xi']:.0%}"
    lines = [("the paper's own figures", certified, "", _share(record["reported_by_the_paper"]))]
    lines += [
        (
            text.replace("\n", " "),
            certified,
            f"{result['loss']['mean']:.2%} ({result['loss']['low']:.2%} to "
            f"{result['loss']['high']:.2%})",
            f"**{result['saved']['mean']:.1%}** ({result['saved']['low']:.1%} to "
            f"{result['saved']['high']:.1%})",
        )
        for name, text in SHOWN.items()
        for result in [record["methods"][name]]
    ]
    return f"""
{table(("", "certified loss at most", "loss on test images", "multiply-accumulates saved"), lines)}
ImageNet, slow network ResNet-101, n = {settings["n"]:,} images certify, xi = {settings["xi"]}, delta = {settings["delta"]:g}; mean and range over
{splits} splits with {settings["test_rows"]:,} test images each. The paper's early exit is a branch of ResNet-101; here the fast network
is ResNet-18, and the designed cascade is most often {record["methods"]["designed_4"]["most_often"]}.
"""  # noqa: E501


def _share(result: dict[str, float]) -> str:
    return f"{result['saved']:.1%}"


def figure(record: dict[str, Any]) -> Figure:
    """A bar for each method, with the range over the splits."""
    drawn = Figure(figsize=(9.5, 3.4), layout="constrained")
    FigureCanvasAgg(drawn)
    ax = drawn.add_subplot()
    bars = [
        (
            "reported by the paper,\nits own early exit",
            record["reported_by_the_paper"]["saved"],
            None,
        )
    ]
    bars += [
        (text, record["methods"][name]["saved"]["mean"], record["methods"][name]["saved"])
        for name, text in SHOWN.items()
    ]
    colors = [palette.UNKNOWN, palette.ROWS, palette.CERTIFIED, palette.CERTIFIED]
    for place, ((_, share, spread), color) in enumerate(zip(bars, colors, strict=True)):
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
    ax.set_yticks([-place for place in range(len(bars))], [text for text, _, _ in bars])
    settings = record["settings"]
    ax.set(xlim=(0, 100), xlabel="Multiply-accumulates saved against ResNet-101 alone (%)")
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

"""Certify the early exits of the public ResNet-56, M = 2 and M = 4, on random halves of the
CIFAR-10 test images, and test on the other halves. From the repository root:

    python -m experiments.early_exit.certified

Reads the table that `experiments.early_exit.exits` left in experiments/results, and beside it,
where it is there, what `experiments.early_exit.timing` measured. Takes minutes, with `--quick`,
which has few splits and one xi, seconds; needs no torch.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from experiments.cascade.models import Models
from experiments.cascade.splits import DELTA, LEVEL, SEEDS, more_models, two_models
from experiments.record import provenance, publish
from experiments.safe_planning.report import section
from pacbound.report import palette
from pacbound.report.with_matplotlib import light_grid

RESULTS = Path("experiments/results")
XI = (0.01, 0.02, 0.03, 0.05)
QUICK_XI, QUICK_SPLITS = (0.02,), 2
METHODS = {
    "slow": "the whole network",
    "softmax": "(1 - xi')-softmax",
    "histogram": "histogram binning",
    "product": "the paper's product, mended",
    "exact": "ours, exact",
}
NOTE = (
    "The checkpoint was probably selected on these very images: the certificates illustrate the "
    "method, and claim nothing for new images."
)


def main() -> None:
    options = parse()
    made = json.loads((options.table / "early_exit_table.json").read_text(encoding="utf-8"))
    two, four = models(options.table / "early_exit_table.npz", made)
    tolerances, splits = (QUICK_XI, QUICK_SPLITS) if options.quick else (XI, SEEDS)
    record = {
        **provenance(
            "python -m experiments.early_exit.certified" + (" --quick" if options.quick else ""),
            seeds=list(range(splits)),
            inputs={"table": made["table_sha256"]},
        ),
        "delta": DELTA,
        "splits": splits,
        "calibration_images": len(two.labels) // 2,
        "test_images": len(two.labels) - len(two.labels) // 2,
        "accuracy": [count / made["test_images"] for count in made["right"]],
        "multiply_accumulates": {"2": list(two.costs), "4": list(four.costs)},
        "level_of_the_test": LEVEL,
        "results": kept(options.out, made["table_sha256"], tolerances, splits)
        or results(two, four, tolerances, splits),
        "timing": timing(options.table),
        "note": NOTE,
    }
    publish(
        options.out, "early_exit", record, report=markdown, figures=lambda held: {"": figure(held)}
    )
    if options.figures is not None:
        shutil.copyfile(options.out / "early_exit.svg", options.figures / "early_exit.svg")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few splits, and one xi")
    parser.add_argument("--table", type=Path, default=RESULTS, help="the folder with the table")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    parser.add_argument("--figures", type=Path, help="a folder for the figure as SVG once more")
    return parser.parse_args()


def models(path: Path, made: dict[str, Any]) -> tuple[Models, Models]:
    """The exit at a quarter before the whole network, and all three exits before it."""
    with np.load(path, allow_pickle=False) as held:
        confidences, predictions, labels = (
            held[name] for name in ("confidence", "prediction", "label")
        )
    confidences = confidences.astype(np.float64)
    alone = made["multiply_accumulates_alone"]
    two = Models(
        "M = 2",
        confidences[:, :1],
        predictions[:, [0, -1]].astype(np.int64),
        labels.astype(np.int64),
        tuple(made["multiply_accumulates_with_one_exit"]),
        alone,
    )
    four = Models(
        "M = 4",
        confidences,
        predictions.astype(np.int64),
        labels.astype(np.int64),
        tuple(made["multiply_accumulates"]),
        alone,
    )
    return two, four


def kept(
    out: Path, digest: str, tolerances: tuple[float, ...], splits: int
) -> list[dict[str, Any]] | None:
    """What an earlier run found in the same table: only the times may be new."""
    path = out / "early_exit.json"
    if not path.exists():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    read = record.get("inputs_sha256", {}).get("table")
    same = (read, record["delta"], record["splits"]) == (digest, DELTA, splits)
    found: list[dict[str, Any]] = record["results"]
    return found if same and {row["xi"] for row in found} == set(tolerances) else None


def results(
    two: Models, four: Models, tolerances: tuple[float, ...], splits: int
) -> list[dict[str, Any]]:
    """A row for each M, xi and method: means over the splits."""
    rows = []
    by_xi = two_models(two, tolerances, splits)
    for xi in tolerances:
        rows += [row(2, xi, method, by_xi[xi][method]) for method in METHODS]
        found = more_models(four, xi, splits)
        rows += [row(4, xi, method, found[method]) for method in ("product", "exact")]
    return rows


def row(stages: int, xi: float, method: str, found: dict[str, Any]) -> dict[str, Any]:
    kept = (
        "exit_rates",
        "cost",
        "cost_ends",
        "error_increase",
        "error_increase_sd",
        "splits_shown_above",
    )
    return {"M": stages, "xi": xi, "method": method, **{key: found[key] for key in kept}}


def timing(folder: Path) -> dict[str, Any] | None:
    path = folder / "early_exit_timing.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def markdown(record: dict[str, Any]) -> str:
    accuracy = ", ".join(f"{share:.1%}" for share in record["accuracy"])
    lines = [
        "# Early exits on a shared backbone",
        "",
        (
            "The public ResNet-56 for CIFAR-10, frozen, with heads trained here after blocks 7, 14 "
            f"and 20 of 27. Accuracy of the exits, the whole network last: {accuracy}. Means over "
            f"{record['splits']} random halves of the 10,000 test images: "
            f"{record['calibration_images']:,} to certify (delta = {record['delta']:g}), "
            f"{record['test_images']:,} to test."
        ),
        "",
        *section("table", table(record)),
        *section("time", timed(record["timing"])),
        record["note"],
        "",
        f"Made by `{record['command']}`.",
        "",
    ]
    return "\n".join(lines)


def table(record: dict[str, Any]) -> list[str]:
    """A line for each M, xi and method."""
    lines = [
        "| M | xi | method | guarantee | exits | multiply-accumulates | loss on test images | "
        "splits shown above xi |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for found in record["results"]:
        exits = " + ".join(f"{share:.1%}" for share in found["exit_rates"])
        certified = "yes" if found["method"] in ("product", "exact") else "none"
        if found["method"] == "slow":
            certified = "nothing is lost"
        lines.append(
            f"| {found['M']} | {found['xi']:g} | {METHODS[found['method']]} | {certified} | "
            f"{exits} | {found['cost']:.1%} | {found['error_increase']:.2%} ± "
            f"{found['error_increase_sd']:.2%} | {found['splits_shown_above']} of "
            f"{record['splits']} |"
        )
    return [*lines, ""]


def timed(record: dict[str, Any] | None) -> list[str]:
    if record is None:
        return ["Nobody has measured the wall clock here yet.", ""]
    lines = [
        (
            "One thread: `infer` at the certified thresholds against the whole network "
            f"alone, on the same {record['images']:,} images in turn, {record['rounds']} rounds; "
            "the ratio is the median over the rounds, between its smallest and its largest."
        ),
        "",
        "| M | xi | batch | certified loss | multiply-accumulates | wall clock | processor time |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for found in record["results"]:
        wall, cpu = (
            f"{middle:.1%} ({low:.1%} to {high:.1%})"
            for low, middle, high in (found["time_ratio"], found["cpu_ratio"])
        )
        lines.append(
            f"| {found['M']} | {found['xi']:g} | {found['batch']} | at most {found['xi']:g} | "
            f"{found['cost']:.1%} | {wall} | {cpu} |"
        )
    return [*lines, ""]


LOOKS = {
    (2, "histogram"): (palette.OBSERVED, "v", ":"),
    (2, "product"): (palette.ROWS, "o", "--"),
    (2, "exact"): (palette.ROWS, "P", "-"),
    (4, "product"): (palette.CERTIFIED, "o", "--"),
    (4, "exact"): (palette.CERTIFIED, "P", "-"),
}


def figure(record: dict[str, Any]) -> Figure:
    """Left, multiply-accumulates against the loss that is allowed; right, the loss on test images
    against it. Bars are the range of the splits and their standard deviation."""
    drawn = Figure(figsize=(12.5, 4.9), layout="constrained")
    FigureCanvasAgg(drawn)
    left, right = drawn.subplots(1, 2)
    tolerances = sorted({found["xi"] for found in record["results"]})
    for place, (key, (colour, marker, line)) in enumerate(LOOKS.items()):
        rows = [found for found in record["results"] if (found["M"], found["method"]) == key]
        # Side by side, so that bars do not hide each other.
        x = np.array([found["xi"] for found in rows]) + 0.0004 * (place - 2)
        cost = np.array([found["cost"] for found in rows])
        lost = np.array([found["error_increase"] for found in rows])
        low, high = np.array([found["cost_ends"] for found in rows]).T
        look: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "linestyle": line,
            "capsize": 3,
            "linewidth": 1.2,
        }
        name = f"M = {key[0]}, {METHODS[key[1]]}"
        ends = np.maximum([cost - low, high - cost], 0)
        left.errorbar(x, cost, yerr=ends, label=name, **look)
        right.errorbar(x, lost, yerr=[found["error_increase_sd"] for found in rows], **look)
    ends = np.array([0.7 * tolerances[0], 1.04 * tolerances[-1]])
    right.plot(ends, ends, ":", color=palette.IDEAL, label="lost = allowed")
    left.set_ylabel("multiply-accumulates,\nof the whole network's")
    right.set_ylabel("accuracy lost on test images")
    for ax in (left, right):
        light_grid(ax)
        ax.set_xlabel("accuracy that may be lost, ξ")
        ax.set_xticks(tolerances, [f"{100 * xi:g} %" for xi in tolerances])
        ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    handles, labels = left.get_legend_handles_labels()
    (line,) = right.get_lines()[-1:]
    drawn.legend(
        [*handles, line],
        [*labels, "lost = allowed"],
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    return drawn


if __name__ == "__main__":
    main()

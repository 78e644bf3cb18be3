"""Certify the early exits of the public ResNet-56, M = 2 and M = 4, on random halves of the
CIFAR-10 test images, and test on the other halves. From the repository root:

    python -m experiments.early_exit.certified

Reads the table that `experiments.early_exit.exits` left in experiments/results, the exits and the
costs that `experiments.early_exit.places` chose on the first 2,000 of its images, which are left
out here, and, where it is there, what `experiments.early_exit.timing` measured. Takes minutes, with
`--quick`, which has few splits and one xi, seconds; needs no torch.
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

from experiments import palette
from experiments.cascade.models import Models
from experiments.cascade.splits import DELTA, LEVEL, SEEDS, more_models, two_models
from experiments.early_exit.places import MILLION, parts_table, running_costs, time_costs, whole
from experiments.palette import light_grid
from experiments.record import provenance, publish
from experiments.safe_planning.report import section

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
    chosen = json.loads((options.table / "early_exit_places.json").read_text(encoding="utf-8"))
    two, four = models(options.table / "early_exit_table.npz", made, chosen)
    tolerances, splits = (QUICK_XI, QUICK_SPLITS) if options.quick else (XI, SEEDS)
    record = {
        **provenance(
            "python -m experiments.early_exit.certified" + (" --quick" if options.quick else ""),
            seeds=list(range(splits)),
            inputs={"table": made["table_sha256"]},
        ),
        "chosen": chosen["chosen"],
        "chosen_on": chosen["fold"],
        "tried": chosen["tried"],
        "trained_on": made["trained_on"],
        "epochs": made["epochs"],
        "delta": DELTA,
        "splits": splits,
        "calibration_images": len(two.labels) // 2,
        "test_images": len(two.labels) - len(two.labels) // 2,
        "after_blocks": made["after_blocks"],
        "accuracy": [count / made["test_images"] for count in made["right"]],
        "time_costs": {"2": list(two.costs), "4": list(four.costs)},
        "multiply_accumulates": {m: macs(made, after) for m, after in chosen["chosen"].items()},
        "level_of_the_test": LEVEL,
        "times_of_parts": chosen["times"],
        "timing": timing(options.table),
        "note": NOTE,
    }
    record["results"] = kept(options.out, record, tolerances) or results(
        two, four, tolerances, splits
    )
    for found in record["results"]:
        found["multiply_accumulates"] = macs_spent(found, record["multiply_accumulates"])
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


def models(path: Path, made: dict[str, Any], chosen: dict[str, Any]) -> tuple[Models, Models]:
    """The exits that were chosen for M = 2 and for M = 4, on the images that did not choose."""
    with np.load(path, allow_pickle=False) as held:
        confidences, predictions, labels = (
            held[name][chosen["fold"] :] for name in ("confidence", "prediction", "label")
        )
    found = []
    for m, after in chosen["chosen"].items():
        columns = [made["after_blocks"].index(block) for block in after]
        found.append(
            Models(
                f"M = {m}",
                confidences[:, columns].astype(np.float64),
                predictions[:, [*columns, -1]].astype(np.int64),
                labels.astype(np.int64),
                time_costs(after, made["after_blocks"], chosen["times"]),
                MILLION,
            )
        )
    two, four = found
    return two, four


def macs(made: dict[str, Any], after: list[int]) -> list[float]:
    """The multiply-accumulates of a row that is answered at each exit, as shares of the whole
    network's alone."""
    parts = made["multiply_accumulates"]
    spent = running_costs(after, made["after_blocks"], parts["stages"], parts["heads"])
    return [each / made["multiply_accumulates_alone"] for each in spent]


def macs_spent(found: dict[str, Any], shares: dict[str, list[float]]) -> float:
    """The mean over rows and splits."""
    if found["method"] == "slow":
        return 1.0
    rates = [*found["exit_rates"], 1 - sum(found["exit_rates"])]
    return float(np.dot(rates, shares[str(found["M"])]))


def kept(
    out: Path, record: dict[str, Any], tolerances: tuple[float, ...]
) -> list[dict[str, Any]] | None:
    """What an earlier run found in the same table at the same costs: only the wall clock may be
    new."""
    path = out / "early_exit.json"
    if not path.exists():
        return None
    earlier = json.loads(path.read_text(encoding="utf-8"))
    same = ("inputs_sha256", "delta", "splits", "chosen", "chosen_on", "time_costs")
    if any(earlier.get(key) != record[key] for key in same):
        return None
    found: list[dict[str, Any]] = earlier["results"]
    return found if {row["xi"] for row in found} == set(tolerances) else None


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
            "The public ResNet-56 for CIFAR-10, frozen, with heads trained here after blocks "
            f"{listed(record['after_blocks'])} of 27. Accuracy of all exits on the test images, "
            f"the whole network last: {accuracy}. By measured time, the first "
            f"{record['chosen_on']:,} test images chose the exit after block "
            f"{listed(record['chosen']['2'])} for M = 2 and those after blocks "
            f"{listed(record['chosen']['4'])} for M = 4. Means over {record['splits']} random "
            f"halves of the other images: {record['calibration_images']:,} to certify "
            f"(delta = {record['delta']:g}), {record['test_images']:,} to test."
        ),
        "",
        *section("table", table(record)),
        *section("parts", parts_table(record["after_blocks"], record["times_of_parts"])),
        *section("remains", remains(record)),
        *section("time", timed(record["timing"])),
        *section("beside", beside(record)),
        record["note"],
        "",
        f"Made by `{record['command']}`.",
        "",
    ]
    return "\n".join(lines)


def listed(numbers: list[int]) -> str:
    """2, 3 and 5."""
    *before, last = map(str, numbers)
    return f"{', '.join(before)} and {last}" if before else last


def table(record: dict[str, Any]) -> list[str]:
    """A line for each M, xi and method."""
    lines = [
        "| M | xi | method | guarantee | exits | time, from its parts | multiply-accumulates | "
        "loss on test images | splits shown above xi |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for found in record["results"]:
        exits = " + ".join(f"{share:.1%}" for share in found["exit_rates"])
        certified = "yes" if found["method"] in ("product", "exact") else "none"
        if found["method"] == "slow":
            certified = "nothing is lost"
        lines.append(
            f"| {found['M']} | {found['xi']:g} | {METHODS[found['method']]} | {certified} | "
            f"{exits} | {found['cost']:.1%} | {found['multiply_accumulates']:.1%} | "
            f"{found['error_increase']:.2%} ± "
            f"{found['error_increase_sd']:.2%} | {found['splits_shown_above']} of "
            f"{record['splits']} |"
        )
    return [*lines, ""]


def timed(record: dict[str, Any] | None) -> list[str]:
    if record is None:
        return ["Nobody has measured the wall clock here yet.", ""]
    lines = [
        (
            "One thread: `infer` at the certified thresholds against the whole network alone, on "
            f"the same images in turn: {record['images']:,} test images of each of the first "
            f"{record['splits']} splits, {record['rounds']} rounds. The ratio is the median over "
            "the rounds, between its smallest and its largest."
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


def found_at(record: dict[str, Any], stages: int, method: str = "exact") -> dict[str, Any]:
    """The row of the results at xi = 0.02, where the paper's figures are."""
    (row,) = (
        row
        for row in record["results"]
        if (row["M"], row["xi"], row["method"]) == (stages, 0.02, method)
    )
    return dict(row)


def remains(record: dict[str, Any]) -> list[str]:
    """Where the time goes that is left at xi = 0.02 with M = 4, from the parts."""
    places, after = record["after_blocks"], record["chosen"]["4"]
    rates = found_at(record, 4)["exit_rates"]
    reached = [1.0, *(1 - np.cumsum(rates))]
    ends = [places.index(block) for block in after]
    first, lines = 0, []

    def line(name: str, share: float, parts: list[tuple[str, int]]) -> str:
        cells = [
            share * sum(found[kind][place] for kind, place in parts) / whole(found)
            for found in record["times_of_parts"].values()
        ]
        return f"| {name} | {share:.1%} | " + " | ".join(f"{cell:.1%}" for cell in cells) + " |"

    for number, end in enumerate([*ends, len(places)]):
        blocks = (
            1 if first == 0 else places[first - 1] + 1,
            27 if end == len(places) else places[end],
        )
        stages = [("stages", place) for place in range(first, end + 1)]
        lines.append(line(f"blocks {blocks[0]} to {blocks[1]}", reached[number], stages))
        decides = [("heads", end)] + ([("decisions", end)] if end < len(places) else [])
        name = "head and decision there" if end < len(places) else "the last layer"
        lines.append(line(name, reached[number], decides))
        first = end + 1
    batches = " | ".join(f"batch of {batch}" for batch in record["times_of_parts"])
    return [
        f"| M = 4, xi = 0.02 | rows that need it | {batches} |",
        "| --- | --- |" + " --- |" * len(record["times_of_parts"]),
        *lines,
        "",
    ]


def beside(record: dict[str, Any]) -> list[str]:
    """The figures of the paper's Table 1 and ours."""
    shares = {
        (m, method): f"{found_at(record, m, method)['multiply_accumulates']:.0%}"
        for m in (2, 4)
        for method in ("exact", "product")
    }
    timing = (record["timing"] or {"results": []})["results"]
    times = {
        (row["M"], row["batch"]): f"{row['cpu_ratio'][1]:.0%}"
        for row in timing
        if row["xi"] == 0.02
    }
    clock = "; ".join(
        f"{times[2, batch]} with M = 2 and {times[4, batch]} with M = 4 in batches of {batch}"
        for batch in sorted({batch for _, batch in times})
        if (2, batch) in times and (4, batch) in times
    )
    return [
        "| | the paper | here |",
        "| --- | --- | --- |",
        "| network | ResNet-101, ImageNet | ResNet-56, CIFAR-10 |",
        f"| error of the whole network | 22.32% | {1 - record['accuracy'][-1]:.2%} |",
        "| branch | trained by the standard procedure for ResNet-101 | one to four convolutions, "
        f"{record['epochs']} epochs of {record['trained_on']:,} images, the backbone frozen |",
        "| calibration | n = 20,000, xi = 0.02, delta = 0.001 | "
        f"n = {record['calibration_images']:,}, xi = 0.01 to 0.05, delta = {record['delta']:g} |",
        "| multiply-accumulates at xi = 0.02 | 5.33 of 7.83 billion: 68% | "
        f"{shares[2, 'exact']} with M = 2, {shares[4, 'exact']} with M = 4 (the paper's product, "
        f"mended: {shares[2, 'product']} and {shares[4, 'product']}) |",
        f"| CPU time at xi = 0.02 | 85.58 of 214.31 µs: 40% | {clock} |",
        "",
    ]


LOOKS = {
    (2, "histogram"): (palette.OBSERVED, "v", ":"),
    (2, "product"): (palette.ROWS, "o", "--"),
    (2, "exact"): (palette.ROWS, "P", "-"),
    (4, "product"): (palette.CERTIFIED, "o", "--"),
    (4, "exact"): (palette.CERTIFIED, "P", "-"),
}


def figure(record: dict[str, Any]) -> Figure:
    """Left, time against the loss that is allowed; right, the loss on test images
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
    left.set_ylabel("time from measured parts,\nof the whole network's")
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

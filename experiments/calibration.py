"""The calibration error of softmax, temperature scaling, histogram binning and certified intervals,
on held-out rows.

    python -m experiments.calibration --logits LOGITS.npz

reads the logits of several networks on the same images, one (rows, classes) array for each, and
their labels `y`. Without `--logits` it takes the predictions on Fashion-MNIST that ship with the
package, which have no logits and so no temperature; `--quick` takes few rows of generated logits.

For every seed 5,000 rows are drawn to calibrate and 5,000 others to test. The bins are 20 of equal
width and delta is 0.01, the paper's values. All calibration errors are descriptive; the intervals
themselves are what is certified.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.baselines import softmax
from experiments.imagenet.generated import logits
from experiments.record import RESULTS, provenance, publish, table
from experiments.temperature import Rescaled, of_logits
from pacbound import calibrate
from pacbound.baselines import HistogramBinning
from pacbound.calibration import expected_calibration_error, induced_calibration_error
from pacbound.calibration.reliability import induced_reliability, reliability
from pacbound.claims.calibration_certificate import CalibrationCertificate
from pacbound.data import fashion_mnist
from pacbound.report import plot

Array = NDArray[Any]

ROWS, SEEDS, BINS, DELTA = 5_000, 20, 20, 0.01
QUICK_ROWS, QUICK_SEEDS = 1_000, 3
QUICK_NETWORKS = {"resnet20": 4.8, "resnet56": 5.6}
SHOWN_SEED = 0

SAID = {
    "softmax": "Softmax",
    "temperature": "Temperature scaling",
    "histogram": "Histogram binning",
    "induced": "Certified intervals, induced error",
    "binned": "Certified intervals, error over their own bins",
}
NOTES = {
    "spread": (
        "Mean ± standard deviation over random splits of the same rows: it shows the luck of the "
        "split, not that of the networks' training."
    ),
    "interval": (
        "Intervals have an interval for a calibration error: from the distance between the "
        "accuracy and the nearest point claimed to that of the farthest. Descriptive: that it "
        "contains zero is not certified."
    ),
    "induced": (
        "The paper's induced error sorts rows by their estimate. A bin with very few calibration "
        "rows, all right, has the estimate 1 and an interval that starts near 0, and lends that "
        "start to all rows of the top bin; where test rows meet such a bin, the upper end is "
        "about 0.9. Over the certificate's own bins no interval stands for rows of another."
    ),
    "unseen": (
        "Histogram binning has no estimate in a bin without calibration rows; the softmax "
        "confidence is kept there."
    ),
    "selected": (
        "The networks' checkpoints were probably selected on these very images, so their "
        "accuracies are optimistic. The rows are then no fresh sample either: the certificates "
        "here illustrate the method and claim nothing for new images."
    ),
}


@dataclass(frozen=True)
class Predictions:
    """What one network says about every row; `rescaled` where a temperature can be fitted."""

    name: str
    confidence: Array
    correct: Array
    labels: Array
    rescaled: Rescaled | None = None


@dataclass(frozen=True)
class Held:
    """The confidences that every method claims for the test rows of one split, and what became of
    them."""

    correct: Array
    claimed: dict[str, Array]
    certificate: CalibrationCertificate
    intervals: Array
    estimates: Array
    unseen: int

    def errors(self) -> dict[str, float]:
        """The calibration error of each method; two ends for the intervals."""
        points = {
            name: expected_calibration_error(said, self.correct, n_bins=BINS)
            for name, said in self.claimed.items()
        }
        induced = induced_calibration_error(
            self.intervals, self.estimates, self.correct, n_bins=BINS
        )
        seen, bins = (
            reliability(self.claimed["softmax"], self.correct, n_bins=BINS),
            self.certificate.bins,
        )
        binned = replace(seen, lower=bins.lower, upper=bins.upper)
        return {
            **points,
            **dict(zip(("induced_lower", "induced_upper"), induced, strict=True)),
            "binned_lower": binned.averaged(binned.nearest),
            "binned_upper": binned.averaged(binned.farthest),
        }


def main() -> None:
    options = parse()
    rows, seeds = (QUICK_ROWS, QUICK_SEEDS) if options.quick else (ROWS, SEEDS)
    networks = list(chosen(options))
    results = {network.name: measure(network, rows, seeds) for network in networks}
    told = ("spread", "interval", "induced", "unseen", *(["selected"] if options.logits else []))
    record = {
        **provenance(command(options), seeds=list(range(seeds)), inputs=source(options.logits)),
        "calibration_rows": rows,
        "test_rows": rows,
        "n_bins": BINS,
        "delta": DELTA,
        "notes": [NOTES[key] for key in told],
        "networks": results,
    }
    shipped_alone = options.logits is None and not options.quick
    publish(
        options.out,
        "calibration_fashion_mnist" if shipped_alone else "calibration",
        record,
        report=markdown,
        figures=lambda _: {"": draw(networks[-1], rows)},
    )


def chosen(options: argparse.Namespace) -> Iterator[Predictions]:
    if options.quick:
        labels, networks = logits(QUICK_NETWORKS, 2 * QUICK_ROWS)
        return (said_by(name, values, labels) for name, values in networks.items())
    return shipped() if options.logits is None else from_logits(options.logits)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--logits", type=Path, help="an .npz file with logits of each network and labels y"
    )
    parser.add_argument("--quick", action="store_true", help="few rows of generated logits")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    return parser.parse_args()


def from_logits(path: Path) -> Iterator[Predictions]:
    with np.load(path, allow_pickle=False) as arrays:
        labels = arrays["y"]
        for name in sorted(set(arrays.files) - {"y"}):
            yield said_by(name, arrays[name], labels)


def said_by(name: str, values: Array, labels: Array) -> Predictions:
    """What a network says whose logits are known."""
    probabilities = softmax(values)
    correct = probabilities.argmax(axis=1) == labels
    return Predictions(name, probabilities.max(axis=1), correct, labels, of_logits(values, labels))


def shipped() -> Iterator[Predictions]:
    table = fashion_mnist()
    yield Predictions(
        "early exit", table.confidence_fast, table.prediction_fast == table.label, table.label
    )
    yield Predictions(
        "whole network", table.confidence_slow, table.prediction_slow == table.label, table.label
    )


def measure(network: Predictions, rows: int, seeds: int) -> dict[str, Any]:
    """The mean, the standard deviation and the single values of every figure over the seeds."""
    splits = [held_out(network, seed, calibrating=rows, testing=rows) for seed in range(seeds)]
    errors = [split.errors() for split in splits]
    widths = [float(np.diff(split.intervals, axis=1).mean()) for split in splits]
    return {
        "rows": len(network.labels),
        "accuracy": float(network.correct.mean()),
        "calibration_error": {
            name: spread([error[name] for error in errors]) for name in errors[0]
        },
        "mean_width": spread(widths),
        "rows_in_unseen_bins": [split.unseen for split in splits],
    }


def held_out(
    network: Predictions, seed: int, *, calibrating: int = ROWS, testing: int = ROWS
) -> Held:
    """What every method claims for test rows, after calibrating on others."""
    order = np.random.default_rng(seed).permutation(len(network.labels))
    known, fresh = order[:calibrating], order[calibrating : calibrating + testing]
    confidence, correct = network.confidence, network.correct
    binned = (
        HistogramBinning(n_bins=BINS)
        .fit_confidence(confidence[known], correct[known])
        .recalibrate(confidence[fresh])
    )
    claimed = {"softmax": confidence[fresh]}
    if network.rescaled is not None:
        claimed["temperature"] = network.rescaled(known)[fresh]
    unseen = np.isnan(binned)
    claimed["histogram"] = np.where(unseen, confidence[fresh], binned)
    certificate = calibrate(confidence[known], correct[known], delta=DELTA, n_bins=BINS)
    return Held(
        correct=correct[fresh],
        claimed=claimed,
        certificate=certificate,
        intervals=certificate.interval(confidence[fresh]),
        estimates=certificate.estimate(confidence[fresh]),
        unseen=int(unseen.sum()),
    )


def spread(values: list[float]) -> dict[str, Any]:
    return {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1)), "values": values}


def command(options: argparse.Namespace) -> str:
    made_by = "python -m experiments.calibration"
    if options.logits is not None:
        made_by += f" --logits {options.logits.name}"
    return made_by + (" --quick" if options.quick else "")


def source(path: Path | None) -> dict[str, str]:
    """The digest of what was read; what ships or is generated is known by the version."""
    return {} if path is None else {"logits": hashlib.sha256(path.read_bytes()).hexdigest()}


def markdown(record: dict[str, Any]) -> str:
    results, rows = record["networks"], record["test_rows"]
    first = next(iter(results.values()))["calibration_error"]
    points = [name for name in SAID if name in first]
    head = (
        "network",
        "accuracy",
        *(SAID[name] for name in (*points, "induced", "binned")),
        "mean width of the intervals",
    )
    lines = []
    for network, result in results.items():
        error = result["calibration_error"]
        ends = [
            f"[{shown(error[f'{name}_lower'])}, {shown(error[f'{name}_upper'])}]"
            for name in ("induced", "binned")
        ]
        cells = [
            f"{result['accuracy']:.2%}",
            *(shown(error[name]) for name in points),
            *ends,
            shown(result["mean_width"]),
        ]
        lines.append((network, *cells))
    listed = "".join(f"- {note}\n" for note in record["notes"])
    return f"""# Calibration error

Expected calibration error on {rows:,} held-out rows, after calibrating on {rows:,} others, over
{len(record["seeds"])} splits ({BINS} bins, delta = {DELTA}):

{table(head, lines)}
{listed}
Made by `{record["command"]}`.
"""


def shown(figure: dict[str, Any]) -> str:
    return f"{figure['mean']:.4f} ± {figure['sd']:.4f}"


def draw(network: Predictions, rows: int) -> Figure:
    """The reliability diagrams of one split, a panel for each method."""
    return drawn(held_out(network, SHOWN_SEED, calibrating=rows, testing=rows), network.name)


def drawn(split: Held, name: str) -> Figure:
    points = {
        SAID[name]: reliability(said, split.correct, n_bins=BINS)
        for name, said in split.claimed.items()
    }
    induced = induced_reliability(split.intervals, split.estimates, split.correct, n_bins=BINS)
    panels = {**points, "Certified intervals on the test rows": induced}
    across = 2 if len(panels) % 2 == 0 else len(panels)
    down = len(panels) // across
    figure = Figure(figsize=(6.0 * across, 5.5 * down), layout="constrained")
    FigureCanvasAgg(figure)
    parts: Any = figure.subfigures(down, across, squeeze=False)
    for part, (title, bins) in zip(parts.ravel(), panels.items(), strict=True):
        part.suptitle(f"{name}: {title}", x=0.02, ha="left", weight="bold")
        plot(bins, ax=part.add_subplot())
    return figure


if __name__ == "__main__":
    main()

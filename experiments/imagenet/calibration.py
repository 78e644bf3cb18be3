"""Calibration on ImageNet: the paper's figure for ResNet-101, all 34 networks, classes and groups.

    python -m experiments.imagenet.calibration --outputs OUTPUTS.npz --top-five TOP_FIVE.npz

In each of 100 splits n images calibrate, 20,000 as in the paper and 2,000 as in its appendix, and
10,000 others test; 20 bins, delta = 0.01. Only the five likeliest classes of each image are known,
so temperature scaling spreads what is left of the probability evenly over the other classes.

Whether intervals hold is asked of a population that is known: the 50,000 images, each as likely as
any other. A calibration set is 20,000 independent draws, and it fails if the true accuracy of any
bin lies outside of its interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments import accuracy_confidence
from experiments.calibration import Array, Predictions, drawn, held_out
from experiments.imagenet.outputs import SLOW, Outputs, TopFive, network, said
from experiments.imagenet.source import Source, read
from experiments.record import known, provenance, publish, show_progress, table
from experiments.temperature import of_top_five
from experiments.two_models import chance_of_more
from pacbound import calibrate
from pacbound.claims.calibration_certificate import CalibrationCertificate
from pacbound.tally.grids import EqualWidthBins

NAME = "imagenet_calibration"
SIZES, TEST, SPLITS, BINS, DELTA, LEVEL = (20_000, 2_000), 10_000, 100, 20, 0.01, 1e-3
CLASS_BINS = 5
ANIMALS = 398
"""The classes of ILSVRC-2012 below this are animals."""

CLOSER_LOOK = (SLOW, "resnet18_pytorch", "inception_v3_pytorch", "nasnetlarge_keras")
PAPER = {
    "softmax": "4.79%",
    "temperature": "1.66%",
    "histogram": "0.99%",
    "induced": "[0.0%, 3.76%]",
}
SAID = {
    "softmax": "softmax",
    "temperature": "temperature scaling",
    "histogram": "histogram binning",
    "induced": "ours: induced error",
    "binned": "ours: error over its own bins",
}


@dataclass(frozen=True, eq=False)
class Cells:
    """The cell of every image of the population, in disjoint groups by bins, and what is true."""

    names: tuple[str, ...]
    groups: Array
    n_bins: int
    confidence: Array
    right: Array

    @property
    def places(self) -> Array:
        return np.asarray(
            self.groups * self.n_bins + EqualWidthBins(self.n_bins).cells(self.confidence)
        )

    def truth(self) -> tuple[Array, Array]:
        """Images, and the share that is right, of each cell."""
        total = len(self.names) * self.n_bins
        images = np.bincount(self.places, minlength=total)
        right = np.bincount(self.places, weights=self.right, minlength=total)
        return images, right / np.maximum(images, 1)

    def certificate(self, rows: Array) -> CalibrationCertificate:
        names = np.array(self.names)
        return calibrate(
            self.confidence[rows],
            self.right[rows],
            delta=DELTA,
            n_bins=self.n_bins,
            groups=names[self.groups[rows]] if len(names) > 1 else None,
        )

    def ends(self, certificate: CalibrationCertificate) -> tuple[Array, Array]:
        """The interval of each cell; one from 0 to 1 for a group that was not drawn."""
        unknown = np.zeros(self.n_bins), np.ones(self.n_bins)
        tables = certificate.tables if len(self.names) > 1 else {self.names[0]: certificate.bins}
        found = {name: (bins.lower, bins.upper) for name, bins in tables.items()}
        each = [found.get(name, unknown) for name in self.names]
        return np.concatenate([e[0] for e in each]), np.concatenate([e[1] for e in each])


def main(arguments: list[str] | None = None) -> None:
    source = read("experiments.imagenet.calibration", __doc__, arguments)
    publish(
        source.out,
        NAME,
        known(source.out, NAME) if source.redraw else measured(source),
        report=markdown,
        figures=lambda _: figures(source),
    )


def figures(source: Source) -> dict[str, Figure]:
    """One split of ResNet-101: reliability for each n, and accuracy above a confidence."""
    slow = _predictions(source.outputs, source.top_five, SLOW)
    shown = [
        held_out(slow, 0, calibrating=source.rows(n), testing=source.rows(TEST)) for n in SIZES
    ]
    found = {
        f"n_{n}": drawn(split, f"ResNet-101, n = {source.rows(n):,}")
        for n, split in zip(SIZES, shown, strict=True)
    }
    first = accuracy_confidence.drawn(
        shown[0].claimed["softmax"], shown[0].intervals, shown[0].correct, delta=DELTA
    )
    return {**found, "accuracy_confidence": first}


def measured(source: Source) -> dict[str, Any]:
    data, splits = source.outputs, source.times(SPLITS)
    networks: dict[str, Any] = {}
    for done, name in enumerate(data.names, 1):
        said_by = _predictions(data, source.top_five, name)
        sizes = SIZES if name == SLOW else SIZES[:1]
        networks[name] = {
            "accuracy": float(said_by.correct.mean()),
            "confidence": float(said_by.confidence.mean()),
            "sizes": {
                str(source.rows(n)): _errors(said_by, source.rows(n), source.rows(TEST), splits)
                for n in sizes
            },
            "scopes": {
                scope: _held(cells, source.rows(SIZES[0]), splits)
                for scope, cells in _scopes(data, name)
            },
        }
        show_progress(done, len(data.names), NAME)
    return {
        **provenance(
            source.command,
            seeds={"splits": list(range(splits)), "draws": f"[draw, 1], draw < {splits}"},
            inputs=source.inputs,
        ),
        "settings": {
            "sizes": [source.rows(n) for n in SIZES],
            "test_rows": source.rows(TEST),
            "n_bins": BINS,
            "bins_of_each_class": CLASS_BINS,
            "delta": DELTA,
            "level_of_the_test": LEVEL,
        },
        "paper": PAPER,
        "networks": networks,
    }


def _predictions(data: Outputs, top: TopFive, name: str) -> Predictions:
    place, plain = data.names.index(name), network(name)
    known = plain in top.classes and name.endswith("_pytorch")
    return Predictions(
        said(name),
        data.confidences[:, place],
        data.right(name),
        data.labels,
        of_top_five(top.classes[plain], top.probabilities[plain], top.labels, top.n_classes)
        if known
        else None,
    )


def _errors(said_by: Predictions, n: int, test: int, splits: int) -> dict[str, Any]:
    """The calibration errors on test images, over the splits."""
    held = [held_out(said_by, seed, calibrating=n, testing=test) for seed in range(splits)]
    errors = [split.errors() for split in held]
    widths = np.array([np.diff(split.intervals, axis=1).mean() for split in held])
    return {
        **{name: _spread(np.array([error[name] for error in errors])) for name in errors[0]},
        "width": _spread(widths),
    }


def _spread(values: Array) -> dict[str, float]:
    return {"mean": float(values.mean()), "sd": float(values.std(ddof=1))}


def _scopes(data: Outputs, name: str) -> Iterator[tuple[str, Cells]]:
    """All images together; for some networks also animals and things, and each predicted class."""
    place = data.names.index(name)
    said_of = data.confidences[:, place], data.right(name)
    prediction = data.predictions[:, place]
    yield "all images", Cells(("all",), np.zeros_like(prediction), BINS, *said_of)
    if name in CLOSER_LOOK:
        things = (prediction >= min(ANIMALS, prediction.max() // 2)).astype(np.int64)
        yield "animals, things", Cells(("animals", "things"), things, BINS, *said_of)
        classes = tuple(str(label) for label in range(int(data.labels.max()) + 1))
        yield "predicted classes", Cells(classes, prediction, CLASS_BINS, *said_of)


def _held(cells: Cells, n: int, draws: int) -> dict[str, Any]:
    """How often an interval misses the truth, and how wide intervals are."""
    images, accuracy = cells.truth()
    misses, widths, non_empty = 0, [], []
    for draw in range(draws):
        rows = np.random.default_rng([draw, 1]).integers(0, len(cells.right), n)
        lower, upper = cells.ends(cells.certificate(rows))
        outside = (images > 0) & ((accuracy < lower) | (accuracy > upper))
        misses += bool(outside.any())
        widths.append(float(images @ (upper - lower) / images.sum()))
        non_empty.append(int(((upper - lower) < 1).sum()))
    p_value = chance_of_more(misses, draws, DELTA)
    return {
        "draws": draws,
        "missed": misses,
        "p_value": p_value,
        "within_delta": p_value >= LEVEL,
        "width": float(np.mean(widths)),
        "cells_with_rows": float(np.mean(non_empty)),
    }


def markdown(record: dict[str, Any]) -> str:
    return "\n\n".join(
        [
            _papers_table(record),
            _all_networks(record),
            _closer_look(record),
            f"Made by `{record['command']}`.",
        ]
    )


def _papers_table(record: dict[str, Any]) -> str:
    sizes = record["networks"][SLOW]["sizes"]
    lines = [
        (text, record["paper"].get(name, ""), *(_shown(result, name) for result in sizes.values()))
        for name, text in SAID.items()
    ]
    head = ("ResNet-101", "paper, n = 20,000", *(f"n = {int(n):,}" for n in sizes))
    return (
        f"Expected calibration error on {record['settings']['test_rows']:,} test images, mean ± "
        f"standard deviation over the splits, descriptive:\n\n{table(head, lines)}"
    )


def _shown(result: dict[str, Any], name: str) -> str:
    def one(key: str) -> str:
        return f"{result[key]['mean']:.2%} ± {result[key]['sd']:.2%}"

    if name in result:
        return one(name)
    return f"[{one(name + '_lower')}, {one(name + '_upper')}]" if name + "_lower" in result else ""


def _all_networks(record: dict[str, Any]) -> str:
    n = record["settings"]["sizes"][0]
    lines = []
    ordered = sorted(record["networks"].items(), key=lambda item: -item[1]["accuracy"])
    for name, result in ordered:
        errors, held = result["sizes"][str(n)], result["scopes"]["all images"]
        lines.append(
            (
                name.replace("_", " "),
                f"{result['accuracy']:.2%}",
                f"{result['confidence'] - result['accuracy']:+.2%}",
                f"{errors['softmax']['mean']:.2%}",
                f"{errors['histogram']['mean']:.2%}",
                f"[{errors['binned_lower']['mean']:.2%}, {errors['binned_upper']['mean']:.2%}]",
                f"{held['width']:.2%}",
                f"{held['missed']} of {held['draws']}" + ("" if held["within_delta"] else " **✗**"),
            )
        )
    head = (
        "network",
        "top-1 accuracy",
        "mean confidence less accuracy",
        "error, softmax",
        "error, histogram binning",
        "ours, over its own bins",
        "mean width",
        "calibration sets that miss",
    )
    return (
        f"All networks, n = {n:,}. The last column: draws in which any bin's interval misses its "
        f"true accuracy; delta = {DELTA:g} allows about one in a hundred, and an exact binomial "
        f"test at level {record['settings']['level_of_the_test']:g} objects to none unless marked "
        f"**✗**:\n\n{table(head, lines)}"
    )


def _closer_look(record: dict[str, Any]) -> str:
    lines = [
        (
            said(name),
            scope,
            f"{held['cells_with_rows']:,.0f}",
            f"{held['width']:.1%}",
            f"{held['missed']} of {held['draws']}",
        )
        for name, result in record["networks"].items()
        for scope, held in result["scopes"].items()
        if len(result["scopes"]) > 1
    ]
    head = ("network", "intervals for", "cells with rows", "mean width", "sets that miss")
    return (
        f"A table for all images ({BINS} bins), one for each of two groups by what is predicted "
        f"({BINS} bins each), and one for each predicted class ({CLASS_BINS} bins each); all "
        f"intervals of a certificate hold together:\n\n{table(head, lines)}"
    )


if __name__ == "__main__":
    main()

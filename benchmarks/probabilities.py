"""How fast class probabilities are counted, and what memory that takes, against fitting the peers
on the same rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import inputs
from benchmarks.peers import adapter, named, offering
from benchmarks.processes import rise_of_peak
from benchmarks.row import Bar, Row
from benchmarks.sizes import Sizes
from benchmarks.timing import race
from pacbound import PACCalibrator

_OURS = "from pacbound import PACCalibrator; fit = PACCalibrator().fit"
_THEIRS = "from benchmarks.peers.{} import fit"
_WARM_UP = "probabilities(2_000, 10)"
_FEW, _MANY = 5, 150


def rows(sizes: Sizes) -> Iterator[Row]:
    for count, classes in ((sizes.rows, 10), sizes.wide):
        table, labels = inputs.probabilities(count, classes)
        work = f"count {count:,} × {classes:,} float32 probabilities (PACCalibrator.fit)"
        yield from _times(work, table, labels, min(_FEW, sizes.rounds))
        yield from _memory(table, labels)
        yield _floor(work, table, labels, min(_MANY, sizes.rounds))


def _times(work: str, table: Any, labels: Any, repeats: int) -> Iterator[Row]:
    for name, fit in offering("fit"):
        ours, theirs = race(
            lambda: PACCalibrator().fit(table, labels),
            partial(fit, table, labels),
            repeats=repeats,
        )
        # The bar was set for few classes; with many, netcal is slower still.
        bar = Bar(1 / 8, "ratio", "8 × faster: at most 0.125") if name == "netcal" else None
        label = f"fit {table.shape[0]:,} × {table.shape[1]:,}: {name}"
        yield Row(work, ours, "s", f"{named(name)} {adapter(name).FIT}", theirs, bar, label)


def _memory(table: Any, labels: Any) -> Iterator[Row]:
    work = "the same: rise of the peak resident memory, in a process of its own"
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{name}.npy") for name in ("table", "labels")]
        np.save(paths[0], table)
        np.save(paths[1], labels)
        extra = rise_of_peak(_OURS, "fit", paths, warm_up=_WARM_UP)
        for name, _ in offering("fit"):
            theirs = rise_of_peak(_THEIRS.format(name), "fit", paths, warm_up=_WARM_UP)
            yield Row(
                work,
                extra,
                "bytes",
                f"{named(name)} {adapter(name).FIT}",
                theirs,
                Bar(20e6, "ours", "under 20 MB"),
            )


def _floor(work: str, table: Any, labels: Any, repeats: int) -> Row:
    numpy = adapter("numpy")
    ours, theirs = race(
        lambda: PACCalibrator().fit(table, labels), lambda: numpy.top_label(table), repeats=repeats
    )
    bar = Bar(1.0, "ratio", "no slower: at most 1")
    return Row(work, ours, "s", f"{named('numpy')} argmax, take_along_axis", theirs, bar)

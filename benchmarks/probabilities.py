"""How fast class probabilities are counted, and what memory that takes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import inputs
from benchmarks.peers import adapter, named
from benchmarks.processes import cost_of
from benchmarks.row import Bar, Row
from benchmarks.timing import race
from pacbound import PACCalibrator

_OURS = "from pacbound import PACCalibrator; fit = PACCalibrator().fit"
_NETCAL = "from benchmarks.peers.netcal import fit_histogram_binning as fit"
_EXTRA = """
import resource, sys
import numpy as np
{load}
unit = 1 if sys.platform == "darwin" else 1024
table, labels = np.load({table!r}), np.load({labels!r})
fit(table[:100].copy(), labels[:100].copy())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fit(table, labels)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit)
"""


def rows() -> Iterator[Row]:
    yield from _few_classes()
    yield _many_classes()


def _few_classes() -> Iterator[Row]:
    table, labels = inputs.probabilities(1_000_000, 10)
    netcal, peer = adapter("netcal"), f"{named('netcal')} HistogramBinning(20).fit"
    ours, theirs = race(
        lambda: PACCalibrator().fit(table, labels),
        netcal and (lambda: netcal.fit_histogram_binning(table, labels)),
        repeats=5,
    )
    work = "count 1,000,000 × 10 float32 probabilities (PACCalibrator.fit)"
    yield Row(work, ours, "s", peer, theirs, Bar(1 / 8, "ratio", "8 × faster: at most 0.125"))
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: str(Path(folder) / f"{name}.npy") for name in ("table", "labels")}
        np.save(paths["table"], table)
        np.save(paths["labels"], labels)
        extra = _extra(_OURS, paths)
        theirs = _extra(_NETCAL, paths) if netcal else None
    work = "the same: rise of the peak resident memory, in a process of its own"
    yield Row(work, extra, "bytes", peer, theirs, Bar(20e6, "ours", "under 20 MB"))


def _extra(load: str, paths: dict[str, str]) -> float:
    return float(cost_of(_EXTRA.format(load=load, **paths)).printed.split()[-1])


def _many_classes() -> Row:
    table, labels = inputs.probabilities(50_000, 1_000)
    numpy = adapter("numpy")
    ours, theirs = race(lambda: PACCalibrator().fit(table, labels), lambda: numpy.top_label(table), repeats=150)
    peer = f"{named('numpy')} argmax, take_along_axis"
    work = "count 50,000 × 1,000 float32 probabilities"
    return Row(work, ours, "s", peer, theirs, Bar(1.0, "ratio", "no slower: at most 1"))

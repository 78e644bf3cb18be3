"""How fast a cascade is certified by the exact test, on the predictions that ship with the package (n = 20,000)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.row import Bar, Row
from benchmarks.timing import best_of
from pacbound import CascadeCertificate, Tally
from pacbound.data import fashion_mnist

_XI, _DELTA = 0.02, 1e-3


def rows() -> Iterator[Row]:
    table = fashion_mnist()
    predictions = np.column_stack([table.prediction_fast, table.prediction_slow])
    tally = Tally.from_arrays(confidences=table.confidence_fast, predictions=predictions, labels=table.label)
    # The region of the test is kept for each (n, xi, delta): another delta each time makes every run a cold one.
    deltas = (_DELTA * (1.0 - 1e-9 * step) for step in range(1, 100))
    cold = best_of(lambda: CascadeCertificate.from_tally(tally, xi=_XI, delta=next(deltas)), repeats=3)
    work = f"certify a cascade, n = {tally.rows:,}, exact"
    yield Row(f"{work}, cold", cold, "s", bar=Bar(2.5, "ours", "about 2 s"))
    CascadeCertificate.from_tally(tally, xi=_XI, delta=_DELTA)
    cached = best_of(lambda: CascadeCertificate.from_tally(tally, xi=_XI, delta=_DELTA), repeats=50)
    yield Row(f"{work}, region cached", cached, "s", bar=Bar(20e-3, "ours", "under 20 ms"))

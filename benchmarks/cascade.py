"""How fast a cascade is certified: by the exact test on the predictions that ship with the package,
and from a million rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.processes import cost_of
from benchmarks.row import Bar, Row
from benchmarks.sizes import Sizes
from benchmarks.timing import best_of
from pacbound import Tally, certify_cascade
from pacbound.data import fashion_mnist

_XI, _DELTA = 0.02, 1e-3

_FROM_ARRAYS = """
import time
import numpy as np
from pacbound import certify_cascade
rng, n = np.random.default_rng(0), {rows}
confidence, labels = rng.beta(5, 1, size=n), rng.integers(0, 10, size=n)
fast = np.where(rng.random(n) < confidence, labels, (labels + 1) % 10)
slow = np.where(rng.random(n) < 0.9, labels, (labels + 2) % 10)
predictions = np.column_stack([fast, slow])
started = time.perf_counter()
certify_cascade(confidence, predictions, labels, xi=0.02, delta=1e-3)
print(time.perf_counter() - started)
"""


def rows(sizes: Sizes) -> Iterator[Row]:
    table = fashion_mnist()
    predictions = np.column_stack([table.prediction_fast, table.prediction_slow])
    tally = Tally.count(
        "cascade", confidence=table.confidence_fast, prediction=predictions, label=table.label
    )
    # The region of the test is kept for each (n, xi, delta): another delta each time makes every
    # run a cold one.
    deltas = (_DELTA * (1.0 - 1e-9 * step) for step in range(1, 100))
    cold = best_of(
        lambda: certify_cascade(data=tally, xi=_XI, delta=next(deltas)),
        repeats=min(3, sizes.rounds),
    )
    work = f"certify a cascade, n = {tally.rows:,}, exact"
    yield Row(f"{work}, cold", cold, "s", bar=Bar(2.5, "ours", "about 2 s"))
    certify_cascade(data=tally, xi=_XI, delta=_DELTA)
    cached = best_of(
        lambda: certify_cascade(data=tally, xi=_XI, delta=_DELTA),
        repeats=min(50, sizes.rounds),
    )
    yield Row(f"{work}, region cached", cached, "s", bar=Bar(20e-3, "ours", "under 20 ms"))
    runs = [cost_of(_FROM_ARRAYS.format(rows=sizes.rows)) for _ in range(min(3, sizes.rounds))]
    whole = min(runs, key=lambda cost: float(cost.printed))
    work = f"certify a cascade from arrays, n = {sizes.rows:,}, by the pair"
    yield Row(work, float(whole.printed), "s", bar=Bar(2.0, "ours", "under 2 s"))
    yield Row(
        f"{work}: peak memory of the process",
        whole.peak,
        "bytes",
        bar=Bar(500e6, "ours", "under 500 MB"),
    )

"""How long a monitor takes over a million labels, on either clock."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.row import Bar, Row
from benchmarks.sizes import Sizes
from benchmarks.timing import best_of
from pacbound import Monitor, certify_shield

_XI = 0.02


def rows(sizes: Sizes) -> Iterator[Row]:
    certificate = certify_shield([0.1] * 500, [False] * 500, xi=_XI, delta=0.01)
    losses = np.random.default_rng(0).random(sizes.rows) < 0.6 * _XI
    for words in ("ever", "one per 1e6 labels"):

        def work(words: str = words) -> None:
            Monitor(certificate, delta=1e-3, false_alarms=words).update(losses)

        yield Row(
            f"monitor {sizes.rows:,} labels, false alarms: {words}",
            best_of(work, repeats=min(3, sizes.rounds)),
            "s",
            bar=Bar(2.0, "ours", "under 2 s"),
        )

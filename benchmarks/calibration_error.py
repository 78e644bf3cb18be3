"""How fast the expected calibration error of 1,000,000 rows is, and that all packages mean the same number by it."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import inputs
from benchmarks.peers import adapter, named
from benchmarks.row import Row
from benchmarks.timing import race
from pacbound import expected_calibration_error

_PEERS = ("netcal", "torchmetrics")
_TOLERANCE = 1e-6


def rows() -> Iterator[Row]:
    # No score lies on an edge, where the peers go wrong.
    confidence, correct = inputs.confidences(1_000_000)
    value = expected_calibration_error(confidence, correct)
    for name in _PEERS:
        peer = adapter(name)
        if peer is not None and abs(peer.calibration_error(confidence, correct) - value) > _TOLERANCE:
            raise RuntimeError(
                f"{name} computes another number here: {peer.calibration_error(confidence, correct)}, not {value}."
            )
        ours, theirs = race(
            lambda: expected_calibration_error(confidence, correct),
            peer and (lambda peer=peer: peer.calibration_error(confidence, correct)),
            repeats=40,
        )
        yield Row("ECE of 1,000,000 rows, 20 bins", ours, "s", named(name), theirs)

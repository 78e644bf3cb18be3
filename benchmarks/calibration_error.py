"""How fast the expected calibration error is, of probabilities and of confidences, and that all
mean the same number by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import inputs
from benchmarks.peers import adapter, named, offering
from benchmarks.row import Row
from benchmarks.sizes import Sizes
from benchmarks.timing import race
from pacbound.calibration import expected_calibration_error
from pacbound.tally import top_label

# torchmetrics adds up in float32.
_TOLERANCE = 5e-6

Error = Callable[[Any, Any], float]


def rows(sizes: Sizes) -> Iterator[Row]:
    # No score lies on an edge, where the peers go wrong.
    for count, classes in ((sizes.rows, 10), sizes.wide):
        work = f"ECE of {count:,} × {classes:,} float32 probabilities, 20 bins"
        table = inputs.probabilities(count, classes)
        for name, theirs in offering("top_label_error"):
            yield _compared(work, _top_label_error, name, theirs, table, min(10, sizes.rounds))
    work = f"ECE of {sizes.rows:,} confidences, 20 bins"
    data = inputs.confidences(sizes.rows)
    for name, theirs in offering("calibration_error"):
        yield _compared(work, expected_calibration_error, name, theirs, data, min(40, sizes.rounds))
    yield from _smooth(work, data, min(5, sizes.rounds))


def _top_label_error(probabilities: Any, labels: Any) -> float:
    confidence, prediction = top_label(probabilities)
    return expected_calibration_error(confidence, prediction == labels)


def _compared(
    work: str, own: Error, name: str, other: Error, data: tuple[Any, Any], repeats: int
) -> Row:
    mine, yours = own(*data), other(*data)
    if abs(mine - yours) > _TOLERANCE:
        raise RuntimeError(f"{name} computes another number here: {yours}, not {mine}.")
    ours, theirs = race(lambda: own(*data), lambda: other(*data), repeats=repeats)
    label = f"{work.partition(' float32')[0].removesuffix(', 20 bins')}: {name}"
    return Row(work, ours, "s", named(name), theirs, label=label)


def _smooth(work: str, data: tuple[Any, Any], repeats: int) -> Iterator[Row]:
    relplot = adapter("relplot")
    if relplot is not None:
        ours, theirs = race(
            lambda: expected_calibration_error(*data),
            lambda: relplot.smooth_calibration_error(*data),
            repeats=repeats,
        )
        yield Row(work, ours, "s", f"{named('relplot')} smECE (a smooth one)", theirs)

"""Counting class probabilities for calibration: the top label, within each predicted class, or
every label.

The probabilities are walked over once, in blocks that stay in the processor's cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pacbound.errors import InvalidValueError
from pacbound.tally.arrays import CORRECT
from pacbound.tally.columns import Array, as_classes, checked_scores, same_length
from pacbound.tally.dense import DenseCounts
from pacbound.tally.fingerprint import Fingerprint
from pacbound.tally.grids import Bins
from pacbound.tally.tally import Scope, Tally
from pacbound.tally.toplabel import as_probabilities, top_blocks


def count_probabilities(
    probabilities: Any, labels: Any, *, grid: Bins, scope: Scope = "top", unseen: bool = False
) -> Tally:
    """Right and wrong labels per bin of confidence; `labels` are the true classes' columns.

    With `unseen`, the label -1 is a class without a column: whatever was predicted for such a row
    is wrong.
    """
    table = as_probabilities(probabilities, "probabilities")
    classes = as_classes(labels, table.shape[1], "labels", unseen=unseen)
    same_length(probabilities=table, labels=classes)
    if scope == "all-labels":
        return _count_every_label(table, classes, grid)
    if scope in ("top", "per-class"):
        return _count_top_label(table, classes, grid, scope)
    raise InvalidValueError(
        f"scope={scope!r} is not one of a table of probabilities: expected 'top', 'per-class' or "
        "'all-labels'."
    )


def _count_top_label(table: Array, classes: Array, grid: Bins, scope: Scope) -> Tally:
    counts, seal = DenseCounts(grid, 2), Fingerprint()
    for start, top, label in top_blocks(table):
        scores = checked_scores(top, "probabilities", start=start)
        right = (label == classes[start : start + len(label)]).view(np.uint8)
        counts.add(grid.cells(scores), right, label if scope == "per-class" else 0)
        seal.update(scores, right)
    cells, seen = counts.sparse(grouped=scope == "per-class")
    groups = tuple(map(str, range(table.shape[1]))) if scope == "per-class" else ()
    return Tally("calibration", grid, CORRECT, len(table), cells, seen, scope, groups, seal.names())


def _count_every_label(table: Array, classes: Array, grid: Bins) -> Tally:
    counts, seal = DenseCounts(grid, 2), Fingerprint()
    columns = np.arange(table.shape[1])
    rows = max(1, 2**17 // table.shape[1])
    for start in range(0, len(table), rows):
        block = table[start : start + rows]
        scores = checked_scores(block.ravel(), "probabilities.ravel()", start=start * len(columns))
        right = (classes[start : start + rows, None] == columns).ravel().view(np.uint8)
        counts.add(grid.cells(scores), right, np.tile(columns, len(block)))
        seal.update(scores, right)
    cells, seen = counts.sparse(grouped=True)
    return Tally(
        "calibration",
        grid,
        CORRECT,
        len(table),
        cells,
        seen,
        "all-labels",
        tuple(map(str, columns.tolist())),
        seal.names(),
    )

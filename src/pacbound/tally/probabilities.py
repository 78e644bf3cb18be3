"""Counting class probabilities for calibration: of the top label, per predicted class, or every
label.

The probabilities are walked over once, in blocks that stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import is_one_of
from pacbound.tally.columns import Array, as_classes, checked_scores, same_length, same_rows
from pacbound.tally.count import Counting
from pacbound.tally.grids import Bins
from pacbound.tally.questions import CALIBRATION, Judged, Scope
from pacbound.tally.tally import Tally
from pacbound.tally.toplabel import as_probabilities, top_blocks


def count_probabilities(
    probabilities: Any, labels: Any, *, grid: Bins, scope: Scope = "top", unseen: bool = False
) -> Tally:
    """Right and wrong labels per bin of confidence; `labels` are the true classes' columns.

    With `unseen`, the label -1 is a class without a column: whatever was predicted for such a row
    is wrong.
    """
    same_rows(probabilities=probabilities, labels=labels)
    table = as_probabilities(probabilities, "probabilities")
    classes = as_classes(labels, table.shape[1], "labels", unseen=unseen)
    same_length(probabilities=table, labels=classes)
    if not is_one_of(scope, ("top", "per-class", "all-labels")):
        raise InvalidValueError(
            f"scope={scope!r} is not one of a table of probabilities: expected 'top', 'per-class' "
            "or 'all-labels'."
        )
    question = replace(CALIBRATION, grid=grid, scope=scope)
    counting = Counting(question)
    judged = _every_label if scope == "all-labels" else _top_label
    for block in judged(table, classes, grid, scope):
        counting.add(block)
    groups = () if scope == "top" else tuple(map(str, range(table.shape[1])))
    return Tally.of(question, counting.result(), groups=groups)


def _top_label(table: Array, classes: Array, grid: Bins, scope: Scope) -> Iterator[Judged]:
    groups = tuple(map(str, range(table.shape[1]))) if scope == "per-class" else ()
    for start, top, label in top_blocks(table):
        scores = checked_scores(top, "probabilities", start=start)
        right = (label == classes[start : start + len(label)]).view(np.uint8)
        yield Judged(
            len(label),
            grid.cells(scores)[:, None],
            right,
            groups,
            label.astype(np.int64) if groups else None,
            told=(scores, right),
        )


def _every_label(
    table: Array,
    classes: Array,
    grid: Bins,
    scope: Scope,  # noqa: ARG001
) -> Iterator[Judged]:
    columns = np.arange(table.shape[1])
    groups, rows = tuple(map(str, columns.tolist())), max(1, 2**17 // table.shape[1])
    for start in range(0, len(table), rows):
        block = table[start : start + rows]
        scores = checked_scores(block.ravel(), "probabilities.ravel()", start=start * len(columns))
        right = (classes[start : start + rows, None] == columns).ravel().view(np.uint8)
        yield Judged(
            len(block),
            grid.cells(scores)[:, None],
            right,
            groups,
            np.tile(columns, len(block)),
            told=(scores, right),
        )

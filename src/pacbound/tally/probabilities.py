"""Class probabilities: the top label of every row, and counting them for calibration, of the top
label, per predicted class, or every label.

The probabilities are walked over once, in blocks that stay in the processor's cache.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import is_one_of
from pacbound.tally.columns import (
    Array,
    Rows,
    Slot,
    as_array,
    as_classes,
    checked_scores,
    numeric,
    same_length,
    same_rows,
)
from pacbound.tally.count import Counting
from pacbound.tally.draws import Candidates, Draw, Drawn
from pacbound.tally.grids import Bins
from pacbound.tally.questions import CALIBRATION, Judged, Question, Scope
from pacbound.tally.tally import Tally

# Up to here a transposed block and a running maximum beat argmax, which is slow along short rows.
FEW_CLASSES = 64

# What is wrong with a table of one column: its softmax, and its top label, are the same whatever
# the score is.
ONE_SCORE = "one score per row: for a sigmoid pass [1 - p, p]"

_ROWS = 8192
# Of many classes. Looking at all of them takes as long as reading them from memory, which two
# threads do faster than one, while this one counts.
_WIDE_ROWS, _THREADS = 4096, 2
_LOOKED_AT = 2**16


def top_label(probabilities: Any) -> tuple[Array, NDArray[np.intp]]:
    """The highest probability of each row and the class that has it; of equal ones the first.

    Rows need not sum to one, so one-versus-rest scores will do. It works in blocks: the only extra
    memory is that of the result.

    Parameters
    ----------
    probabilities
        (n, classes) numbers, in anything that NumPy can read.

    Returns
    -------
    confidence : ndarray of shape (n,)
        The highest probability of each row, in the dtype of the probabilities. One that is above 1
        by float32 rounding is 1.
    prediction : ndarray of shape (n,)
        The column that has it.

    Raises
    ------
    InvalidValueError
        If the table does not have two dimensions and at least two classes; if there is a NaN
        anywhere, a highest probability is not in [0, 1], or the numbers look like logits.
    InvalidTypeError
        If they are not numbers.

    Examples
    --------
    >>> confidence, prediction = top_label([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0]])
    >>> confidence.tolist(), prediction.tolist()
    ([0.7, 0.5], [1, 0])
    """
    table = as_probabilities(probabilities, "probabilities")
    confidence = np.empty(len(table), dtype=table.dtype)
    prediction = np.empty(len(table), dtype=np.intp)
    for start, top, label in top_blocks(table):
        checked_scores(top, "confidence", start=start)
        confidence[start : start + len(top)] = top
        prediction[start : start + len(top)] = label
    return np.minimum(confidence, 1, out=confidence), prediction


def as_probabilities(values: Any, name: str) -> Array:
    """`values` as an (n, classes) table of floats that do not look like logits."""
    table = numeric(as_array(values, name), name)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidValueError(
            f"{name} has shape {table.shape}: expected (rows, classes). For one confidence per row "
            "use calibrate."
        )
    if table.shape[1] == 1:
        raise InvalidValueError(
            f"{name} has shape {table.shape}, {ONE_SCORE}, a column for each class."
        )
    if table.dtype.kind != "f":
        table = table.astype(np.float64)
    # A negative entry below the top one does no harm to the guarantee; it is looked for as the mark
    # of logits.
    head = table[: max(1, _LOOKED_AT // table.shape[1])]
    if head.size and head.min() < 0:
        row, column = np.argwhere(head < 0)[0]
        raise InvalidValueError(
            f"{name}[{row}, {column}] is {head[row, column]}: expected probabilities from 0 to 1. "
            "These look like logits or log-probabilities: pass softmax outputs."
        )
    return table


def top_blocks(table: Array) -> Iterator[tuple[int, Array, Array]]:
    """Blocks of (first row, confidence, prediction); not yet checked, NaN in a row makes its
    confidence NaN.
    """
    if table.shape[1] > FEW_CLASSES:
        yield from _wide_blocks(table)
        return
    for start in range(0, len(table), _ROWS):
        yield (start, *_running_maximum(table[start : start + _ROWS]))


def _wide_blocks(table: Array) -> Iterator[tuple[int, Array, Array]]:
    """The blocks in order, a few of them ahead of whoever takes them."""
    ahead = deque[tuple[int, Future[tuple[Array, Array]]]]()
    with ThreadPoolExecutor(_THREADS) as pool:
        for start in range(0, len(table), _WIDE_ROWS):
            block = table[start : start + _WIDE_ROWS]
            ahead.append((start, pool.submit(_gathered_maximum, block)))
            if len(ahead) > _THREADS:
                first, found = ahead.popleft()
                yield (first, *found.result())
        for first, found in ahead:
            yield (first, *found.result())


def _running_maximum(block: Array) -> tuple[Array, Array]:
    columns = np.ascontiguousarray(block.T)
    highest = columns[0].copy()
    label = np.zeros(len(highest), dtype=np.uint8)
    for index in range(1, len(columns)):
        # Classes are visited in rising order, so the latest improvement is the largest index: a
        # maximum, not a branch.
        better = (columns[index] > highest).view(np.uint8)
        np.maximum(label, better * np.uint8(index), out=label)
        np.maximum(highest, columns[index], out=highest)
    return highest, label


def _gathered_maximum(block: Array) -> tuple[Array, Array]:
    label = block.argmax(axis=1)
    if not block.flags.c_contiguous:
        return block[np.arange(len(block)), label], label
    # Twice as fast as two index arrays. Every place is legal, and "clip" does not look for one that
    # is not.
    return block.ravel().take(label + np.arange(0, block.size, block.shape[1]), mode="clip"), label


def count_probabilities(
    probabilities: Any,
    labels: Any,
    *,
    grid: Bins,
    scope: Scope = "top",
    unseen: bool = False,
    clusters: Any = None,
    seed: int | None = None,
) -> Tally:
    """Right and wrong labels per bin of confidence; `labels` are the true classes' columns.

    With `unseen`, the label -1 is a class without a column: whatever was predicted for such a row
    is wrong. With `clusters`, one row of each is drawn in every bin, by a `seed` if one is passed.
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
    counting, sources = Counting(question), None
    if clusters is not None:
        places, counting.drawn, sources = _one_of_each(clusters, seed, question, table)
        table, classes = table[places], classes[places]
    judged = _every_label if scope == "all-labels" else _top_label
    for block in judged(table, classes, grid, scope):
        counting.add(block)
    groups = () if scope == "top" else tuple(map(str, range(table.shape[1])))
    return Tally.of(question, counting.result(sources), groups=groups)


def _one_of_each(
    clusters: Any, seed: int | None, question: Question, table: Array
) -> tuple[Array, Drawn, list[str] | None]:
    """The places of one row of each cluster, in each bin and predicted class, what they were drawn
    from, and a name for it.
    """
    slots = {"confidence": Slot("number", "probabilities"), "groups": Slot("name", "prediction")}
    given = {"clusters": clusters, **({} if seed is None else {"seed": seed})}
    draw = Draw.of(given, replace(question, slots=slots), columns=False)
    confidence, prediction = top_label(table)
    columns = {"clusters": clusters, "confidence": confidence, "groups": prediction}
    by = Rows.of_arrays(draw.slots, {name: columns[name] for name in draw.slots})
    rows = len(table)
    same_length(probabilities=range(rows), clusters=by.columns["clusters"])
    candidates = Candidates(draw, str)
    candidates.take(by)
    places, drawn = candidates.chosen()
    return places, drawn, [candidates.name] if rows else None


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

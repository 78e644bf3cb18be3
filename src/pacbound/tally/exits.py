"""Counting a cascade: what answering early does to each row, against the slow model.

Only rows on which predictions differ need a label. For M models the cell is joint over the M - 1
exits and the outcome is joint too, because the walk judges the whole cascade.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.columns import (
    Array,
    as_array,
    checked_scores,
    is_missing,
    numeric,
    same_length,
)
from pacbound.tally.dense import DenseCounts
from pacbound.tally.fingerprint import Fingerprint
from pacbound.tally.grids import DyadicGrid
from pacbound.tally.sparse import tabulated
from pacbound.tally.tally import Integers, Tally

EXIT_OUTCOMES = ("agree", "only_fast", "only_slow", "neither")
"""The exit's answer is the slow model's; alone right; alone wrong; or different to no effect."""

_AGREE, _ONLY_FAST, _ONLY_SLOW, _NEITHER = range(4)
_TWO_MODELS = DyadicGrid(16)
_MORE_MODELS = DyadicGrid(10)
_MOST_EXITS = 5
"""Joint outcomes are 4 to the power of the exits; beyond this their table outgrows the data."""

_TEXT = "UT"
_NUMBERS = "biuf"
_LARGEST_FLOAT_CLASS = 2**53


def count_cascade(confidences: Any, predictions: Any, labels: Any, *, first_row: int = 0) -> Tally:
    """Count (n, M-1) confidences, (n, M) predictions and (n,) labels; a label may be missing where
    all predictions agree.

    `first_row` is where these rows begin in a longer table, for the message if one of them is bad.
    """
    exits = numeric(as_array(confidences, "confidences"), "confidences")
    exits = exits[:, None] if exits.ndim == 1 else exits
    answers = _answers(predictions)
    if exits.ndim != 2 or exits.shape[1] == 0 or answers.shape[1] != exits.shape[1] + 1:
        raise InvalidValueError(
            f"confidences of shape {exits.shape} and predictions of shape {answers.shape} are no "
            "cascade: expected (n, M-1) confidences, one for each exit, and (n, M) predictions, "
            "the slow model's last."
        )
    grid, names = exit_layout(exits.shape[1])
    truth, known = _labels(labels)
    same_length(confidences=exits, predictions=answers, labels=truth)
    outcome = _outcomes(answers, truth, known, first_row)
    scores = np.column_stack(
        [
            checked_scores(column, f"confidences[:, {m}]", start=first_row)
            for m, column in enumerate(exits.T)
        ]
    )
    cells, counts = _tabulate(
        grid, np.column_stack([grid.cells(column) for column in scores.T]), outcome, len(names)
    )
    seal = Fingerprint()
    seal.update(scores.ravel(), outcome.astype(np.uint16))
    return Tally("cascade", grid, names, len(scores), cells, counts, sources=seal.names())


def exit_layout(exits: int) -> tuple[DyadicGrid, tuple[str, ...]]:
    """The grid that the scores of so many exits are counted on, and the names of their joint
    outcomes.
    """
    if exits > _MOST_EXITS:
        raise InvalidValueError(
            f"{exits + 1} models are too many to be counted jointly: expected at most "
            f"{_MOST_EXITS + 1}."
        )
    names = tuple("|".join(parts) for parts in product(EXIT_OUTCOMES, repeat=exits))
    return (_TWO_MODELS if exits == 1 else _MORE_MODELS), names


def _answers(predictions: Any) -> Array:
    array = as_array(_with_gaps(predictions), "predictions")
    if array.ndim != 2:
        raise InvalidValueError(
            f"predictions has shape {array.shape}: expected (n, M), a column per model, the slow "
            "one last."
        )
    if array.dtype.kind not in "biu" + _TEXT and not (
        array.dtype.kind == "f" and np.isfinite(array).all()
    ):
        raise InvalidTypeError(
            f"predictions has dtype {array.dtype} or missing values: expected class indices or "
            "names."
        )
    _require_classes(array.ravel(), "predictions")
    return array


def _labels(labels: Any) -> tuple[Array, NDArray[np.bool_]]:
    """The labels, and which of them are known."""
    masked = (
        np.ma.getmaskarray(labels)
        if isinstance(labels, np.ma.MaskedArray)
        else np.zeros((), dtype=bool)
    )
    plain = labels.data if isinstance(labels, np.ma.MaskedArray) else _with_gaps(labels)
    column = np.asarray(plain.detach() if hasattr(plain, "detach") else plain)
    if column.ndim != 1:
        raise InvalidValueError(f"labels has shape {column.shape}: expected one label per row.")
    known = ~masked & np.ones(len(column), dtype=bool)
    if column.dtype.kind == "f":
        known &= ~np.isnan(column)
    elif column.dtype == object:
        known &= np.array([not is_missing(value) for value in column], dtype=bool)
        filled = np.array(column[known].tolist()) if known.any() else np.zeros(0)
        column = np.zeros(len(column), dtype=filled.dtype)
        column[known] = filled
    _require_classes(column[known], "labels")
    return column, known


def _with_gaps(values: Any) -> Any:
    """Lists of text as objects: NumPy would write a missing value among them as the word "nan", a
    class like any other.
    """
    if not isinstance(values, (list, tuple)):
        return values
    objects = np.array(values, dtype=object)
    return objects if any(isinstance(value, str) for value in objects.flat) else values


def _require_classes(values: Array, name: str) -> None:
    """Refuse what no class is named by: compared with others, it would be wrong on both sides and
    count as no loss at all.
    """
    if values.dtype.kind not in _NUMBERS + _TEXT:
        raise InvalidTypeError(f"{name} has dtype {values.dtype}: expected class indices or names.")
    if values.dtype.kind != "f" or not values.size:
        return
    odd = np.flatnonzero((values != np.floor(values)) | (np.abs(values) >= _LARGEST_FLOAT_CLASS))
    if odd.size:
        raise InvalidValueError(
            f"{name} holds {values[odd[0]]}, which is no class: expected whole numbers below "
            "2**53, or integers, or names."
        )


def _outcomes(answers: Array, truth: Array, known: NDArray[np.bool_], first_row: int) -> Integers:
    if known.any() and (answers.dtype.kind in _TEXT) != (truth.dtype.kind in _TEXT):
        raise InvalidTypeError(
            f"predictions are {answers.dtype} and labels {truth.dtype}, which are never equal: "
            "name classes one way."
        )
    slow = answers[:, -1]
    unlabelled = np.flatnonzero(~known & (answers[:, :-1] != slow[:, None]).any(axis=1))
    if unlabelled.size:
        rows = ", ".join(map(str, (unlabelled[:5] + first_row).tolist()))
        raise InvalidValueError(
            f"{unlabelled.size} rows have no label although predictions differ (first rows: "
            f"{rows}): label them. Dropping them, or labelling only some, would void the "
            "guarantee."
        )
    joint = np.zeros(len(answers), dtype=np.int64)
    slow_right = slow == truth
    for fast in answers[:, :-1].T:
        fast_right = fast == truth
        single = np.select(
            [fast == slow, fast_right & ~slow_right, slow_right & ~fast_right],
            [_AGREE, _ONLY_FAST, _ONLY_SLOW],
            _NEITHER,
        )
        joint = joint * len(EXIT_OUTCOMES) + single
    return joint


def _tabulate(
    grid: DyadicGrid, cells: Integers, outcome: Integers, n_outcomes: int
) -> tuple[Integers, Integers]:
    if cells.shape[1] == 1:
        dense = DenseCounts(grid, n_outcomes)
        dense.add(cells[:, 0], outcome)
        return dense.sparse(grouped=False)
    return tabulated(cells, outcome, np.ones(len(cells), dtype=np.int64), n_outcomes)

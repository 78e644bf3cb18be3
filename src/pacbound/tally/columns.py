"""Taking in columns of scores, flags and labels, from whatever holds them.

Anything with `__array__` or DLPack comes in without a copy where its memory allows. What cannot be
a score, a flag or a label raises, naming the column, the first bad value and its row, and the
remedy. Nothing is rounded, dropped or guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import is_missing
from pacbound.stats.arguments import truth_value

Array = NDArray[Any]
Floats = NDArray[np.float64]

# How far above 1 a float32 softmax may land; such a score counts as 1.
ROUNDING = 1e-6


def as_array(values: Any, name: str) -> Array:
    """`values` as a NumPy array that shares their memory where it can."""
    if isinstance(values, np.ma.MaskedArray):
        masked = int(np.ma.getmaskarray(values).sum())
        if masked:
            raise InvalidValueError(
                f"{name} has {masked} masked values: drop those rows or fill them."
            )
        values = values.data
    if hasattr(values, "detach"):
        values = values.detach()
    try:
        array = (
            np.from_dlpack(values)
            if not hasattr(values, "__array__") and hasattr(values, "__dlpack__")
            else np.asarray(values)
        )
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise InvalidTypeError(
            f"{name} is a {type(values).__name__} that NumPy cannot read ({error}). "
            "Move it to host memory as float32 first: values.float().cpu() in torch."
        ) from None
    return _from_objects(array, name) if array.dtype == object else array


def as_column(values: Any, name: str) -> Array:
    """`values` as a one-dimensional array; a single column of a table counts as one."""
    array = as_array(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        hint = (
            " For class probabilities use PACCalibrator, or top_label first."
            if array.ndim == 2
            else ""
        )
        raise InvalidValueError(
            f"{name} has shape {array.shape}: expected one value per row.{hint}"
        )
    return array


def as_score_column(values: Any, name: str) -> Array:
    """`values` as a column of a numeric type, not yet checked value by value."""
    return numeric(as_column(values, name), name)


def numeric(array: Array, name: str) -> Array:
    """`array`, if its dtype can hold scores."""
    if array.dtype.kind not in "fiu":
        raise InvalidTypeError(
            f"{name} has dtype {array.dtype}, which does not hold scores: expected floats from 0 "
            "to 1. Cast with .astype('float64') if the values are numbers."
        )
    return array


def as_scores(values: Any, name: str, *, lost: bool = False) -> Floats:
    """`values` as checked float64 scores in [0, 1]; with `lost`, -inf is one too."""
    return checked_scores(as_score_column(values, name), name, lost=lost)


def checked_scores(
    block: Array, name: str, *, start: int = 0, lost: bool = False, whole: Array | None = None
) -> Floats:
    """A block of scores as float64, in [0, 1].

    `start` is the row of its first value and `whole` the column that it is a part of, for the
    message.
    """
    scores = block.astype(np.float64)
    if not scores.size:
        return scores
    lowest, highest = scores.min(), scores.max()
    if lowest >= 0 and highest <= 1:
        return scores
    legal = _legal(scores, lost=lost)
    if not legal.all():
        where = int(np.flatnonzero(~legal)[0])
        bad = ~legal if whole is None else ~_legal(whole.astype(np.float64), lost=lost)
        raise InvalidValueError(
            f"{name}[{start + where}] is {scores[where]} ({int(bad.sum())} such values): expected "
            f"scores from 0 to 1. {score_hint(scores[where], lost=lost)}"
        )
    return np.minimum(scores, 1.0)


def _legal(scores: Floats, *, lost: bool) -> NDArray[np.bool_]:
    legal: NDArray[np.bool_] = (scores >= 0) & (scores <= 1 + ROUNDING)
    return legal | (scores == -np.inf) if lost else legal


def as_flags(values: Any, name: str, *, start: int = 0) -> NDArray[np.bool_]:
    """`values` as booleans: bool, or numbers that are all 0 or 1."""
    array = as_column(values, name)
    if array.dtype == bool:
        # A mask of other bytes viewed as bool holds True as 2 or 255, and these bytes are counted.
        return np.asarray(array != 0)
    if array.dtype.kind not in "fiu":
        raise InvalidTypeError(
            f"{name} has dtype {array.dtype}: expected booleans, or numbers that are 0 or 1."
        )
    flags: NDArray[np.bool_] = array == 1
    legal = flags | (array == 0)
    if not legal.all():
        row = int(np.flatnonzero(~legal)[0])
        raise InvalidValueError(
            f"{name}[{start + row}] is {array[row]}: expected True or False, or 0 or 1. For "
            "predictions pass predictions == labels."
        )
    return flags


def as_classes(values: Any, n_classes: int, name: str, *, unseen: bool = False) -> Array:
    """`values` as integer class indices below `n_classes`; with `unseen`, -1 is a class that is
    none of them.
    """
    array = as_column(values, name)
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.floor(array)).all():
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidTypeError(
            f"{name} has dtype {array.dtype}: expected class indices 0 to {n_classes - 1}, the "
            "column of each class. For class names use PACClassifier, or pass the position of "
            "each name."
        )
    least = -1 if truth_value(unseen, "unseen") else 0
    if array.size and (array.min() < least or array.max() >= n_classes):
        row = int(np.flatnonzero((array < least) | (array >= n_classes))[0])
        other = ", or -1 for none of them" if unseen else ""
        raise InvalidValueError(
            f"{name}[{row}] is {array[row]}: expected a class index from 0 to "
            f"{n_classes - 1}{other}."
        )
    return array


def as_names(values: Any, name: str, *, start: int = 0) -> Array:
    """`values` as a column of integers or strings that can be compared for equality."""
    array = as_column(values, name)
    if array.dtype.kind == "T":
        array = _from_objects(array.astype(object), name)
    if array.dtype == bool:
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        # Floats from 2**53 on do not tell integers apart.
        whole = (np.abs(array) < 2.0**53) & (array == np.floor(array))
        if not whole.all():
            row = int(np.flatnonzero(~whole)[0])
            raise InvalidValueError(
                f"{name}[{start + row}] is {array[row]}: expected an integer or a string. Name the "
                "missing ones."
            )
        return array.astype(np.int64)
    if array.dtype.kind not in "iuU":
        raise InvalidTypeError(f"{name} has dtype {array.dtype}: expected integers or strings.")
    return array


def require_whole_text(texts: Iterable[str], name: str) -> None:
    """Refuse half a character, which documents cannot hold: text that was decoded wrongly."""
    for text in texts:
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise InvalidValueError(
                f"{name} holds {text!a}, half a character: expected whole text. Decode it again, "
                "or rename it."
            )


def same_length(**columns: Any) -> int:
    """The common number of rows, or an error that says how many each column has."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InvalidValueError(f"Rows do not match: {listed}. Pass one value per row in each.")
    return next(iter(lengths.values()))


def same_rows(**columns: Any) -> None:
    """Refuse columns of pandas whose indexes say that a place is not the same row in each.

    Rows are matched by their place. Two columns that hold the same index in another order would
    meet the wrong rows. So would two that both name their rows, and name others. An index that
    counts from 0 names nothing: predictions of a model often come with one.
    """
    indexes = {
        name: values.index
        for name, values in _flattened(columns)
        if hasattr(getattr(values, "index", None), "equals")
    }
    for (one, left), (other, right) in combinations(indexes.items(), 2):
        if len(left) != len(right) or left.equals(right):
            continue
        apart = left.symmetric_difference(right, sort=False)
        if not len(apart):
            said = "hold the same index in another order"
        elif not _counts_from_0(left) and not _counts_from_0(right):
            said = "hold different indexes"
        else:
            continue
        raise InvalidValueError(
            f"{one} and {other} {said}, and rows are matched by their place: the first rows are "
            f"{left[0]!r} and {right[0]!r}. Bring them into one order, {other} = "
            f"{other}.loc[{one}.index], or pass .to_numpy() of each if their places do match."
        )


def same_order(rows: Any, values: Any, name: str) -> None:
    """Refuse a column of pandas for `rows` whose index holds these very numbers in another order:
    values are matched with rows by their place.
    """
    index: Any = getattr(values, "index", None)
    wanted = np.asarray(rows)
    if not hasattr(index, "equals") or len(index) != wanted.size or not wanted.size:
        return
    found = np.asarray(index)
    if found.dtype.kind not in "iu" or np.array_equal(found, wanted):
        return
    if np.array_equal(np.sort(found), np.sort(wanted)):
        raise InvalidValueError(
            f"{name} holds the numbers of the rows in its index, in another order, and they are "
            f"matched by their place: the first are {found[0]} and {wanted[0]}. Pass "
            f"{name}.loc[rows], or .to_numpy() of it if the places do match."
        )


def _flattened(columns: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Columns by name; those of a mapping, such as groups that overlap, each by its own."""
    for name, values in columns.items():
        if isinstance(values, Mapping):
            yield from ((f"{name}[{key!r}]", part) for key, part in values.items())
        else:
            yield name, values


def _counts_from_0(index: Any) -> bool:
    return index.dtype.kind in "iu" and bool((np.asarray(index) == np.arange(len(index))).all())


def as_numbers_with_gaps(values: Any, name: str) -> Array:
    """`values` as a column of numbers of any size, with NaN where one is missing or masked."""
    if isinstance(values, np.ma.MaskedArray):
        filled = np.ma.getdata(values).astype(np.float64)
        return np.where(np.ma.getmaskarray(values), np.nan, filled)
    if isinstance(values, (list, tuple)) or getattr(values, "dtype", None) == np.dtype(object):
        values = [np.nan if is_missing(value) else value for value in values]
    return as_score_column(values, name)


def score_hint(value: float, *, lost: bool = False) -> str:
    """What to do about a value that is not a score."""
    if isnan(value) and lost:
        return (
            "Drop no rollout: one that was lost is unsafe with score -inf, and np.fmax takes a "
            "maximum past NaN."
        )
    if isnan(value):
        return (
            "Mend them, or leave out every row without a score, whatever its label: to drop rows "
            "by their outcome voids the guarantee."
        )
    if value < 0:
        return "These look like log-probabilities or logits: pass softmax outputs."
    return (
        "These look like logits or percentages: pass softmax outputs, or divide by 100 (for "
        "tables: scale=100, --scale 100)."
    )


def _from_objects(array: Array, name: str) -> Array:
    """An object column holds what Python holds: take it only if that is plainly numbers, or plainly
    text.
    """
    flat = array.ravel().tolist()
    missing = [row for row, value in enumerate(flat) if is_missing(value)]
    if missing:
        raise InvalidValueError(
            f"{name} has {len(missing)} missing values, the first in row {missing[0]}: drop or "
            "fill them."
        )
    if all(isinstance(value, (bool, np.bool_)) for value in flat):
        return np.array(flat, dtype=bool).reshape(array.shape)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in flat):
        return np.array(flat).reshape(array.shape)
    if all(isinstance(value, str) for value in flat):
        return np.array(flat, dtype=np.str_).reshape(array.shape)
    kinds = sorted({type(value).__name__ for value in flat})
    raise InvalidTypeError(
        f"{name} mixes or holds {', '.join(kinds)}: expected one plain type, numbers or strings."
    )

"""Columns of scores, flags and labels, from whatever holds them, and the rows that they make up.

Anything with `__array__` or DLPack comes in without a copy where its memory allows. What cannot be
a score, a flag or a label raises, naming the column, the first bad value and its row, and the
remedy. Nothing is rounded, dropped or guessed. `Rows` hold columns by what a question needs them
for: arrays that the user passed, or a batch that a source delivered.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from math import isnan
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.sources.batches import Batch, ColumnKind, Wanted
from pacbound.sources.notation import FALSE, TRUE, shown, unscaled
from pacbound.sources.values import (
    Values,
    cut_name,
    grade_hint,
    is_missing,
    values_of,
    which_class,
)
from pacbound.stats.arguments import truth_value

if TYPE_CHECKING:
    from pacbound.tally.classes import PositiveClass, Vocabulary

# What a column stands for; truth values that may be missing are read by their distinct values.
Holds = ColumnKind | Literal["flag or nothing"]
Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# How the names of arrays begin. They tell these very columns, not which rows they are of: another
# model gives other columns for the same rows, and may give equal ones.
ARRAY = "array:"

# How the slots of graded outcomes begin.
QUALITY: Final = "quality"

# How text says that there is no value.
_NOTHING: Final = ("", "na", "nan", "none", "null")

# What stands for a truth value that is missing.
NO_FLAG: Final = 2

# What to do about values that are missing.
_FILL: Final = (
    "fill them in; a rollout that was lost is unsafe. To drop rows because a value is missing "
    "voids the guarantee, unless that has nothing to do with their outcome."
)

# How far above 1 a float32 softmax may land; such a score counts as 1.
ROUNDING = 1e-6

# Above 1 by no more than this a score is a probability all the same: fastText gives 1.00001.
_NEARLY_ONE = 1e-4

# Rows in a block of many.
BLOCK = 2**20

T = TypeVar("T")


def as_array(values: Any, name: str) -> Array:
    """`values` as a NumPy array that shares their memory where it can."""
    refuse_spark_column(values, name)
    if isinstance(values, np.ma.MaskedArray):
        masked = int(np.ma.getmaskarray(values).sum())
        if masked:
            raise InvalidValueError(f"{name} has {masked} masked values: {_FILL}")
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


def refuse_spark_column(values: Any, name: str) -> None:
    """Refuse a column of Spark, which has every attribute that it is asked for, and no values."""
    if type(values).__module__.startswith("pyspark."):
        raise InvalidTypeError(
            f"{name} is a {type(values).__name__} of Spark, whose rows are on its executors: name "
            "the column beside data=frame, or collect it: frame.select(...).toPandas()."
        )


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
            f"scores from 0 to 1. {score_hint(_worst(scores, where), lost=lost)}"
        )
    return np.minimum(scores, 1.0)


def _legal(scores: Floats, *, lost: bool) -> NDArray[np.bool_]:
    legal: NDArray[np.bool_] = (scores >= 0) & (scores <= 1 + ROUNDING)
    return legal | (scores == -np.inf) if lost else legal


def _worst(scores: Floats, where: int) -> float:
    """The value that says most about scores, of which that at `where` is none."""
    return float(np.nanmax(scores) if scores[where] > 1 else scores[where])


def as_flags(values: Any, name: str, *, start: int = 0) -> NDArray[np.bool_]:
    """`values` as booleans: bool, or numbers that are all 0 or 1."""
    array = as_column(values, name)
    if array.dtype == bool:
        # A mask of other bytes viewed as bool holds True as 2 or 255, and these bytes are counted.
        return np.asarray(array != 0)
    if array.dtype.kind not in "fiu":
        is_text = array.dtype.kind in "UT" and array.size
        hint = f" {which_class(np.unique(array.astype(str)).tolist())}" if is_text else ""
        raise InvalidTypeError(
            f"{name} has dtype {array.dtype}: expected booleans, or numbers that are 0 or 1.{hint}"
        )
    flags: NDArray[np.bool_] = array == 1
    legal = flags | (array == 0)
    if not legal.all():
        row = int(np.flatnonzero(~legal)[0])
        hint = grade_hint(array[row]) or f" {which_class(np.unique(array).tolist())}"
        raise InvalidValueError(
            f"{name}[{start + row}] is {array[row]}: expected True or False, or 0 or 1. For "
            f"predictions pass predictions == labels.{hint}"
        )
    return flags


def flags_with_gaps(values: Values, name: str, *, start: int = 0) -> Integers:
    """Truth values as 0 and 1, and `NO_FLAG` where one is missing."""
    nothing = dict.fromkeys(_NOTHING, NO_FLAG)
    known = {**dict.fromkeys(FALSE, 0), **dict.fromkeys(TRUE, 1), **nothing}
    # Only text in a file that has no types stands for a truth value, and text of nothing for none.
    codes = [
        -1
        if values.typed and isinstance(value, str) and value.strip()
        else known.get(str(value).strip().lower(), -1)
        for value in values.distinct
    ]
    # Values that are missing have the place -1.
    flags = np.array([*codes, NO_FLAG], dtype=np.int64)[values.places]
    bad = np.flatnonzero(flags < 0)
    if bad.size:
        raise InvalidValueError(
            f"{name}[{start + bad[0]}] is {values.distinct[values.places[bad[0]]]!r} ({bad.size} "
            "such values): expected true or false, 1 or 0, or nothing where the outcome is missing."
        )
    return flags


def as_classes(values: Any, n_classes: int, name: str, *, unseen: bool = False) -> Array:
    """`values` as integer class indices below `n_classes`; with `unseen`, -1 stands for any
    other class.
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
    if isinstance(values, (list, tuple)):
        refuse_cut_names(values, name)
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


def refuse_cut_names(names: Iterable[Any], where: str) -> None:
    """Refuse a name that ends in NUL: arrays of text drop it, and would take two names for one."""
    for name in names:
        if isinstance(name, str) and name.endswith("\0"):
            raise cut_name(where, name)


def require_whole_text(texts: Iterable[str], name: str) -> None:
    """Refuse half a character, which documents cannot hold: text that was decoded wrongly."""
    for text in texts:
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise InvalidValueError(
                f"{name} holds {text!a}, half a character: expected whole text. Decode it again, "
                "or rename it."
            )


def ask_about_spaces(names: Iterable[str], what: str) -> None:
    """Say where names differ in spaces only, and count as several."""
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(name.strip(), name)
        if other != name:
            warnings.warn(
                f"{what} holds {other!r} and {name!r}, which count as two. If the spaces mean "
                "nothing, take them out.",
                stacklevel=2,
            )
            return


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
    for name, values in _flattened(columns):
        refuse_spark_column(values, name)
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
    if value <= 1 + _NEARLY_ONE:
        return "These are probabilities above 1 by rounding: clip to 1, np.minimum(score, 1)."
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
            f"{name} has {len(missing)} missing values, the first in row {missing[0]}: {_FILL}"
        )
    if all(isinstance(value, (bool, np.bool_)) for value in flat):
        return np.array(flat, dtype=bool).reshape(array.shape)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in flat):
        return np.array(flat).reshape(array.shape)
    if all(isinstance(value, str) for value in flat):
        refuse_cut_names(flat, name)
        return np.array(flat, dtype=np.str_).reshape(array.shape)
    kinds = sorted({type(value).__name__ for value in flat})
    raise InvalidTypeError(
        f"{name} mixes or holds {', '.join(kinds)}: expected one plain type, numbers or strings."
    )


@dataclass(frozen=True)
class Slot:
    """A column that a question asks for.

    Attributes
    ----------
    kind : str
        What it holds: "number", "number or nothing", "flag", "flag or nothing", "class" or "name".
    name : str
        What it is called where it comes from, for messages and for reading it.
    scale : float or None
        For scores: what a score of 1 is written as, if not as 1.
    positive : PositiveClass or None
        For truth values: the class that counts, if the column holds classes.
    constant : float or None
        For numbers: what every row has, if there is no such column.

    Examples
    --------
    >>> Slot("number", "percent", scale=100.0).shown
    'percent / 100'
    """

    kind: Holds
    name: str
    scale: float | None = None
    positive: PositiveClass | None = None
    constant: float | None = None

    @property
    def read_as(self) -> ColumnKind:
        """What a source delivers it as."""
        if self.positive is not None or self.kind == "flag or nothing":
            return "class"
        return self.kind

    @property
    def shown(self) -> str:
        """What its values are called in messages."""
        return self.name if self.scale is None else shown(self.name, self.scale)


def scaled(slots: Mapping[str, Slot], scale: float | None) -> dict[str, Slot]:
    """The slots of a question, whose numbers are all scores, except qualities, which have a scale
    of their own; a score of 1 is written as `scale`.
    """
    return {
        key: replace(slot, scale=scale)
        if slot.kind in ("number", "number or nothing") and not key.startswith(QUALITY)
        else slot
        for key, slot in slots.items()
    }


@dataclass(frozen=True)
class Rows:
    """The columns of some rows by slot; `start` is where they begin in a longer table."""

    slots: Mapping[str, Slot]
    columns: Mapping[str, Any]
    start: int = 0
    # What these rows are a part of, if it is at hand: a message then counts all bad values.
    whole: Rows | None = None

    @classmethod
    def of_arrays(cls, slots: Mapping[str, Slot], arrays: Mapping[str, Any]) -> Rows:
        """The rows of whole columns that the user passed."""
        there = {key: _taken_in(arrays[key], slot) for key, slot in stored(slots).items()}
        rows = len(next(iter(there.values()), ()))
        return cls(
            slots, {key: _constant(slot, rows, there.get(key)) for key, slot in slots.items()}
        )

    @classmethod
    def of_batch(cls, slots: Mapping[str, Slot], batch: Batch) -> Rows:
        """The rows of a batch that a source delivered."""
        return cls(
            slots,
            {
                key: _constant(slot, batch.rows, None)
                if slot.constant is not None
                else _of_batch(batch, slot)
                for key, slot in slots.items()
            },
            batch.start,
        )

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def part(self, start: int, stop: int) -> Rows:
        """Some of the rows."""
        rows = slice(start, stop)
        parts = {
            key: column.part(rows) if isinstance(column, Values) else column[rows]
            for key, column in self.columns.items()
        }
        return Rows(self.slots, parts, self.start + start, self.whole or self)

    def at(self, places: Integers) -> Rows:
        """The rows at some places, in this order."""
        chosen = {
            key: column.at(places) if isinstance(column, Values) else column[places]
            for key, column in self.columns.items()
        }
        return Rows(self.slots, chosen, self.start)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """The rows of all parts, one after the other; none of them may hold classes."""
        columns = {
            key: np.concatenate([part.columns[key] for part in parts]) for key in parts[0].slots
        }
        return cls(parts[0].slots, columns, parts[0].start)

    def name(self, slot: str) -> str:
        """What a column is called where it comes from, and how it was scaled."""
        return self.slots[slot].shown

    def scores(self, slot: str, *, lost: bool = False) -> Floats:
        """Scores in [0, 1]; with `lost`, -inf is one too."""
        column = None if self.whole is None else self.whole.columns[slot]
        return checked_scores(
            self.columns[slot], self.name(slot), start=self.start, lost=lost, whole=column
        )

    def numbers(self, slot: str) -> Array:
        """Numbers of any size, NaN where one is missing."""
        return np.asarray(self.columns[slot])

    def flags(self, slot: str) -> NDArray[np.bool_]:
        """Truth values."""
        return np.asarray(self.columns[slot])

    def classes(self, slot: str, vocabulary: Vocabulary) -> Integers:
        """The number of each row's class, -1 where it is missing."""
        return vocabulary.codes(self.columns[slot], self.name(slot), self.start)

    def refuse_missing(self, slot: str, missing: NDArray[np.bool_], remedy: str) -> None:
        """Refuse the rows of which a value is missing."""
        places = np.flatnonzero(missing)
        if places.size:
            raise InvalidValueError(
                f"{self.name(slot)}[{self.start + places[0]}] is missing ({places.size} such "
                f"rows): {remedy}."
            )

    def groups(self, slot: str) -> tuple[tuple[str, ...], Integers]:
        """The names of the groups, and the place of each row's group among them."""
        found, places = np.unique(self.columns[slot], return_inverse=True)
        return tuple(map(str, found.tolist())), places.astype(np.int64)


def blocks(rows: int, size: int | None = None) -> Iterator[slice]:
    """All rows, so many at a time that what is computed of them takes little memory."""
    step = size or BLOCK
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def read_in_blocks(
    slots: Mapping[str, Slot], arrays: Mapping[str, Any], read: Callable[[Iterable[Rows]], T]
) -> T:
    """What `read` makes of the rows of arrays, in blocks where these are plain numbers and many.

    What goes wrong there is looked for again in all rows at once, so that it is said of all.
    """
    columns = arrays.values()
    if all(isinstance(each, np.ndarray) and each.dtype.kind in "biuf" for each in columns):
        lengths = {each.shape[:1] for each in columns}
        if len(lengths) == 1 and min(lengths) > (BLOCK,):
            with suppress(PacboundError):
                return read(_in_blocks(slots, arrays, *min(lengths)))
    return read([Rows.of_arrays(slots, arrays)])


def _in_blocks(slots: Mapping[str, Slot], arrays: Mapping[str, Any], rows: int) -> Iterator[Rows]:
    for part in blocks(rows):
        of_part = {key: column[part] for key, column in arrays.items()}
        yield replace(Rows.of_arrays(slots, of_part), start=part.start)


def wanted(slots: Mapping[str, Slot]) -> dict[str, Wanted]:
    """What is wanted of files, for these slots."""
    return {key: Wanted(slot.name, slot.read_as) for key, slot in stored(slots).items()}


def stored(slots: Mapping[str, Slot]) -> dict[str, Slot]:
    """The slots that are columns: some numbers are the same in every row, and stand nowhere."""
    return {key: slot for key, slot in slots.items() if slot.constant is None}


def _constant(slot: Slot, rows: int, column: Any) -> Any:
    """The column, or what every row has in its place."""
    return column if slot.constant is None else np.full(rows, slot.constant)


def batch_scores(batch: Batch, column: str, scale: float | None = None) -> Floats:
    """A column of a batch as checked scores; `scale` is what a score of 1 is written as."""
    numbers = unscaled(numeric(batch.numbers(column), column), scale)
    return checked_scores(numbers, shown(column, scale), start=batch.start)


def _taken_in(values: Any, slot: Slot) -> Any:
    match slot.kind:
        case "number":
            scores = as_score_column(values, slot.name)
            return scores if slot.scale is None else unscaled(scores, slot.scale)
        case "number or nothing":
            return unscaled(as_numbers_with_gaps(values, slot.name), slot.scale)
        case "flag":
            if slot.positive is not None:
                return slot.positive.flags(values_of(values, slot.name), slot.name)
            return as_flags(values, slot.name)
        case "flag or nothing":
            return flags_with_gaps(values_of(values, slot.name), slot.name)
        case "class":
            return values_of(values, slot.name)
        case "name":
            return as_names(values, slot.name)


def _of_batch(batch: Batch, slot: Slot) -> Any:
    match slot.kind:
        case "number":
            numbers = numeric(batch.numbers(slot.name), slot.name)
            return unscaled(_one_column(numbers, slot.name), slot.scale)
        case "number or nothing":
            numbers = numeric(batch.numbers(slot.name, missing=True), slot.name)
            return unscaled(_one_column(numbers, slot.name), slot.scale)
        case "flag":
            if slot.positive is not None:
                return slot.positive.flags(batch.values(slot.name), slot.name, batch.start)
            return as_flags(batch.flags(slot.name), slot.name, start=batch.start)
        case "flag or nothing":
            return flags_with_gaps(batch.values(slot.name), slot.name, start=batch.start)
        case "class":
            return batch.values(slot.name)
        case "name":
            return as_names(batch.names(slot.name), slot.name, start=batch.start)


def _one_column(array: Array, name: str) -> Array:
    if array.ndim != 1:
        raise InvalidValueError(f"{name} has shape {array.shape}: expected one value per row.")
    return array


def only_known(given: Mapping[str, Any], known: Mapping[str, bool], what: str) -> dict[str, Any]:
    """What was given, without Nones, if every name is known and none that is needed is missing."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

    passed = {name: value for name, value in given.items() if value is not None}
    strange = next((name for name in passed if name not in known), None)
    if strange is not None:
        close = get_close_matches(strange, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InvalidTypeError(f"{what} has no {strange!r}: expected {', '.join(known)}.{hint}")
    absent = [name for name, needed in known.items() if needed and name not in passed]
    if absent:
        raise InvalidTypeError(f"{what} needs {absent[0]!r}: expected {', '.join(known)}.")
    return passed

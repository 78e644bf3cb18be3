"""Some rows as arrays, their columns by what a question needs them for.

The columns come from arrays that the user passed, or from a batch that a source delivered. A value
that its column cannot hold raises, with the name of the column and the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.sources.batches import Batch, ColumnKind
from pacbound.sources.notation import shown, unscaled
from pacbound.sources.values import Values, values_of
from pacbound.tally.classes import Vocabulary
from pacbound.tally.columns import (
    Array,
    Floats,
    as_flags,
    as_names,
    as_numbers_with_gaps,
    as_score_column,
    checked_scores,
    numeric,
)

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Slot:
    """A column that a question asks for.

    Attributes
    ----------
    kind : str
        What it holds: "number", "number or nothing", "flag", "class" or "name".
    name : str
        What it is called where it comes from, for messages and for reading it.
    scale : float or None
        For scores: what a score of 1 is written as, if not as 1.

    Examples
    --------
    >>> Slot("number", "percent", scale=100.0).shown
    'percent / 100'
    """

    kind: ColumnKind
    name: str
    scale: float | None = None

    @property
    def shown(self) -> str:
        """What its values are called in messages."""
        return self.name if self.scale is None else shown(self.name, self.scale)


def scaled(slots: Mapping[str, Slot], scale: float | None) -> dict[str, Slot]:
    """The slots of a question, whose numbers are all scores; a score of 1 is written as `scale`."""
    return {
        key: replace(slot, scale=scale) if slot.kind in ("number", "number or nothing") else slot
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
        return cls(slots, {key: _taken_in(arrays[key], slot) for key, slot in slots.items()})

    @classmethod
    def of_batch(cls, slots: Mapping[str, Slot], batch: Batch) -> Rows:
        """The rows of a batch that a source delivered."""
        return cls(
            slots,
            {key: _of_batch(batch, slot) for key, slot in slots.items()},
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

    def groups(self, slot: str) -> tuple[tuple[str, ...], Integers]:
        """The names of the groups, and the place of each row's group among them."""
        found, places = np.unique(self.columns[slot], return_inverse=True)
        return tuple(map(str, found.tolist())), places.astype(np.int64)


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
            return as_flags(values, slot.name)
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
            return as_flags(batch.flags(slot.name), slot.name, start=batch.start)
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


_ENGINES: Final = frozenset(
    ["_duckdb", "duckdb", "narwhals", "pandas", "polars", "py4j", "pyarrow", "pyspark"]
)


@contextmanager
def reading_frame() -> Iterator[None]:
    """Turn what an engine raises about the user's frame into an error that says so."""
    try:
        yield
    except PacboundError:
        raise
    except Exception as error:
        if not (_is_of_an_engine(error) or isinstance(error, (OSError, UnicodeError))):
            raise
        said = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        raise InvalidValueError(
            f"The frame cannot be read: {said.strip().rstrip('.')} ({type(error).__name__}). "
            "Collect it by itself to see where this comes from."
        ) from error


def _is_of_an_engine(error: Exception) -> bool:
    # A class of an engine's own may derive from one of its own, or be one of Python's beside it.
    return any(kind.__module__.split(".")[0] in _ENGINES for kind in type(error).__mro__)

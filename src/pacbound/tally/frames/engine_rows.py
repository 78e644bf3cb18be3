"""Rows that stay in their engine: what a question asks of them, as expressions and as counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import inf, isinf
from typing import Any, Final

import narwhals as nw
import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.sources.values import is_missing
from pacbound.tally.classes import ClassRule, Evidence
from pacbound.tally.frames.answer_columns import AnswerColumns
from pacbound.tally.frames.cell_keys import LOST, cell_key, cells_of, check_scores
from pacbound.tally.frames.counting import KeyCounts, counted
from pacbound.tally.frames.flags import Flag
from pacbound.tally.frames.opening import (
    Frame,
    is_number,
    number,
    one_where_whole,
    open_frame,
    typed,
    unscaled,
)
from pacbound.tally.grids import Bins, DyadicGrid
from pacbound.tally.rows import Integers, Slot

_OF_FINAL: Final = -10.0
"""Added to the key of a final score that is not a score."""

_SWAPPED: Final = -20.0
_FRACTION: Final = inf
"""What stands for every fraction, so that a column of scores does not make as many groups as it has
rows."""


class EngineRows:
    """The columns of a frame by slot, which they are called by where the frame is `keyed`.

    Rows of files can be `read_again`, so that something may be tried first. A frame that the user
    passed may be a stream that can be read only once.
    """

    def __init__(
        self,
        native: Any,
        slots: Mapping[str, Slot],
        rule: ClassRule,
        *,
        keyed: bool = False,
        read_again: bool = False,
    ) -> None:
        self._slots = slots
        self._columns = {key: key if keyed else slot.name for key, slot in slots.items()}
        self._rule = rule
        self.read_again = read_again
        self._native = native
        self.frame = open_frame(native, self._columns.values())

    def name(self, slot: str) -> str:
        """What the column of a slot is called where it comes from, and how it was scaled."""
        return self._slots[slot].shown

    def count(self, keys: Mapping[str, nw.Expr]) -> KeyCounts:
        """How many rows have each combination of the keys."""
        return counted(self.frame, keys)

    def number(self, slot: str) -> nw.Expr:
        """A column of numbers as float64, of any size."""
        return unscaled(number(self.frame, self._columns[slot]), self._slots[slot].scale)

    def plain_number(self, slot: str) -> nw.Expr:
        """The same for `count_plain`, which compares nothing."""
        return number(self._as_it_is, self._columns[slot])

    def count_plain(self, keys: Mapping[str, nw.Expr]) -> KeyCounts:
        """The counts of keys that no comparison is in, so that NaN may stay what it is."""
        return counted(self._as_it_is, keys)

    @cached_property
    def _as_it_is(self) -> Frame:
        return open_frame(self._native, self._columns.values(), keep_nan=True)

    def cell_key(self, slot: str, grid: Bins | DyadicGrid, *, lost: bool = False) -> nw.Expr:
        """The key of a score's cell, or of what is wrong with the score."""
        return cell_key(self.number(slot), grid, lost=lost)

    def cells(self, counts: KeyCounts, key: str, slot: str, grid: Bins | DyadicGrid) -> Integers:
        """The cells that were counted under a key, if all are cells of scores."""
        check_scores(counts, key, self.frame, self.number(slot), self.name(slot))
        return cells_of(counts.numbers(key), grid)

    def keyed_cells(self, counts: KeyCounts, key: str, grid: Bins | DyadicGrid) -> Integers:
        """The cells that were counted under a key that is known to hold cells only."""
        return cells_of(counts.numbers(key), grid)

    def danger_key(
        self,
        scores: str,
        grid: Bins | DyadicGrid,
        unsafe: Flag,
        final_scores: str | None,
        *,
        lost: bool,
    ) -> nw.Expr:
        """The key of a score or, if there are final scores, of these where the rollout is unsafe.

        The key says whether it is the one or the other that is wrong; with `lost`, -inf is a score.
        """
        running = self.number(scores)
        key = cell_key(running, grid, lost=lost)
        if final_scores is None:
            return key
        final = self.number(final_scores)
        last = cell_key(final, grid, lost=True)
        # What is a little above 1 counts as 1, so nothing is above a maximum of 1.
        above = (final > running) & (running < 1.0)
        swapped = nw.when(above).then(nw.lit(_SWAPPED)).otherwise(last)
        of_unsafe = nw.when(last < 0.0).then(last + _OF_FINAL).otherwise(swapped)
        legal = nw.when(unsafe.is_true).then(of_unsafe).otherwise(key)
        return nw.when(key < 0.0).then(key).otherwise(legal)

    def check_dangers(
        self,
        counts: KeyCounts,
        key: str,
        scores: str,
        outcomes: Integers,
        unsafe: Flag,
        final_scores: str | None,
        *,
        lost: bool,
    ) -> None:
        """Refuse what is not a score, and rollouts whose danger contradicts their outcome."""
        name, keys = self.name(scores), counts.numbers(key)
        saved = counts.rows_where((keys == LOST) & (outcomes == 0))
        if saved:
            raise InvalidValueError(
                f"{name} holds -inf, lost at its start, but {unsafe.name} is False there ({saved} "
                "such): a lost rollout is unsafe."
            )
        check_scores(counts, key, self.frame, self.number(scores), name, lost=lost)
        if final_scores is None:
            return
        last = self.name(final_scores)
        looked_at = nw.when(unsafe.is_true).then(self.number(final_scores))
        check_scores(counts, key, self.frame, looked_at, last, lost=True, shift=_OF_FINAL)
        swapped = counts.rows_where(keys == _SWAPPED)
        if swapped:
            raise InvalidValueError(
                f"{last} is above its running maximum {name} ({swapped} such values): expected "
                f"{name} to be the maximum up to and including the first un-recoverable state. "
                "Were they swapped?"
            )

    def flag(self, slot: str) -> Flag:
        """A column of truth values."""
        return Flag(self.frame, self._columns[slot], self.name(slot))

    def answers(
        self, predictions: Sequence[str], labels: str | None, evidence: Evidence
    ) -> AnswerColumns:
        """Columns of predictions against a column of labels, if there is one."""
        named = {self.name(slot): self._columns[slot] for slot in predictions}
        if len(named) < len(predictions):
            # One column may stand for several models.
            named = {f"{self.name(slot)} ({slot})": self._columns[slot] for slot in predictions}
        truth = None if labels is None else (self.name(labels), self._columns[labels])
        try:
            return AnswerColumns(self.frame, named, truth, self._rule, evidence)
        except PacboundError:
            raise
        except Exception as error:  # an engine's own
            if self.read_again:
                raise
            said = str(error).strip().splitlines()[0].rstrip(".")
            raise InvalidValueError(
                f"The frame cannot be read ({said}). Classes are looked at more than once, and a "
                "stream can be read only once: load it first."
            ) from None

    def group_key(self, slot: str) -> nw.Expr:
        """A column of groups as it is, except that every fraction becomes one value."""
        dtype, column = typed(self.frame, self._columns[slot])
        if isinstance(dtype, (nw.Categorical, nw.Enum)):
            return column.cast(nw.String)
        if dtype.is_float():
            value = column.cast(nw.Float64)
            fraction = nw.when(is_number(value)).then(nw.lit(_FRACTION)).otherwise(value)
            return nw.when(one_where_whole(value) == 1).then(value).otherwise(fraction)
        if dtype.is_integer() or isinstance(dtype, (nw.Boolean, nw.String)):
            return column
        raise InvalidTypeError(f"{self.name(slot)} has type {dtype}: expected integers or strings.")

    def groups(self, counts: KeyCounts, key: str, slot: str) -> tuple[tuple[str, ...], Integers]:
        """The names of the groups, and the place among them of each key that was counted.

        Groups are text, as they are for arrays: 7, 7.0 and "7" are one group.
        """
        name, found = self.name(slot), counts.keys[key].tolist()
        missing = np.array([is_missing(value) for value in found], dtype=bool)
        if missing.any():
            raise InvalidValueError(
                f"{name} has {counts.rows_where(missing)} missing values (null or NaN): expected "
                "an integer or a string. Name the missing ones."
            )
        fraction = np.array(
            [isinstance(value, float) and isinf(value) for value in found], dtype=bool
        )
        if fraction.any():
            raise InvalidValueError(
                f"{name} holds {counts.rows_where(fraction)} numbers that are not whole or not "
                "below 2**53: expected an integer or a string."
            )
        texts = [value if isinstance(value, str) else str(int(value)) for value in found]
        places: dict[str, int] = {}
        codes = [places.setdefault(text, len(places)) for text in texts]
        return tuple(places), np.array(codes, dtype=np.int64)

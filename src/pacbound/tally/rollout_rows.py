"""Is a row a rollout, or one step of it?

A shield is about rollouts. In a log with a row for each step, nearly all rows are safe, and a share
of them says nothing about rollouts. Such a log ends a run with the step that is unsafe: in a column
that names runs, every value with an unsafe row has exactly one, and it is the last. Rows that stood
in random order would do so with a chance of one over the product of their numbers.

That is looked for in every column of the first `LOOKED_AT` rows, in each file by itself, in the
files themselves, and in the clusters of arrays. A shuffled log is not recognised, nor are arrays
without clusters.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError, PacboundError
from pacbound.sources.batches import Batch, TableFile
from pacbound.sources.formats.arrays import NpzFile
from pacbound.sources.values import is_missing
from pacbound.tally.columns import Rows, Slot

LOOKED_AT: Final = 100_000
# Runs that end so, and the chance that they do in random order, from which rows are steps.
_FEWEST: Final = 5
_CHANCE: Final = 1e-6
_LISTED: Final = 5
_FILES: Final = "the name of a file"

Flags = NDArray[np.bool_]


@dataclass
class _Column:
    """What was seen of one column: its values, those with an unsafe row, whether each of these has
    exactly one, as its last, and how likely that is in random order.
    """

    values: int = 0
    ended: int = 0
    log_chance: float = 0.0
    ends_last: bool = True

    def take(self, values: Sequence[Any], unsafe: Flags) -> None:
        """Take in rows whose values do not go on in the next ones."""
        distinct = dict.fromkeys(values)
        if len(distinct) == len(values):
            # A value for each row names no runs, whatever it is.
            self.values += len(values)
            self.ended += int(unsafe.sum())
            return
        numbers = dict(zip(distinct, range(len(distinct)), strict=True))
        found = np.fromiter(map(numbers.__getitem__, values), np.int64, len(values))
        known = np.array([type(v) in (int, str) or not is_missing(v) for v in numbers], dtype=bool)
        rows = np.flatnonzero(known[found])
        if not rows.size:
            return
        _, runs = np.unique(found[rows], return_inverse=True)
        sizes, crashes = np.bincount(runs), np.bincount(runs, unsafe[rows])
        last = np.zeros(len(sizes), dtype=np.int64)
        last[runs] = rows
        ended = crashes > 0
        self.values += len(sizes)
        self.ended += int(ended.sum())
        self.log_chance -= float(np.log(sizes[ended]).sum())
        self.ends_last &= bool((crashes[ended] == 1).all() and unsafe[last[ended]].all())

    @property
    def names_runs(self) -> bool:
        """Whether rows are steps of what the column names."""
        return self.ends_last and self.ended >= _FEWEST and self.log_chance < log(_CHANCE)


@dataclass
class RolloutRows:
    """Whether the rows of a table look like steps; `unsafe` is the slot of the truth values, which
    may say what passed instead, and `own` are the columns that a question reads.
    """

    unsafe: Slot
    own: frozenset[str]
    columns: dict[str, _Column] = field(default_factory=dict)
    rows: int = 0
    crashes: int = 0

    def take(self, flags: Flags, columns: Mapping[str, Sequence[Any]]) -> None:
        """Take in the first rows of a file, of a frame, or of arrays."""
        for name, values in {**columns, _FILES: [0] * len(flags)}.items():
            try:
                self.columns.setdefault(name, _Column()).take(values, flags)
            except TypeError:  # Lists and the like name nothing.
                del self.columns[name]
        self.rows += len(flags)
        self.crashes += int(flags.sum())

    @classmethod
    def of(cls, slots: Mapping[str, Slot]) -> Self:
        """Nothing seen yet of a table of rollouts of which these columns are read."""
        unsafe = slots.get("unsafe") or slots["passed"]
        return cls(unsafe, frozenset(slot.name for slot in slots.values()))

    def _crashes(self, rows: Rows) -> Flags:
        """Which rows are unsafe; one without an outcome did not pass."""
        true: Flags = np.asarray(rows.columns["unsafe"]) == 1
        return ~true if self.unsafe.kind == "flag or nothing" else true

    def take_arrays(self, columns: Mapping[str, Any]) -> None:
        """Take in the first of some columns, if the truth values are among them."""
        name = self.unsafe.name
        if name in columns:
            unsafe = {"unsafe": columns[name][:LOOKED_AT]}
            held = {key: np.asarray(column)[:LOOKED_AT].tolist() for key, column in columns.items()}
            self.take(self._crashes(Rows.of_arrays({"unsafe": self.unsafe}, unsafe)), held)

    def take_files(self, tables: Iterable[TableFile]) -> None:
        """Take in the first rows of files."""
        for table in tables:
            if self.rows < LOOKED_AT and self.unsafe.name in table.columns:
                self._take_file(table, LOOKED_AT - self.rows)

    def _take_file(self, table: TableFile, most: int) -> None:
        flags, found, rows = list[bool](), dict[str, list[Any]](), 0
        # Arrays that are no columns of this table may lie beside it.
        name = self.unsafe.name
        columns = table.alike(name) if isinstance(table, NpzFile) else table.columns
        for whole in table.batches(columns) if columns else ():
            batch = whole.where(np.arange(whole.rows) < most - rows)
            flags += self._crashes(Rows.of_batch({"unsafe": self.unsafe}, batch)).tolist()
            for name in columns:
                found.setdefault(name, []).extend(_held(batch, name))
            rows += batch.rows
            if rows >= most:
                break
        plain = {name: values for name, values in found.items() if len(values) == rows}
        self.take(np.array(flags, dtype=bool), plain)

    def refuse_steps(self) -> None:
        """Raise if rows are steps."""
        runs = next((name for name, column in self.columns.items() if column.names_runs), None)
        if runs is not None:
            raise InvalidValueError(
                f"{runs} looks like the name of a rollout, and a row like a step of one: "
                f"{self.columns[runs].ended} of its values have an unsafe row, each exactly one, "
                "as its last. Expected one row for each rollout: the highest danger up to and "
                "including its first unsafe step, and whether there is one. (Rollouts of a scene "
                "that are sorted by their outcome look so, too: pass them as they were driven.)"
            )

    def ask(self) -> None:
        """Ask what a row is, where none is unsafe and it cannot be seen."""
        alike = [
            name
            for name, column in self.columns.items()
            if name not in {*self.own, _FILES} and _FEWEST <= column.values <= self.rows / 2
        ]
        if alike and not self.crashes:
            warnings.warn(
                f"No row is unsafe, and values of {', '.join(alike[:_LISTED])} repeat: is a row a "
                "whole rollout, or a step of one? Expected one row for each rollout, with its "
                "highest danger.",
                stacklevel=2,
            )


def _held(batch: Batch, name: str) -> Sequence[Any]:
    """What a column of a batch holds; nothing if these are no plain values."""
    try:
        values = batch.values(name)
    except PacboundError:
        return ()
    held: list[Any] = values.column.tolist()
    return held

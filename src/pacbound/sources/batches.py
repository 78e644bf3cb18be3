"""What a source delivers: rows that stay in an engine as a frame, rows in batches, or either.

A source does not know what its columns are counted for. It says how they read as numbers, as truth
values, as names, or by their distinct values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from pacbound.sources.values import Values

# Called with the share of the work that is done, from 0 to 1.
Progress = Callable[[float], None]

# What reads and counts files.
Engine = Literal["duckdb", "polars", "spark"]

# What a column stands for.
ColumnKind = Literal["number", "number or nothing", "flag", "class", "name"]


# The columns that are added to a batch, by their names, and what writes the rows with both.
Added: TypeAlias = Mapping[str, NDArray[Any]]
Write: TypeAlias = Callable[[Any, Added], None]


@dataclass(frozen=True)
class Wanted:
    """A column of a table, and what it stands for where it is text.

    Attributes
    ----------
    column : str
        The name of the column.
    kind : str
        "number", "number or nothing", "flag", "class" or "name".

    Examples
    --------
    >>> Wanted("score", "number")
    Wanted(column='score', kind='number')
    """

    column: str
    kind: ColumnKind


class Batch(Protocol):
    """Some consecutive rows of a table.

    Examples
    --------
    >>> from pacbound.sources.opening import open_table
    >>> np.savez("day.npz", score=[0.9, 0.4], right=[True, False])
    >>> (batch,) = open_table("day.npz").batches()
    >>> batch.start, batch.rows, batch.numbers("score").tolist(), batch.flags("right").tolist()
    (0, 2, [0.9, 0.4], [True, False])
    """

    @property
    def start(self) -> int:
        """The row of the table that it begins with, counted from 0."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def numbers(self, name: str, *, missing: bool = False) -> NDArray[Any]:
        """A column of numbers, in any range; with `missing`, NaN where there is none."""

    def flags(self, name: str) -> NDArray[Any]:
        """A column of truth values."""

    def names(self, name: str) -> NDArray[Any]:
        """A column of names or integers, none of them missing."""

    def values(self, name: str) -> Values:
        """A column of whatever it holds, by its distinct values."""

    def where(self, chosen: NDArray[np.bool_]) -> Batch:
        """Only the chosen rows."""

    def only(self, columns: Collection[str]) -> Batch:
        """Only these columns, in the order of the table."""


class TableFile(Protocol):
    """A table in a file, read in batches of consecutive rows.

    Examples
    --------
    >>> from pacbound.sources.opening import open_table
    >>> np.savez("day.npz", score=[0.9, 0.4], right=[True, False])
    >>> table = open_table("day.npz")
    >>> list(table.columns), sum(batch.rows for batch in table.batches(["score"]))
    (['score', 'right'], 2)
    """

    path: Path

    @property
    def columns(self) -> Sequence[str]:
        """The names of its columns."""

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None
    ) -> Iterator[Batch]:
        """Its rows in order, all columns or only some."""


class CannotCountError(Exception):
    """The engine could not do what was asked of a frame. Its rows may still be read in order."""


@dataclass(frozen=True)
class Part:
    """Some of the rows.

    A `frame` has the wanted columns under their own names or, where it is `keyed`, under their
    keys. Work on it is done by `run`, which watches over it. `batches` are the same rows in order,
    each with the file that it is from.
    """

    frame: Any = None
    keyed: bool = False
    run: Callable[[Callable[[], Any]], Any] = lambda work: work()
    batches: Callable[[], Iterator[tuple[Path, Batch]]] | None = None


def require_columns(table: TableFile, names: Sequence[str]) -> None:
    """Refuse columns that the table does not have, or has twice."""
    require_among(str(table.path), list(table.columns), names, lambda: getattr(table, "hint", None))


def require_among(
    where: str, columns: Sequence[str], names: Sequence[str], hint: Callable[[], str | None]
) -> None:
    """Refuse names that are not among the columns of `where`, with what to do about it, or that are
    there twice.
    """
    for name in names:
        times = columns.count(name)
        if times != 1:
            listed = ", ".join(map(repr, columns[:20]))
            close = get_close_matches(name, columns, n=1)
            near = f"Did you mean {close[0]!r}?" if close else None
            remedy = (hint() or near) if times == 0 else None
            problem = "has no column" if times == 0 else f"has {times} columns named"
            said = f"{where} {problem} {name!r}. Its columns: {listed}."
            raise InvalidValueError(said if remedy is None else f"{said} {remedy}")


@contextmanager
def located(where: object) -> Iterator[None]:
    """For a `with` block: errors that are raised in it name the place, such as a file."""
    try:
        yield
    except (InvalidTypeError, InvalidValueError) as error:
        raise type(error)(f"{where}: {error}") from None


def require_progress(progress: Any) -> None:
    """Raise unless it can be called with the share that is done, or is None."""
    if progress is not None and not callable(progress):
        raise InvalidTypeError.of("progress", progress, "a function of the share that is done")


def part_of(progress: Progress | None, done: float, part: float) -> Progress | None:
    """The progress of a part of the work, after a share `done` of it."""
    return None if progress is None else lambda share: progress(done + part * share)


def in_order(
    tables: Sequence[TableFile], wanted: Mapping[str, Wanted], progress: Progress | None
) -> Iterator[tuple[Path, Batch]]:
    """The wanted columns of all tables in batches, one table after the other."""
    needed, share = list(dict.fromkeys(want.column for want in wanted.values())), 1 / len(tables)
    for place, table in enumerate(tables):
        for batch in table.batches(needed, progress=part_of(progress, place * share, share)):
            yield table.path, batch


def chosen_rows(places: NDArray[np.int64], start: int, rows: int) -> NDArray[np.bool_]:
    """Which of so many rows, from `start` on, are at some rising places."""
    first, last = np.searchsorted(places, [start, start + rows])
    chosen = np.zeros(rows, dtype=np.bool_)
    chosen[places[first:last] - start] = True
    return chosen


def rows_at(
    places: NDArray[np.int64],
    tables: Sequence[TableFile],
    wanted: Mapping[str, Wanted],
    progress: Progress | None,
) -> Iterator[tuple[Path, Batch]]:
    """Of the rows in order, those at some rising places, in batches that are not empty."""
    done = 0
    for path, batch in in_order(tables, wanted, progress):
        chosen = chosen_rows(places, done, batch.rows)
        done += batch.rows
        if chosen.any():
            yield path, batch.where(chosen)

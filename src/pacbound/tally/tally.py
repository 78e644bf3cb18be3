"""The tally: how often each outcome was seen in each cell of a score, in integers.

Everything a guarantee needs from the data is here, and nothing else of it. Tallies of one layout
add with `+`, exactly, in any order; the sum over parts of the data is the tally of the whole. A
tally does not know how it was counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from unicodedata import decimal

import numpy as np
from numpy.typing import NDArray

from pacbound import documents
from pacbound.documents import Json
from pacbound.errors import InvalidValueError, RepeatedSourceError
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.tally.grids import Bins, DyadicGrid

Kind = Literal["calibration", "cascade", "shield", "abstention"]
Scope = Literal["top", "groups", "overlapping-groups", "per-class", "all-labels"]
Integers = NDArray[np.int64]

FORMAT = "pacbound-tally"
LARGEST_FILE = 2**30
"""Joint tallies of several exits have up to a cell for each row, so they may be larger than
certificates."""

KINDS: tuple[Kind, ...] = ("calibration", "cascade", "shield", "abstention")
SCOPES: tuple[Scope, ...] = ("top", "groups", "overlapping-groups", "per-class", "all-labels")
OVERLAPPING: frozenset[Scope] = frozenset(["overlapping-groups", "all-labels"])


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of named outcomes per cell of a score, for one use.

    `cells` has a row for each cell that was hit, in order: the position of its group in `groups`
    first, where there are groups, then the cell of each score. `counts` has the outcomes of that
    cell. `rows` is the number of rows counted, and `sources` holds the fingerprints of where they
    came from.

    Examples
    --------
    >>> day = Tally.from_arrays(confidence=[0.91, 0.97, 0.42], correct=[True, True, False])
    >>> night = Tally.from_arrays(confidence=[0.93], correct=[False])
    >>> day + night
    Tally(calibration, 4 rows in 3 cells: 2 wrong, 2 right)
    """

    kind: Kind
    grid: Bins | DyadicGrid
    outcomes: tuple[str, ...]
    rows: int
    cells: Integers
    counts: Integers
    scope: Scope = "top"
    groups: tuple[str, ...] = ()
    sources: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def from_arrays(cls, **columns: Any) -> Tally:
        """Count arrays. The columns given say what for.

        | use | columns |
        |---|---|
        | calibration | `confidence`, `correct`; optional `n_bins=20`, `edges`, `groups` |
        | cascade | `confidences` (n, M-1), `predictions` (n, M), `labels` (n,) |
        | shield | `scores`, `unsafe`; optional `final_scores` |
        | abstention | `confidence`, `correct`, `kind="abstention"`; optional `groups` |

        Labels of a cascade may be missing where all predictions agree.

        Examples
        --------
        >>> Tally.from_arrays(scores=[0.1, 0.9, 0.8], unsafe=[False, True, True])
        Tally(shield, 3 rows in 3 cells: 1 safe, 2 unsafe)
        """
        # The ways of counting make tallies, so they import this file, not the other way round.
        from pacbound.tally.arrays import count  # noqa: PLC0415

        return count(**columns)

    @classmethod
    def from_frame(cls, frame: Any, **columns: Any) -> Tally:
        """Count a dataframe inside its own engine: pandas, Polars (eager or lazy), PyArrow, DuckDB
        relations, PySpark.

        Only counts leave the engine. The columns named say what for; `n_bins` and `edges` are as in
        `calibrate`.

        | use | columns |
        |---|---|
        | calibration | `confidence`, `correct`; optional `group`, `n_bins=20`, `edges` |
        | cascade | `confidences`, `predictions` (a list of each), `label` |
        | shield | `score`, `unsafe`; optional `final_score` |
        | abstention | as calibration without bins, and `kind="abstention"` |

        `prediction` and `label` may stand for `correct`. The labels of a cascade may be empty where
        all predictions agree.

        Rows of a frame have no fingerprint: nothing notices if they are counted twice.

        Examples
        --------
        >>> import polars
        >>> frame = polars.LazyFrame({"score": [0.91, 0.97, 0.42], "right": [True, True, False]})
        >>> Tally.from_frame(frame, confidence="score", correct="right")
        Tally(calibration, 3 rows in 3 cells: 1 wrong, 2 right)
        """
        from pacbound.tally.frames import count_frame  # noqa: PLC0415

        return count_frame(frame, **columns)

    @classmethod
    def from_files(cls, paths: Any, **columns: Any) -> Tally:
        """Count files: CSV, Parquet, JSON lines, Arrow, .npz and .npy, out of core. The columns
        named say what for.

        `paths` is a file, a glob, a folder, or several of these. In a folder partitioned as
        `day=monday`, `day` is a column.

        | use | columns |
        |---|---|
        | calibration | `confidence`, `correct`; optional `group`, `n_bins=20`, `edges` |
        | cascade | `confidences`, `predictions` (a list of each), `label` |
        | shield | `score`, `unsafe`; optional `final_score` |
        | abstention | as calibration without bins, and `kind="abstention"` |

        `prediction` and `label` may stand for `correct`. The labels of a cascade may be empty where
        all predictions agree.

        `memory_limit="500MB"` says what reading may use, and `progress` is called with the share
        that is done.

        Examples
        --------
        >>> np.savez("day.npz", score=[0.91, 0.42], right=[True, False])
        >>> Tally.from_files("day.npz", confidence="score", correct="right")
        Tally(calibration, 2 rows in 2 cells: 1 wrong, 1 right)
        """
        from pacbound.tally.files import count  # noqa: PLC0415

        return count(paths, **columns)

    @property
    def totals(self) -> dict[str, int]:
        """How often each outcome was seen."""
        return dict(
            zip(self.outcomes, self.counts.sum(axis=0, dtype=np.int64).tolist(), strict=True)
        )

    def dense(self) -> Integers:
        """The counts as (groups, cells, outcomes), zeros included; for grids of one score without
        lost rows.
        """
        table = np.zeros(
            (max(1, len(self.groups)), self.grid.n_cells, len(self.outcomes)), dtype=np.int64
        )
        group = self.cells[:, 0] if self.groups else 0
        table[group, self.cells[:, -1]] = self.counts
        return table

    def __add__(self, other: object) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        self._check_addable(other)
        groups = in_order({*self.groups, *other.groups})
        cells = np.concatenate([self._cells_among(groups), other._cells_among(groups)])
        merged, counts = merge_cells(cells, np.concatenate([self.counts, other.counts]))
        return replace(
            self,
            rows=self.rows + other.rows,
            cells=merged,
            counts=counts,
            groups=groups,
            sources=self.sources | other.sources,
        )

    def __radd__(self, other: object) -> Tally:
        # sum() starts from the integer 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def zero(self) -> Tally:
        """The tally of no rows in this layout: adding it changes nothing."""
        return replace(
            self,
            rows=0,
            cells=self.cells[:0],
            counts=self.counts[:0],
            groups=(),
            sources=frozenset(),
        )

    def __eq__(self, other: object) -> bool:
        """Whether the layout and all integers agree, wherever the rows came from."""
        if not isinstance(other, Tally):
            return NotImplemented
        return (
            self._layout() == other._layout()
            and (self.rows, self.groups) == (other.rows, other.groups)
            and np.array_equal(self.cells, other.cells)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        seen = ", ".join(f"{count:,} {name}" for name, count in self.totals.items())
        return f"Tally({self.kind}, {self.rows:,} rows in {len(self.cells):,} cells: {seen})"

    def to_dict(self) -> dict[str, Json]:
        """The tally as a document of sparse integers, with its digest."""
        body = {
            "format": FORMAT,
            "schema": 1,
            "kind": self.kind,
            "scope": self.scope,
            "grid": self.grid.to_dict(),
            "outcomes": list(self.outcomes),
            "groups": list(self.groups),
            "rows": self.rows,
            "width": self.cells.shape[1],
            "cells": self.cells.tolist(),
            "counts": self.counts.tolist(),
            "sources": sorted(self.sources),
        }
        return {**body, "digest": documents.digest(body)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Json]) -> Tally:
        """The tally that `to_dict` wrote; a `CertificateError` says what is wrong with it."""
        from pacbound.tally.consistency import tally_of_document  # noqa: PLC0415

        return tally_of_document(document)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tally to `path`, whole or not at all."""
        documents.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tally:
        """Read what `save` wrote."""
        return cls.from_dict(documents.read(path, "a pacbound tally", largest=LARGEST_FILE))

    def _layout(self) -> tuple[object, ...]:
        return (self.kind, self.scope, self.grid, self.outcomes, self.cells.shape[1])

    def _cells_among(self, groups: tuple[str, ...]) -> Integers:
        if groups == self.groups or not len(self.cells):
            return self.cells
        places = np.array([groups.index(name) for name in self.groups], dtype=np.int64)
        return np.column_stack([places[self.cells[:, 0]], self.cells[:, 1:]])

    def _check_addable(self, other: Tally) -> None:
        mine, theirs = self._layout(), other._layout()
        if mine != theirs:
            pair = next((a, b) for a, b in zip(mine, theirs, strict=True) if a != b)
            raise InvalidValueError(
                f"Tallies of different layout do not add: {pair[0]} and {pair[1]}. Count both the "
                "same way."
            )
        twice = self.sources & other.sources
        if twice:
            raise RepeatedSourceError(
                f"The same rows are in both tallies ({len(twice)} source, {min(twice)[:19]}…): "
                "counting them twice voids every guarantee. Add each part once."
            )
        if self.rows + other.rows > LARGEST_COUNT:
            raise InvalidValueError(
                f"{self.rows + other.rows} rows are more than can be counted exactly (2**53)."
            )


def in_order(groups: Iterable[str]) -> tuple[str, ...]:
    """The one order that a tally keeps its groups in: numbers by their value, then text."""
    return tuple(sorted(groups, key=_place_of_group))


def _place_of_group(name: str) -> tuple[int, int, str, str]:
    if not name.isdecimal():
        return 1, 0, "", name
    # Of two numbers the one with more digits is larger, however many more than int() reads there
    # are.
    digits = "".join(str(decimal(digit)) for digit in name).lstrip("0")
    return 0, len(digits), digits, name


def merge_cells(cells: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """Equal cells put together and in order."""
    if not len(cells):
        return cells, counts
    order = np.lexsort(cells.T[::-1])
    cells, counts = cells[order], counts[order]
    first = np.concatenate(([True], (np.diff(cells, axis=0) != 0).any(axis=1)))
    return np.ascontiguousarray(cells[first]), np.add.reduceat(
        counts, np.flatnonzero(first), axis=0
    )

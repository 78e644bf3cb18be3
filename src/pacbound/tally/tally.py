"""The tally: how often each outcome was seen in each cell of a score, in integers.

Everything a guarantee needs from the data is here, and nothing else of it. Tallies of one layout
add with `+`, exactly, in any order; the sum over parts of the data is the tally of the whole. A
tally does not know how it was counted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pacbound import documents
from pacbound.atomic_files import refuse_replacing_source
from pacbound.documents import Json
from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.tally.columns import Integers
from pacbound.tally.document import (
    FORMAT,
    LARGEST_FILE,
    drawn_to_dict,
    fields_of,
    ids_to_text,
)
from pacbound.tally.draws import Drawn, Numbers, described_way, names_stayed
from pacbound.tally.grades import Graded, graded_to_dict, require_adding
from pacbound.tally.grids import Bins, DyadicGrid
from pacbound.tally.label_matches import LabelMatches
from pacbound.tally.questions import Question, Scope, question_named
from pacbound.tally.questions.question import in_order
from pacbound.tally.table import NAMED, merge_cells

if TYPE_CHECKING:
    from pacbound.tally.count import Counted


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of named outcomes per cell of a score, for one question.

    It holds all that a guarantee needs from the data, in integers. Tallies of one layout add with
    `+`, exactly and in any order; the sum over parts of the data is the tally of the whole.
    `Tally.count` counts; all functions that certify take a tally as `data`.

    Adding a tally to another that has one of its sources raises `RepeatedSourceError`, since rows
    that count twice void every guarantee. Equal files and equal arrays are recognised. Equal rows
    in another format, in another order, or in a frame that is counted again, are not, except those
    of a cascade: they are recognised by their scores and predictions, with whatever labels, if they
    are many enough to tell and were counted as one. Rows that you name, with `source="epoch-17"`,
    are recognised by that name, whatever they are.

    Attributes
    ----------
    kind : str
        The name of the question, as `Tally.count` has it.
    grid
        How scores become cells.
    outcomes : tuple of str
        The names of the outcomes, one for each column of `counts`.
    rows : int
        The number of rows that were counted.
    cells : ndarray of int64
        A row for each cell that was hit, in order: the position of its group in `groups` first,
        where there are groups, then the cell of each score.
    counts : ndarray of int64
        How often each outcome was seen in each of these cells.
    scope : str
        What the groups are: "top" where there are none.
    groups : tuple of str
        The names of the groups.
    sources : frozenset of str
        Names what the rows came from, by its contents.
    drawn : Drawn or None
        How the rows were drawn from others: by clusters or weights. None if all rows of the
        data were counted as they are.
    matches : LabelMatches or None
        Cascade: how often labels match the slow model, by class, from which labels of other rows
        are recognised. None if there are no labels.
    ids : ndarray of uint64, str or None
        A hash of each row id, in order, if `row_ids` were passed and nothing was drawn: rows that
        another tally has, too, are recognised by it. If they were too many to leave their engine,
        their digest, and the tally adds to no other with ids.
    graded : Graded or None
        How outcomes were graded; None where they are right or wrong.
    scale : float or None
        What a score of 1 was written as in the table: 100 for percentages; None if nothing was
        said.

    Examples
    --------
    >>> day = Tally.count("calibration", [0.91, 0.97, 0.42], [True, True, False])
    >>> night = Tally.count("calibration", [0.93], [False])
    >>> day + night
    Tally(calibration, 4 rows in 3 cells: 2 wrong, 2 right)
    """

    kind: str
    grid: Bins | DyadicGrid
    outcomes: tuple[str, ...]
    rows: int
    cells: Integers
    counts: Integers
    scope: Scope = "top"
    groups: tuple[str, ...] = ()
    sources: frozenset[str] = field(default_factory=frozenset)
    drawn: Drawn | None = None
    matches: LabelMatches | None = None
    ids: Numbers | str | None = None
    graded: Graded | None = None
    scale: float | None = None

    @classmethod
    def of(cls, question: Question, counted: Counted, groups: Sequence[str] = ()) -> Tally:
        """What a question found; `groups` are all that there are, if they are known beforehand."""
        tally = cls(
            question.kind,
            question.grid,
            question.outcomes,
            counted.rows,
            counted.cells,
            counted.counts,
            question.scope,
            counted.groups,
            counted.sources,
            counted.drawn,
            counted.matches,
            counted.ids,
            counted.graded,
            counted.scale,
        )
        names = in_order({*groups, *counted.groups})
        return replace(tally, cells=tally._cells_among(names), groups=names)

    @classmethod
    def count(
        cls, question: Any, *columns: Any, data: Any = None, among: Any = None, **given: Any
    ) -> Tally:
        """Count the rows of a question: arrays or, with `data`, the columns that are named.

        Files are counted out of core, and frames inside their own engine: only counts leave it.

        Parameters
        ----------
        question
            What is counted, by its name, or as a question such as `CLAIM.question` of
            `pacbound.claims.recall`. A row brings

            - "calibration" and "abstention": `confidence`, and `correct`, or `prediction` and
              `label`, or `quality`; a calibration also takes `n_bins` and `edges`, as `calibrate`
              does
            - "cascade": `confidence` of every model but the last, `prediction` of every model,
              and `label`, which may be missing; or `quality` of every model, or `preferred`
            - "recall", also for false alarms and precision: `score`, `positive`
            - "shield", also for false alarms of rollouts: `score`, `unsafe`
            - "sets": `probability` of every label, `label`
            - "pass-rate": `passed`

            and all may have `groups`: one group per row or, except for an abstention, a mapping
            from names to truth values for each row.
        *columns
            What rows bring, in this order; or by name.
        data
            A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, a glob, a folder, or
            several of these; strings then name its columns. In a folder partitioned as
            `day=monday`, `day` is a column. None for arrays.
        among
            With `clusters`: the outcome of which one row is drawn from each cluster that has any,
            or a list of outcomes; all other rows are counted. "positive" for recall, and if left
            out; "negative" for false alarms; both for either; "all" for precision and all
            other questions: one row is then drawn before labels are looked at. For rollouts "safe"
            or "unsafe", and "all" if left out.
        **given
            What rows bring, by name; and how rows are read and drawn, see `RowOptions`.

        Returns
        -------
        Tally
            The counts. Files are recognised by their bytes if they are counted again, and so are
            arrays that have enough distinct values. Nothing notices if a frame is counted again,
            unless you name it with `source`.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a column is missing, unknown, or holds what it cannot hold; the message names the
            value, the row and the remedy.
        RepeatedSourceError
            If two files hold the same bytes.
        MissingDependencyError
            If what reads the data is not installed.

        Examples
        --------
        >>> Tally.count("shield", [0.1, 0.9, 0.8], [False, True, True])
        Tally(shield, 3 rows in 3 cells: 1 safe, 2 unsafe)
        >>> np.savez("day.npz", score=[0.91, 0.42], right=[True, False])
        >>> Tally.count("calibration", confidence="score", correct="right", data="day.npz")
        Tally(calibration, 2 rows in 2 cells: 1 wrong, 1 right)
        """
        asked = question if isinstance(question, Question) else question_named(question)
        if among is not None:
            if given.get("clusters") is None:
                raise InvalidTypeError(
                    f"among={among!r} is about clusters, and none are drawn from: pass clusters, "
                    "or leave it out."
                )
            asked = asked.drawing_among(among)
        placed = asked.by_name(columns)
        for name in placed.keys() & given.keys():
            raise InvalidTypeError(
                f"{name} was passed twice, by its place and by its name: pass it once."
            )
        passed = {**placed, **given}
        present = {name: value for name, value in passed.items() if value is not None}
        if isinstance(data, Tally):
            return _as_it_is(asked, data, present)
        for name, value in present.items():
            if isinstance(value, Tally):
                raise InvalidTypeError(
                    f"{name} is a Tally: pass it as data=, and leave {name} out."
                )
        # What reads tables is not needed to verify or to add what was counted.
        from pacbound.tally.count import count_rows  # noqa: PLC0415

        return cls.of(*count_rows(asked, present, data))

    @property
    def totals(self) -> dict[str, int]:
        """How often each outcome was seen."""
        seen = self.counts.sum(axis=0, dtype=np.int64).tolist()
        return dict(zip(self.outcomes, seen, strict=True))

    @property
    def seed(self) -> int | None:
        """The seed that rows were drawn by; None where none were."""
        return None if self.drawn is None else self.drawn.seed

    def dense(self) -> Integers:
        """The counts as (groups, cells, outcomes), zeros included, for grids of one score."""
        shape = (max(1, len(self.groups)), self.grid.n_cells, len(self.outcomes))
        table = np.zeros(shape, dtype=np.int64)
        group = self.cells[:, 0] if self.groups else 0
        table[group, self.cells[:, -1]] = self.counts
        return table

    def __add__(self, other: object) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        self._check_addable(other)
        drawn = None if self.drawn is None or other.drawn is None else self.drawn + other.drawn
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
            drawn=drawn,
            matches=_both(self.matches, other.matches),
            ids=_all_ids(self.ids, other.ids),
            scale=self.scale if self.rows else other.scale,
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
            drawn=None if self.drawn is None else self.drawn.none(),
            matches=None,
            ids=None,
        )

    def __eq__(self, other: object) -> bool:
        """Whether the layout and all counts agree, wherever the rows came from. Labels of rows on
        which all models agree count for nothing, so `matches` may differ.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        return (
            self._layout() == other._layout()
            and (self.rows, self.groups, self.drawn) == (other.rows, other.groups, other.drawn)
            and self.graded == other.graded
            and np.array_equal(self.cells, other.cells)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.graded is not None:
            return f"Tally({self.kind}, {self.rows:,} graded rows in {len(self.cells):,} cells)"
        seen = ", ".join(f"{count:,} {name}" for name, count in self.totals.items())
        return f"Tally({self.kind}, {self.rows:,} rows in {len(self.cells):,} cells: {seen})"

    def to_dict(self) -> dict[str, Json]:
        """The tally as a document of sparse integers, with its digest."""
        body = {
            "format": FORMAT,
            "schema": 1 if self.drawn is None and self.graded is None else 2,
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
            **({} if self.drawn is None else {"drawn": drawn_to_dict(self.drawn)}),
            **({} if self.matches is None else {"label_matches": self.matches.to_dict()}),
            **({} if self.ids is None else {"row_ids": ids_to_text(self.ids)}),
            **({} if self.graded is None else {"graded": graded_to_dict(self.graded)}),
            **({} if self.scale is None else {"scale": self.scale}),
        }
        return {**body, "digest": documents.digest(body)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Json]) -> Tally:
        """The tally that a document of `to_dict` describes.

        Parameters
        ----------
        document
            The parsed JSON.

        Returns
        -------
        Tally
            The same counts and layout. A tally that names no sources, such as that of a frame, is
            now named by its own digest, so that it cannot be added twice.

        Raises
        ------
        CertificateError
            If it is not a tally, was changed after it was written, or does not add up.
        """
        return cls(**fields_of(document))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tally to a file, whole or not at all.

        Parameters
        ----------
        path
            Where to write it, as JSON. A file that is there is replaced.

        Raises
        ------
        InvalidValueError
            If the file that is there is one that the tally counted.
        UnwritableFileError
            If the file cannot be written.

        Examples
        --------
        >>> day = Tally.count("calibration", [0.91, 0.42], [True, False])
        >>> day.save("day.json")
        >>> Tally.load("day.json") == day
        True
        """
        refuse_replacing_source(path, self.sources, "the tally")
        documents.write(path, self.to_dict(), read=self.from_dict, largest=LARGEST_FILE)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tally:
        """Read a tally that `save` wrote.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        Tally
            The same counts and layout. A tally that names no sources, such as that of a frame, is
            now named by its own digest, so that it cannot be added twice.

        Raises
        ------
        CertificateError
            If the file is not a tally, was changed after it was written, or does not add up.
        OSError
            If the file is not there or cannot be opened.
        """
        return cls.from_dict(documents.read(path, "a pacbound tally", largest=LARGEST_FILE))

    def _layout(self) -> tuple[object, ...]:
        return (self.kind, self.scope, self.grid, self.outcomes, self.cells.shape[1])

    def _cells_among(self, groups: tuple[str, ...]) -> Integers:
        if groups == self.groups or not len(self.cells):
            return self.cells
        places = np.array([groups.index(name) for name in self.groups], dtype=np.int64)
        return np.column_stack([places[self.cells[:, 0]], self.cells[:, 1:]])

    def _check_addable(self, other: Tally) -> None:
        require_adding(self.graded, other.graded)
        ways = [None if tally.drawn is None else tally.drawn.way for tally in (self, other)]
        if ways[0] != ways[1]:
            raise InvalidValueError(
                f"Rows that were drawn in different ways do not add: {described_way(self.drawn)} "
                f"and {described_way(other.drawn)}. Count all of them in one way, and by one seed: "
                "tallies that were counted apart have seeds of their own, unless both were passed "
                "one."
            )
        if self.scale != other.scale and self.rows and other.rows:
            scales = " and ".join(f"scale={tally.scale}" for tally in (self, other))
            raise InvalidValueError(
                f"Tallies of scores that are written differently do not add ({scales}): one of "
                "them may have been read by mistake. Write all scores one way, and count again."
            )
        mine, theirs = self._layout(), other._layout()
        if mine != theirs:
            pair = next((a, b) for a, b in zip(mine, theirs, strict=True) if a != b)
            raise InvalidValueError(
                f"Tallies of different layout do not add: {pair[0]} and {pair[1]}. Count both the "
                "same way."
            )
        twice = self.sources & other.sources
        if twice or (self is other and self.rows):
            given = sorted(name.removeprefix(NAMED) for name in twice if name.startswith(NAMED))
            which = f" ({len(twice)} source, {min(twice)[:19]}…)" if twice else ""
            which = f" (source={given[0]!r})" if given else which
            raise RepeatedSourceError(
                f"The same rows are in both tallies{which}: counting them twice voids every "
                "guarantee. Add each part once."
            )
        if self.ids is not None and other.ids is not None:
            if isinstance(self.ids, str) or isinstance(other.ids, str):
                raise names_stayed()
            again = np.intersect1d(self.ids, other.ids)
            if again.size:
                raise RepeatedSourceError(
                    f"{again.size} row ids are in both tallies: counting rows twice voids every "
                    "guarantee. Count each row once."
                )
        if self.rows + other.rows > LARGEST_COUNT:
            raise InvalidValueError(
                f"{self.rows + other.rows} rows are more than can be counted exactly (2**53)."
            )


def _all_ids(one: Numbers | str | None, other: Numbers | str | None) -> Numbers | str | None:
    if one is None or other is None or isinstance(one, str) or isinstance(other, str):
        return other if one is None else one
    return np.sort(np.concatenate([one, other]))


def _both(one: LabelMatches | None, other: LabelMatches | None) -> LabelMatches | None:
    return one + other if one is not None and other is not None else one or other


def _as_it_is(question: Any, tally: Tally, beside: Mapping[str, Any]) -> Tally:
    """A tally that was counted before, if it is one of the question."""
    for name in beside:
        raise InvalidTypeError(
            f"{name} was passed beside a Tally, which is already counted: pass one of them."
        )
    if tally.kind != question.kind:
        needed = [name for name, must in question.roles.items() if must] or list(question.roles)
        raise InvalidValueError(f"{tally!r} counts something else: count with {', '.join(needed)}.")
    return tally


def recorded_columns(columns: Mapping[str, Any], data: Any) -> dict[str, str]:
    """The names of a table's columns as a certificate keeps them; none for arrays, and none where
    several stand in one text and one holds a comma: they could be those of other columns.
    """
    if data is None or isinstance(data, Tally):
        return {}
    lists = (value for value in columns.values() if isinstance(value, (list, tuple)))
    if any("," in name for several in lists for name in several):
        return {}
    return {
        name: value if isinstance(value, str) else ",".join(value)
        for name, value in columns.items()
        if value is not None
    }


def require_is_tally(tally: Any) -> None:
    """Raise unless it is a tally at all."""
    if not isinstance(tally, Tally):
        raise InvalidTypeError(
            f"tally is of type {type(tally).__name__}: expected a Tally, as Tally.count "
            "gives, or Tally.load."
        )

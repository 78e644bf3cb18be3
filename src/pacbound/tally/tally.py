"""The tally: how often each outcome was seen in each cell of a score, in integers.

Everything a guarantee needs from the data is here, and nothing else of it. Tallies of one layout
add with `+`, exactly, in any order; the sum over parts of the data is the tally of the whole. A
tally does not know how it was counted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack, overload

import numpy as np

from pacbound import documents
from pacbound.documents import Json
from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.output_files import refuse_replacing_source
from pacbound.sources import Engine, Notation, Paths, Progress
from pacbound.sources.notation import OPTIONS as NOTATION
from pacbound.sources.notation import refuse_notation
from pacbound.sources.paths import are_paths
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.tally.classes import ClassRule
from pacbound.tally.columns import Floats, same_rows
from pacbound.tally.count import (
    Counted,
    count_arrays,
    count_files,
    count_frame,
    has_classes,
    scores_in_files,
    scores_in_frame,
)
from pacbound.tally.document import (
    FORMAT,
    LARGEST_FILE,
    drawn_to_dict,
    fields_of,
    names_to_text,
)
from pacbound.tally.draws import (
    Draw,
    Drawn,
    DrawOptions,
    Numbers,
    described_way,
    taken_apart,
)
from pacbound.tally.frame_errors import reading_frame
from pacbound.tally.grids import Bins, DyadicGrid
from pacbound.tally.label_matches import LabelMatches
from pacbound.tally.questions import Kind, Question, Scope, question_for
from pacbound.tally.questions.calibration import DEFAULT_BINS, EQUAL_MASS, bins_for
from pacbound.tally.questions.question import Integers, Slot, scaled
from pacbound.tally.table import in_order, merge_cells

_CLASS_OPTIONS = ("classes", "missing", "unseen_labels", "unrelated_labels")
READING = ("engine", "master", "memory_limit", "progress")
"""How files are read."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of named outcomes per cell of a score, for one question.

    It holds all that a guarantee needs from the data, in integers. Tallies of one layout add with
    `+`, exactly and in any order; the sum over parts of the data is the tally of the whole.
    `from_arrays`, `from_frame` and `from_files` count; `calibrate` and all functions that certify
    take a tally in place of their arrays.

    Adding a tally to another that has one of its sources raises `RepeatedSourceError`, since rows
    that count twice void every guarantee. Equal files and equal arrays are recognised. Equal rows
    in another format, in another order, or in a frame that is counted again, are not, except those
    of a cascade: they are recognised by their scores and predictions, with whatever labels, if they
    are many enough to tell and were counted as one.

    Attributes
    ----------
    kind : str
        The question: "calibration", "abstention", "cascade", "shield" or "recall".
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
        How the rows were drawn from others: by clusters, weights or strata. None if all rows of the
        data were counted as they are.
    matches : LabelMatches or None
        Cascade: how often labels match the slow model, by class, from which labels of other rows
        are recognised. None if there are no labels.
    ids : ndarray of uint64 or None
        A hash of each row id, in order, if `row_ids` were passed and nothing was drawn: rows that
        another tally has, too, are recognised by it.

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
    drawn: Drawn | None = None
    matches: LabelMatches | None = None
    ids: Numbers | None = None

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
        )
        names = in_order({*groups, *counted.groups})
        return replace(tally, cells=tally._cells_among(names), groups=names)

    @overload
    @classmethod
    def from_arrays(
        cls,
        *,
        confidence: Any,
        correct: Any,
        groups: Any = None,
        n_bins: int = 20,
        edges: Any = None,
        **draw: Unpack[DrawOptions],
    ) -> Tally: ...
    @overload
    @classmethod
    def from_arrays(
        cls,
        *,
        confidence: Any,
        prediction: Any,
        label: Any,
        groups: Any = None,
        n_bins: int = 20,
        edges: Any = None,
        classes: Any = None,
        missing: Any = None,
        unseen_labels: float = 0.0,
        **draw: Unpack[DrawOptions],
    ) -> Tally: ...
    @overload
    @classmethod
    def from_arrays(
        cls,
        *,
        kind: Literal["abstention"],
        confidence: Any,
        correct: Any = None,
        prediction: Any = None,
        label: Any = None,
        groups: Any = None,
        classes: Any = None,
        missing: Any = None,
        unseen_labels: float = 0.0,
        **draw: Unpack[DrawOptions],
    ) -> Tally: ...
    @overload
    @classmethod
    def from_arrays(
        cls,
        *,
        score: Any,
        unsafe: Any,
        final_score: Any = None,
        groups: Any = None,
        **draw: Unpack[DrawOptions],
    ) -> Tally: ...
    @overload
    @classmethod
    def from_arrays(
        cls, *, score: Any, positive: Any, groups: Any = None, **draw: Unpack[DrawOptions]
    ) -> Tally: ...
    @classmethod
    def from_arrays(cls, *, kind: Kind | None = None, **given: Any) -> Tally:
        """Count columns of arrays. The names say which question is asked.

        Parameters
        ----------
        kind
            "abstention", whose columns are those of a calibration; of the others the names say
            enough.
        confidence, correct
            Calibration and abstention: a score in [0, 1] for each row, and whether the prediction
            was right.
        prediction, label
            Calibration and abstention: the predicted and the true class of each row, in place of
            `correct`.
        groups
            One group per row; except for an abstention, or a mapping from names to truth values for
            each row.
        n_bins, edges
            Calibration: as in `calibrate`.
        score, unsafe, final_score
            Shield: as in `certify_shield`.
        score, positive
            Recall: as in `certify_recall`.
        classes, missing, unseen_labels
            Where classes are passed: as in `certify_cascade`.

        Returns
        -------
        Tally
            The counts. Rows that have enough distinct values are recognised if they are counted
            again.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a column is missing, unknown, or holds what it cannot hold; the message names the
            value, the row and the remedy.

        Examples
        --------
        >>> Tally.from_arrays(score=[0.1, 0.9, 0.8], unsafe=[False, True, True])
        Tally(shield, 3 rows in 3 cells: 1 safe, 2 unsafe)
        """
        return cls._of_arrays(question_for(_asked(given)[0], kind), given)

    @overload
    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        confidence: str,
        correct: str | None = None,
        prediction: str | None = None,
        label: str | None = None,
        groups: str | None = None,
        n_bins: int = 20,
        edges: Any = None,
        classes: Any = None,
        missing: Any = None,
        unseen_labels: float = 0.0,
        **draw: Unpack[DrawOptions],
    ) -> Tally: ...
    @overload
    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        kind: Literal["abstention"],
        confidence: str,
        correct: str | None = None,
        prediction: str | None = None,
        label: str | None = None,
        groups: str | None = None,
        classes: Any = None,
        missing: Any = None,
        unseen_labels: float = 0.0,
        **draw: Unpack[DrawOptions],
    ) -> Tally: ...
    @overload
    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        score: str,
        unsafe: str,
        final_score: str | None = None,
        groups: str | None = None,
        **draw: Unpack[DrawOptions],
    ) -> Tally: ...
    @overload
    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        score: str,
        positive: str,
        groups: str | None = None,
        **draw: Unpack[DrawOptions],
    ) -> Tally: ...
    @classmethod
    def from_frame(cls, frame: Any, *, kind: Kind | None = None, **given: Any) -> Tally:
        """Count a dataframe inside its own engine: only counts leave it.

        Parameters
        ----------
        frame
            A frame of pandas, Polars (eager or lazy), PyArrow, DuckDB (a relation) or PySpark.
        kind
            As in `from_arrays`.
        confidence, correct, prediction, labels, groups, score, unsafe,
        final_score, positive
            The names of the columns. The words are those of `from_arrays`.
        n_bins, edges, classes, missing, unseen_labels
            As in `from_arrays`.
        scale
            What a score of 1 is written as: 100 for percentages. Every score is divided by it once.
        answers
            Labels that came back for the rows, in files or another frame: a column `pac_row` with
            the number of each row, and one with the labels, named as the labels are. A row's number
            is its place or, where the frame has a column `pac_row`, what stands there.

        Returns
        -------
        Tally
            The counts. Nothing notices if the same frame is counted again.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a column is not there, which lists those that are, or holds what it cannot hold.
        MissingDependencyError
            If narwhals is not installed.

        Examples
        --------
        >>> import polars
        >>> frame = polars.LazyFrame({"score": [0.91, 0.97, 0.42], "right": [True, True, False]})
        >>> Tally.from_frame(frame, confidence="score", correct="right")
        Tally(calibration, 3 rows in 3 cells: 1 wrong, 2 right)
        """
        return cls._of_frame(question_for(_asked(given)[0], kind), frame, given)

    @overload
    @classmethod
    def from_files(
        cls,
        paths: Paths,
        *,
        confidence: str,
        correct: str | None = None,
        prediction: str | None = None,
        label: str | None = None,
        groups: str | None = None,
        n_bins: int = 20,
        edges: Any = None,
        classes: Any = None,
        missing: Any = None,
        unseen_labels: float = 0.0,
        engine: Engine = "duckdb",
        master: str | None = None,
        memory_limit: str | None = None,
        progress: Progress | None = None,
        **draw: Unpack[DrawOptions],
    ) -> Tally: ...
    @overload
    @classmethod
    def from_files(
        cls,
        paths: Paths,
        *,
        kind: Literal["abstention"],
        confidence: str,
        correct: str | None = None,
        prediction: str | None = None,
        label: str | None = None,
        groups: str | None = None,
        classes: Any = None,
        missing: Any = None,
        unseen_labels: float = 0.0,
        engine: Engine = "duckdb",
        master: str | None = None,
        memory_limit: str | None = None,
        progress: Progress | None = None,
        **draw: Unpack[DrawOptions],
    ) -> Tally: ...
    @overload
    @classmethod
    def from_files(
        cls,
        paths: Paths,
        *,
        score: str,
        unsafe: str,
        final_score: str | None = None,
        groups: str | None = None,
        engine: Engine = "duckdb",
        master: str | None = None,
        memory_limit: str | None = None,
        progress: Progress | None = None,
        **draw: Unpack[DrawOptions],
    ) -> Tally: ...
    @overload
    @classmethod
    def from_files(
        cls,
        paths: Paths,
        *,
        score: str,
        positive: str,
        groups: str | None = None,
        engine: Engine = "duckdb",
        master: str | None = None,
        memory_limit: str | None = None,
        progress: Progress | None = None,
        **draw: Unpack[DrawOptions],
    ) -> Tally: ...
    @classmethod
    def from_files(
        cls,
        paths: Any,
        *,
        kind: Kind | None = None,
        engine: Engine = "duckdb",
        master: str | None = None,
        memory_limit: str | None = None,
        progress: Progress | None = None,
        **given: Any,
    ) -> Tally:
        """Count files: CSV, Parquet, JSON lines, Arrow, .npz and .npy, out of core.

        Parameters
        ----------
        paths
            A file, a glob, a folder, or several of these. In a folder partitioned as `day=monday`,
            `day` is a column.
        kind
            As in `from_arrays`.
        confidence, correct, prediction, labels, groups, score, unsafe,
        final_score, positive
            The names of the columns. The words are those of `from_arrays`.
        n_bins, edges, classes, missing, unseen_labels
            As in `from_arrays`.
        delimiter, decimal
            For delimited text: what stands between the values, such as ";", and for the decimal
            point, "." or ",".
        scale, answers
            As in `from_frame`; places go on from file to file.
        engine
            What counts: "duckdb", which is embedded, "polars", or "spark".
        master
            Spark's master; all cores of this machine if it is left out.
        memory_limit
            What DuckDB may use, such as "500MB".
        progress
            Called with the share that is done, from 0 to 1.

        Returns
        -------
        Tally
            The counts, named by the bytes of each file.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a file cannot be read, a column is not there, or holds what it cannot hold.
        RepeatedSourceError
            If two files hold the same bytes.
        MissingDependencyError
            If what reads the format is not installed.

        Examples
        --------
        >>> np.savez("day.npz", score=[0.91, 0.42], right=[True, False])
        >>> Tally.from_files("day.npz", confidence="score", correct="right")
        Tally(calibration, 2 rows in 2 cells: 1 wrong, 1 right)
        """
        reading: dict[str, Any] = {
            "engine": engine,
            "master": master,
            "memory_limit": memory_limit,
        }
        return cls._of_files(
            question_for(_asked(given)[0], kind), paths, given, progress=progress, **reading
        )

    @classmethod
    def count(cls, question: Any, *, data: Any = None, **given: Any) -> Tally:
        """Count the rows of a question: arrays, or with `data` columns that are named.

        Parameters
        ----------
        question
            What is counted: the question of a claim, such as `CLAIM.question`.
        data
            A frame, a path, or several paths; None for arrays.
        **given
            What rows bring, by the names of the question's columns, and how rows are read and
            drawn, see `RowOptions`.

        Returns
        -------
        Tally
            The counts.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a column is missing, unknown, or holds what it cannot hold; the message names the
            value, the row and the remedy.

        Examples
        --------
        >>> from pacbound.claims.sets import CLAIM
        >>> Tally.count(CLAIM.question, probability=[[0.9, 0.1], [0.4, 0.6]], label=[0, 0])
        Tally(sets, 2 rows in 2 cells: 2 labelled)
        """
        if not hasattr(question, "of_arrays"):
            raise InvalidTypeError(
                f"question is of type {type(question).__name__}: expected that of a claim, such as "
                "CLAIM.question of pacbound.claims.sets."
            )
        reading = {name: given.pop(name, None) for name in READING}
        if data is not None and are_paths(data):
            return cls._of_files(question, data, given, **reading)
        for name, value in reading.items():
            if value is not None:
                passed = "arrays were" if data is None else "a frame was"
                raise InvalidTypeError(f"{name} is about files, and {passed} passed: leave it out.")
        if data is None:
            return cls._of_arrays(question, given)
        return cls._of_frame(question, data, given)

    @classmethod
    def _of_arrays(cls, question: Any, given: Mapping[str, Any]) -> Tally:
        asked, rule, options, tables = _asked(given)
        if tables:
            refuse_notation(tables)
        same_rows(**asked, **options)
        own, arrays = question.of_arrays(**asked)
        draw = Draw.of(options, own, columns=False)
        columns = {**arrays, **options}
        return cls.of(own, count_arrays(own, columns, _fitting(rule, own), draw))

    @classmethod
    def _of_frame(cls, question: Any, frame: Any, given: Mapping[str, Any]) -> Tally:
        asked, rule, options, tables = _asked(given)
        notation = Notation.of(**{name: tables.get(name) for name in NOTATION})
        if notation.is_about_text:
            raise InvalidTypeError(
                "delimiter and decimal are about files of text, and a frame was passed: leave them "
                "out."
            )
        if _is_equal_mass(asked):
            slot = _confidence(asked, notation)
            with reading_frame():
                asked["edges"] = _edges_from(asked, scores_in_frame(slot, frame))
        own = _scaled(question.of_columns(**asked), notation)
        draw, answers = Draw.of(options, own, columns=True), tables.get("answers")
        return cls.of(own, count_frame(own, frame, _fitting(rule, own), draw, answers=answers))

    @classmethod
    def _of_files(
        cls,
        question: Any,
        paths: Any,
        given: Mapping[str, Any],
        *,
        engine: Engine | None,
        master: str | None,
        memory_limit: str | None,
        progress: Progress | None,
    ) -> Tally:
        asked, rule, options, tables = _asked(given)
        notation = Notation.of(**{name: tables.get(name) for name in NOTATION})
        reading: dict[str, Any] = {
            "notation": notation,
            "engine": "duckdb" if engine is None else engine,
            "master": master,
            "memory_limit": memory_limit,
        }
        if _is_equal_mass(asked):
            slot = _confidence(asked, notation)
            asked["edges"] = _edges_from(asked, scores_in_files(slot, paths, **reading))
        own = _scaled(question.of_columns(**asked), notation)
        counted = count_files(
            own,
            paths,
            _fitting(rule, own),
            Draw.of(options, own, columns=True),
            answers=tables.get("answers"),
            progress=progress,
            **reading,
        )
        return cls.of(own, counted)

    @property
    def totals(self) -> dict[str, int]:
        """How often each outcome was seen."""
        seen = self.counts.sum(axis=0, dtype=np.int64).tolist()
        return dict(zip(self.outcomes, seen, strict=True))

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
            "schema": 1 if self.drawn is None else 2,
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
            **({} if self.ids is None else {"row_ids": names_to_text(self.ids)}),
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
        >>> day = Tally.from_arrays(confidence=[0.91, 0.42], correct=[True, False])
        >>> day.save("day.json")
        >>> Tally.load("day.json") == day
        True
        """
        refuse_replacing_source(path, self.sources, "the tally")
        documents.write(path, self.to_dict())

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
        ways = [None if tally.drawn is None else tally.drawn.way for tally in (self, other)]
        if ways[0] != ways[1]:
            raise InvalidValueError(
                f"Rows that were drawn in different ways do not add: {described_way(self.drawn)} "
                f"and {described_way(other.drawn)}. Count all of them in one way, with one seed."
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
            which = f" ({len(twice)} source, {min(twice)[:19]}…)" if twice else ""
            raise RepeatedSourceError(
                f"The same rows are in both tallies{which}: counting them twice voids every "
                "guarantee. Add each part once."
            )
        if self.ids is not None and other.ids is not None:
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


def _all_ids(one: Numbers | None, other: Numbers | None) -> Numbers | None:
    if one is None or other is None:
        return other if one is None else one
    return np.sort(np.concatenate([one, other]))


def _both(one: LabelMatches | None, other: LabelMatches | None) -> LabelMatches | None:
    return one + other if one is not None and other is not None else one or other


def _asked(
    given: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What the question is asked of, what the user says about classes, how rows are drawn, and what
    is said about the tables that they are in.
    """
    rest, draw = taken_apart(given)
    tables = {name: rest[name] for name in (*NOTATION, "answers") if rest.get(name) is not None}
    rule = {name: rest[name] for name in _CLASS_OPTIONS if name in rest}
    others = (*_CLASS_OPTIONS, *NOTATION, "answers")
    return {name: rest[name] for name in rest if name not in others}, rule, draw, tables


def _is_equal_mass(asked: Mapping[str, Any]) -> bool:
    """Whether edges are to be taken from the rows; they may be an array, which equals no text."""
    return isinstance(asked.get("edges"), str) and asked["edges"] == EQUAL_MASS


def _confidence(asked: Mapping[str, Any], notation: Notation) -> Slot:
    """The column of scores that edges are taken from."""
    if not isinstance(asked.get("confidence"), str):
        raise InvalidTypeError("edges='equal-mass' needs the name of the column of confidences.")
    return Slot("number", asked["confidence"], notation.scale)


def _edges_from(asked: Mapping[str, Any], scores: Floats) -> Bins:
    return bins_for(n_bins=asked.get("n_bins", DEFAULT_BINS), edges=EQUAL_MASS, scores=scores)


def _scaled(question: Question, notation: Notation) -> Any:
    """The question about scores that are written as the notation says."""
    if notation.scale is None:
        return question
    return replace(question, slots=scaled(question.slots, notation.scale))  # type: ignore[type-var]


def _fitting(rule: Mapping[str, Any], question: Question) -> ClassRule:
    """The rule for classes, if the question is about classes at all."""
    fitting, silent = ClassRule.of(**rule), ClassRule()
    said = [name for name in rule if getattr(fitting, name) != getattr(silent, name)]
    if said and not has_classes(question):
        raise InvalidTypeError(
            f"{said[0]} is about classes, and none are counted here: leave it out, or pass "
            "predictions and labels."
        )
    if fitting.unrelated_labels and question.kind != "cascade":
        raise InvalidTypeError(
            "unrelated_labels is about the slow model of a cascade, and there is none here: leave "
            "it out."
        )
    return fitting

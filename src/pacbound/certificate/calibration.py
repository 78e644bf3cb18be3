"""The calibration certificate: an interval for the true confidence of every bin, and the look-ups
on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate import calibration_words
from pacbound.certificate.document import Certificate, Provenance, Reader
from pacbound.documents import Json
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.procedures import calibration as procedure
from pacbound.procedures.calibration import Correction, Side
from pacbound.procedures.registry import require
from pacbound.stats.arguments import failure_probability
from pacbound.tally.columns import as_array, as_names, as_score_column, checked_scores
from pacbound.tally.grids import Bins, DyadicGrid, grid_from_dict
from pacbound.tally.tally import OVERLAPPING, SCOPES, Scope, Tally

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROWS = 16384


@dataclass(frozen=True)
class CalibrationBins:
    """One table of bins, as arrays. `begin` and `end` are where each bin starts and stops; an empty
    bin's estimate is NaN.
    """

    edges: Floats
    begin: Floats
    end: Floats
    trials: Integers
    successes: Integers
    lower: Floats
    upper: Floats

    @property
    def estimate(self) -> Floats:
        """The share of right predictions in each bin."""
        empty = self.trials == 0
        return np.where(empty, np.nan, self.successes / np.where(empty, 1, self.trials))

    def __len__(self) -> int:
        return len(self.trials)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CalibrationCertificate(Certificate):
    """Intervals that hold the true confidence of every bin at once, with probability at least 1 -
    `delta`.

    The true confidence of a bin is the share of right predictions among all rows, seen or not,
    whose confidence falls into it. `trials`, `successes`, `lower` and `upper` have a row for each
    group (one if there are none) and a column for each bin.
    """

    kind: ClassVar[str] = "calibration"
    n: int
    delta: float
    grid: Bins
    scope: Scope
    groups: tuple[str, ...]
    correction: Correction
    side: Side
    trials: Integers
    successes: Integers
    lower: Floats
    upper: Floats

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        *,
        delta: float,
        correction: Correction = "sidak",
        side: Side = "both",
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Certify a calibration tally."""
        if tally.kind != "calibration" or isinstance(tally.grid, DyadicGrid):
            raise InvalidValueError(
                f"A {tally.kind} tally has no calibration bins: count with confidence, correct and "
                "n_bins."
            )
        if tally.rows == 0:
            raise InvalidValueError("There are no rows to calibrate on: pass at least one.")
        counts = tally.dense()
        trials, successes = counts.sum(axis=2), counts[:, :, 1]
        level, overlapping = failure_probability(delta), tally.scope in OVERLAPPING
        lower, upper = procedure.cell_intervals(
            trials,
            successes,
            delta=level,
            correction=correction,
            side=side,
            overlapping=overlapping,
        )
        return cls(
            n=tally.rows,
            delta=level,
            grid=tally.grid,
            scope=tally.scope,
            groups=tally.groups,
            correction=correction,
            side=side,
            trials=trials,
            successes=successes,
            lower=lower,
            upper=upper,
            provenance=Provenance.now(tally.sources, columns),
        )

    @property
    def certified(self) -> bool:
        """Always true: a bin about which the rows say little has a wide interval."""
        return True

    @property
    def bins(self) -> CalibrationBins:
        """The bins of a certificate without groups; with groups see `tables`."""
        self.require_intact()
        if self.groups:
            raise InvalidValueError(
                f"This certificate has {len(self.groups)} tables, one for each group: use "
                "tables[group]."
            )
        return self._table(0)

    @cached_property
    def tables(self) -> dict[str | None, CalibrationBins]:
        """The bins of each group; without groups the one table is tables[None]."""
        self.require_intact()
        names: tuple[str | None, ...] = self.groups or (None,)
        return {name: self._table(place) for place, name in enumerate(names)}

    def interval(self, confidence: Any, groups: Any = None) -> Floats:
        """The certified interval of each score.

        With probability at least 1 - delta over the calibration rows, every interval this ever
        returns holds the true confidence of its score's bin.

        Parameters
        ----------
        confidence
            Scores from 0 to 1: one number, or anything that NumPy reads as a column (a list, an
            array, a tensor, a column of a data frame).
        groups
            The group (or predicted class, or label) of each score, or one for all; needed if and
            only if the certificate has groups.

        Returns
        -------
        ndarray
            Lower and upper end: of shape (2,) for one number, else of shape (n, 2).

        Raises
        ------
        InvalidValueError
            If a score is not between 0 and 1, if groups are missing or not wanted, or if one of
            them was not certified.

        Examples
        --------
        >>> from pacbound import calibrate
        >>> certificate = calibrate([0.3, 0.9] * 100, [False, True] * 100, delta=0.05, n_bins=2)
        >>> certificate.interval(0.9).round(3).tolist()
        [0.957, 1.0]
        >>> certificate.interval([0.9, 0.2]).round(3).tolist()
        [[0.957, 1.0], [0.0, 0.043]]

        """
        found = self._look_up(np.stack([self.lower, self.upper], axis=-1), confidence, groups)
        return found[0] if _is_single(confidence) else found

    def estimate(self, confidence: Any, groups: Any = None) -> Any:
        """The share of right predictions seen in each score's bin; NaN where none were seen. An
        estimate, not a bound. One number gives a float, a column gives an array.
        """
        empty = self.trials == 0
        share = np.where(empty, np.nan, self.successes / np.where(empty, 1, self.trials))
        found = self._look_up(share[..., None], confidence, groups)[:, 0]
        return float(found[0]) if _is_single(confidence) else found

    def claim(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "procedure": procedure.NAME,
            "assumptions": list(procedure.ASSUMPTIONS),
            "certified": self.certified,
            "n": self.n,
            "delta": self.delta,
            "correction": self.correction,
            "side": self.side,
            "scope": self.scope,
            "bins": self.grid.to_dict(),
            "tables": [
                self._claimed_table(place, name)
                for place, name in enumerate(self.groups or (None,))
            ],
        }

    def recomputed(self) -> CalibrationCertificate:
        overlapping = self.scope in OVERLAPPING
        # Every row is in every label's table; overlapping groups hold some rows each, and only the
        # least n follows from them.
        most = int(self.trials.sum(axis=1).max())
        n = (
            int(self.trials.sum())
            if not overlapping
            else max(self.n, most)
            if self.scope == "overlapping-groups"
            else most
        )
        lower, upper = procedure.cell_intervals(
            self.trials,
            self.successes,
            delta=self.delta,
            correction=self.correction,
            side=self.side,
            overlapping=overlapping,
        )
        return replace(self, n=n, lower=lower, upper=upper, loaded=None)

    @classmethod
    def from_claim(cls, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]) -> Self:
        require(claim.text("procedure"), procedure.NAME)
        grid = grid_from_dict(claim.raw("bins"), claim.place("bins"))
        if isinstance(grid, DyadicGrid):
            raise CertificateError(
                f"{claim.place('bins')} is a dyadic grid, which no calibration has."
            )
        tables = claim.mappings("tables")
        names = [table.raw("group") for table in tables]
        filled = [_read_table(table, grid.n_cells) for table in tables]
        if not filled:
            raise CertificateError(f"{claim.place('tables')} is empty.")
        trials, successes, lower, upper = (np.stack(column) for column in zip(*filled, strict=True))
        return cls(
            n=claim.count("n"),
            delta=claim.probability("delta"),
            grid=grid,
            scope=claim.choice("scope", SCOPES),
            groups=() if names == [None] else _read_groups(names),
            correction=claim.choice("correction", ("sidak", "bonferroni")),
            side=claim.choice("side", ("both", "lower", "upper")),
            trials=trials,
            successes=successes,
            lower=lower,
            upper=upper,
            provenance=provenance,
            loaded=loaded,
        )

    def summary(self) -> str:
        """The claim in words and a table of the bins that hold rows."""
        return calibration_words.summary(self)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return calibration_words.html(self)

    def _table(self, place: int) -> CalibrationBins:
        begin, end = self.grid.bounds
        return CalibrationBins(
            self.grid.edges,
            begin,
            end,
            self.trials[place],
            self.successes[place],
            self.lower[place],
            self.upper[place],
        )

    def _look_up(self, table: Floats, confidence: Any, groups: Any) -> Floats:
        self.require_intact()
        if _is_single(confidence):
            confidence = np.reshape(as_array(confidence, "confidence"), 1)
        scores = as_score_column(confidence, "confidence")
        places = self._places(groups, len(scores))
        result = np.empty((len(scores), table.shape[-1]))
        # A pair of floats moves as one 16-byte element: half the time of gathering rows of two.
        element = np.dtype((np.void, table.shape[-1] * 8))
        source, target = (
            np.ascontiguousarray(table).view(element).ravel(),
            result.view(element).ravel(),
        )
        for start in range(0, len(scores), _ROWS):
            rows = slice(start, start + _ROWS)
            cells = self.grid.cells(checked_scores(scores[rows], "confidence", start=start))
            if places is not None:
                cells += places[rows] * self.grid.n_cells
            np.take(source, cells, out=target[rows], mode="clip")
        return result

    def _places(self, groups: Any, rows: int) -> Integers | None:
        if not self.groups:
            if groups is not None:
                raise InvalidValueError("This certificate has no groups: leave them out.")
            return None
        if groups is None:
            raise InvalidValueError(
                f"This certificate is per group ({self.scope}): pass groups=, the group of each "
                "row."
            )
        if isinstance(groups, Mapping | Set):
            raise InvalidTypeError(
                f"groups is a {type(groups).__name__}, which has no order of rows: pass the group "
                "of each row as a list or an array, or one group for all."
            )
        if np.ndim(groups) == 0:
            groups = np.full(rows, groups)
        column = as_names(groups, "groups")
        if len(column) != rows:
            raise InvalidValueError(
                f"Rows do not match: confidence has {rows}, groups has {len(column)}. Pass one "
                "group per row."
            )
        found, codes = np.unique(column, return_inverse=True)
        names, known = (
            [str(name) for name in found.tolist()],
            {name: place for place, name in enumerate(self.groups)},
        )
        strange = [name for name in names if name not in known]
        if strange:
            raise InvalidValueError(
                f"Group {strange[0]!r} was not certified ({len(strange)} such): nothing is known "
                "about it."
            )
        return np.array([known[name] for name in names], dtype=np.int64)[codes]

    def _claimed_table(self, place: int, name: str | None) -> dict[str, Json]:
        seen = np.flatnonzero(self.trials[place])
        return {
            "group": name,
            "cells": seen.tolist(),
            "trials": self.trials[place, seen].tolist(),
            "successes": self.successes[place, seen].tolist(),
            "lower": self.lower[place, seen].tolist(),
            "upper": self.upper[place, seen].tolist(),
        }


def _is_single(confidence: Any) -> bool:
    """Whether it is one number, as Python, NumPy or a tensor holds it, and not a column."""
    plain = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    return plain or getattr(confidence, "ndim", None) == 0


def _read_table(table: Reader, n_cells: int) -> tuple[Integers, Integers, Floats, Floats]:
    cells, trials, successes = (table.integers(key) for key in ("cells", "trials", "successes"))
    lower, upper = table.numbers("lower"), table.numbers("upper")
    if any(len(column) != len(cells) for column in (trials, successes, lower, upper)):
        raise CertificateError(f"{table.place('cells')}: lists of different length.")
    if cells != sorted(set(cells)) or (cells and not 0 <= cells[0] <= cells[-1] < n_cells):
        raise CertificateError(
            f"{table.place('cells')} is not a rising list of bins below {n_cells}."
        )
    if any(
        not 0 <= hits <= attempts or attempts == 0
        for hits, attempts in zip(successes, trials, strict=True)
    ):
        raise CertificateError(
            f"{table.place('trials')}: expected 0 <= successes <= trials, and a trial in each bin "
            "listed."
        )
    counts, bounds = (
        np.zeros((2, n_cells), dtype=np.int64),
        np.stack([np.zeros(n_cells), np.ones(n_cells)]),
    )
    counts[:, cells] = [trials, successes]
    bounds[:, cells] = [lower, upper]
    return counts[0], counts[1], bounds[0], bounds[1]


def _read_groups(names: list[Json]) -> tuple[str, ...]:
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise CertificateError("claim.tables: groups must be distinct strings.")
    return tuple(names)

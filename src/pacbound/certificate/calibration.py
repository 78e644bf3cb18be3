"""The calibration certificate: an interval for the true confidence of every bin, and the look-ups
on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate import calibration_words
from pacbound.certificate.document import CHANGED, Certificate, Provenance, interval_work, sealed
from pacbound.certificate.tally_checks import exact_sum, require_is_tally
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.procedures import calibration as procedure
from pacbound.procedures.calibration import Correction, Side
from pacbound.procedures.registry import require
from pacbound.stats.arguments import LARGEST_COUNT, claimed_delta
from pacbound.tally.columns import (
    as_array,
    as_names,
    as_score_column,
    checked_scores,
    same_rows,
)
from pacbound.tally.grids import Bins, DyadicGrid, grid_from_dict
from pacbound.tally.questions.calibration import CalibrationQuestion
from pacbound.tally.questions.question import OVERLAPPING, Scope
from pacbound.tally.row_rules import RowRule, RowSteps
from pacbound.tally.table import in_order
from pacbound.tally.tally import Tally

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROWS = 16384

MOST_CELLS = 2**23
"""Bins in all tables together, empty ones included: four arrays of them take 256 MB. A file of a
few kilobytes can name more."""


APPLIED = ("pac_lower", "pac_upper", "pac_estimate")
"""The columns that applying adds to rows; the estimate is empty (NaN) where no calibration row fell
into the bin."""


@dataclass(frozen=True)
class CalibrationBins:
    """One table of bins, as arrays that cannot be written into, with an entry for each bin.

    All intervals of a certificate hold together, so those of one table do too. A bin without rows
    has the interval [0, 1] and the estimate NaN.

    Attributes
    ----------
    edges
        The edges of the bins, as they were asked for.
    begin, end
        Where each bin begins and ends; both are the same number for a bin of a single value, as
        `edges="equal-mass"` makes them.
    trials, successes
        How many rows fell into each bin, and how many of them were predicted right.
    lower, upper
        The certified interval of each bin.

    Examples
    --------
    >>> from pacbound import calibrate
    >>> bins = calibrate([0.3, 0.9] * 100, [False, True] * 100, delta=0.05, n_bins=2).bins
    >>> len(bins), bins.trials.tolist(), bins.estimate.tolist()
    (2, [100, 100], [0.0, 1.0])
    >>> bins.lower.round(3).tolist(), bins.upper.round(3).tolist()
    ([0.0, 0.957], [0.043, 1.0])
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

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """The table as a frame with a row for each bin.

        Parameters
        ----------
        backend
            "pandas", "polars" or "pyarrow".

        Returns
        -------
        frame
            The columns `begin`, `end`, `trials`, `successes`, `estimate` (NaN for a bin without
            rows), `lower` and `upper`.

        Raises
        ------
        InvalidValueError
            If the backend is not one of these.
        MissingDependencyError
            If narwhals or the backend is not installed.

        Examples
        --------
        >>> from pacbound import calibrate
        >>> bins = calibrate([0.3, 0.9] * 100, [False, True] * 100, delta=0.05, n_bins=2).bins
        >>> bins.to_frame("polars").select("begin", "end", "trials", "successes").rows()
        [(0.0, 0.5, 100, 0), (0.5, 1.0, 100, 100)]
        """
        # Loaded here, because a certificate needs no narwhals.
        from pacbound.tally.frames.new_frames import new_frame  # noqa: PLC0415

        names = ("begin", "end", "trials", "successes", "estimate", "lower", "upper")
        return new_frame({name: getattr(self, name) for name in names}, backend)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CalibrationCertificate(Certificate):
    """Intervals that hold the true confidence of every bin at once, with probability at least 1 -
    `delta`.

    The true confidence of a bin is the share of right predictions among all rows, seen or not,
    whose confidence falls into it. The probability is over the draw of the rows, which must be
    independent draws from the distribution of use. `calibrate` makes such a certificate, and
    `load_certificate` reads one.

    A calibration is never refused: where rows say little, the interval is wide.

    Attributes
    ----------
    n : int
        The number of rows that were counted.
    delta : float
        The chance that any interval is wrong.
    grid
        The bins.
    scope : str
        What the tables are for: "top" for one table, else what each group is.
    groups : tuple of str
        The group of each table, empty if there is a single one.
    correction : str
        "sidak" or "bonferroni": how `delta` is shared among the bins.
    side : str
        "both", "lower" or "upper": which ends of the intervals are bounds.
    trials, successes : ndarray of shape (tables, bins)
        How many rows fell into each bin, and how many of them were predicted right.
    lower, upper : ndarray of shape (tables, bins)
        The interval of each bin.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> from pacbound import calibrate
    >>> certificate = calibrate([0.3, 0.9] * 100, [False, True] * 100, delta=0.05, n_bins=2)
    >>> certificate.interval([0.9, 0.2]).round(3).tolist()
    [[0.957, 1.0], [0.0, 0.043]]
    >>> certificate.save("calibration.json")
    >>> print(certificate.verify())
    verified
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

    def __post_init__(self) -> None:
        for name in ("trials", "successes", "lower", "upper"):
            object.__setattr__(self, name, sealed(getattr(self, name)))

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
        """Certify a calibration tally; `calibrate` does this for rows and tallies alike.

        Parameters
        ----------
        tally
            A calibration tally of at least one row.
        delta
            The chance that any interval is wrong.
        correction, side
            As in `calibrate`.
        columns
            The names of the columns that were counted, for the provenance.

        Returns
        -------
        CalibrationCertificate
            The intervals. There is no refusal: a bin without rows has the interval [0, 1].

        Raises
        ------
        InvalidValueError
            If the tally has no rows or no bins of confidence, or its counts do not add up; if
            `delta` is not above 0 and at most 0.5.

        Examples
        --------
        >>> from pacbound import Tally
        >>> tally = Tally.from_arrays(confidence=[0.9] * 100, correct=[True] * 100, n_bins=2)
        >>> CalibrationCertificate.from_tally(tally, delta=0.05).interval([0.9]).round(3).tolist()
        [[0.964, 1.0]]
        """
        require_is_tally(tally)
        if tally.kind != "calibration" or isinstance(tally.grid, DyadicGrid):
            raise InvalidValueError(
                f"A {tally.kind} tally has no calibration bins: count with confidence, correct and "
                "n_bins."
            )
        if tally.rows == 0:
            raise InvalidValueError("There are no rows to calibrate on: pass at least one.")
        size = max(1, len(tally.groups)) * tally.grid.n_cells
        if size > MOST_CELLS:
            raise InvalidValueError(
                f"{size:,} bins in all tables are more than a certificate may have: expected at "
                f"most {MOST_CELLS:,}. Use fewer bins or groups."
            )
        _require_counts(tally)
        counts = tally.dense()
        trials, successes = counts.sum(axis=2), counts[:, :, 1]
        level, overlapping = claimed_delta(delta), tally.scope in OVERLAPPING
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
            provenance=Provenance.of(tally, columns),
            draw=tally.drawn,
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
        """The share of right predictions seen in each score's bin: an estimate, not a bound.

        Parameters
        ----------
        confidence, groups
            As in `interval`.

        Returns
        -------
        float or ndarray of shape (n,)
            A float for one number, else an array; NaN where no row was seen.

        Raises
        ------
        InvalidValueError
            As from `interval`.

        Examples
        --------
        >>> from pacbound import calibrate
        >>> certificate = calibrate([0.9, 0.8, 0.2], [True, False, False], delta=0.05, n_bins=2)
        >>> certificate.estimate([0.7, 0.1]).tolist()
        [0.5, 0.0]
        """
        empty = self.trials == 0
        share = np.where(empty, np.nan, self.successes / np.where(empty, 1, self.trials))
        found = self._look_up(share[..., None], confidence, groups)[:, 0]
        return float(found[0]) if _is_single(confidence) else found

    def row_rule(self) -> RowRule:
        """The interval and the estimate of each row's bin; [0, 1] and none for other groups."""
        self.require_verified()
        empty = self.trials == 0
        share = np.where(empty, np.nan, self.successes / np.where(empty, 1, self.trials))
        tables = [
            RowSteps.of_bins(self.grid, dict(zip(APPLIED, columns, strict=True)))
            for columns in zip(self.lower, self.upper, share, strict=True)
        ]
        if not self.groups:
            return RowRule(1, tables[0])
        unknown = RowSteps((), dict(zip(APPLIED, [(0.0,), (1.0,), (float("nan"),)], strict=True)))
        by_group = dict(zip(self.groups, tables, strict=True))
        return RowRule(1, None, by_group, unknown, others="get [0, 1]")

    def claimed(self) -> dict[str, Json]:
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

    def counted(self) -> dict[str, Json]:
        claim = self.claimed()
        asked = ("kind", "procedure", "n", "delta", "correction", "side", "scope", "bins")
        counts = ("group", "cells", "trials", "successes")
        tables = [{key: table[key] for key in counts} for table in claim["tables"]]
        return {key: claim[key] for key in asked} | {"tables": tables}

    def work(self) -> float:
        return interval_work(self.trials[self.trials > 0])

    def recomputed(self) -> CalibrationCertificate:
        overlapping = self.scope in OVERLAPPING
        n = self._rows_implied()
        lower, upper = procedure.checked_intervals(
            (self.lower, self.upper),
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
        grid = _read_bins(claim)
        tables, scope = claim.mappings("tables"), claim.choice("scope", CalibrationQuestion.scopes)
        if not tables:
            raise CertificateError(f"{claim.place('tables')} is empty.")
        if len(tables) * grid.n_cells > MOST_CELLS:
            raise CertificateError(
                f"{claim.place('tables')} has {len(tables)} tables of {grid.n_cells:,} bins: "
                f"expected at most {MOST_CELLS:,} bins in all."
            )
        groups = _read_groups(claim, tables, scope)
        filled = [_read_table(table, grid.n_cells) for table in tables]
        if (
            scope not in OVERLAPPING
            and sum(exact_sum(table[0]) for table in filled) > LARGEST_COUNT
        ):
            raise CertificateError(f"{claim.place('tables')} hold more than 2**53 rows.")
        trials, successes, lower, upper = (np.stack(column) for column in zip(*filled, strict=True))
        return cls(
            n=claim.count("n"),
            delta=claim.probability("delta"),
            grid=grid,
            scope=scope,
            groups=groups,
            correction=claim.choice("correction", ("sidak", "bonferroni")),
            side=claim.choice("side", ("both", "lower", "upper")),
            trials=trials,
            successes=successes,
            lower=lower,
            upper=upper,
            provenance=provenance,
            loaded=loaded,
        )

    def words(self) -> str:
        """The claim in words and a table of the bins that hold rows."""
        return calibration_words.summary(self)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        warning = "" if self._intact else f"<p><strong>{CHANGED}</strong></p>"
        return warning + calibration_words.html(self)

    def _rows_implied(self) -> int:
        """The rows that the tables hold. Overlapping groups hold some rows each, and some rows may
        be in none, so that only the least number follows from them.
        """
        held = self.trials.sum(axis=1)
        if self.scope not in OVERLAPPING:
            return int(held.sum())
        most = int(held.max())
        if self.scope == "overlapping-groups":
            return max(self.n, most)
        # Every row is in the table of every label, so each holds n; a label that no model gives a
        # probability to has none, and its table is empty.
        other = [int(rows) for rows in held if rows not in (0, most)]
        return most if most != self.n or not other else other[0]

    def _table(self, place: int) -> CalibrationBins:
        begin, end = self.grid.bounds
        return CalibrationBins(
            sealed(self.grid.edges.copy()),
            sealed(begin.copy()),
            sealed(end.copy()),
            self.trials[place],
            self.successes[place],
            self.lower[place],
            self.upper[place],
        )

    def _look_up(self, table: Floats, confidence: Any, groups: Any) -> Floats:
        self.require_verified()
        if _is_single(confidence):
            confidence = np.reshape(as_array(confidence, "confidence"), 1)
        same_rows(confidence=confidence, groups=groups)
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
    if not all(0 <= low <= high <= 1 for low, high in zip(lower, upper, strict=True)):
        raise CertificateError(f"{table.place('lower')}: expected 0 <= lower <= upper <= 1.")
    if sum(trials) > LARGEST_COUNT:
        raise CertificateError(f"{table.place('trials')} are more than 2**53 rows.")
    counts, bounds = (
        np.zeros((2, n_cells), dtype=np.int64),
        np.stack([np.zeros(n_cells), np.ones(n_cells)]),
    )
    counts[:, cells] = [trials, successes]
    bounds[:, cells] = [lower, upper]
    return counts[0], counts[1], bounds[0], bounds[1]


def _read_bins(claim: Reader) -> Bins:
    part = claim.mapping("bins")
    if part.text("rule").startswith("edges"):
        part.numbers("edges")
    grid = grid_from_dict(claim.raw("bins"), claim.place("bins"))
    if isinstance(grid, DyadicGrid):
        raise CertificateError(f"{claim.place('bins')} is a dyadic grid, which no calibration has.")
    return grid


def _read_groups(claim: Reader, tables: list[Reader], scope: Scope) -> tuple[str, ...]:
    names = [table.optional_text("group") for table in tables]
    if scope == "top":
        if names != [None]:
            raise CertificateError(
                f"{claim.place('tables')}: scope 'top' has one table, without a group."
            )
        return ()
    groups = tuple(name for name in names if name is not None)
    if scope in ("per-class", "all-labels") and groups != tuple(map(str, range(len(names)))):
        raise CertificateError(
            f"{claim.place('tables')}: scope {scope!r} has a table for each class, '0', '1', …"
        )
    if len(groups) != len(names) or groups != in_order(set(groups)):
        raise CertificateError(
            f"{claim.place('tables')}: scope {scope!r} has a table for each group, in order, each "
            "once."
        )
    return groups


def _require_counts(tally: Tally) -> None:
    """Raise if the counts are not those of the rows."""
    total = exact_sum(tally.counts)
    if (tally.counts < 0).any() or (
        tally.scope not in OVERLAPPING and (total != tally.rows or total > LARGEST_COUNT)
    ):
        raise InvalidValueError(
            f"{tally!r} does not add up: its counts are of {total:,} rows. Count again."
        )

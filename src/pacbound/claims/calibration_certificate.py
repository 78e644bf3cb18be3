"""The calibration certificate: the bins with their intervals, the look-ups on them, and the bets
against them in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import as_graded
from pacbound.claims.certificate import Certificate
from pacbound.claims.claim import sealed
from pacbound.claims.tables import groups_of
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.calibration import Correction, Side, dense_counts
from pacbound.stats.arguments import whole_numbers
from pacbound.stats.betting import Bets, joined, loss_bets
from pacbound.tally.columns import (
    as_array,
    as_names,
    as_score_column,
    checked_scores,
    only_known,
    same_rows,
)
from pacbound.tally.grids import Bins
from pacbound.tally.questions.correctness import CALIBRATION
from pacbound.tally.questions.question import Scope
from pacbound.watch import Counts, Watch

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROWS = 16384


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
        How many rows fell into each bin, and how many of them were predicted right; where answers
        are graded, the sum of their qualities.
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
        return shares(self.successes, self.trials)

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
        from pacbound.tally.frames.opening import new_frame  # noqa: PLC0415

        names = ("begin", "end", "trials", "successes", "estimate", "lower", "upper")
        return new_frame({name: getattr(self, name) for name in names}, backend)


class CalibrationCertificate(Certificate):
    """Intervals that hold the true confidence of every bin at once, with probability at least 1 -
    `delta`.

    The true confidence of a bin is the share of right predictions among all rows, seen or not,
    whose confidence falls into it. The probability is over the draw of the rows, which must be
    independent draws from the data the model will meet in use. `calibrate` makes such a
    certificate, and `load_certificate` reads one.

    A calibration is never refused: where rows say little, the interval is wide.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name: what was asked for, the counts and the
        intervals.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.
    scope : str
        What the tables are for: "top" for one table, else what each group is.

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

    @property
    def grid(self) -> Bins:
        """The bins of the confidence."""
        return cast(Bins, self.values["bins"])

    @property
    def groups(self) -> tuple[str, ...]:
        """The group of each table; empty if there is a single one."""
        return groups_of(self.values)

    correction: Correction
    side: Side
    scope: Scope

    @cached_property
    def trials(self) -> Integers:
        """How many rows fell into each bin, of shape (tables, bins)."""
        return sealed(dense_counts(self.values["tables"], self.grid.n_cells)[0])

    @cached_property
    def successes(self) -> Integers:
        """How many of them were predicted right, of shape (tables, bins)."""
        return sealed(dense_counts(self.values["tables"], self.grid.n_cells)[1])

    @cached_property
    def lower(self) -> Floats:
        """The lower end of each interval, of shape (tables, bins)."""
        return self._ends("lower", 0.0)

    @cached_property
    def upper(self) -> Floats:
        """The upper end of each interval, of shape (tables, bins)."""
        return self._ends("upper", 1.0)

    def _ends(self, name: str, unknown: float) -> Floats:
        ends = np.full(self.trials.shape, unknown)
        for place, table in enumerate(self.values["tables"]):
            ends[place, table["counts"]["cells"]] = table[name]
        return sealed(ends)

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
        found = self._look_up(self._intervals, confidence, groups)
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
        found = self._look_up(self._shares, confidence, groups)[:, 0]
        return float(found[0]) if _is_single(confidence) else found

    def difference(self, group: Any, other: Any) -> Floats:
        """How much more often `group` is right than `other`: an interval for each bin.

        All intervals of the certificate hold together, and so do all differences between them,
        with the same probability.

        Parameters
        ----------
        group, other
            Two of `groups`.

        Returns
        -------
        ndarray
            Lower and upper end for each bin, of shape (bins, 2), from -1 to 1. An interval without
            0 in it shows that the two differ. With one bin it is about all rows of each group.

        Raises
        ------
        InvalidValueError
            If one of them is not a group of this certificate, or if both are the same.

        Examples
        --------
        >>> from pacbound import calibrate
        >>> correct, site = [True] * 190 + [False] * 110, ["a"] * 100 + ["b"] * 200
        >>> certificate = calibrate(correct=correct, groups=site, delta=0.05, n_bins=1)
        >>> certificate.difference("a", "b").round(3).tolist()
        [[0.426, 0.63]]
        """
        self.require_verified()
        if str(group) == str(other):
            raise InvalidValueError(f"{group!r} is compared with itself: expected two groups.")
        known = {name: place for place, name in enumerate(self.groups)}
        for name in (group, other):
            if str(name) not in known:
                listed = ", ".join(map(repr, self.groups)) or "none: pass groups to calibrate"
                raise InvalidValueError(
                    f"{name!r} is not a group of this certificate: its groups are {listed}."
                )
        one, two = known[str(group)], known[str(other)]
        ends = (self.lower[one] - self.upper[two], self.upper[one] - self.lower[two])
        return np.column_stack([np.nextafter(ends[0], -1.0), np.nextafter(ends[1], 1.0)])

    @cached_property
    def _intervals(self) -> Floats:
        return np.stack([self.lower, self.upper], axis=-1)

    @cached_property
    def _shares(self) -> Floats:
        return shares(self.successes, self.trials)[..., None]

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
        self.require_plain_scores()
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


def _is_single(confidence: Any) -> bool:
    """Whether it is one number, as Python, NumPy or a tensor holds it, and not a column."""
    plain = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    return plain or getattr(confidence, "ndim", None) == 0


def shares(successes: Integers, trials: Integers) -> Floats:
    """The share of successes in each bin; NaN where there are no trials."""
    empty = trials == 0
    return np.where(empty, np.nan, successes / np.where(empty, 1, trials))


_WHAT = "A monitored calibration"


def watch_of_bins(certificate: CalibrationCertificate) -> Watch:
    """The true confidence of every bin lies in its interval: each prediction falls into a bin, and
    is right or wrong there.

    Each bin has two sides: wrong more often than 1 - lower allows, right more often than upper
    allows. Each side has bets of its own, which only rows of its bin change. Sides that allow every
    rate, such as a lower end of 0, have no bets.
    """
    ends = certificate.lower.ravel().tolist(), certificate.upper.ravel().tolist()
    sides = [_sides(low, high) for low, high in zip(*ends, strict=True)]
    tested = [cell for cell, found in enumerate(sides) if found]
    if not tested:
        raise InvalidValueError(
            "No interval of this calibration can be refuted: all allow nearly every rate. There is "
            "nothing to monitor; calibrate on more rows."
        )
    number = np.array([len(sides[cell]) for cell in tested], dtype=np.float64)
    places = np.full(len(sides), -1)
    places[tested] = np.arange(len(tested))
    graded, grid, groups = certificate.graded, certificate.grid, certificate.groups

    def named(place: int) -> str:
        table, cell = divmod(tested[place], grid.n_cells)
        begin, end = grid.bounds
        ends = f"({begin[cell]:g}, {end[cell]:g}]" if begin[cell] < end[cell] else f"{end[cell]:g}"
        return f"bin {ends}" + (f" of {groups[table]!r}" if groups else "")

    def counted(given: Mapping[str, Any]) -> Counts:
        """`successes` of `trials` in each bin, as the certificate has them."""
        counts = only_known(given, {"successes": True, "trials": True}, _WHAT)
        shape = certificate.trials.shape
        right, rows = (whole_numbers(counts[name], name) for name in ("successes", "trials"))
        for name, array in (("successes", right), ("trials", rows)):
            if array.shape != shape and (shape[0] > 1 or array.shape != shape[1:]):
                raise InvalidValueError(
                    f"{name} has shape {array.shape}: expected {shape}, a number for each table "
                    "and bin of the certificate."
                )
        if (right > rows).any():
            raise InvalidValueError(
                "More successes than trials in a bin: expected successes <= trials. Check the "
                "order of the arguments."
            )
        pairs = zip((rows - right).ravel().tolist(), right.ravel().tolist(), strict=True)
        return [(int(places[cell]), pair) for cell, pair in enumerate(pairs) if any(pair)]

    return Watch(
        what=_WHAT,
        claimed="the true confidence of every bin lies in its interval"
        if graded is None
        else f"the mean quality of every bin, {as_graded(graded)}, lies in its interval",
        outcomes=("wrong", "right"),
        bets=tuple(joined(sides[cell]) for cell in tested),
        shares=number / number.sum(),
        places=places,
        place_name=named,
        groups=groups,
        question=replace(CALIBRATION, graded=graded),
        counting={"edges": grid},
        batch=counted,
    )


def _sides(lower: float, upper: float) -> list[Bets]:
    """Bets that a bin is wrong more often than 1 - lower, and that it is right more often than
    upper.
    """
    wrong = loss_bets(1.0 - lower)
    right = loss_bets(upper) if upper < 1.0 else None
    too_wrong = [] if wrong is None else [Bets(wrong.factors[::-1].copy(), wrong.weights)]
    return too_wrong + ([] if right is None else [right])

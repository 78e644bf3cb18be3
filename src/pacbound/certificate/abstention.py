"""The abstention certificate: the confidence at which to answer, for all rows or for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.document import (
    Certificate,
    Provenance,
    exact,
    interval_work,
    likelihood,
    sealed,
)
from pacbound.certificate.fine_counts import read_counts, read_threshold
from pacbound.certificate.refusal import UNEXPLAINED, described_refusal
from pacbound.certificate.tally_checks import exact_sum, require_tally
from pacbound.documents import Json, Reader, encode_float, printable
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.procedures import abstention, abstention_declared
from pacbound.procedures.abstention_walk import FIRST, AbstentionDecision
from pacbound.procedures.refusal import Refusal
from pacbound.procedures.registry import require
from pacbound.stats.arguments import claimed_delta, is_one_of, real_number, tolerated_rate
from pacbound.stats.sequences import bonferroni_level
from pacbound.tally.columns import as_names, as_scores, same_length, same_rows
from pacbound.tally.questions.abstention import GRID
from pacbound.tally.questions.correctness import OUTCOMES
from pacbound.tally.row_rules import Limit, RowRule, RowSteps
from pacbound.tally.table import in_order
from pacbound.tally.tally import Tally

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Starts = Literal["ranks", "pool"]

NAMES: dict[Starts, str] = {"ranks": abstention.NAME, "pool": abstention_declared.NAME}
ASSUMPTIONS: dict[Starts, tuple[str, ...]] = {
    "ranks": abstention.ASSUMPTIONS,
    "pool": abstention_declared.ASSUMPTIONS,
}
TOP = GRID.n_cells - 1

_MOST_STARTS = 128
"""There is one for each doubling of a count, so there are never more."""

_TABLE_WORK = 2e-3
"""Twenty milliseconds, as `Certificate.work` counts them."""


class RiskCoverage(NamedTuple):
    """What was seen at each threshold, from the highest score down. Descriptive: no point of it is
    certified.

    Attributes
    ----------
    thresholds : ndarray
        The scores that rows have, on the grid of 2^-16.
    coverage : ndarray
        The share of the rows whose score is at least that.
    risk : ndarray
        The share of wrong ones among them.

    Examples
    --------
    >>> from pacbound import certify_abstention
    >>> certificate = certify_abstention([0.5, 0.75], [False, True], xi=0.1, delta=0.1)
    >>> certificate.risk_coverage().risk
    array([0. , 0.5])
    """

    thresholds: Floats
    coverage: Floats
    risk: Floats


APPLIED = "pac_answer"
"""The column that applying adds to rows: 1 where the model may answer, 0 where it must abstain."""


@dataclass(frozen=True, eq=False)
class AbstentionTable:
    """The rows of one group, or all of them, and what was decided from them.

    Attributes
    ----------
    group : str or None
        The name of the group; None where there are none.
    cells : ndarray
        The cells of 2^-16 that rows fell into, rising.
    wrong, right : ndarray
        How many rows of each cell were answered wrongly and rightly.
    starts : tuple of int
        Cells at which the walk may start, where a pool fixed them; empty where ranks did.
    limit : float
        The threshold.
    claimed : tuple of (int, int)
        All thresholds that hold, as ranges of cells, both ends included, the highest first.
    refusal : Refusal or None
        Why there is no threshold; None if there is one.

    Examples
    --------
    >>> from pacbound import certify_abstention
    >>> table = certify_abstention([0.9] * 90, [True] * 90, xi=0.1, delta=0.1).tables[0]
    >>> table.group, table.rows, table.cells.tolist(), table.right.tolist()
    (None, 90, [58982], [90])
    """

    group: str | None
    cells: Integers
    wrong: Integers
    right: Integers
    starts: tuple[int, ...] = ()
    limit: float = np.inf
    claimed: tuple[tuple[int, int], ...] = ()
    refusal: Refusal | None = None

    def __post_init__(self) -> None:
        for name in ("cells", "wrong", "right"):
            object.__setattr__(self, name, sealed(getattr(self, name)))

    @property
    def rows(self) -> int:
        """The number of rows of the group."""
        return exact_sum(self.wrong) + exact_sum(self.right)

    def answered(self) -> tuple[int, int]:
        """How many rows the threshold answers, and how many of these answers are wrong."""
        if self.limit == np.inf:
            return 0, 0
        above = self.cells >= self.limit * TOP
        errors = exact_sum(self.wrong[above])
        return errors + exact_sum(self.right[above]), errors

    def decided(self, decision: AbstentionDecision) -> AbstentionTable:
        """The table with what was decided."""
        return replace(
            self, limit=decision.threshold, claimed=decision.claimed, refusal=decision.refusal
        )

    def claim(self) -> dict[str, Json]:
        """The table as a claim holds it."""
        return {
            "group": self.group,
            **self.counted(),
            "threshold": encode_float(self.limit),
            "claimed": [list(ends) for ends in self.claimed],
        }

    def counted(self) -> dict[str, Json]:
        """The part that was counted, or fixed beforehand."""
        return {
            **({"starts": list(self.starts)} if self.starts else {}),
            "cells": self.cells.tolist(),
            "wrong": self.wrong.tolist(),
            "right": self.right.tolist(),
        }


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AbstentionCertificate(Certificate):
    """With probability at least 1 - `delta` at most a share `xi` of the answers is wrong, if a row
    is answered where its confidence is at or above `threshold`; in each group, where there are
    groups.

    The probability is over the draw of the rows, which must be independent draws from the
    distribution of use. `certify_abstention` makes such a certificate, and `load_certificate` reads
    one.

    A refusal has `certified` False and the threshold +inf: never answer. With groups, one that
    cannot be certified has the threshold +inf, and the others have theirs; `certified` is False if
    none has.

    Attributes
    ----------
    n : int
        The number of rows that were counted.
    xi : float
        The share of the answers that may be wrong. This is what is certified.
    delta : float
        The chance that more are, in any group.
    starts_by : str
        What fixed where the walk may start: "ranks" of the same rows, or a "pool" of other scores.
    first : int
        The cell of the highest threshold that was looked at, 65535 unless a lower was declared.
    tables : tuple of AbstentionTable
        The counts, and what was decided from them: one table, or one for each group.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> from pacbound import certify_abstention
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(2000)
    >>> correct = rng.random(2000) < confidence
    >>> certificate = certify_abstention(confidence, correct, xi=0.2, delta=0.01)
    >>> print(f"answers {certificate.coverage:.0%}, from {certificate.threshold:.3f}")
    answers 36%, from 0.647
    >>> certificate.answers([0.6, 0.7])
    array([False,  True])
    """

    kind: ClassVar[str] = "abstention"
    n: int
    xi: float
    delta: float
    starts_by: Starts
    first: int
    tables: tuple[AbstentionTable, ...] = field(repr=False)

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        *,
        xi: float,
        delta: float,
        pool: Any = None,
        first_threshold: float | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Certify an abstention tally; `certify_abstention` does this for rows and tallies alike.

        Parameters
        ----------
        tally
            An abstention tally, with or without groups.
        xi, delta, pool, first_threshold
            As in `certify_abstention`.
        columns
            The names of the columns that were counted, for the provenance.

        Returns
        -------
        AbstentionCertificate
            The threshold, or one for each group. A refusal has `certified` False and the threshold
            +inf (never answer).

        Raises
        ------
        InvalidValueError
            If the tally is not one of an abstention, has no rows, or does not add up; if `xi`,
            `delta`, `pool` or `first_threshold` cannot be what it should be.

        Examples
        --------
        >>> from pacbound import Tally
        >>> rows = {"confidence": [0.9] * 500, "correct": [True] * 500}
        >>> tally = Tally.from_arrays(kind="abstention", **rows)
        >>> refused = AbstentionCertificate.from_tally(tally, xi=0.02, delta=0.01)
        >>> declared = AbstentionCertificate.from_tally(
        ...     tally, xi=0.02, delta=0.01, first_threshold=0.9
        ... )
        >>> refused.certified, declared.certified
        (False, True)
        """
        require_tally(
            tally, "abstention", GRID, lowest=0, columns='kind="abstention", confidence and correct'
        )
        xi, delta = tolerated_rate(xi), claimed_delta(delta)
        first = _first_cell(first_threshold)
        tables = _tables(tally)
        if pool is not None:
            cells = _pool_cells(pool, tally)
            level = bonferroni_level(delta, len(tables))
            tables = [
                replace(
                    table,
                    starts=abstention_declared.starts_from(
                        cells, table.rows, xi=xi, delta=level, first=first
                    ),
                )
                for table in tables
            ]
        return cls(
            n=tally.rows,
            xi=xi,
            delta=delta,
            starts_by="ranks" if pool is None else "pool",
            first=first,
            tables=_decided(tables, xi, delta, first),
            provenance=Provenance.of(tally, columns),
            draw=tally.drawn,
        )

    @property
    def certified(self) -> bool:
        """Whether the rows support the claim at some threshold, in any group; False is a refusal,
        and `summary` says why.
        """
        return any(table.refusal is None for table in self.tables)

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups; empty where there are none."""
        return tuple(table.group for table in self.tables if table.group is not None)

    @property
    def threshold(self) -> float:
        """Answer iff confidence >= threshold; +inf (never answer) if the claim is refused.

        With groups there are several: use `thresholds` or `answers`.
        """
        self.require_intact()
        if self.groups:
            raise InvalidTypeError(
                f"The certificate has a threshold for each of {len(self.groups)} groups: use "
                "thresholds, or answers(confidence, groups)."
            )
        return self.tables[0].limit

    @property
    def thresholds(self) -> dict[str, float]:
        """The threshold of each group, +inf where it is never answered; empty without groups."""
        self.require_intact()
        return {table.group: table.limit for table in self.tables if table.group is not None}

    @property
    def refusal(self) -> Refusal | None:
        """Why nothing is certified; None if it is. With groups, that of the first of them."""
        return None if self.certified else self.tables[0].refusal

    @property
    def coverage(self) -> float:
        """The share of these rows that is answered. Descriptive: it is not certified."""
        return sum(table.answered()[0] for table in self.tables) / self.n

    @property
    def observed_error(self) -> float | None:
        """The share of wrong ones among the rows that are answered; None if none is. Descriptive:
        it is not certified.
        """
        answered, errors = np.sum([table.answered() for table in self.tables], axis=0).tolist()
        return errors / answered if answered else None

    def answers(self, confidence: Any, groups: Any = None) -> NDArray[np.bool_]:
        """Which rows to answer.

        Parameters
        ----------
        confidence
            One score in [0, 1] per row.
        groups
            The group of each row, if the certificate is for groups. A row of a group that was not
            certified is not answered.

        Returns
        -------
        ndarray of bool
            True where the score is at or above the threshold.

        Raises
        ------
        CertificateError
            If the certificate does not follow from its own counts.
        InvalidTypeError
            If `groups` is missing where the certificate has groups, or is there where it has none.
        InvalidValueError
            If a score is not in [0, 1].
        """
        self.require_verified()
        scores = as_scores(confidence, "confidence")
        if not self.groups:
            if groups is not None:
                raise InvalidTypeError("The certificate has no groups: leave groups out.")
            return np.asarray(scores >= self.tables[0].limit)
        if groups is None:
            raise InvalidTypeError(
                f"The certificate has {len(self.groups)} groups: pass the group of each row."
            )
        same_rows(confidence=confidence, groups=groups)
        names = as_names(groups, "groups").astype(np.str_)
        same_length(confidence=scores, groups=names)
        answered = np.zeros(scores.shape, dtype=np.bool_)
        for table in self.tables:
            answered |= (names == table.group) & (scores >= table.limit)
        return answered

    def row_rule(self) -> RowRule:
        """Whether to answer each row: not for other groups than those that were certified."""
        self.require_verified()
        tables = {
            table.group: RowSteps((Limit(table.limit, closed=True),), {APPLIED: (0, 1)})
            for table in self.tables
        }
        if not self.groups:
            return RowRule(1, tables[None], ones="answered")
        by_group = {str(name): steps for name, steps in tables.items()}
        silent = RowSteps((), {APPLIED: (0,)})
        return RowRule(1, None, by_group, silent, ones="answered", others="are not answered")

    def claims(self, threshold: float, group: str | None = None) -> bool:
        """Whether a threshold is among those that hold: all of them hold together.

        So a higher one than `threshold` may be taken, after seeing all of this, if it is claimed.

        Parameters
        ----------
        threshold
            From 0 to 1, or +inf, which never answers and always holds. A number that is not on the
            grid of 2^-16 was not tested.
        group
            The name of the group, if the certificate is for groups.

        Returns
        -------
        bool
            Whether it is certified.

        Raises
        ------
        InvalidValueError
            If there is no such group, or `threshold` is not a number from 0 on.
        """
        self.require_verified()
        value = real_number(threshold, "threshold", "a threshold")
        if value < 0:
            raise InvalidValueError(f"threshold={threshold} is negative: scores are from 0 to 1.")
        if value == np.inf:
            return True
        cell = value * TOP
        return cell == np.floor(cell) and any(
            low <= cell <= high for low, high in self._table(group).claimed
        )

    def risk_coverage(self, group: str | None = None) -> RiskCoverage:
        """Risk against coverage, as seen in these rows. Descriptive: no point is certified.

        Parameters
        ----------
        group
            The name of the group, if the certificate is for groups.

        Returns
        -------
        RiskCoverage
            The thresholds from the highest score down, and coverage and risk at each.

        Raises
        ------
        InvalidValueError
            If there is no such group.
        """
        table = self._table(group)
        wrong, right = np.cumsum(table.wrong[::-1]), np.cumsum(table.right[::-1])
        answered = wrong + right
        return RiskCoverage(table.cells[::-1] / TOP, answered / table.rows, wrong / answered)

    def _table(self, group: str | None) -> AbstentionTable:
        for table in self.tables:
            if is_one_of(group, [table.group]):
                return table
        known = ", ".join(map(repr, self.groups[:5])) or "none, so pass no group"
        raise InvalidValueError(f"group={group!r} is not in this certificate: it has {known}.")

    def claimed(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "procedure": NAMES[self.starts_by],
            "assumptions": list(ASSUMPTIONS[self.starts_by]),
            "certified": self.certified,
            "n": self.n,
            "xi": self.xi,
            "delta": self.delta,
            "first_threshold": GRID.threshold(self.first),
            "tables": [table.claim() for table in self.tables],
            "descriptive": {"coverage": self.coverage, "observed_error": self.observed_error},
        }

    def counted(self) -> dict[str, Json]:
        claim = self.claimed()
        asked = ("kind", "procedure", "n", "xi", "delta", "first_threshold")
        tables = [{"group": table.group, **table.counted()} for table in self.tables]
        return {**{key: claim[key] for key in asked}, "tables": tables}

    def recomputed(self) -> AbstentionCertificate:
        return replace(
            self, tables=_decided(self.tables, self.xi, self.delta, self.first), loaded=None
        )

    def is_explained(self) -> bool:
        return all(table.refusal is not UNEXPLAINED for table in self.tables)

    def _with_reasons(self, again: AbstentionCertificate) -> AbstentionCertificate:
        pairs = zip(self.tables, again.tables, strict=True)
        return replace(
            self,
            tables=tuple(
                table
                if table.refusal is None
                else replace(table, refusal=other.refusal or UNEXPLAINED)
                for table, other in pairs
            ),
        )

    def work(self) -> float:
        # Whatever a table claims, recomputing it may end in a refusal, which takes about a hundred
        # walks more over a part of the cells.
        return sum(_TABLE_WORK + interval_work(table.wrong + table.right) for table in self.tables)

    @classmethod
    def from_claim(cls, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]) -> Self:
        known = {name: starts for starts, name in NAMES.items()}
        starts_by = known[require(claim.text("procedure"), *known)]
        first = _read_cell(claim, "first_threshold")
        n = claim.positive("n")
        tables = [_read_table(part, starts_by, first) for part in claim.mappings("tables")]
        _check_tables(claim, tables, n)
        return cls(
            n=n,
            xi=claim.rate("xi"),
            delta=claim.probability("delta"),
            starts_by=starts_by,
            first=first,
            tables=tuple(tables),
            provenance=provenance,
            loaded=loaded,
        )

    def words(self) -> str:
        """The claim in words."""
        of_groups = f" in {len(self.groups)} groups" if self.groups else ""
        head = (
            f"Abstention certificate: {self.n:,} rows{of_groups}, xi = {exact(self.xi)}, delta = "
            f"{exact(self.delta)}, starts by {'ranks' if self.starts_by == 'ranks' else 'a pool'}"
        )
        if not self.certified and not self.groups:
            refused = described_refusal(self.tables[0].refusal, "rows", "Never answer.")
            return "\n".join([head, *refused])
        lines = [head, *(self._rule() if not self.groups else self._group_rules())]
        if self.certified:
            each = " of each group" if self.groups else ""
            lines.append(
                f"With probability at least {likelihood(self.delta)} over the draw of these rows, "
                f"at most {exact(self.xi)} of all answers{each} are then wrong."
            )
            lines.append(self._seen())
        return "\n".join(lines)

    def _rule(self) -> list[str]:
        limit = self.tables[0].limit
        if limit == 0:
            return ["Always answer: no confidence is below 0, the threshold."]
        return [f"Answer where the confidence is at least {limit!r}; abstain elsewhere."]

    def _group_rules(self) -> list[str]:
        width = max(len(printable(name)) for name in self.groups)
        lines = ["Answer where the confidence is at least this, by group; abstain elsewhere:"]
        for table in self.tables:
            answered, errors = table.answered()
            said = (
                f"{table.limit!r}; {answered:,} of {table.rows:,} rows, {errors:,} wrong"
                if table.refusal is None
                else f"never. {_in_short(table.refusal)}"
            )
            lines.append(f"  {printable(table.group or ''):{width}}  {said}")
        return lines

    def _seen(self) -> str:
        answered, errors = np.sum([table.answered() for table in self.tables], axis=0).tolist()
        if not answered:
            return "On these rows (descriptive): none is answered."
        return (
            f"On these rows (descriptive): {answered:,} are answered ({self.coverage:.2%}), "
            f"{errors:,} of them wrongly ({errors / answered:.2%})."
        )


def _in_short(refusal: Refusal) -> str:
    reason, remedy, *_ = described_refusal(refusal, "rows", "")
    return f"{reason.removeprefix('REFUSED: ')} {remedy.strip()}"


def _tables(tally: Tally) -> list[AbstentionTable]:
    """The rows of each group that has any."""
    hit = tally.counts.any(axis=1)
    cells, (wrong, right) = tally.cells[hit, -1], tally.counts[hit].T
    if tally.scope == "top":
        return [AbstentionTable(None, cells, wrong, right)]
    places = tally.cells[hit, 0]
    return [
        AbstentionTable(tally.groups[place], cells[own], wrong[own], right[own])
        for place in np.unique(places).tolist()
        for own in [places == place]
    ]


def _decided(
    tables: Sequence[AbstentionTable], xi: float, delta: float, first: int
) -> tuple[AbstentionTable, ...]:
    level = bonferroni_level(delta, len(tables))
    return tuple(
        table.decided(
            abstention_declared.decide(
                table.cells, table.wrong, table.right, table.starts, xi=xi, delta=level, first=first
            )
            if table.starts
            else abstention.decide(
                table.cells, table.wrong, table.right, xi=xi, delta=level, first=first
            )
        )
        for table in tables
    )


def _first_cell(first_threshold: float | None) -> int:
    if first_threshold is None:
        return FIRST
    value = real_number(first_threshold, "first_threshold", "a threshold")
    if not 0 <= value <= 1:
        raise InvalidValueError(
            f"first_threshold={first_threshold} is not a score: expected a number from 0 to 1."
        )
    return min(int(value * TOP), FIRST)


def _pool_cells(pool: Any, tally: Tally) -> Integers:
    scores = as_scores(pool, "pool")
    if not scores.size:
        raise InvalidValueError("pool is empty: pass at least one score, or leave it out.")
    cells = GRID.cells(scores)
    seen, times = np.unique(cells, return_counts=True)
    if tally.scope == "top" and scores.size == tally.rows and seen.size > 1:
        same = np.array_equal(seen, tally.cells[:, 0])
        if same and np.array_equal(times, tally.counts.sum(axis=1)):
            raise InvalidValueError(
                "pool holds the very scores that certify: starts chosen from them void the "
                "guarantee. Pass scores of other rows, or leave it out."
            )
    return cells


def _read_cell(part: Reader, key: str) -> int:
    value = part.number(key)
    if not 0 <= value <= 1 or value * TOP != np.floor(value * TOP) or value * TOP > FIRST:
        raise CertificateError(
            f"{part.place(key)} is {value}, which is not on the grid of 2^-16 up to {FIRST}/65536."
        )
    return int(value * TOP)


def _read_table(part: Reader, starts_by: Starts, first: int) -> AbstentionTable:
    cells, wrong, right = read_counts(part, OUTCOMES)
    if ((wrong == 0) & (right == 0)).any():
        raise CertificateError(f"{part.place('wrong')}: a cell has no rows.")
    starts = tuple(part.integers("starts")) if starts_by == "pool" else ()
    if starts_by == "pool" and not (
        1 <= len(starts) <= _MOST_STARTS and min(starts) >= 0 and max(starts) <= first
    ):
        raise CertificateError(
            f"{part.place('starts')} are not cells from 0 to {first}, 1 to {_MOST_STARTS} of them."
        )
    limit, claimed = read_threshold(part, np.inf), _read_claimed(part)
    return AbstentionTable(
        part.optional_text("group"),
        cells,
        wrong,
        right,
        starts,
        limit,
        claimed,
        None if claimed else UNEXPLAINED,
    )


def _read_claimed(part: Reader) -> tuple[tuple[int, int], ...]:
    if not part.raw("claimed"):
        return ()
    table = part.table("claimed")
    if len(table[0]) != 2:
        raise CertificateError(f"{part.place('claimed')} is not a list of ranges.")
    return tuple((low, high) for low, high in table)


def _check_tables(claim: Reader, tables: Sequence[AbstentionTable], n: int) -> None:
    names = [table.group for table in tables]
    alone = names == [None]
    groups = [name for name in names if name is not None]
    grouped = groups == names == list(in_order(set(groups)))
    if not tables or not (alone or grouped):
        raise CertificateError(
            f"{claim.place('tables')}: expected one table without a group, or groups in order."
        )
    total = sum(table.rows for table in tables)
    if total != n:
        raise CertificateError(f"{claim.place('n')} is {n}, but the tables have {total} rows.")

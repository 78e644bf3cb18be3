"""The recall certificate: the score at which to flag, so that enough of the positives are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.document import Certificate, Provenance, exact, likelihood, sealed
from pacbound.certificate.fine_counts import none_is, read_counts, read_threshold, require_total
from pacbound.certificate.looks import plan_of, plan_work, read_looks, require_all_rows
from pacbound.certificate.refusal import described_refusal, read_refusal
from pacbound.certificate.tally_checks import exact_sum, require_tally
from pacbound.documents import Json, Reader, encode_float
from pacbound.errors import InvalidValueError
from pacbound.procedures import recall, recall_looks
from pacbound.procedures.refusal import Refusal
from pacbound.procedures.registry import require
from pacbound.stats.arguments import claimed_delta, required_share
from pacbound.stats.looks import PlannedLooks, listed, plan_at
from pacbound.tally.columns import as_scores
from pacbound.tally.questions.recall import GRID, OUTCOMES
from pacbound.tally.row_rules import Limit, RowRule, RowSteps
from pacbound.tally.tally import Tally

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

TOP = GRID.n_cells - 1


class RecallCurve(NamedTuple):
    """What was seen at each threshold, from the highest score down. Descriptive: no point of it is
    certified.

    Attributes
    ----------
    thresholds : ndarray
        The scores that rows have, on the grid of 2^-16.
    recall : ndarray
        The share of the positives whose score is at least that; NaN if there are none.
    flagged : ndarray
        The share of all rows whose score is at least that.

    Examples
    --------
    >>> from pacbound import certify_recall
    >>> rows = [0.75, 0.5, 0.25], [True, False, True]
    >>> certify_recall(*rows, target=0.5, delta=0.1).recall_curve().recall
    array([0.5, 0.5, 1. ])
    """

    thresholds: Floats
    recall: Floats
    flagged: Floats


APPLIED = "pac_flag"
"""The column that applying adds to rows: 1 where the row is flagged, 0 where it is not."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RecallCertificate(Certificate):
    """With probability at least 1 - `delta` at least a share `target` of the positives is flagged,
    if a row is flagged where its score is at or above `threshold`.

    The probability is over the draw of the rows, which must be independent draws from the
    distribution of use and not selected by score. `certify_recall` makes such a certificate, and
    `load_certificate` reads one.

    A refusal has `certified` False and the threshold -inf: flag everything.

    Attributes
    ----------
    n : int
        The number of rows that were counted.
    target : float
        The share of the positives that must be flagged. This is what is certified.
    delta : float
        The chance that fewer are.
    limit : float
        The threshold as the file has it. Use `threshold`, which raises if the file was changed.
    allowed : int
        How many of the positives among these rows may be missed.
    cells : ndarray
        The cells of 2^-16 that rows fell into, rising.
    negative, positive : ndarray
        How many rows of each cell are negative and positive.
    refusal : Refusal or None
        Why nothing is certified, and about how many positives it would take; None if it is.
    looks : tuple of int or None
        The planned looks, one of which is the number of positives; None if there was no plan.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> from pacbound import certify_recall
    >>> scores = [0.9] * 295 + [0.2] * 5 + [0.1] * 700
    >>> certificate = certify_recall(scores, [True] * 300 + [False] * 700, target=0.95, delta=0.01)
    >>> round(certificate.threshold, 3), certificate.flag_rate
    (0.9, 0.295)
    >>> certificate.flags([0.5, 0.95])
    array([False,  True])
    """

    kind: ClassVar[str] = "recall"
    n: int
    target: float
    delta: float
    limit: float
    allowed: int
    cells: Integers = field(repr=False)
    negative: Integers = field(repr=False)
    positive: Integers = field(repr=False)
    refusal: Refusal | None
    looks: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("cells", "negative", "positive"):
            object.__setattr__(self, name, sealed(getattr(self, name)))

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        *,
        target: float,
        delta: float,
        looks: PlannedLooks | Sequence[int] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Certify a recall tally; `certify_recall` does this for rows and tallies alike.

        Parameters
        ----------
        tally
            A recall tally.
        target, delta, looks
            As in `certify_recall`.
        columns
            The names of the columns that were counted, for the provenance.

        Returns
        -------
        RecallCertificate
            The threshold. A refusal has `certified` False and the threshold -inf (flag everything).

        Raises
        ------
        InvalidValueError
            If the tally is not one of a recall, has no rows, or does not add up; if `target` or
            `delta` is not above 0 and at most 0.5; if no look was planned at so many positives.

        Examples
        --------
        >>> from pacbound import Tally
        >>> tally = Tally.from_arrays(score=[0.1] * 500, positive=[False] * 500)
        >>> refused = RecallCertificate.from_tally(tally, target=0.95, delta=0.01)
        >>> refused.certified, refused.refusal.needed
        (False, 90)
        """
        require_tally(tally, "recall", GRID, lowest=0, columns="score and positive")
        share = required_share(target)
        level = claimed_delta(delta)
        hit = tally.counts.any(axis=1)
        cells, (negative, positive) = tally.cells[hit, 0], tally.counts[hit].T
        plan = None
        if looks is not None:
            require_all_rows(tally)
            plan = plan_of(looks, xi=recall.miss_rate(share), delta=level)
            _require_look(plan, exact_sum(positive))
        decision = _decide(cells, positive, share, level, plan)
        return cls(
            n=tally.rows,
            target=share,
            delta=level,
            limit=decision.threshold,
            allowed=decision.allowed,
            cells=cells,
            negative=negative,
            positive=positive,
            refusal=decision.refusal,
            looks=None if plan is None else plan.looks,
            provenance=Provenance.of(tally, columns),
            draw=tally.drawn,
        )

    @property
    def certified(self) -> bool:
        """Whether the rows support the claim; False is a refusal, and `refusal` says why."""
        return self.refusal is None

    @property
    def threshold(self) -> float:
        """Flag iff score >= threshold; -inf (flag everything) if the claim is refused."""
        self.require_intact()
        return self.limit

    @property
    def positives(self) -> int:
        """The number of positives among the rows."""
        return exact_sum(self.positive)

    @property
    def look(self) -> int | None:
        """Which of the planned looks this is, from 1; None if there was no plan."""
        return None if self.looks is None else self.looks.index(self.positives) + 1

    def work(self) -> float:
        return plan_work(self.looks, xi=recall.miss_rate(self.target), delta=self.delta)

    @property
    def observed_recall(self) -> float | None:
        """The share of these positives that is flagged; None if there are none. Descriptive: it is
        not certified.
        """
        found = exact_sum(self.positive[self._flagged])
        return found / self.positives if self.positives else None

    @property
    def flag_rate(self) -> float:
        """The share of these rows that is flagged. Descriptive: it is not certified."""
        counts = self.negative[self._flagged], self.positive[self._flagged]
        return sum(map(exact_sum, counts)) / self.n

    @property
    def _flagged(self) -> NDArray[np.bool_]:
        return np.asarray(self.cells >= self.limit * TOP)

    def flags(self, score: Any) -> NDArray[np.bool_]:
        """Which rows to flag.

        Parameters
        ----------
        score
            One score in [0, 1] per row.

        Returns
        -------
        ndarray of bool
            True where the score is at or above the threshold; everywhere if the claim is refused.

        Raises
        ------
        CertificateError
            If the certificate does not follow from its own counts.
        InvalidValueError
            If a score is not in [0, 1].
        """
        self.require_verified()
        return np.asarray(as_scores(score, "score") >= self.limit)

    def says_nothing(self) -> str | None:
        if self.positives:
            return None
        return none_is("positive", self.n, "Name the column that is 1 in positive rows.")

    def row_rule(self) -> RowRule:
        """Whether to flag each row."""
        self.require_verified()
        steps = RowSteps((Limit(self.limit, closed=True),), {APPLIED: (0, 1)})
        return RowRule(1, steps, role="score", ones="flagged")

    def recall_curve(self) -> RecallCurve:
        """Recall and the share of flagged rows against the threshold, as seen in these rows.
        Descriptive: no point is certified.

        Returns
        -------
        RecallCurve
            The thresholds from the highest score down, with recall and share at each.
        """
        found = np.cumsum(self.positive[::-1])
        flagged = np.cumsum(self.negative[::-1]) + found
        share = found / self.positives if self.positives else np.full(found.size, np.nan)
        return RecallCurve(self.cells[::-1] / TOP, share, flagged / self.n)

    def claimed(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "procedure": recall.NAME if self.looks is None else recall_looks.NAME,
            "assumptions": list(
                recall.ASSUMPTIONS if self.looks is None else recall_looks.ASSUMPTIONS
            ),
            "certified": self.certified,
            "n": self.n,
            "target": self.target,
            "delta": self.delta,
            **({} if self.looks is None else {"looks": list(self.looks), "look": self.look}),
            "threshold": encode_float(self.limit),
            "allowed_misses": self.allowed,
            "counts": {
                "cells": self.cells.tolist(),
                "negative": self.negative.tolist(),
                "positive": self.positive.tolist(),
            },
            "descriptive": {
                "observed_recall": self.observed_recall,
                "flag_rate": self.flag_rate,
            },
        }

    def counted(self) -> dict[str, Json]:
        claim = self.claimed()
        keys = ("kind", "procedure", "n", "target", "delta", "looks", "counts")
        return {key: claim[key] for key in keys if key in claim}

    def recomputed(self) -> RecallCertificate:
        plan = None
        if self.looks is not None:
            missable = recall.miss_rate(self.target)
            plan = plan_at(missable, delta=self.delta, looks=self.looks)
        decision = _decide(self.cells, self.positive, self.target, self.delta, plan)
        return replace(
            self,
            limit=decision.threshold,
            allowed=decision.allowed,
            refusal=decision.refusal,
            loaded=None,
        )

    @classmethod
    def from_claim(cls, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]) -> Self:
        procedure = require(claim.text("procedure"), recall.NAME, recall_looks.NAME)
        n = claim.positive("n")
        part = claim.mapping("counts")
        cells, negative, positive = read_counts(part, OUTCOMES)
        require_total(part, n, negative, positive)
        return cls(
            n=n,
            target=claim.probability("target"),
            delta=claim.probability("delta"),
            limit=read_threshold(claim, -np.inf),
            allowed=claim.integer("allowed_misses"),
            cells=cells,
            negative=negative,
            positive=positive,
            refusal=read_refusal(claim),
            looks=(
                read_looks(claim, exact_sum(positive), "the number of positives")
                if procedure == recall_looks.NAME
                else None
            ),
            provenance=provenance,
            loaded=loaded,
        )

    def words(self) -> str:
        """The claim in words."""
        head = (
            f"Recall certificate: {self.n:,} rows, {self.positives:,} of them positive, target = "
            f"{exact(self.target)}, delta = {exact(self.delta)}"
        )
        if self.looks is not None:
            head += f", look {self.look} of {len(self.looks)}"
        if self.refusal is not None:
            refused = described_refusal(self.refusal, "positives", "Flag everything.")
            return "\n".join([head, *refused])
        missed = self.positives - exact_sum(self.positive[self._flagged])
        useless = (
            " Every score is at least 0: everything is flagged, so this is certified but of no use."
            if self.limit == 0
            else ""
        )
        return "\n".join(
            [
                head,
                f"Flag where the score is at least {self.limit!r}.",
                (
                    f"With probability at least {likelihood(self.delta)} over the draw of these "
                    f"rows, at least {exact(self.target)} of all positives are then flagged."
                ),
                (
                    f"On these rows (descriptive): {self.flag_rate:.2%} are flagged, {missed:,} "
                    f"positives are missed ({self.allowed:,} may be).{useless}"
                ),
            ]
        )


def _require_look(plan: PlannedLooks, positives: int) -> None:
    if positives not in plan.looks:
        raise InvalidValueError(
            f"There are {positives:,} positives, and no look was planned there, but at "
            f"{listed(plan.looks)}: pass the rows up to the last positive of a look, in the order "
            "in which they were drawn. Looks cannot be added."
        )


def _decide(
    cells: Integers, positive: Integers, target: float, delta: float, plan: PlannedLooks | None
) -> recall.RecallDecision:
    if plan is not None:
        return recall_looks.decide(cells, positive, plan, target=target)
    return recall.decide(cells, positive, target=target, delta=delta)

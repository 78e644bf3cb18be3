"""The false-alarm certificate: the score from which alarms may be raised, so that few are false."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.document import Certificate, Provenance, exact, likelihood, sealed
from pacbound.certificate.fine_counts import none_is, read_counts, read_threshold, require_total
from pacbound.certificate.recall import APPLIED
from pacbound.certificate.refusal import described_refusal, read_refusal
from pacbound.certificate.tally_checks import exact_sum, require_is_tally, require_tally
from pacbound.documents import Json, Reader, encode_float
from pacbound.errors import CertificateError
from pacbound.procedures import false_alarms
from pacbound.procedures.false_alarms import NAMES, NEGATIVES, AlarmDecision, Unit
from pacbound.procedures.refusal import Refusal
from pacbound.procedures.registry import require
from pacbound.stats.arguments import claimed_delta, tolerated_rate
from pacbound.tally.columns import as_scores
from pacbound.tally.questions.recall import GRID, OUTCOMES
from pacbound.tally.row_rules import Limit, RowRule, RowSteps
from pacbound.tally.tally import Tally

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

TOP = GRID.n_cells - 1
LOST = -1
"""The cell of rollouts that were lost."""


class AlarmCurve(NamedTuple):
    """What was seen at each threshold, from the highest score down. Descriptive: no point of it is
    certified.

    Attributes
    ----------
    thresholds : ndarray
        The scores that rows have, on the grid of 2^-16.
    false_alarms : ndarray
        The share of the negatives (safe rollouts) whose score is at least that; NaN if there are
        none.
    found : ndarray
        The share of the positives (unsafe rollouts) whose score is at least that; NaN if there are
        none.

    Examples
    --------
    >>> from pacbound import certify_false_alarms
    >>> rows = [0.75, 0.5, 0.25, 0.25], [True, False, True, False]
    >>> certify_false_alarms(*rows, xi=0.5, delta=0.1).alarm_curve().false_alarms
    array([0. , 0.5, 1. ])
    """

    thresholds: Floats
    false_alarms: Floats
    found: Floats


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FalseAlarmCertificate(Certificate):
    """With probability at least 1 - `delta` at most a share `xi` of the negatives, or of the safe
    rollouts, raises an alarm, if alarms are raised where the score is at or above `threshold`, or
    at or above any higher threshold.

    The probability is over the draw of the rows, which must be independent draws from the
    distribution of use and not selected by score. It says nothing about positives that are missed:
    it does not claim safety, and `Shield` does not take it. `certify_false_alarms` makes such a
    certificate, and `load_certificate` reads one.

    A refusal has `certified` False and the threshold +inf: no alarms.

    Attributes
    ----------
    n : int
        The number of rows, or of rollouts, that were counted.
    xi : float
        The share of the negatives that may raise an alarm. This is what is certified.
    delta : float
        The chance that more do.
    unit : str
        What raises alarms: "rows", which are negative or positive, or "rollouts", which are safe or
        unsafe.
    limit : float
        The threshold as the file has it. Use `threshold`, which raises if the file was changed.
    allowed : int
        How many of the negatives among these rows may raise an alarm.
    cells : ndarray
        The cells of 2^-16 that rows fell into, rising; -1 for rollouts that were lost.
    negative, positive : ndarray
        How many rows of each cell are negative (safe) and positive (unsafe).
    refusal : Refusal or None
        Why nothing is certified, and about how many negatives it would take; None if it is.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> from pacbound import certify_false_alarms
    >>> scores = [0.9] * 100 + [0.7] * 20 + [0.1] * 880
    >>> positive = [True] * 100 + [False] * 900
    >>> certificate = certify_false_alarms(scores, positive, xi=0.05, delta=0.01)
    >>> round(certificate.threshold, 3), certificate.observed_false_alarm_rate
    (0.1, 0.022222222222222223)
    >>> certificate.flags([0.05, 0.5])
    array([False,  True])
    """

    kind: ClassVar[str] = "false-alarms"
    n: int
    xi: float
    delta: float
    unit: Unit
    limit: float
    allowed: int
    cells: Integers = field(repr=False)
    negative: Integers = field(repr=False)
    positive: Integers = field(repr=False)
    refusal: Refusal | None

    def __post_init__(self) -> None:
        for name in ("cells", "negative", "positive"):
            object.__setattr__(self, name, sealed(getattr(self, name)))

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        *,
        xi: float,
        delta: float,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Certify a recall tally or a shield tally; `certify_false_alarms` does this for rows,
        rollouts and tallies alike.

        Parameters
        ----------
        tally
            A recall tally (negative and positive rows) or a shield tally (safe and unsafe
            rollouts).
        xi, delta
            As in `certify_false_alarms`.
        columns
            The names of the columns that were counted, for the provenance.

        Returns
        -------
        FalseAlarmCertificate
            The threshold. A refusal has `certified` False and the threshold +inf (no alarms).

        Raises
        ------
        InvalidValueError
            If the tally is neither, has no rows, or does not add up; if `xi` is not a rate or
            `delta` not above 0 and at most 0.5.

        Examples
        --------
        >>> from pacbound import Tally
        >>> tally = Tally.from_arrays(score=[0.1] * 50, positive=[False] * 50)
        >>> refused = FalseAlarmCertificate.from_tally(tally, xi=0.05, delta=0.01)
        >>> refused.certified, refused.refusal.needed
        (False, 90)
        """
        require_is_tally(tally)
        unit: Unit = "rollouts" if tally.kind == "shield" else "rows"
        if unit == "rollouts":
            require_tally(tally, "shield", GRID, lowest=LOST, columns="scores and unsafe")
        else:
            require_tally(tally, "recall", GRID, lowest=0, columns="score and positive")
        share, level = tolerated_rate(xi), claimed_delta(delta)
        hit = tally.counts.any(axis=1)
        cells, (negative, positive) = tally.cells[hit, 0], tally.counts[hit].T
        decision = _decide(cells, negative, positive, unit, share, level)
        return cls(
            n=tally.rows,
            xi=share,
            delta=level,
            unit=unit,
            limit=decision.threshold,
            allowed=decision.allowed,
            cells=cells,
            negative=negative,
            positive=positive,
            refusal=decision.refusal,
            provenance=Provenance.of(tally, columns),
            draw=tally.drawn,
        )

    @property
    def certified(self) -> bool:
        """Whether the rows support the claim; False is a refusal, and `refusal` says why."""
        return self.refusal is None

    @property
    def threshold(self) -> float:
        """The lowest score from which alarms may be raised, as may be from any higher one; +inf (no
        alarms) if the claim is refused.
        """
        self.require_intact()
        return self.limit

    @property
    def lost(self) -> int:
        """Rollouts that were lost: each counts as a safe one that raises an alarm."""
        return _lost(self.cells, self.negative, self.positive)

    @property
    def negatives(self) -> int:
        """The number of negatives, or of safe rollouts with those that were lost."""
        return self.lost + exact_sum(self.negative[self.cells >= 0])

    @property
    def positives(self) -> int:
        """The number of positives, or of unsafe rollouts."""
        return exact_sum(self.positive)

    @property
    def observed_false_alarm_rate(self) -> float | None:
        """The share of these negatives that raises an alarm; None if there are none. Descriptive:
        it is not certified.
        """
        return self._alarms / self.negatives if self.negatives else None

    @property
    def observed_recall(self) -> float | None:
        """The share of these positives that raises an alarm; None if there are none. Descriptive:
        nothing about positives is certified.
        """
        found = exact_sum(self.positive[self._raised])
        return found / self.positives if self.positives else None

    @property
    def _alarms(self) -> int:
        return self.lost + exact_sum(self.negative[self._raised])

    @property
    def _raised(self) -> NDArray[np.bool_]:
        return np.asarray(self.cells >= self.limit * TOP)

    def flags(self, score: Any) -> NDArray[np.bool_]:
        """Which rows raise an alarm.

        Parameters
        ----------
        score
            One score in [0, 1] per row.

        Returns
        -------
        ndarray of bool
            True where the score is at or above the threshold; nowhere if the claim is refused.

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
        if self.negatives or self.unit == "rollouts":
            return None
        return none_is("negative", self.n, "Name the column that is 0 in negative rows.")

    def row_rule(self) -> RowRule:
        """Whether to flag each row."""
        self.require_verified()
        steps = RowSteps((Limit(self.limit, closed=True),), {APPLIED: (0, 1)})
        return RowRule(1, steps, role="score", ones="flagged")

    def alarm_curve(self) -> AlarmCurve:
        """The shares of negatives and of positives that raise an alarm against the threshold, as
        seen in these rows. Descriptive: no point is certified.

        Returns
        -------
        AlarmCurve
            The thresholds from the highest score down, with both shares at each.
        """
        seen = self.cells >= 0
        false = self.lost + np.cumsum(self.negative[seen][::-1])
        found = np.cumsum(self.positive[seen][::-1])
        return AlarmCurve(
            self.cells[seen][::-1] / TOP,
            false / self.negatives if self.negatives else np.full(false.size, np.nan),
            found / self.positives if self.positives else np.full(found.size, np.nan),
        )

    def claimed(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "procedure": NAMES[self.unit],
            "assumptions": list(false_alarms.ASSUMPTIONS[self.unit]),
            "certified": self.certified,
            "n": self.n,
            "xi": self.xi,
            "delta": self.delta,
            "threshold": encode_float(self.limit),
            "allowed_false_alarms": self.allowed,
            "counts": {
                "cells": self.cells.tolist(),
                "negative": self.negative.tolist(),
                "positive": self.positive.tolist(),
            },
            "descriptive": {
                "observed_false_alarm_rate": self.observed_false_alarm_rate,
                "observed_recall": self.observed_recall,
            },
        }

    def counted(self) -> dict[str, Json]:
        claim = self.claimed()
        return {key: claim[key] for key in ("kind", "procedure", "n", "xi", "delta", "counts")}

    def recomputed(self) -> FalseAlarmCertificate:
        decision = _decide(self.cells, self.negative, self.positive, self.unit, self.xi, self.delta)
        return replace(
            self,
            limit=decision.threshold,
            allowed=decision.allowed,
            refusal=decision.refusal,
            loaded=None,
        )

    @classmethod
    def from_claim(cls, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]) -> Self:
        known: dict[str, Unit] = {name: unit for unit, name in NAMES.items()}
        unit = known[require(claim.text("procedure"), *known)]
        n = claim.positive("n")
        cells, negative, positive = _read_counts(claim.mapping("counts"), n, unit)
        return cls(
            n=n,
            xi=claim.rate("xi"),
            delta=claim.probability("delta"),
            unit=unit,
            limit=read_threshold(claim, np.inf, lowest=1),
            allowed=claim.integer("allowed_false_alarms"),
            cells=cells,
            negative=negative,
            positive=positive,
            refusal=read_refusal(claim),
            provenance=provenance,
            loaded=loaded,
        )

    def words(self) -> str:
        """The claim in words."""
        negatives = NEGATIVES[self.unit]
        lost = f" ({self.lost:,} lost, which count so)" if self.lost else ""
        of_them = "safe" if self.unit == "rollouts" else "negative"
        head = (
            f"False-alarm certificate: {self.n:,} {self.unit}, {self.negatives:,} of them "
            f"{of_them}{lost}, xi = {exact(self.xi)}, delta = {exact(self.delta)}"
        )
        if self.refusal is not None:
            refused = described_refusal(self.refusal, negatives, "Raise no alarms.")
            return "\n".join([head, *refused])
        found = "no" if self.observed_recall is None else f"{self.observed_recall:.2%} of the"
        positives = "unsafe rollouts" if self.unit == "rollouts" else "positives"
        return "\n".join(
            [
                head,
                f"Raise an alarm where the {self._score} is at least {self.limit!r}, or from any "
                "higher threshold on.",
                (
                    f"With probability at least {likelihood(self.delta)} over the draw of these "
                    f"{self.unit}, at most {exact(self.xi)} of all {negatives} then raise an alarm."
                ),
                (
                    f"It says nothing about the {positives} that raise no alarm"
                    + (": a shield does not take it." if self.unit == "rollouts" else ".")
                ),
                (
                    f"On these {self.unit} (descriptive): {self._alarms:,} {negatives} raise an "
                    f"alarm ({self.allowed:,} may), and so do {found} {positives}."
                ),
            ]
        )

    @property
    def _score(self) -> str:
        return "danger" if self.unit == "rollouts" else "score"


def _lost(cells: Integers, negative: Integers, positive: Integers) -> int:
    gone = cells == LOST
    return exact_sum(negative[gone]) + exact_sum(positive[gone])


def _decide(  # noqa: PLR0913, RUF100
    cells: Integers, negative: Integers, positive: Integers, unit: Unit, xi: float, delta: float
) -> AlarmDecision:
    seen, lost = cells != LOST, _lost(cells, negative, positive)
    return false_alarms.decide(cells[seen], negative[seen], lost, unit, xi=xi, delta=delta)


def _read_counts(part: Reader, n: int, unit: Unit) -> tuple[Integers, Integers, Integers]:
    lowest = LOST if unit == "rollouts" else 0
    cells, negative, positive = read_counts(part, OUTCOMES, lowest=lowest)
    if cells[0] == LOST and negative[0]:
        raise CertificateError(f"{part.place('negative')}: a rollout that was lost is not safe.")
    require_total(part, n, negative, positive)
    return cells, negative, positive

"""The cascade certificate: the threshold at which the fast model may answer for the slow one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.document import Certificate, Provenance, Reader, likelihood
from pacbound.certificate.refusal import claimed_refusal, described_refusal, read_refusal
from pacbound.documents import Json, encode_float
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.procedures import cascade as procedure
from pacbound.procedures.cascade import TOP, Bound, CascadeDecision, Walk
from pacbound.procedures.refusal import Refusal
from pacbound.procedures.registry import require
from pacbound.stats.arguments import failure_probability, tolerated_rate
from pacbound.tally.tally import Tally

Floats = NDArray[np.float64]

_COLUMNS = ("cells", "exits", "differ", "only_slow", "only_fast")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CascadeCertificate(Certificate):
    """With probability at least 1 - `delta` the cascade at `thresholds` loses at most `xi` accuracy against its slow model.

    What is certified is `xi`. Exit rate and observed error increase are descriptive: they were seen at a threshold that was
    chosen from the same rows. `cell` is the threshold times 2^16, None if the claim is refused.
    """

    kind: ClassVar[str] = "cascade"
    n: int
    xi: float
    delta: float
    bound: Bound
    cell: int | None
    walk: Walk
    refusal: Refusal | None

    @classmethod
    def from_tally(
        cls, tally: Tally, *, xi: float, delta: float, bound: Bound = "exact", columns: Mapping[str, str] | None = None
    ) -> Self:
        """Certify a cascade tally of two models."""
        if tally.kind != "cascade" or tally.cells.shape[1] != 1:
            raise InvalidValueError(
                f"{tally!r} is no tally of a cascade of two models: count with confidences, predictions, labels."
            )
        if tally.rows == 0:
            raise InvalidValueError("There are no rows to certify a cascade on: pass at least one.")
        walk = Walk.from_counts(tally.cells[:, 0], tally.counts)
        provenance = Provenance.now(tally.sources, columns)
        return cls._decided(
            walk, n=tally.rows, xi=tolerated_rate(xi), delta=failure_probability(delta), bound=bound, provenance=provenance
        )

    @classmethod
    def _decided(cls, walk: Walk, *, n: int, xi: float, delta: float, bound: Bound, provenance: Provenance) -> Self:
        decision: CascadeDecision = procedure.decide(walk, n, xi=xi, delta=delta, bound=bound)
        return cls(
            n=n,
            xi=xi,
            delta=delta,
            bound=bound,
            provenance=provenance,
            cell=decision.cell,
            walk=decision.walk,
            refusal=decision.refusal,
        )

    @property
    def certified(self) -> bool:
        return self.cell is not None

    @cached_property
    def thresholds(self) -> Floats:
        """A row exits early if its float64 score is at or above this; +inf if the claim is refused."""
        self.require_intact()
        return np.array([np.inf if self.cell is None else self.cell / TOP])

    @property
    def exit_rates(self) -> Floats:
        """The share of the rows that exited early; descriptive."""
        return np.array([self._seen.exits[0] / self.n])

    @property
    def observed_error_increase(self) -> float:
        """The accuracy lost on these very rows; descriptive, and not an unbiased estimate."""
        return float((self._seen.only_slow[0] - self._seen.only_fast[0]) / self.n)

    @property
    def _seen(self) -> Walk:
        """The counts at the certified threshold, none if it is refused."""
        if self.cell is None:
            nothing = np.zeros(1, dtype=np.int64)
            return Walk(nothing, nothing, nothing, nothing, nothing)
        return self.walk.at(np.array([self.cell]))

    def claim(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "procedure": procedure.NAMES[self.bound],
            "assumptions": list(procedure.ASSUMPTIONS),
            "certified": self.certified,
            "n": self.n,
            "xi": self.xi,
            "delta": self.delta,
            "thresholds": [encode_float(np.inf if self.cell is None else self.cell / TOP)],
            "walk": {name: getattr(self.walk, name).tolist() for name in _COLUMNS},
            "refusal": claimed_refusal(self.refusal),
            "descriptive": {
                "exit_rates": self.exit_rates.tolist(),
                "observed_error_increase": self.observed_error_increase,
            },
        }

    def recomputed(self) -> CascadeCertificate:
        return self._decided(self.walk, n=self.n, xi=self.xi, delta=self.delta, bound=self.bound, provenance=self.provenance)

    @classmethod
    def from_claim(cls, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]) -> Self:
        name = require(claim.text("procedure"), *procedure.NAMES.values())
        bound = next(bound for bound, known in procedure.NAMES.items() if known == name)
        n = claim.count("n")
        return cls(
            n=n,
            xi=claim.rate("xi"),
            delta=claim.probability("delta"),
            bound=bound,
            cell=_read_cell(claim),
            walk=_read_walk(claim.mapping("walk"), n),
            refusal=read_refusal(claim),
            provenance=provenance,
            loaded=loaded,
        )

    def summary(self) -> str:
        """The claim in words."""
        head = f"Cascade certificate: {self.n:,} rows, xi = {self.xi:g}, delta = {self.delta:g}, bound {self.bound!r}"
        if self.cell is None:
            return "\n".join([head, *described_refusal(self.refusal, "labels", "Never exit early.")])
        threshold = self.cell / TOP
        useless = " Nothing exits early there: certified, but of no use." if self.exit_rates[0] == 0 else ""
        return "\n".join(
            [
                head,
                f"Let the fast model answer where its score is at least {threshold!r}. With probability at least "
                f"{likelihood(self.delta)} over the draw of these rows, that loses at most {self.xi:g} accuracy "
                "against the slow model alone.",
                f"On these rows (descriptive): {self.exit_rates[0]:.1%} exit early, error increase "
                f"{self.observed_error_increase:+.4f}.{useless}",
            ]
        )


def _read_cell(claim: Reader) -> int | None:
    thresholds = claim.numbers("thresholds")
    if len(thresholds) != 1:
        raise CertificateError(f"{claim.place('thresholds')} has {len(thresholds)} values: expected one.")
    if thresholds[0] == np.inf:
        return None
    cell = thresholds[0] * TOP
    if cell != np.floor(cell) or not 0 <= cell <= TOP:
        raise CertificateError(f"{claim.place('thresholds')}[0] is {thresholds[0]}, which is not on the grid of 2^-16.")
    return int(cell)


def _read_walk(part: Reader, n: int) -> Walk:
    columns: dict[str, Any] = {name: np.array(part.integers(name), dtype=np.int64) for name in _COLUMNS}
    if len({column.size for column in columns.values()}) != 1 or not columns["cells"].size:
        raise CertificateError(f"{part.place('cells')}: expected lists of one length, at least one step.")
    walk = Walk(**columns)
    if walk.cells[0] != TOP or walk.cells[-1] < 0 or (np.diff(walk.cells) >= 0).any():
        raise CertificateError(f"{part.place('cells')} does not fall from {TOP} towards 0.")
    if any((np.diff(columns[name]) < 0).any() or columns[name][0] < 0 for name in _COLUMNS[1:]):
        raise CertificateError(f"{part.place('exits')}: counts fall along the walk, which they cannot.")
    if (walk.only_slow + walk.only_fast > walk.differ).any() or (walk.differ > walk.exits).any() or walk.exits[-1] > n:
        raise CertificateError(f"{part.place('differ')}: expected only_slow + only_fast <= differ <= exits <= n.")
    return walk

"""The shield certificate: the danger score at which a policy must hand over to its backup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.document import Certificate, Provenance, exact, likelihood, sealed
from pacbound.certificate.fine_counts import read_threshold
from pacbound.certificate.looks import plan_of, plan_work, read_looks, require_all_rows
from pacbound.certificate.refusal import described_refusal, read_refusal
from pacbound.certificate.tally_checks import exact_sum, require_tally
from pacbound.documents import Json, Reader, encode_float
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.procedures import shield, shield_among_unsafe, shield_looks, shield_product
from pacbound.procedures.refusal import Refusal
from pacbound.procedures.registry import require
from pacbound.procedures.shield import TOP, Bound, Rate, ShieldDecision
from pacbound.stats.arguments import claimed_delta, is_one_of, tolerated_rate, whole_number
from pacbound.stats.looks import PlannedLooks, plan_at
from pacbound.tally.questions.shield import GRID
from pacbound.tally.tally import Tally

Integers = NDArray[np.int64]

Method = tuple[Rate, Bound]

NAMES: dict[Method, str] = {
    ("all", "exact"): shield.EXACT,
    ("all", "product"): shield_product.NAME,
    ("among-unsafe", "exact"): shield_among_unsafe.NAME,
}
ASSUMPTIONS: dict[Method, tuple[str, ...]] = {
    ("all", "exact"): shield.ASSUMPTIONS,
    ("all", "product"): shield_product.ASSUMPTIONS,
    ("among-unsafe", "exact"): shield_among_unsafe.ASSUMPTIONS,
}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ShieldCertificate(Certificate):
    """With probability at least 1 - `delta` at most a share `xi` of the rollouts under the shield
    is unsafe; with the rate "among-unsafe", at most a share `xi` of the unsafe rollouts is missed.

    The shield fires once the danger is at or above `threshold`, and stays fired. The probability is
    over the draw of the rollouts, which must be independent draws from the distribution of use,
    taken without the shield. `certify_shield` makes such a certificate, and `load_certificate`
    reads one.

    A refusal has `certified` False and the threshold -inf: always brake.

    Attributes
    ----------
    n : int
        The number of rollouts that were counted.
    xi : float
        The share of the rollouts that may be unsafe under the shield; with the rate "among-unsafe",
        the share of the unsafe rollouts that may be missed. This is what is certified.
    delta : float
        The chance that more are.
    bound : str
        "exact" or "product".
    rate : str
        What the share is of: "all" rollouts, or those "among-unsafe".
    limit : float
        The threshold as the file has it. Use `threshold`, which raises if the file was changed.
    unsafe : int or None
        The number of unsafe rollouts, where the decision looks at it: for the product, and for the
        rate among them; else None.
    cells, misses : ndarray
        The search for the threshold: how many unsafe rollouts stay unnoticed up to and including
        each cell.
    allowed : int
        How many unsafe rollouts may stay unnoticed among `n`.
    interventions : int
        How many of these rollouts the shield would have stopped; descriptive.
    looks : tuple of int or None
        The planned looks, one of which is `n`; None if the number of rollouts was fixed.
    horizon : int or None
        The most steps of a rollout, which the claim is about: nothing is said about longer ones.
        None if it was not told.
    refusal : Refusal or None
        Why nothing is certified, and about how many rollouts it would take; None if it is.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> from pacbound import certify_shield
    >>> scores, unsafe = [0.1] * 950 + [0.9] * 50, [False] * 950 + [True] * 50
    >>> certificate = certify_shield(scores, unsafe, xi=0.02, delta=0.01)
    >>> certificate.certified, round(certificate.threshold, 3), certificate.interventions
    (True, 0.9, 50)

    Thirty rollouts cannot show it, whatever they are:

    >>> refused = certify_shield(scores[:30], unsafe[:30], xi=0.02, delta=0.01)
    >>> refused.certified, refused.threshold
    (False, -inf)
    """

    kind: ClassVar[str] = "shield"
    n: int
    xi: float
    delta: float
    bound: Bound
    rate: Rate = "all"
    limit: float
    unsafe: int | None
    cells: Integers
    misses: Integers
    allowed: int
    interventions: int
    refusal: Refusal | None
    looks: tuple[int, ...] | None = None
    horizon: int | None = None

    def __post_init__(self) -> None:
        for name in ("cells", "misses"):
            object.__setattr__(self, name, sealed(getattr(self, name)))

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        *,
        xi: float,
        delta: float,
        bound: Bound = "exact",
        rate: Rate = "all",
        looks: PlannedLooks | Sequence[int] | None = None,
        horizon: int | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Certify a shield tally; `certify_shield` does this for rollouts and tallies alike.

        Parameters
        ----------
        tally
            A shield tally of running maxima or, for the product, of the dangers at the first
            un-recoverable state. Taking one for the other is loose, never wrong: the maximum is at
            least the last danger.
        xi, delta, bound, rate, looks, horizon
            As in `certify_shield`.
        columns
            The names of the columns that were counted, for the provenance.

        Returns
        -------
        ShieldCertificate
            The threshold. A refusal has `certified` False and the threshold -inf (always brake).

        Raises
        ------
        InvalidValueError
            If the tally is not one of a shield, has no rows, or does not add up; if `xi`, `delta`,
            `bound`, `rate`, `looks` or `horizon` cannot be what it should be, or no look was
            planned at so many rows.

        Examples
        --------
        >>> from pacbound import Tally
        >>> tally = Tally.from_arrays(scores=[0.1] * 500, unsafe=[False] * 500)
        >>> ShieldCertificate.from_tally(tally, xi=0.02, delta=0.01).certified
        True
        """
        _check(tally, bound, rate)
        xi, delta = tolerated_rate(xi), claimed_delta(delta)
        if looks is not None:
            require_all_rows(tally)
        plan = None if looks is None else _plan(looks, xi, delta, bound, rate)
        cells, counts = tally.cells[:, 0], tally.counts
        counts_unsafe = (rate, bound) != ("all", "exact")
        unsafe = exact_sum(counts[:, 1]) if counts_unsafe else None
        decision = _decide(rate, cells, counts[:, 1], unsafe, tally.rows, xi, delta, plan)
        fired = cells >= TOP * decision.threshold
        return cls(
            n=tally.rows,
            xi=xi,
            delta=delta,
            bound=bound,
            rate=rate,
            limit=decision.threshold,
            unsafe=unsafe,
            cells=decision.cells,
            misses=decision.misses,
            allowed=decision.allowed,
            interventions=exact_sum(counts[fired]),
            refusal=decision.refusal,
            looks=None if plan is None else plan.looks,
            horizon=None if horizon is None else whole_number(horizon, "horizon", least=1),
            provenance=Provenance.of(tally, columns),
            draw=tally.drawn,
        )

    @property
    def certified(self) -> bool:
        """Whether the rollouts support the claim; False is a refusal, and `refusal` says why."""
        return self.refusal is None

    @property
    def threshold(self) -> float:
        """The shield fires iff danger >= threshold; -inf (always brake) if the claim is refused."""
        self.require_intact()
        return self.limit

    @property
    def look(self) -> int | None:
        """Which of the planned looks this is, from 1; None if the number of rollouts was fixed."""
        return None if self.looks is None else self.looks.index(self.n) + 1

    def work(self) -> float:
        return plan_work(self.looks, xi=self.xi, delta=self.delta)

    @property
    def observed_miss_rate(self) -> float:
        """The share of the rollouts that were unsafe and would not be stopped, among all or among
        the unsafe ones, as the rate says; descriptive.
        """
        among = self.n if self.rate == "all" or self.unsafe is None else self.unsafe
        return self._missed / among if among else 0.0

    @property
    def _missed(self) -> int:
        if self.refusal is not None:
            return int(self.misses[0]) if self.misses.size and self.cells[0] < 0 else 0
        below = self.misses[self.cells < self.limit * TOP]
        return int(below[-1]) if below.size else 0

    def claimed(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "procedure": NAMES[self.rate, self.bound] if self.looks is None else shield_looks.NAME,
            "assumptions": list(
                ASSUMPTIONS[self.rate, self.bound]
                if self.looks is None
                else shield_looks.ASSUMPTIONS
            ),
            "certified": self.certified,
            "n": self.n,
            "xi": self.xi,
            "delta": self.delta,
            **({} if self.looks is None else {"looks": list(self.looks), "look": self.look}),
            **({} if self.unsafe is None else {"unsafe": self.unsafe}),
            **({} if self.horizon is None else {"horizon": self.horizon}),
            "threshold": encode_float(self.limit),
            "allowed_misses": self.allowed,
            "search": {"cells": self.cells.tolist(), "misses": self.misses.tolist()},
            "descriptive": {
                "observed_miss_rate": self.observed_miss_rate,
                "interventions": self.interventions,
            },
        }

    def counted(self) -> dict[str, Json]:
        claim = self.claimed()
        keys = ("kind", "procedure", "n", "xi", "delta", "looks", "unsafe", "horizon", "search")
        return {key: claim[key] for key in keys if key in claim}

    def recomputed(self) -> ShieldCertificate:
        unsafe = np.diff(self.misses, prepend=0)
        plan = None if self.looks is None else plan_at(self.xi, delta=self.delta, looks=self.looks)
        decision = _decide(
            self.rate, self.cells, unsafe, self.unsafe, self.n, self.xi, self.delta, plan
        )
        again = replace(
            self,
            limit=decision.threshold,
            cells=decision.cells,
            misses=decision.misses,
            allowed=decision.allowed,
            refusal=decision.refusal,
            loaded=None,
        )
        fewest, most = again._interventions_implied()
        return replace(again, interventions=min(max(self.interventions, fewest), most))

    def _interventions_implied(self) -> tuple[int, int]:
        """The fewest and the most rollouts that can have been stopped. Where safe rollouts stand
        is not part of the search, so no more than this follows from it.
        """
        if np.isinf(self.limit):
            return (self.n, self.n) if self.limit < 0 else (0, 0)
        most = self.n - self._missed
        if self.limit == 0:
            return most, most
        found = int(self.misses[-1]) if self.unsafe is None else self.unsafe
        return found - self._missed, most

    @classmethod
    def from_claim(cls, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]) -> Self:
        known: dict[str, Method] = {name: method for method, name in NAMES.items()}
        known[shield_looks.NAME] = ("all", "exact")
        procedure = require(claim.text("procedure"), *known)
        rate, bound = known[procedure]
        n = claim.positive("n")
        cells, misses = _read_search(claim.mapping("search"), n)
        limit = read_threshold(claim, -np.inf, np.inf)
        return cls(
            n=n,
            xi=claim.rate("xi"),
            delta=claim.probability("delta"),
            bound=bound,
            rate=rate,
            limit=limit,
            unsafe=(
                _read_unsafe(claim, n, int(misses[-1]) if misses.size else 0, limit)
                if (rate, bound) != ("all", "exact")
                else None
            ),
            cells=cells,
            misses=misses,
            allowed=claim.integer("allowed_misses"),
            interventions=_read_interventions(claim, n),
            refusal=read_refusal(claim),
            looks=read_looks(claim, n, "n") if procedure == shield_looks.NAME else None,
            horizon=claim.positive("horizon") if claim.has("horizon") else None,
            provenance=provenance,
            loaded=loaded,
        )

    def words(self) -> str:
        """The claim in words."""
        head = (
            f"Shield certificate: {self.n:,} rollouts, xi = {exact(self.xi)}, delta = "
            f"{exact(self.delta)}, bound {self.bound!r}"
            + (f", rate {self.rate!r}" if self.rate != "all" else "")
        )
        if self.looks is not None:
            head += f", look {self.look} of {len(self.looks)}"
        if self.refusal is not None:
            unit = "rollouts" if self.rate == "all" else "unsafe rollouts"
            return "\n".join([head, *described_refusal(self.refusal, unit, "Always brake.")])
        return "\n".join(
            [
                head,
                (
                    f"{self._rule()}\nWith probability at least {likelihood(self.delta)} over the "
                    f"draw of these rollouts, at most {exact(self.xi)} of {self._promised()}."
                ),
                (
                    f"On these rollouts (descriptive): {self._missed:,} would be missed "
                    f"({self.allowed:,} may be), {self._stopped()} stopped.{self._caveat()}"
                ),
            ]
        )

    def _rule(self) -> str:
        if self.limit == np.inf:
            return "Never hand over to the backup."
        return (
            f"Hand over to the backup once the danger is at least {self.limit!r}, and until reset."
        )

    def _promised(self) -> str:
        rollouts = "all rollouts"
        if self.horizon is not None:
            rollouts += f" of at most {self.horizon:,} steps"
        return (
            f"{rollouts} are then unsafe"
            if self.rate == "all"
            else f"{rollouts} that have an un-recoverable state are then missed"
        )

    def _stopped(self) -> str:
        # What the product counts by is the last danger before it is too late; the shield may fire
        # at an earlier one.
        least = "at least " if self.bound == "product" and self.limit < np.inf else ""
        return f"{least}{self.interventions:,}"

    def _caveat(self) -> str:
        if self.limit == 0:
            return (
                " Every danger is at least 0: the shield always fires, so this is certified but of "
                "no use."
            )
        return " The policy alone keeps xi: the shield never fires." if self.limit == np.inf else ""


def _check(tally: Tally, bound: str, rate: str) -> None:
    require_tally(tally, "shield", GRID, lowest=-1, columns="scores and unsafe")
    if not is_one_of(bound, ("exact", "product")):
        raise InvalidValueError(
            f"bound={bound!r} is not known: expected 'exact' or 'product' (the paper's)."
        )
    if not is_one_of(rate, ("all", "among-unsafe")):
        raise InvalidValueError(
            f"rate={rate!r} is not known: expected 'all', or 'among-unsafe' for the misses among "
            "unsafe rollouts."
        )
    if (rate, bound) not in NAMES:
        raise InvalidValueError(
            f"bound={bound!r} is about all rollouts: with rate={rate!r} leave it out."
        )


def _plan(
    looks: PlannedLooks | Sequence[int], xi: float, delta: float, bound: Bound, rate: Rate
) -> PlannedLooks:
    """The plan that was passed, or that of the looks that were."""
    if rate != "all":
        raise InvalidValueError(
            f"looks are planned numbers of rollouts and go with rate='all', not with {rate!r}: "
            "pass delta divided by the number of looks at each of them instead."
        )
    if bound != "exact":
        raise InvalidValueError(
            f"looks go with bound='exact', not with {bound!r}: pass delta divided by the number of "
            "looks at each of them instead."
        )
    return plan_of(looks, xi=xi, delta=delta)


def _decide(  # noqa: PLR0913, RUF100
    rate: Rate,
    cells: Integers,
    unsafe: Integers,
    total: int | None,
    n: int,
    xi: float,
    delta: float,
    plan: PlannedLooks | None,
) -> ShieldDecision:
    if plan is not None:
        return shield_looks.decide(cells, unsafe, n, plan)
    if rate == "among-unsafe" and total is not None:
        return shield_among_unsafe.decide(cells, unsafe, total, xi=xi, delta=delta)
    if total is None:
        return shield.decide(cells, unsafe, n, xi=xi, delta=delta)
    return shield_product.decide(cells, unsafe, total, n, xi=xi, delta=delta)


def _read_interventions(claim: Reader, n: int) -> int:
    stopped = claim.mapping("descriptive").count("interventions")
    if stopped > n:
        raise CertificateError(
            f"{claim.place('descriptive')}.interventions is {stopped}: there are {n} rollouts."
        )
    return stopped


def _read_search(part: Reader, n: int) -> tuple[Integers, Integers]:
    cells, misses = (
        np.array(part.integers("cells"), dtype=np.int64),
        np.array(part.integers("misses"), dtype=np.int64),
    )
    if cells.size != misses.size:
        raise CertificateError(f"{part.place('cells')}: lists of different length.")
    if cells.size and (cells[0] < -1 or cells[-1] > TOP or (np.diff(cells) <= 0).any()):
        raise CertificateError(f"{part.place('cells')} does not rise from -1 towards {TOP}.")
    if misses.size and (misses[0] < 1 or (np.diff(misses) < 1).any() or misses[-1] > n):
        raise CertificateError(f"{part.place('misses')} does not rise up to n.")
    return cells, misses


def _read_unsafe(claim: Reader, n: int, misses: int, limit: float) -> int:
    """The number of unsafe rollouts; where the shield never fires, the search has passed all of
    them.
    """
    unsafe = claim.count("unsafe")
    if not misses <= unsafe <= n or (limit == np.inf and unsafe != misses):
        raise CertificateError(
            f"{claim.place('unsafe')} is {unsafe}, which does not fit {misses} misses of {n} "
            "rollouts."
        )
    return unsafe

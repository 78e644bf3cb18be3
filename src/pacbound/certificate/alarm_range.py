"""The alarm-range certificate: thresholds that miss few positives and raise few false alarms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.bundle import SeveralClaims, provenance_together, require_covered
from pacbound.certificate.document import Certificate, Provenance, exact, likelihood
from pacbound.certificate.false_alarms import FalseAlarmCertificate
from pacbound.certificate.recall import RecallCertificate
from pacbound.certificate.shield import ShieldCertificate
from pacbound.documents import Json, Reader, encode_float
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.procedures import alarm_range
from pacbound.procedures.registry import require
from pacbound.stats.arguments import claimed_delta, real_number

MISSES, FALSE_ALARMS = "misses", "false-alarms"
"""The names of the two claims."""

Misses = RecallCertificate | ShieldCertificate


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AlarmRangeCertificate(SeveralClaims):
    """With probability at least 1 - `delta`, every threshold from `lowest` to `highest` keeps both
    claims at once: few positives (unsafe rollouts) are missed, and few negatives (safe rollouts)
    raise an alarm.

    The two claims are certificates of their own, `misses` and `false_alarms`, about the same rows,
    and share `delta`. Any threshold of the range may be chosen, in sight of everything. `Shield`
    takes `misses`, whose threshold is `highest`. `certify_alarm_range` makes such a certificate,
    and `load_certificate` reads one.

    A refusal has `certified` False, `lowest` +inf and `highest` -inf: no threshold is known to keep
    both. A claim of the two that is certified stays right alone.

    Attributes
    ----------
    delta : float
        The chance that either claim is wrong.
    members : mapping of str to Certificate
        The two certificates as the file has them. Use `misses` and `false_alarms`, which raise if
        the file was changed.
    provenance : Provenance
        Where the certificates come from; columns are named as "claim.role".
    draw : None
        Each certificate says for itself how its rows were drawn.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> from pacbound import certify_alarm_range
    >>> score = [0.9] * 300 + [0.6] * 5 + [0.1] * 695
    >>> positive = [True] * 300 + [False] * 700
    >>> found = certify_alarm_range(score, positive, target=0.95, xi=0.05, delta=0.02)
    >>> found.certified, round(found.lowest, 3), round(found.highest, 3)
    (True, 0.1, 0.9)
    >>> found.holds(0.5), found.holds(0.95)
    (True, False)
    """

    kind: ClassVar[str] = "alarm-range"
    procedure: ClassVar[str] = alarm_range.NAME

    @classmethod
    def of(cls, misses: Misses, false_alarms: FalseAlarmCertificate, *, delta: float) -> Self:
        """Put two claims about the same rows together, which share `delta`.

        Parameters
        ----------
        misses
            A recall certificate, or a shield certificate of running maxima (bound "exact").
        false_alarms
            The certificate of the false alarms of the same rows.
        delta
            The chance that either is wrong: at least the sum of theirs.

        Returns
        -------
        AlarmRangeCertificate
            The range. A refusal has `certified` False, `lowest` +inf and `highest` -inf.

        Raises
        ------
        InvalidTypeError
            If one is not such a certificate.
        InvalidValueError
            If they are not about the same rows, or spend more than `delta` together.
        """
        level = claimed_delta(delta)
        members = {FALSE_ALARMS: false_alarms, MISSES: misses}
        _require_pair(members)
        for member in members.values():
            member.require_verified()
        _require_same_rows(misses, false_alarms)
        require_covered(members, level)
        return cls(delta=level, members=members, provenance=provenance_together(members))

    @property
    def misses(self) -> Misses:
        """The claim about the positives, or the unsafe rollouts, that raise no alarm."""
        self.require_verified()
        return self._misses

    @property
    def false_alarms(self) -> FalseAlarmCertificate:
        """The claim about the negatives, or the safe rollouts, that raise one."""
        self.require_verified()
        return self._false_alarms

    @property
    def _misses(self) -> Misses:
        found: Any = self.members[MISSES]
        checked: Misses = found
        return checked

    @property
    def _false_alarms(self) -> FalseAlarmCertificate:
        found: Any = self.members[FALSE_ALARMS]
        checked: FalseAlarmCertificate = found
        return checked

    @property
    def certified(self) -> bool:
        """Whether both claims are certified, and some threshold keeps both."""
        return alarm_range.is_range(
            self._false_alarms.limit,
            self._misses.limit,
            certified=all(member.certified for member in self.members.values()),
        )

    @property
    def lowest(self) -> float:
        """The lowest threshold that keeps both claims; +inf if there is none."""
        self.require_intact()
        return self._range[0]

    @property
    def highest(self) -> float:
        """The highest threshold that keeps both claims, +inf if no alarm need ever be raised; -inf
        if there is none.
        """
        self.require_intact()
        return self._range[1]

    @property
    def _range(self) -> tuple[float, float]:
        if not self.certified:
            return float("inf"), float("-inf")
        return self._false_alarms.limit, self._misses.limit

    def holds(self, threshold: float) -> bool:
        """Whether both claims hold at a threshold.

        Parameters
        ----------
        threshold
            An alarm is raised at or above it.

        Returns
        -------
        bool
            True from `lowest` to `highest`; never if the range is refused.

        Raises
        ------
        CertificateError
            If the certificate does not follow from its own counts.
        """
        self.require_verified()
        number = real_number(threshold, "threshold", "a threshold")
        return self.lowest <= number <= self.highest

    def says_nothing(self) -> str | None:
        found = (member.says_nothing() for member in self.members.values())
        return next((why for why in found if why is not None), None)

    def claimed(self) -> dict[str, Json]:
        lowest, highest = self._range
        return {
            "kind": self.kind,
            "procedure": self.procedure,
            "assumptions": list(alarm_range.ASSUMPTIONS),
            "certified": self.certified,
            "delta": self.delta,
            "lowest": encode_float(lowest),
            "highest": encode_float(highest),
            "claims": {name: member.claim() for name, member in self.members.items()},
        }

    @classmethod
    def from_claim(
        cls,
        claim: Reader,
        provenance: Provenance,
        loaded: Mapping[str, Json],
        members: Mapping[str, Certificate] | None = None,
    ) -> Self:
        """The range that a document describes; `members` are its two claims, read already."""
        require(claim.text("procedure"), alarm_range.NAME)
        level, found = claim.probability("delta"), dict(members or {})
        try:
            _require_pair(found)
            require_covered(found, level)
            one: Any = found[MISSES]
            other: Any = found[FALSE_ALARMS]
            _require_same_rows(one, other)
        except (InvalidTypeError, InvalidValueError) as error:
            raise CertificateError(f"{claim.place('claims')}: {error}") from None
        return cls(delta=level, members=found, provenance=provenance, loaded=loaded)

    def words(self) -> str:
        """The range in words, and both claims."""
        unit = self._false_alarms.unit
        head = f"Alarm range: misses and false alarms of the same {unit}, delta = "
        return "\n".join(
            [
                head + exact(self.delta),
                *(self._kept() if self.certified else self._refused()),
                f"\n{MISSES}: {self._misses.summary()}",
                f"\n{FALSE_ALARMS}: {self._false_alarms.summary()}",
            ]
        )

    def _kept(self) -> list[str]:
        lowest, highest = self._range
        up_to = "on, or never raise one" if highest == np.inf else f"up to {highest!r}"
        return [
            f"Raise alarms from any threshold from {lowest!r} {up_to}.",
            f"With probability at least {likelihood(self.delta)} over the draw of these "
            f"{self._false_alarms.unit}, both claims below hold at all of these thresholds.",
        ]

    def _refused(self) -> list[str]:
        refused = [name for name, member in self.members.items() if not member.certified]
        if refused:
            why = f"{' and '.join(refused)} alone cannot be certified, see below."
        else:
            seen = (
                "In these rows some threshold keeps both rates as they were seen, so more rows may "
                "help."
                if self._is_seen()
                else "In these rows no threshold keeps both rates even as they were seen: it takes "
                "a better score, or other rates."
            )
            why = (
                f"no threshold keeps both. To miss few it must be at most {self._misses.limit!r}, "
                f"and to raise few false alarms at least {self._false_alarms.limit!r}. {seen}"
            )
        return [f"REFUSED: {why}"]

    def _is_seen(self) -> bool:
        """Whether some threshold keeps both rates as these rows have them. Descriptive."""
        curve, misses = self._false_alarms.alarm_curve(), self._misses
        missed = 1.0 - curve.found
        if isinstance(misses, RecallCertificate):
            allowed = 1.0 - misses.target
        else:
            allowed = misses.xi
            if misses.rate == "all":
                missed = missed * self._false_alarms.positives / misses.n
        kept = (missed <= allowed) & (curve.false_alarms <= self._false_alarms.xi)
        return bool(kept.any())


def _require_pair(members: Mapping[str, Any]) -> None:
    misses, false_alarms = members.get(MISSES), members.get(FALSE_ALARMS)
    exact_misses = isinstance(misses, RecallCertificate) or (
        isinstance(misses, ShieldCertificate) and misses.bound == "exact"
    )
    if (
        len(members) != 2
        or not exact_misses
        or not isinstance(false_alarms, FalseAlarmCertificate)
        or (false_alarms.unit == "rollouts") != isinstance(misses, ShieldCertificate)
    ):
        raise InvalidTypeError(
            "A range is of two claims: expected a certificate of certify_recall, or of "
            "certify_shield with bound='exact', and one of certify_false_alarms about the same "
            "rows or rollouts."
        )


def _require_same_rows(misses: Misses, false_alarms: FalseAlarmCertificate) -> None:
    """Raise unless the counts of both claims can be those of the same rows: thresholds of different
    scores cannot be compared.
    """
    other = false_alarms
    if misses.n == other.n and _is_alike(misses, other) and misses.draw == other.draw:
        return
    raise InvalidValueError(
        f"The claims are about different rows ({misses.n:,} and {other.n:,}), so that one "
        "threshold cannot keep both: certify the same rows and the same score, with "
        "certify_alarm_range."
    )


def _is_alike(misses: Misses, other: FalseAlarmCertificate) -> bool:
    if isinstance(misses, RecallCertificate):
        pairs = (
            (misses.cells, other.cells),
            (misses.negative, other.negative),
            (misses.positive, other.positive),
        )
        return all(_same(mine, theirs) for mine, theirs in pairs)
    # A shield holds its search alone: the unsafe rollouts from below, up to where it ended.
    hit = other.positive > 0
    cells, missed = other.cells[hit], np.cumsum(other.positive[hit])
    size = misses.cells.size
    total = misses.unsafe is None or misses.unsafe == other.positives
    return total and _same(misses.cells, cells[:size]) and _same(misses.misses, missed[:size])


def _same(mine: NDArray[np.int64], theirs: NDArray[np.int64]) -> bool:
    return bool(np.array_equal(mine, theirs))

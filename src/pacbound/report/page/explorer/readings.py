"""What the counts of a certificate would give at another xi and delta, one function for each kind.

A certificate is asked again by its own procedure: `recomputed` with other values. Where it keeps
the counts only as far as its own decision needed them, the stricter values alone can be told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pacbound.certificate import (
    AlarmRangeCertificate,
    CascadeCertificate,
    Certificate,
    CertificateBundle,
    FalseAlarmCertificate,
    GroupedCascadeCertificate,
    RecallCertificate,
    ShieldCertificate,
)
from pacbound.certificate.document import amount
from pacbound.claims.claim import ClaimCertificate
from pacbound.errors import InvalidValueError
from pacbound.explorable import CERTIFIED, HOPELESS, REFUSED, UNTOLD, Explorable, Reading
from pacbound.report.page.explorer import cascades


def explorable(certificate: Certificate) -> Explorable | str:
    """How `certificate` is explored, or why it cannot be."""
    if not certificate.certified:
        return (
            "A refusal is not explored: another xi, chosen after the labels were seen, would carry "
            "no guarantee."
        )
    if isinstance(certificate, ClaimCertificate):
        return certificate.by.explorable(certificate)
    for kind, of in _KINDS.items():
        if isinstance(certificate, kind):
            return of(certificate)
    if isinstance(certificate, CertificateBundle | AlarmRangeCertificate):
        return "Each of the claims is explored on its own, below."
    return (
        "The answers of this batch are given, and its sample was drawn for this xi and delta: "
        "there is nothing to explore."
    )


def _of_recall(_: RecallCertificate) -> Explorable:
    names = ("Threshold", "Rows flagged", "Positives missed", "Misses allowed")
    return Explorable("target", names, _recall, "Rows flagged", whole=True)


def _recall(certificate: RecallCertificate, target: float | None, delta: float) -> Reading:
    again = _with_looks(certificate, target=target, delta=delta)
    if again is None:
        return Reading(HOPELESS, ("", "", "", ""))
    missed = 1 - (1.0 if again.observed_recall is None else again.observed_recall)
    return Reading(
        _verdict(again),
        (
            _limit(again.limit, "flag everything"),
            f"{again.flag_rate:.2%}",
            f"{round(missed * again.positives):,} of {again.positives:,}",
            f"{max(again.allowed, 0):,}",
        ),
        (again.flag_rate, again.flag_rate),
    )


def _of_false_alarms(_: FalseAlarmCertificate) -> Explorable:
    names = ("Threshold", "False alarms seen", "False alarms allowed", "Positives found")
    return Explorable("xi", names, _false_alarms, "Positives found", whole=True)


def _false_alarms(certificate: FalseAlarmCertificate, xi: float | None, delta: float) -> Reading:
    again = _again(certificate, xi=xi, delta=delta)
    false, found = again.observed_false_alarm_rate, again.observed_recall
    return Reading(
        _verdict(again),
        (
            _limit(again.limit, "no alarms"),
            f"{round((false or 0) * again.negatives):,} of {again.negatives:,}",
            f"{max(again.allowed, 0):,}",
            "none there" if found is None else f"{found:.2%}",
        ),
        None if found is None else (found, found),
    )


def _of_shield(_: ShieldCertificate) -> Explorable:
    names = ("Threshold", "Misses seen", "Misses allowed")
    return Explorable("xi", names, _shield, "Threshold on the danger")


def _shield(certificate: ShieldCertificate, xi: float | None, delta: float) -> Reading:
    again = _with_looks(certificate, xi=xi, delta=delta)
    if again is None:
        return Reading(HOPELESS, ("", "", ""))
    # An infinite threshold above all dangers is told only where the search has passed them all.
    if again.limit > certificate.limit:
        return Reading(UNTOLD, ("", "", ""))
    among = certificate.n if certificate.rate == "all" else certificate.unsafe
    seen = round(again.observed_miss_rate * (among or 0))
    limit = _limit(again.limit, "never fire" if again.limit > 0 else "always brake")
    drawn = (again.limit, again.limit) if np.isfinite(again.limit) else None
    return Reading(_verdict(again), (limit, f"{seen:,}", f"{max(again.allowed, 0):,}"), drawn)


def _again(certificate: Any, **asked: Any) -> Any:
    """The certificate decided again, from its own counts, with other values."""
    return replace(certificate, loaded=None, **asked).recomputed()


def _with_looks(certificate: Any, **asked: Any) -> Any:
    """The same; None where its looks make no plan, since not even the last of them could pass."""
    try:
        return _again(certificate, **asked)
    except InvalidValueError:
        if certificate.looks is None:
            raise
        return None


def _of_cascade(certificate: CascadeCertificate) -> Explorable | str:
    if certificate.method == "greedy":
        return "A greedy choice carries no proof, at no xi."
    return _exits(certificate.costs, certificate.exits, _cascade)


def _cascade(certificate: CascadeCertificate, xi: float | None, delta: float) -> Reading:
    asked: Any = {"xi": xi, "delta": delta, "loaded": None}
    return _told([cascades.outcome(replace(certificate, **asked), certificate)], certificate.costs)


def _of_groups(certificate: GroupedCascadeCertificate) -> Explorable | str:
    if certificate.method == "paths":
        return (
            "The certificate of several models in groups does not hold the counts that another xi "
            "would need."
        )
    own = certificate.group_thresholds == "own"
    return _exits(certificate.costs, certificate.exits, _groups, grouped=own)


def _groups(certificate: GroupedCascadeCertificate, xi: float | None, delta: float) -> Reading:
    again = _again(certificate, xi=xi, delta=delta)
    found = cascades.outcomes_by_group(again, certificate)
    if certificate.group_thresholds == "own":
        told = sum(part is not None and part.thresholds is not None for part in found)
        return _told(found, certificate.costs, first=f"{told} of {len(again.groups)}")
    return _told(found, certificate.costs)


def _exits(
    costs: tuple[float, ...] | None,
    exits: int,
    at: Callable[[Any, float | None, float], Reading],
    *,
    grouped: bool = False,
) -> Explorable:
    first = "Groups certified" if grouped else "Threshold" if exits == 1 else "Thresholds"
    paid = () if costs is None else ("Cost of a row",)
    drawn = paid[0] if paid else "Rows that exit early"
    return Explorable("xi", (first, "Rows that exit early", *paid), at, drawn)


def _told(
    found: Sequence[cascades.Outcome | None],
    costs: tuple[float, ...] | None,
    *,
    first: str | None = None,
) -> Reading:
    """What the outcomes of all groups, or of the only one, say together."""
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return Reading(UNTOLD, ("",) * (2 if costs is None else 3))
    n = sum(part.n for part in parts)
    fewest, most = (sum(ends) / n for ends in zip(*(part.exits for part in parts), strict=True))
    certified = any(part.thresholds is not None for part in parts)
    shown = first or _thresholds(parts[0].thresholds)
    values = [shown, _between(f"{fewest:.2%}", f"{most:.2%}")]
    drawn = fewest, most
    if costs is not None:
        least, most = (sum(ends) / n for ends in zip(*(part.cost for part in parts), strict=True))
        drawn = least, most
        values.append(_between(amount(least), amount(most)))
    return Reading(CERTIFIED if certified else REFUSED, tuple(values), drawn)


def _thresholds(thresholds: Sequence[float] | None) -> str:
    if thresholds is None:
        return "never exit early"
    return ", ".join(_limit(value, "never") for value in thresholds)


def _limit(value: float, infinite: str) -> str:
    return infinite if np.isinf(value) else repr(float(value))


def _between(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _verdict(certificate: Certificate) -> str:
    return CERTIFIED if certificate.certified else REFUSED


_KINDS: dict[type[Certificate], Callable[[Any], Explorable | str]] = {
    FalseAlarmCertificate: _of_false_alarms,
    RecallCertificate: _of_recall,
    ShieldCertificate: _of_shield,
    CascadeCertificate: _of_cascade,
    GroupedCascadeCertificate: _of_groups,
}

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
    CascadeCertificate,
    Certificate,
    CertificateBundle,
    GroupedCascadeCertificate,
)
from pacbound.certificate.document import amount
from pacbound.claims.claim import ClaimCertificate
from pacbound.explorable import CERTIFIED, REFUSED, UNTOLD, Explorable, Reading
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
    if isinstance(certificate, CertificateBundle):
        return "Each of the claims is explored on its own, below."
    return (
        "The answers of this batch are given, and its sample was drawn for this xi and delta: "
        "there is nothing to explore."
    )


def _again(certificate: Any, **asked: Any) -> Any:
    """The certificate decided again, from its own counts, with other values."""
    return replace(certificate, loaded=None, **asked).recomputed()


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
    CascadeCertificate: _of_cascade,
    GroupedCascadeCertificate: _of_groups,
}

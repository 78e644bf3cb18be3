"""The kinds of certificates that can be monitored, one file each.

To add one: a file with a watch, and its line in `WATCHES`.
"""

from __future__ import annotations

from pacbound.certificate import Certificate
from pacbound.claims.claim import ClaimCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.monitor.kinds.cascade import CascadeWatch
from pacbound.monitor.kinds.cascade_groups import GroupedCascadeWatch
from pacbound.tally.questions import with_article
from pacbound.watch import Watch

WATCHES: dict[str, type[Watch]] = {
    "cascade": CascadeWatch,
    "cascade-groups": GroupedCascadeWatch,
}

_WHY_NOT = {
    "batch": (
        "it is about records that are all there and all answered, so that no row in use can break "
        "it. To notice that later records are of another kind, certify a cascade on labelled rows "
        "and monitor that"
    ),
    "bundle": "its claims are watched together by BundleMonitor, or one by one, as bundle[name]",
}
"""Kinds that have no row to watch, or several claims."""


def watch_of(certificate: Certificate) -> Watch:
    """The bets against what a certificate claims, once it is verified."""
    if not isinstance(certificate, Certificate):
        raise InvalidTypeError(
            f"certificate is of type {type(certificate).__name__}: expected a Certificate. "
            "load_certificate reads one from its file."
        )
    by_claim = isinstance(certificate, ClaimCertificate)
    if not by_claim and certificate.kind not in WATCHES:
        raise InvalidTypeError(
            f"{with_article(certificate.kind).capitalize()} certificate is not monitored: "
            f"{_WHY_NOT[certificate.kind]}."
        )
    certificate.require_verified()
    if not certificate.certified:
        raise InvalidValueError(
            "This certificate is a refusal: it claims nothing, so there is nothing to monitor. "
            "Certify first; summary() says what it would take."
        )
    if not isinstance(certificate, ClaimCertificate):
        return WATCHES[certificate.kind](certificate)
    watch = certificate.by.watch(certificate)
    if isinstance(watch, str):
        kind = with_article(certificate.kind).capitalize()
        raise InvalidValueError(f"{kind} certificate is not monitored: {watch}.")
    found: Watch = watch
    return found

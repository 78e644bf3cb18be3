"""The bets against what certificates claim, by their claims; a batch and a bundle have none."""

from __future__ import annotations

from pacbound.certificate import Certificate
from pacbound.claims.claim import ClaimCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.questions import with_article
from pacbound.watch import Watch

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
    if not isinstance(certificate, ClaimCertificate):
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
    watch = certificate.by.watch(certificate)
    if isinstance(watch, str):
        kind = with_article(certificate.kind).capitalize()
        raise InvalidValueError(f"{kind} certificate is not monitored: {watch}.")
    found: Watch = watch
    return found

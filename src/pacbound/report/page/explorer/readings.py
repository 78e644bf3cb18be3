"""How certificates are explored: by their claims; a batch and a bundle are not."""

from __future__ import annotations

from pacbound.certificate import Certificate, CertificateBundle
from pacbound.claims.claim import ClaimCertificate
from pacbound.explorable import Explorable


def explorable(certificate: Certificate) -> Explorable | str:
    """How `certificate` is explored, or why it cannot be."""
    if not certificate.certified:
        return (
            "A refusal is not explored: another xi, chosen after the labels were seen, would carry "
            "no guarantee."
        )
    if isinstance(certificate, ClaimCertificate):
        return certificate.by.explorable(certificate)
    if isinstance(certificate, CertificateBundle):
        return "Each of the claims is explored on its own, below."
    return (
        "The answers of this batch are given, and its sample was drawn for this xi and delta: "
        "there is nothing to explore."
    )

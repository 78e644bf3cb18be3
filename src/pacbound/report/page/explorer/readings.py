"""How certificates are explored: by their claims."""

from __future__ import annotations

from pacbound.claims.certificate import Certificate
from pacbound.explorable import Explorable


def explorable(certificate: Certificate) -> Explorable | str:
    """How `certificate` is explored, or why it cannot be."""
    if not certificate.certified:
        return (
            "A refusal is not explored: another xi, chosen after the labels were seen, would carry "
            "no guarantee."
        )
    found: Explorable | str = certificate.by.explorable(certificate)
    return found

"""A refusal of a certificate: its reason in words, and what it would take.

A document holds neither. Both follow from the counts, so that they are computed again when a
certificate is read, and nobody can put other words in their place.
"""

from __future__ import annotations

from pacbound.documents import Reader
from pacbound.procedures.refusal import Refusal

UNEXPLAINED = Refusal("The counts do not support the claim.", None)
"""The refusal of a certificate that was read, until its reasons are computed again; and after
that, if it takes long, or if the counts do not imply a refusal at all."""


def read_refusal(claim: Reader) -> Refusal | None:
    """The refusal of a claim that was read, None if it is certified."""
    return None if claim.flag("certified") else UNEXPLAINED


def described_refusal(refusal: Refusal | None, unit: str, instead: str) -> list[str]:
    """The lines of a summary that say what is missing, in `unit`s, and what holds `instead`."""
    if refusal is None:
        return []
    if refusal is UNEXPLAINED:
        return [f"REFUSED: {refusal.reason}", instead]
    help_ = (
        f"More {unit} cannot help."
        if refusal.needed is None
        else f"It would take about {refusal.needed:,} {unit}."
    )
    return [
        f"REFUSED: {refusal.reason}",
        f"{help_} {instead}",
        "A refusal does not show that the model is bad.",
    ]

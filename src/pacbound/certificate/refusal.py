"""A refusal inside a certificate: the reason in words, and what it would take."""

from __future__ import annotations

from pacbound.documents import Json, Reader
from pacbound.procedures.refusal import Refusal


def claimed_refusal(refusal: Refusal | None) -> Json:
    """The refusal as the claim holds it."""
    return None if refusal is None else {"reason": refusal.reason, "needed": refusal.needed}


def read_refusal(claim: Reader) -> Refusal | None:
    """The refusal that a claim holds."""
    if claim.raw("refusal") is None:
        return None
    part = claim.mapping("refusal")
    return Refusal(part.text("reason"), part.optional_integer("needed"))


def described_refusal(refusal: Refusal | None, unit: str, instead: str) -> list[str]:
    """The lines of a summary that say what is missing, in `unit`s, and what holds `instead`."""
    if refusal is None:
        return []
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

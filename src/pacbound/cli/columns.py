"""`--column ROLE=NAME`: which column of a table plays which role, for commands that read a
certificate or a pilot.

Roles are spelt as on the command that certifies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pacbound.claims.certificate import Certificate
from pacbound.cli.options import names
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.row_options import POSITIVE

# Columns that are not read once another one is named.
_INSTEAD = {
    "correct": ("prediction", "label", "quality"),
    "prediction": ("correct", "loss"),
    "label": ("correct", "loss", "quality", "preferred"),
    "quality": ("correct", "label", "loss", "preferred"),
    "preferred": ("label", "loss", "quality"),
    "loss": ("confidence", "prediction", "label"),
}


def named_columns(pairs: Sequence[str] | None) -> dict[str, str]:
    """The columns by their roles, as they were typed."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        role, _, column = pair.partition("=")
        if not role or not column:
            raise InvalidValueError(
                f"--column {pair} names no column: expected ROLE=NAME, for example score=risk."
            )
        if role in found:
            raise InvalidValueError(
                f"--column names {role} twice, {found[role]} and {column}: name it once. Several "
                f"columns of one role have commas between them: {role}={found[role]},{column}"
            )
        found[role] = column
    return found


def require_roles(named: Mapping[str, str], roles: Iterable[str], of: str) -> None:
    """Raise if a role that was named is none of `roles`, which belong to what `of` says."""
    known = list(roles)
    for role, column in named.items():
        if role not in known:
            near = get_close_matches(role, known, 1)
            hint = f" Did you mean {near[0]}={column}?" if near else ""
            raise InvalidTypeError(
                f"--column {role}={column}: {of} has no role {role!r}.{hint} Its roles are "
                f"{', '.join(known)}."
            )


def several_of(question: Any) -> set[str]:
    """The roles of a question that several columns play."""
    return {column.name for column in question.columns if column.several}


def readable_roles(question: Any, roles: Iterable[str]) -> tuple[str, ...]:
    """The roles, and the class that counts, where truth values may be written as classes."""
    has_flags = any(column.holds == "flag" for column in question.columns)
    return (*roles, *([POSITIVE] if has_flags else []))


def for_question(question: Any, named: Mapping[str, str]) -> dict[str, Any]:
    """The columns as the question takes them: lists for roles that several play."""
    several = several_of(question)
    return {role: names(column) if role in several else column for role, column in named.items()}


def chosen(
    certificate: Certificate, roles: Iterable[str], named: Mapping[str, str]
) -> dict[str, str]:
    """The columns of the `roles`: those that were named, and else those of the certificate, without
    those that a named one stands for.
    """
    known = list(roles)
    require_roles(named, known, f"this {certificate.kind} certificate")
    hidden = {role for other in named for role in _INSTEAD.get(other, ()) if role not in named}
    kept = {
        role: column for role, column in certificate.provenance.columns.items() if role in known
    }
    return {**{role: column for role, column in kept.items() if role not in hidden}, **named}

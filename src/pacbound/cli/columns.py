"""`--column ROLE=NAME`: which column of a table plays which role, for commands that read a
certificate or a pilot.

Roles are spelt as on the command that certifies: `groups`, `clusters`, `weights` and `row_ids` in
the plural, all others in the singular, also where there are several models.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from pacbound.claims.certificate import Certificate
from pacbound.cli.lists import names
from pacbound.cli.option_groups import ROWS
from pacbound.errors import InvalidTypeError, InvalidValueError

ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help=(
            "Which column plays which role, such as score=risk; several have commas between them: "
            "confidence=c1,c2. May be repeated."
        ),
        rich_help_panel=ROWS,
    ),
]

_PLURAL = {"group": "groups", "cluster": "clusters", "weight": "weights", "row_id": "row_ids"}
_LISTS = ("confidences", "predictions")
_INSTEAD = {
    "correct": ("prediction", "label"),
    "prediction": ("correct", "loss"),
    "label": ("correct", "loss"),
    "loss": ("confidence", "prediction", "label"),
}
"""Columns that are not read once another one is named."""


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


def typed_role(role: str) -> str:
    """A role as it is typed, where a question or a certificate may spell it in another number."""
    one = role if role.endswith("ss") else role.removesuffix("s")
    return _PLURAL.get(one, one)


def roles_of(question: Any) -> dict[str, str]:
    """The roles of a question as they are typed, with its own spelling of each."""
    return {typed_role(role): role for role in question.roles}


def several_of(question: Any) -> set[str]:
    """The roles of a question, as they are typed, that several columns play."""
    declared = getattr(question, "columns", ())
    said = {typed_role(column.name) for column in declared if getattr(column, "several", False)}
    return said | {typed_role(role) for role in question.roles if role in _LISTS}


def for_question(
    question: Any, named: Mapping[str, str], several: Container[str] | None = None
) -> dict[str, Any]:
    """The columns as the question takes them; lists for roles that `several` play, which are its
    own if they are left out.
    """
    roles = roles_of(question)
    several = several_of(question) if several is None else several
    return {
        roles.get(role, role): names(column) if role in several else column
        for role, column in named.items()
    }


def recorded(certificate: Certificate) -> dict[str, str]:
    """The columns that a certificate was made from, by their roles as they are typed."""
    return {typed_role(role): column for role, column in certificate.provenance.columns.items()}


def chosen(
    certificate: Certificate, roles: Iterable[str], named: Mapping[str, str]
) -> dict[str, str]:
    """The columns of the `roles`: those that were named, and else those of the certificate, without
    those that a named one stands for.
    """
    known = list(roles)
    require_roles(named, known, f"this {certificate.kind} certificate")
    hidden = {role for other in named for role in _INSTEAD.get(other, ()) if role not in named}
    kept = {role: column for role, column in recorded(certificate).items() if role in known}
    return {**{role: column for role, column in kept.items() if role not in hidden}, **named}

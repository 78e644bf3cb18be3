"""`--column ROLE=NAME`: which column of a table plays which role, for commands that read a
certificate or a pilot.

Roles are spelt as on the command that certifies: `groups`, `clusters`, `weights` and `row_ids` in
the plural, all others in the singular, also where there are several models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from pacbound.cli.lists import names
from pacbound.cli.option_groups import ROWS
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.intake import recorded_role

ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help=(
            "Which column plays a role, such as score=risk; several with commas: confidence=c1,c2. "
            "May be repeated."
        ),
        rich_help_panel=ROWS,
    ),
]

_PLURAL = {"group": "groups", "cluster": "clusters", "weight": "weights", "row_id": "row_ids"}
_SETTINGS = ("n_bins", "edges")
"""What questions take that names no column."""


def named_columns(pairs: Sequence[str] | None) -> dict[str, str]:
    """The columns by their roles, as they were typed."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        role, equals, column = (part.strip() for part in pair.partition("="))
        if not (role and equals and column):
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
    one = recorded_role(role)
    return _PLURAL.get(one, one)


def roles_of(question: Any) -> dict[str, str]:
    """The roles of a question as they are typed, with its own spelling of each."""
    return {typed_role(role): role for role in question.roles if role not in _SETTINGS}


def several_of(question: Any) -> set[str]:
    """The roles of a question, as they are typed, that several columns play."""
    declared = getattr(question, "columns", None)
    if declared is not None:
        return {typed_role(column.name) for column in declared if column.several}
    return {typed_role(role) for role in question.roles if role in ("confidences", "predictions")}


def for_question(question: Any, named: Mapping[str, str]) -> dict[str, Any]:
    """The columns as the question takes them; lists where it has several for a role."""
    roles, several = roles_of(question), several_of(question)
    return {
        roles.get(role, role): names(column) if role in several else column
        for role, column in named.items()
    }

"""Groups of rows, for every question that counts a table for each of them.

A row has one group, in a column; or groups overlap, and there is a truth value for each row and
group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from pacbound.errors import InvalidTypeError
from pacbound.tally.questions.members import in_each, member_slots, members_of
from pacbound.tally.questions.question import Judged, Scope, Slot
from pacbound.tally.rows import Rows

if TYPE_CHECKING:
    import narwhals as nw

    from pacbound.tally.frames.counting import KeyCounts
    from pacbound.tally.frames.engine_rows import EngineRows

GROUPED_SCOPES: Final[tuple[Scope, ...]] = ("top", "groups", "overlapping-groups")
_SLOT: Final = "groups"


class Grouped(Protocol):
    """A question that may have groups."""

    @property
    def scope(self) -> Scope:
        """What the groups are."""
        ...

    @property
    def members(self) -> tuple[str, ...]:
        """The names of groups that overlap."""
        ...


def slots_of_columns(slots: Mapping[str, Slot], groups: Any) -> dict[str, Any]:
    """The slots and the scope of a question about a table; `groups` names the column."""
    if groups is None:
        return {"slots": dict(slots), "scope": "top"}
    if not isinstance(groups, str):
        raise InvalidTypeError(
            f"groups={groups!r} does not name a column: expected the one that holds the group of "
            "each row. Groups that overlap are passed as arrays."
        )
    return {"slots": {**slots, _SLOT: Slot("name", groups)}, "scope": "groups"}


def slots_of_arrays(
    slots: Mapping[str, Slot], arrays: Mapping[str, Any], groups: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The slots, the scope and the members of a question about arrays, and the arrays by slot."""
    if groups is None:
        return {"slots": dict(slots), "scope": "top"}, dict(arrays)
    if not isinstance(groups, Mapping):
        found = {"slots": {**slots, _SLOT: Slot("name", _SLOT)}, "scope": "groups"}
        return found, {**arrays, _SLOT: groups}
    named = members_of(groups)
    overlapping = member_slots(tuple(named))
    found = {
        "slots": {**slots, **overlapping},
        "scope": "overlapping-groups",
        "members": tuple(named),
    }
    return found, {**arrays, **dict(zip(overlapping, named.values(), strict=True))}


def grouped(question: Grouped, rows: Rows, judged: Judged) -> Judged:
    """Judged rows with their groups."""
    if question.members:
        return in_each(rows, question.members, judged)
    if question.scope == "top":
        return judged
    names, places = rows.groups(_SLOT)
    return replace(judged, groups=names, places=places)


def group_keys(question: Grouped, rows: EngineRows) -> dict[str, nw.Expr]:
    """What rows are counted by for their groups, inside an engine."""
    return {} if question.scope == "top" else {_SLOT: rows.group_key(_SLOT)}


def grouped_inside(
    question: Grouped, rows: EngineRows, counts: KeyCounts, judged: Judged
) -> Judged:
    """Rows that were counted inside an engine, with their groups."""
    if question.scope == "top":
        return judged
    names, places = rows.groups(counts, _SLOT, _SLOT)
    return replace(judged, groups=names, places=places)

"""Groups that overlap: a truth value for each row and group, so that a row may be in several of
them, or in none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pacbound.errors import InvalidValueError
from pacbound.tally.questions.question import Judged, Slot
from pacbound.tally.rows import Rows


def members_of(groups: Mapping[Any, Any]) -> dict[str, Any]:
    """The column of truth values of each group, by the group's name, if no two have one name."""
    if not groups:
        raise InvalidValueError("groups is empty: name at least one group.")
    named = {str(name): column for name, column in groups.items()}
    if len(named) < len(groups):
        raise InvalidValueError(
            f"groups names one group twice: {', '.join(map(repr, groups))}. Groups go by their "
            "text: rename one."
        )
    return named


def member_slots(names: tuple[str, ...]) -> dict[str, Slot]:
    """The columns that rows bring for groups of these names."""
    return {_member(name): Slot("flag", f"groups[{name!r}]") for name in names}


def in_each(
    rows: Rows, names: tuple[str, ...], judged: Judged, *, everyone: tuple[str, ...] = ()
) -> Judged:
    """Judged rows, every one once for each group that it is in, and once for the group `everyone`,
    if there is one.
    """
    inside = [np.flatnonzero(rows.flags(_member(name))) for name in names]
    inside += [np.arange(len(rows)) for _ in everyone]
    chosen = np.concatenate(inside)
    return replace(
        judged,
        cells=judged.cells[chosen],
        outcomes=judged.outcomes[chosen],
        groups=(*names, *everyone),
        places=np.repeat(np.arange(len(inside)), [len(part) for part in inside]),
    )


def _member(name: str) -> str:
    """The slot of a group that overlaps others: no group's name is that of another slot."""
    return f"member of {name}"

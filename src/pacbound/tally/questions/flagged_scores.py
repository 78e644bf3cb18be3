"""A score and a truth value per row: how many rows of either kind have a score that reaches a
threshold?

Recall, false alarms, precision and shields ask this, of rows that are positive or of rollouts that
are unsafe. The grid is the fine one that thresholds are taken from; there is one table, or one for
each group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.grids import FINE, DyadicGrid
from pacbound.tally.questions.groups import (
    GROUPED_SCOPES,
    group_keys,
    grouped,
    grouped_inside,
    slots_of_arrays,
    slots_of_columns,
)
from pacbound.tally.questions.question import Integers, Judged, Layout, RowColumn, Scope, Slot
from pacbound.tally.rows import Rows, only_known

if TYPE_CHECKING:
    from pacbound.tally.frames.engine_rows import EngineRows


@dataclass(frozen=True)
class FlaggedScores:
    """How many rows of either kind are in each fine cell of the score.

    `of_arrays` and `of_columns` make it from what was passed.

    Attributes
    ----------
    kind : str
        What tallies of it are called.
    columns : tuple of RowColumn
        What a row brings: the score first, then the truth value.
    outcomes : tuple of str
        What a row is where the truth value is False, and where it is True.
    slots : mapping of str to Slot
        The columns that each row brings, once they are known.

    Examples
    --------
    >>> question = SCORE_BY_POSITIVE.of_columns(score="risk", positive="ill", groups="site")
    >>> question.scope, question.outcomes
    ('groups', ('negative', 'positive'))
    """

    kind: str
    columns: tuple[RowColumn, RowColumn]
    outcomes: tuple[str, str]
    lowest_cell: int = 0
    lost_is: None = None
    slots: Mapping[str, Slot] = field(default_factory=dict)
    scope: Scope = "top"
    members: tuple[str, ...] = ()
    grid: DyadicGrid = FINE
    labels_may_be_missing: bool = False

    @property
    def roles(self) -> Mapping[str, bool]:
        """What a caller may pass, by name; True for what must be there."""
        return {**{column.name: True for column in self.columns}, "groups": False}

    @property
    def labelled_by(self) -> tuple[str, ...]:
        """What may come back later, as the label of a row."""
        return (self.columns[1].name,)

    def of_columns(self, **given: Any) -> FlaggedScores:
        """The question about a table whose columns are named."""
        named = only_known(given, self.roles, f"A {self.kind}")
        slots = self._slots({role: name for role, name in named.items() if role != "groups"})
        return replace(self, **slots_of_columns(slots, named.get("groups")))

    def of_arrays(self, **given: Any) -> tuple[FlaggedScores, dict[str, Any]]:
        """The question about arrays, and the arrays by slot."""
        passed = only_known(given, self.roles, f"A {self.kind}")
        groups = passed.pop("groups", None)
        slots, arrays = slots_of_arrays(
            self._slots({role: role for role in passed}), passed, groups
        )
        return replace(self, **slots), arrays

    def check_layout(self, layout: Layout) -> str | None:
        """What is wrong with the layout of a tally, which came from a file; None if nothing is."""
        return layout.wrong_for(GROUPED_SCOPES, self.grid, self.outcomes)

    def known_again_by(self, counts: Integers, width: int) -> None:
        """Nothing: every row that is counted has its label."""

    def judge(
        self,
        rows: Rows,
        vocabulary: Vocabulary,  # noqa: ARG002
        evidence: Evidence,  # noqa: ARG002
    ) -> Judged:
        """The cell of each row's score, and whether its truth value is True."""
        score, flag = (column.name for column in self.columns)
        scores, flags = rows.scores(score), rows.flags(flag).astype(np.int64)
        judged = Judged(len(rows), self.grid.cells(scores)[:, None], flags, told=(scores, flags))
        return grouped(self, rows, judged)

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:  # noqa: ARG002
        """The same inside an engine."""
        score, name = (column.name for column in self.columns)
        flag = rows.flag(name)
        keys = {"cell": rows.cell_key(score, self.grid), "flag": flag.key, **group_keys(self, rows)}
        counts = rows.count(keys)
        flags = flag.checked(counts, "flag")
        cells = rows.cells(counts, "cell", score, self.grid)[:, None]
        judged = Judged(int(counts.rows.sum()), cells, flags, times=counts.rows)
        return grouped_inside(self, rows, counts, judged)

    def _slots(self, named: Mapping[str, Any]) -> dict[str, Slot]:
        kinds = {column.name: column.holds for column in self.columns}
        return {role: Slot(kinds[role], name) for role, name in named.items()}


SCORE_BY_POSITIVE = FlaggedScores(
    "recall",
    (
        RowColumn("score", "The score of each row, 0 to 1, high means positive.", "number"),
        RowColumn("positive", "Whether each row is positive: true or false, 1 or 0.", "flag"),
    ),
    ("negative", "positive"),
)

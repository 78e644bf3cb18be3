"""Rollouts: would braking at this danger have come in time?

A row is a rollout of the policy without its shield. It brings the running maximum of the danger, up
to its first un-recoverable state if there is one, and whether there is. For the paper's product it
also brings the danger at that state. A rollout that was lost at its start is unsafe with score
-inf, and has the cell -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pacbound.errors import InvalidValueError
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.columns import Floats, checked_scores
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


COLUMNS = (
    RowColumn("score", "The running maximum of the danger of each rollout, 0 to 1.", "number"),
    RowColumn("unsafe", "Whether each rollout has an un-recoverable state.", "flag"),
    RowColumn(
        "final_score",
        "The danger at the first un-recoverable state, for the paper's product.",
        "number or nothing",
        needed=False,
    ),
)


@dataclass(frozen=True)
class RolloutScores:
    """Safe and unsafe rollouts per fine cell of the danger.

    `of_arrays` and `of_columns` make it from what was passed.

    Examples
    --------
    >>> question = ROLLOUTS.of_columns(score="danger", unsafe="crashed")
    >>> question.grid, question.outcomes
    (DyadicGrid(bits=16), ('safe', 'unsafe'))
    """

    kind: ClassVar[str] = "shield"
    outcomes: ClassVar[tuple[str, str]] = ("safe", "unsafe")
    labelled_by: ClassVar[tuple[str, ...]] = ("unsafe",)
    labels_may_be_missing: ClassVar[bool] = False
    lowest_cell: ClassVar[int] = -1
    lost_is: ClassVar[str] = "unsafe"
    grid: ClassVar[DyadicGrid] = FINE

    columns: tuple[RowColumn, ...] = COLUMNS
    slots: Mapping[str, Slot] = field(default_factory=dict)
    scope: Scope = "top"
    members: tuple[str, ...] = ()

    @property
    def roles(self) -> Mapping[str, bool]:
        """What a caller may pass, by name; True for what must be there."""
        return {**{column.name: column.needed for column in self.columns}, "groups": False}

    def of_columns(self, **given: Any) -> RolloutScores:
        """The question about a table with a row for each rollout."""
        named = only_known(given, self.roles, "A table of rollouts")
        groups = named.pop("groups", None)
        return replace(self, **slots_of_columns(self._slots(named), groups))

    def of_arrays(self, **given: Any) -> tuple[RolloutScores, dict[str, Any]]:
        """The question about arrays with an entry for each rollout."""
        passed = only_known(given, self.roles, "A table of rollouts")
        groups = passed.pop("groups", None)
        names = {role: role for role in passed}
        found, arrays = slots_of_arrays(self._slots(names), passed, groups)
        return replace(self, **found), arrays

    def check_layout(self, layout: Layout) -> str | None:
        """What is wrong with the layout of a tally, which came from a file; None if nothing is."""
        return layout.wrong_for(GROUPED_SCOPES, self.grid, self.outcomes)

    def known_again_by(self, counts: Integers, width: int) -> None:
        """Nothing: every row that is counted has ended, safe or not."""

    def judge(
        self,
        rows: Rows,
        vocabulary: Vocabulary,  # noqa: ARG002
        evidence: Evidence,  # noqa: ARG002
    ) -> Judged:
        """The cell of each rollout's danger, and whether it is unsafe."""
        danger, unsafe = self._danger(rows), rows.flags("unsafe").astype(np.int64)
        judged = Judged(len(rows), self.grid.cells(danger)[:, None], unsafe, told=(danger, unsafe))
        return grouped(self, rows, judged)

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:  # noqa: ARG002
        """The same inside an engine."""
        final = "final_score" if "final_score" in self.slots else None
        flag = rows.flag("unsafe")
        key = rows.danger_key("score", self.grid, flag, final)
        counts = rows.count({"danger": key, "unsafe": flag.key, **group_keys(self, rows)})
        unsafe = flag.checked(counts, "unsafe")
        rows.check_dangers(counts, "danger", "score", unsafe, flag, final)
        cells = rows.keyed_cells(counts, "danger", self.grid)[:, None]
        judged = Judged(int(counts.rows.sum()), cells, unsafe, times=counts.rows)
        return grouped_inside(self, rows, counts, judged)

    def _danger(self, rows: Rows) -> Floats:
        """The running maxima; where final scores are given, those of the unsafe rollouts instead.

        A safe rollout has no un-recoverable state, so whatever stands there for it is not looked
        at.
        """
        running, unsafe = rows.scores("score", lost=True), rows.flags("unsafe")
        saved = np.flatnonzero((running == -np.inf) & ~unsafe)
        if saved.size:
            raise InvalidValueError(
                f"{rows.name('score')}[{rows.start + saved[0]}] is -inf, lost at its start, but "
                f"{rows.name('unsafe')} is False there ({saved.size} such): a lost rollout is "
                "unsafe."
            )
        if "final_score" not in self.slots:
            return running
        name, given = rows.name("final_score"), rows.numbers("final_score")
        last = checked_scores(np.where(unsafe, given, 0.0), name, start=rows.start, lost=True)
        above = np.flatnonzero(unsafe & (last > running))
        if above.size:
            row = int(above[0])
            raise InvalidValueError(
                f"{name}[{rows.start + row}] is {last[row]}, above its running maximum "
                f"{running[row]} ({above.size} such values): expected {rows.name('score')} to be "
                "the maximum up to and including the first un-recoverable state. Were they "
                "swapped?"
            )
        return np.where(unsafe, last, running)

    def _slots(self, named: Mapping[str, Any]) -> dict[str, Slot]:
        holds = {column.name: column.holds for column in self.columns}
        return {role: Slot(holds[role], name) for role, name in named.items()}


ROLLOUTS = RolloutScores()
ALARMED_ROLLOUTS = RolloutScores(COLUMNS[:2])
"""The same without the danger at the first un-recoverable state, which says nothing about safe
rollouts."""

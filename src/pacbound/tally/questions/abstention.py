"""Abstention: how often are the answers wrong whose confidence reaches a threshold?

A row brings what it brings for a calibration: a confidence, and whether the prediction was right,
as a truth value or as the predicted and the true class. The grid is the fine one that thresholds
are taken from; there is one table, or one for each group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pacbound.errors import InvalidTypeError
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.grids import FINE, DyadicGrid
from pacbound.tally.questions.correctness import (
    COLUMNS,
    OUTCOMES,
    count_right,
    require_outcome,
    require_two_columns,
    right_rows,
    slots_of,
)
from pacbound.tally.questions.groups import (
    group_keys,
    grouped,
    grouped_inside,
    slots_of_arrays,
    slots_of_columns,
)
from pacbound.tally.questions.question import (
    Integers,
    Judged,
    Kind,
    Layout,
    RowColumn,
    Scope,
    Slot,
)
from pacbound.tally.rows import Rows, only_known

if TYPE_CHECKING:
    from pacbound.tally.frames.engine_rows import EngineRows


@dataclass(frozen=True)
class AbstentionQuestion:
    """Right and wrong predictions per fine cell of confidence.

    `of_arrays` and `of_columns` make it from what was passed.

    Attributes
    ----------
    slots : mapping of str to Slot
        The columns that each row brings, once they are known.
    scope : str
        "top" for one table, "groups" for one of each group.

    Examples
    --------
    >>> question = ABSTENTION.of_columns(confidence="score", correct="right")
    >>> question.grid, question.outcomes
    (DyadicGrid(bits=16), ('wrong', 'right'))
    """

    kind: ClassVar[Kind] = "abstention"
    columns: ClassVar[tuple[RowColumn, ...]] = COLUMNS
    labelled_by: ClassVar[tuple[str, ...]] = ("label", "correct")
    labels_may_be_missing: ClassVar[bool] = False
    lowest_cell: ClassVar[int] = 0
    outcomes: ClassVar[tuple[str, ...]] = OUTCOMES
    grid: ClassVar[DyadicGrid] = FINE

    slots: Mapping[str, Slot] = field(default_factory=dict)
    scope: Scope = "top"
    members: ClassVar[tuple[str, ...]] = ()

    @property
    def roles(self) -> Mapping[str, bool]:
        """What a caller may pass, by name; True for what must be there."""
        return {**{column.name: column.needed for column in self.columns}, "groups": False}

    def of_columns(self, **given: Any) -> AbstentionQuestion:
        """The question about a table: `confidence`; `correct`, or `prediction` and `label`."""
        named = only_known(given, self.roles, "An abstention")
        require_outcome(named)
        require_two_columns(named)
        groups = named.pop("groups", None)
        return replace(self, **slots_of_columns(slots_of(named), groups))

    def of_arrays(self, **given: Any) -> tuple[AbstentionQuestion, dict[str, Any]]:
        """The question about arrays, and the arrays by slot."""
        passed = only_known(given, self.roles, "An abstention")
        require_outcome(passed)
        if isinstance(passed.get("groups"), Mapping):
            raise InvalidTypeError(
                "groups is a mapping, whose groups may overlap, and a row of two groups would have "
                "two thresholds: expected one group per row."
            )
        groups = passed.pop("groups", None)
        slots = slots_of({role: role for role in passed})
        found, arrays = slots_of_arrays(slots, passed, groups)
        return replace(self, **found), arrays

    def check_layout(self, layout: Layout) -> str | None:
        """What is wrong with the layout of a tally, which came from a file; None if nothing is."""
        return layout.wrong_for(("top", "groups"), self.grid, self.outcomes)

    def known_again_by(self, counts: Integers, width: int) -> None:
        """Nothing: every row that is counted has its label."""

    def judge(self, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Judged:
        """The cell of each row's confidence, and whether the prediction was right."""
        scores, right = rows.scores("confidence"), right_rows(rows, vocabulary, evidence)
        judged = Judged(len(rows), self.grid.cells(scores)[:, None], right, told=(scores, right))
        return grouped(self, rows, judged)

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:
        """The same inside an engine."""
        keys = {"cell": rows.cell_key("confidence", self.grid), **group_keys(self, rows)}
        counts, right = count_right(rows, self.slots, keys, evidence)
        cells = rows.cells(counts, "cell", "confidence", self.grid)[:, None]
        judged = Judged(int(counts.rows.sum()), cells, right, times=counts.rows)
        return grouped_inside(self, rows, counts, judged)


ABSTENTION = AbstentionQuestion()

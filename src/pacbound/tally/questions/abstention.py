"""Abstention: how often are the answers wrong whose confidence reaches a threshold?

A row brings what it brings for a calibration: a confidence, and whether the prediction was right,
as a truth value or as the predicted and the true class. The grid is the fine one that thresholds
are taken from; there is one table, or one for each group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pacbound.errors import InvalidTypeError
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.grids import FINE, DyadicGrid
from pacbound.tally.questions.correctness import (
    OUTCOMES,
    count_right,
    require_outcome,
    require_two_columns,
    right_rows,
    slots_of,
)
from pacbound.tally.questions.question import Integers, Judged, Kind, Layout, Scope, Slot
from pacbound.tally.rows import Rows, only_known

if TYPE_CHECKING:
    from pacbound.tally.frames.engine_rows import EngineRows

GRID = FINE


@dataclass(frozen=True)
class AbstentionQuestion:
    """Right and wrong predictions per fine cell of confidence.

    Its columns are those of a calibration, which is what they are taken for unless
    `kind="abstention"` is said. `of_arrays` and `of_columns` make it from what was passed.

    Attributes
    ----------
    slots : mapping of str to Slot
        The columns that each row brings.
    scope : str
        "top" for one table, "groups" for one of each group.

    Examples
    --------
    >>> question = AbstentionQuestion.of_columns(confidence="score", correct="right")
    >>> question.grid, question.outcomes
    (DyadicGrid(bits=16), ('wrong', 'right'))
    """

    kind: ClassVar[Kind] = "abstention"
    roles: ClassVar[Mapping[str, bool]] = {
        "confidence": True,
        "correct": False,
        "prediction": False,
        "labels": False,
        "groups": False,
    }
    labelled_by: ClassVar[tuple[str, ...]] = ("labels", "correct")
    labels_may_be_missing: ClassVar[bool] = False
    lowest_cell: ClassVar[int] = 0
    outcomes: ClassVar[tuple[str, ...]] = OUTCOMES
    grid: ClassVar[DyadicGrid] = GRID

    slots: Mapping[str, Slot]
    scope: Scope = "top"

    @classmethod
    def of_columns(cls, **given: Any) -> AbstentionQuestion:
        """The question about a table: `confidence`; `correct`, or `prediction` and `labels`."""
        named = only_known(given, cls.roles, "An abstention")
        require_outcome(named)
        require_two_columns(named)
        return cls(slots_of(named), "groups" if "groups" in named else "top")

    @classmethod
    def of_arrays(cls, **given: Any) -> tuple[AbstentionQuestion, dict[str, Any]]:
        """The question about arrays, and the arrays by slot."""
        passed = only_known(given, cls.roles, "An abstention")
        require_outcome(passed)
        if isinstance(passed.get("groups"), Mapping):
            raise InvalidTypeError(
                "groups is a mapping, whose groups may overlap, and a row of two groups would have "
                "two thresholds: expected one group per row."
            )
        slots = slots_of({role: role for role in passed})
        return cls(slots, "groups" if "groups" in slots else "top"), passed

    @classmethod
    def check_layout(cls, layout: Layout) -> str | None:
        """What is wrong with the layout of a tally, which came from a file; None if nothing is."""
        return layout.wrong_for(("top", "groups"), GRID, OUTCOMES)

    @classmethod
    def known_again_by(cls, counts: Integers, width: int) -> None:
        """Nothing: every row that is counted has its label."""

    def judge(self, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Judged:
        """The cell of each row's confidence, and whether the prediction was right."""
        scores, right = rows.scores("confidence"), right_rows(rows, vocabulary, evidence)
        judged = Judged(len(rows), GRID.cells(scores)[:, None], right, told=(scores, right))
        if self.scope == "top":
            return judged
        names, places = rows.groups("groups")
        return replace(judged, groups=names, places=places)

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:
        """The same inside an engine."""
        keys = {"cell": rows.cell_key("confidence", GRID)}
        if self.scope == "groups":
            keys["group"] = rows.group_key("groups")
        counts, right = count_right(rows, self.slots, keys, evidence)
        cells = rows.cells(counts, "cell", "confidence", GRID)[:, None]
        judged = Judged(int(counts.rows.sum()), cells, right, times=counts.rows)
        if self.scope == "top":
            return judged
        names, places = rows.groups(counts, "group", "groups")
        return replace(judged, groups=names, places=places)

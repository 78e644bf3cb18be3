"""Recall: how many of the positives have a score that reaches a threshold?

A row brings a score, and whether it is positive: relevant, ill, fraudulent. The grid is the fine
one that thresholds are taken from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.grids import FINE, DyadicGrid
from pacbound.tally.questions.question import Integers, Judged, Kind, Layout, Scope, Slot
from pacbound.tally.rows import Rows, only_known

if TYPE_CHECKING:
    from pacbound.tally.frames.engine_rows import EngineRows

OUTCOMES = ("negative", "positive")
GRID = FINE


@dataclass(frozen=True)
class RecallQuestion:
    """Negative and positive rows per fine cell of the score.

    `of_arrays` and `of_columns` make it from what was passed.

    Attributes
    ----------
    slots : mapping of str to Slot
        The columns that each row brings.

    Examples
    --------
    >>> question = RecallQuestion.of_columns(score="risk", positive="ill")
    >>> question.grid, question.outcomes
    (DyadicGrid(bits=16), ('negative', 'positive'))
    """

    kind: ClassVar[Kind] = "recall"
    roles: ClassVar[Mapping[str, bool]] = {"score": True, "positive": True}
    scope: ClassVar[Scope] = "top"
    labelled_by: ClassVar[tuple[str, ...]] = ("positive",)
    labels_may_be_missing: ClassVar[bool] = False
    lowest_cell: ClassVar[int] = 0
    outcomes: ClassVar[tuple[str, ...]] = OUTCOMES
    grid: ClassVar[DyadicGrid] = GRID

    slots: Mapping[str, Slot]

    @classmethod
    def of_columns(cls, **given: Any) -> RecallQuestion:
        """The question about a table: `score` and `positive`."""
        named = only_known(given, cls.roles, "A recall")
        return cls({role: Slot(_KINDS[role], name) for role, name in named.items()})

    @classmethod
    def of_arrays(cls, **given: Any) -> tuple[RecallQuestion, dict[str, Any]]:
        """The question about arrays, and the arrays by slot."""
        passed = only_known(given, cls.roles, "A recall")
        return cls({role: Slot(_KINDS[role], role) for role in passed}), passed

    @classmethod
    def check_layout(cls, layout: Layout) -> str | None:
        """What is wrong with the layout of a tally, which came from a file; None if nothing is."""
        return layout.wrong_for(("top",), GRID, OUTCOMES)

    @classmethod
    def known_again_by(cls, counts: Integers, width: int) -> None:
        """Nothing: every row that is counted has its label."""

    def judge(
        self,
        rows: Rows,
        vocabulary: Vocabulary,  # noqa: ARG002
        evidence: Evidence,  # noqa: ARG002
    ) -> Judged:
        """The cell of each row's score, and whether the row is positive."""
        scores, positive = rows.scores("score"), rows.flags("positive").astype(np.int64)
        return Judged(len(rows), GRID.cells(scores)[:, None], positive, told=(scores, positive))

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:  # noqa: ARG002
        """The same inside an engine."""
        flag = rows.flag("positive")
        counts = rows.count({"cell": rows.cell_key("score", GRID), "positive": flag.key})
        positive = flag.checked(counts, "positive")
        cells = rows.cells(counts, "cell", "score", GRID)[:, None]
        return Judged(int(counts.rows.sum()), cells, positive, times=counts.rows)


_KINDS: Mapping[str, Any] = {"score": "number", "positive": "flag"}

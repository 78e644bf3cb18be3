"""Whether each row passed: a test case, a task of an agent, a rollout under a shield.

There is no score, so every row is in the one cell below the grid. A row without an outcome was
lost, and did not pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pacbound.sources.batches import CannotCountError
from pacbound.tally.columns import Rows
from pacbound.tally.questions.question import Judged, Question, RowColumn

if TYPE_CHECKING:
    from pacbound.tally.classes import Evidence, Vocabulary
    from pacbound.tally.frames.engine_rows import EngineRows

# The cell of every row.
NOWHERE = -1


@dataclass(frozen=True, kw_only=True)
class PassedRows(Question):
    """How many rows passed, and how many did not.

    Examples
    --------
    >>> PASSED.of_columns(passed="ok", groups="task").outcomes
    ('passed', 'failed')
    """

    def judge(
        self,
        rows: Rows,
        vocabulary: Vocabulary,  # noqa: ARG002
        evidence: Evidence,  # noqa: ARG002
    ) -> Judged:
        """Whether each row passed; one without an outcome did not."""
        failed = np.asarray(rows.columns["passed"]) != 1
        cells = np.full((len(rows), 1), NOWHERE, dtype=np.int64)
        return self._in_groups(rows, Judged(len(rows), cells, failed.astype(np.int64)))

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:  # noqa: ARG002
        """Not inside an engine: what is missing is read here."""
        raise CannotCountError("Whether rows passed is read outside of an engine.")


PASSED = PassedRows(
    kind="pass-rate",
    what="A table of what passed",
    columns=(
        RowColumn(
            "passed",
            "Whether each row passed: true or false, 1 or 0; one without an outcome did not.",
            "flag or nothing",
        ),
    ),
    outcomes=("passed", "failed"),
    labelled_by=("passed",),
    lowest_cell=NOWHERE,
    labels_may_be_missing=True,
    counts_inside=False,
)

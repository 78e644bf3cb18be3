"""Shield: would braking at this danger have come in time?

A row is a rollout of the policy without its shield. It brings the running maximum of the danger, up
to its first un-recoverable state if there is one, and whether there is. For the paper's product it
also brings the danger at that state. A rollout that was lost at its start is unsafe with score
-inf, and has the cell -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pacbound.errors import InvalidValueError
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.columns import Floats, checked_scores
from pacbound.tally.grids import FINE, DyadicGrid
from pacbound.tally.questions.question import Integers, Judged, Kind, Layout, Scope, Slot
from pacbound.tally.rows import Rows, only_known

if TYPE_CHECKING:
    from pacbound.tally.frames.engine_rows import EngineRows

OUTCOMES = ("safe", "unsafe")
GRID = FINE


@dataclass(frozen=True)
class ShieldQuestion:
    """Safe and unsafe rollouts per fine cell of the danger.

    `of_arrays` and `of_columns` make it from what was passed.

    Attributes
    ----------
    slots : mapping of str to Slot
        The columns that each row, which is a rollout, brings.

    Examples
    --------
    >>> question = ShieldQuestion.of_columns(scores="danger", unsafe="crashed")
    >>> question.grid, question.outcomes
    (DyadicGrid(bits=16), ('safe', 'unsafe'))
    """

    kind: ClassVar[Kind] = "shield"
    roles: ClassVar[Mapping[str, bool]] = {"scores": True, "unsafe": True, "final_scores": False}
    scope: ClassVar[Scope] = "top"
    labelled_by: ClassVar[tuple[str, ...]] = ("unsafe",)
    labels_may_be_missing: ClassVar[bool] = False
    lowest_cell: ClassVar[int] = -1
    outcomes: ClassVar[tuple[str, ...]] = OUTCOMES
    grid: ClassVar[DyadicGrid] = GRID

    slots: Mapping[str, Slot]

    @classmethod
    def of_columns(cls, **given: Any) -> ShieldQuestion:
        """The question about a table with a row for each rollout."""
        named = only_known(given, cls.roles, "A shield")
        return cls({role: Slot(_KINDS[role], name) for role, name in named.items()})

    @classmethod
    def of_arrays(cls, **given: Any) -> tuple[ShieldQuestion, dict[str, Any]]:
        """The question about arrays with an entry for each rollout."""
        passed = only_known(given, cls.roles, "A shield")
        return cls({role: Slot(_KINDS[role], role) for role in passed}), passed

    @classmethod
    def check_layout(cls, layout: Layout) -> str | None:
        """What is wrong with the layout of a tally, which came from a file; None if nothing is."""
        return layout.wrong_for(("top",), GRID, OUTCOMES)

    @classmethod
    def known_again_by(cls, counts: Integers, width: int) -> None:
        """Nothing: every row that is counted has ended, safe or not."""

    def judge(
        self,
        rows: Rows,
        vocabulary: Vocabulary,  # noqa: ARG002
        evidence: Evidence,  # noqa: ARG002
    ) -> Judged:
        """The cell of each rollout's danger, and whether it is unsafe."""
        danger, unsafe = self._danger(rows), rows.flags("unsafe").astype(np.int64)
        return Judged(len(rows), GRID.cells(danger)[:, None], unsafe, told=(danger, unsafe))

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:  # noqa: ARG002
        """The same inside an engine."""
        final = "final_scores" if "final_scores" in self.slots else None
        flag = rows.flag("unsafe")
        key = rows.danger_key("scores", GRID, flag, final)
        counts = rows.count({"danger": key, "unsafe": flag.key})
        unsafe = flag.checked(counts, "unsafe")
        rows.check_dangers(counts, "danger", "scores", unsafe, flag, final)
        cells = rows.keyed_cells(counts, "danger", GRID)[:, None]
        return Judged(int(counts.rows.sum()), cells, unsafe, times=counts.rows)

    def _danger(self, rows: Rows) -> Floats:
        """The running maxima; where final scores are given, those of the unsafe rollouts instead.

        A safe rollout has no un-recoverable state, so whatever stands there for it is not looked
        at.
        """
        running, unsafe = rows.scores("scores", lost=True), rows.flags("unsafe")
        saved = np.flatnonzero((running == -np.inf) & ~unsafe)
        if saved.size:
            raise InvalidValueError(
                f"{rows.name('scores')}[{rows.start + saved[0]}] is -inf, lost at its start, but "
                f"{rows.name('unsafe')} is False there ({saved.size} such): a lost rollout is "
                "unsafe."
            )
        if "final_scores" not in self.slots:
            return running
        name, given = rows.name("final_scores"), rows.numbers("final_scores")
        last = checked_scores(np.where(unsafe, given, 0.0), name, start=rows.start, lost=True)
        above = np.flatnonzero(unsafe & (last > running))
        if above.size:
            row = int(above[0])
            raise InvalidValueError(
                f"{name}[{rows.start + row}] is {last[row]}, above its running maximum "
                f"{running[row]} ({above.size} such values): expected {rows.name('scores')} to be "
                "the maximum up to and including the first un-recoverable state. Were they "
                "swapped?"
            )
        return np.where(unsafe, last, running)


_KINDS: Mapping[str, Any] = {
    "scores": "number",
    "unsafe": "flag",
    "final_scores": "number or nothing",
}

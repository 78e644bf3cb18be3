"""A score and a truth value per row: how many rows of either kind have a score that reaches a
threshold?

Recall, false alarms, precision and shields ask this, of rows that are positive or of rollouts that
are unsafe. The grid is the fine one that thresholds are taken from; there is one table, or one for
each group.

A rollout is one of the policy without its shield. It brings the running maximum of the danger, up
to its first un-recoverable state if there is one, and whether there is. A rollout that was lost at
its start is unsafe with score -inf, and has the cell -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.tally.columns import Floats, Rows, Slot
from pacbound.tally.questions.question import Judged, Question, RowColumn

if TYPE_CHECKING:
    import narwhals as nw

    from pacbound.tally.classes import Evidence, Vocabulary
    from pacbound.tally.frames.engine_rows import EngineRows


@dataclass(frozen=True, kw_only=True)
class FlaggedScores(Question):
    """How many rows of either kind are in each fine cell of the score: the first column is the
    score, and the second says of which kind a row is.

    Examples
    --------
    >>> question = SCORE_BY_POSITIVE.of_columns(score="risk", positive="ill", groups="site")
    >>> question.scope, question.outcomes
    ('groups', ('negative', 'positive'))
    """

    def judge(
        self,
        rows: Rows,
        vocabulary: Vocabulary,  # noqa: ARG002
        evidence: Evidence,  # noqa: ARG002
    ) -> Judged:
        """The cell of each row's score, and whether its truth value is True."""
        score, flag, *_ = (column.name for column in self.columns)
        flags = rows.flags(flag)
        scores = rows.scores(score, lost=self._may_be_lost)
        _require_lost_unsafe(rows, score, flag, scores, flags)
        outcomes = flags.astype(np.int64)
        told = (scores, outcomes)
        judged = Judged(len(rows), self.grid.cells(scores)[:, None], outcomes, told=told)
        return self._in_groups(rows, judged)

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:  # noqa: ARG002
        """The same inside an engine."""
        score, name, *_ = (column.name for column in self.columns)
        flag = rows.flag(name)
        key = rows.cell_key(score, self.grid, lost=self._may_be_lost)
        counts = rows.count({"cell": key, "flag": flag.key, **self._group_keys(rows)})
        flags = flag.checked(counts, "flag")
        rows.check_dangers(counts, "cell", score, flags, flag, lost=self._may_be_lost)
        cells = rows.keyed_cells(counts, "cell", self.grid)[:, None]
        return self._counted_inside(rows, counts, cells, flags)

    def drawing_among(self, outcomes: Any) -> Self:
        """The question whose clusters are drawn among the rows of some outcomes; "all" to draw
        before labels are looked at.
        """
        names = (outcomes,) if isinstance(outcomes, str) else tuple(outcomes)
        if names == ("all",):
            return replace(self, among=())
        chosen = tuple(name for name in self.outcomes if name in names)
        # A lost rollout may be safe or unsafe, so it could be drawn twice.
        if not names or len(chosen) != len(names) or (len(chosen) > 1 and self._may_be_lost):
            listed = " or ".join(map(repr, self.outcomes))
            both = "" if self._may_be_lost else ", or both in a list"
            raise InvalidValueError(
                f"among={outcomes!r} is not what clusters can be drawn among: expected {listed}"
                f"{both}, or 'all' to draw before labels are looked at."
            )
        return replace(self, among=chosen)

    @property
    def trial_slots(self) -> Mapping[str, Slot]:
        """The truth values; and scores, where they say which rollouts were lost."""
        score, flag, *_ = (column.name for column in self.columns)
        return {name: self.slots[name] for name in (flag, *([score] * self._may_be_lost))}

    def trials_among(self, rows: Rows) -> dict[str, NDArray[np.bool_]]:
        """Which rows are of each outcome that clusters are drawn among. A lost rollout is one of
        the unsafe, and one of the safe where clusters are drawn among these.
        """
        score, flag, *_ = (column.name for column in self.columns)
        flags = rows.flags(flag)
        lost = rows.numbers(score) == -np.inf if self._may_be_lost else np.zeros_like(flags)
        found = dict(zip(self.outcomes, (~flags | lost, flags | lost), strict=True))
        return {name: found[name] for name in self.among}

    def trials_inside(self, rows: EngineRows) -> dict[str, nw.Expr]:
        """The same inside an engine."""
        score, name, *_ = (column.name for column in self.columns)
        flag = rows.flag(name).is_true
        found = dict(zip(self.outcomes, (~flag, flag), strict=True))
        if self._may_be_lost:
            lost = rows.number(score) == -np.inf
            found = {outcome: is_one | lost for outcome, is_one in found.items()}
        return {outcome: found[outcome] for outcome in self.among}

    @property
    def _may_be_lost(self) -> bool:
        return self.lost_is is not None


def _require_lost_unsafe(
    rows: Rows, score: str, flag: str, scores: Floats, flags: NDArray[np.bool_]
) -> None:
    saved = np.flatnonzero((scores == -np.inf) & ~flags)
    if saved.size:
        raise InvalidValueError(
            f"{rows.name(score)}[{rows.start + saved[0]}] is -inf, lost at its start, but "
            f"{rows.name(flag)} is False there ({saved.size} such): a lost rollout is unsafe."
        )


SCORE_BY_POSITIVE = FlaggedScores(
    kind="recall",
    what="A recall",
    columns=(
        RowColumn("score", "The score of each row, 0 to 1, high means positive.", "number"),
        RowColumn("positive", "Whether each row is positive: true or false, 1 or 0.", "flag"),
    ),
    outcomes=("negative", "positive"),
    labelled_by=("positive",),
    among=("positive",),
)
ROLLOUTS = FlaggedScores(
    kind="shield",
    what="A table of rollouts",
    columns=(
        RowColumn("score", "The running maximum of the danger of each rollout, 0 to 1.", "number"),
        RowColumn("unsafe", "Whether each rollout has an un-recoverable state.", "flag"),
    ),
    outcomes=("safe", "unsafe"),
    labelled_by=("unsafe",),
    lowest_cell=-1,
    lost_is="unsafe",
    of_rollouts=True,
)

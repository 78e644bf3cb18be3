"""Rollouts driven with the shield on, in the order in which they were driven: how many were unsafe
at each threshold?

A row brings the threshold that its rollout was driven at, and whether it was unsafe. A rollout
whose outcome is missing was lost, and counts as unsafe. There is no score: a table for each
threshold, which is named by its shortest exact digits. Rollouts at one threshold are one drive, so
thresholds rise from row to row or stay; the order is a part of what is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from pacbound.errors import InvalidValueError
from pacbound.sources.batches import CannotCountError
from pacbound.tally.columns import Floats, Integers, Rows
from pacbound.tally.grids import DyadicGrid
from pacbound.tally.questions.question import Judged, Question, RowColumn

if TYPE_CHECKING:
    from pacbound.tally.classes import Evidence, Vocabulary
    from pacbound.tally.frames.engine_rows import EngineRows

SAFE, UNSAFE, LOST = range(3)
# More thresholds than this are mostly a column of dangers.
MOST_DRIVES: Final = 1000


@dataclass(frozen=True, kw_only=True)
class DrivesQuestion(Question):
    """How many rollouts of each drive were safe, unsafe and lost.

    Examples
    --------
    >>> DRIVES.of_columns(threshold="g", unsafe="u").outcomes
    ('safe', 'unsafe', 'lost')
    """

    @property
    def roles(self) -> dict[str, bool]:
        """The threshold and the outcome; rollouts have no groups."""
        return {column.name: column.needed for column in self.columns}

    def judge(
        self,
        rows: Rows,
        vocabulary: Vocabulary,  # noqa: ARG002
        evidence: Evidence,
    ) -> Judged:
        """The drive of each rollout, and its outcome, if the drives rise from where `evidence` has
        seen the last one.
        """
        thresholds = _thresholds(rows)
        outcomes = np.asarray(rows.columns["unsafe"], dtype=np.int64)
        if len(rows):
            _require_rising(rows, thresholds, evidence.driven)
            evidence.driven = float(thresholds[-1])
        driven, places = np.unique(thresholds, return_inverse=True)
        if driven.size > MOST_DRIVES:
            raise InvalidValueError(
                f"{rows.name('threshold')} holds {driven.size:,} thresholds: expected at most "
                f"{MOST_DRIVES:,} drives. If the column holds dangers, name the one of the "
                "thresholds that the shield was set to."
            )
        return Judged(
            len(rows),
            np.zeros((len(rows), 1), dtype=np.int64),
            outcomes,
            tuple(map(repr, driven.tolist())),
            places.astype(np.int64),
            told=(thresholds, outcomes),
        )

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:  # noqa: ARG002
        """Not inside an engine: the rows are read in order."""
        raise CannotCountError("Drives are judged in the order in which they were driven.")


def _thresholds(rows: Rows) -> Floats:
    """The threshold of each rollout: 0 to 1, -inf where the shield always brakes, +inf if never."""
    # Minus zero is zero.
    given = np.asarray(rows.numbers("threshold"), dtype=np.float64) + 0.0
    legal = ((given >= 0) & (given <= 1)) | np.isinf(given)
    bad: Integers = np.flatnonzero(~legal)
    if bad.size:
        raise InvalidValueError(
            f"{rows.name('threshold')}[{rows.start + bad[0]}] is {given[bad[0]]} ({bad.size} such "
            "values): expected the threshold that the shield was set to in that rollout, 0 to 1, "
            "-inf if it always braked, +inf if it never did."
        )
    return given


def _require_rising(rows: Rows, thresholds: Floats, before: float | None) -> None:
    """Raise at the first rollout whose threshold is below that of the one before it."""
    ahead = np.concatenate([[thresholds[0] if before is None else before], thresholds[:-1]])
    falls = np.flatnonzero(thresholds < ahead)
    if falls.size:
        row = int(falls[0])
        raise InvalidValueError(
            f"{rows.name('threshold')}[{rows.start + row}] is {thresholds[row]:g}, and the rollout "
            f"before it was driven at {ahead[row]:g}: thresholds rise from drive to drive, and "
            "none is driven again after another. Pass the rollouts in the order in which they were "
            "driven. To drive a threshold again is another claim, with a delta of its own that "
            "adds to this one."
        )


DRIVES = DrivesQuestion(
    kind="drives",
    what="A table of drives",
    columns=(
        RowColumn(
            "threshold",
            "The threshold that the shield was set to in each rollout, in the order driven.",
            "number",
        ),
        RowColumn(
            "unsafe",
            "Whether each rollout was unsafe; one without an outcome was lost, and is unsafe.",
            "flag or nothing",
        ),
    ),
    outcomes=("safe", "unsafe", "lost"),
    labelled_by=("unsafe",),
    grid=DyadicGrid(1),
    scopes=("groups",),
    scope="groups",
    labels_may_be_missing=True,
    counts_inside=False,
    in_order=True,
)

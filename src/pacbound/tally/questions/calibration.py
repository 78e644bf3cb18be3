"""Calibration: how often is a prediction with this confidence right?

A row brings a confidence, and whether the prediction was right: as a truth value, or as the
predicted and the true class. The grid is bins of the confidence; there is one table, or one for
each group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.columns import as_score_column, as_scores
from pacbound.tally.grids import (
    AtomBins,
    Bins,
    DyadicGrid,
    EqualWidthBins,
    GivenBins,
    equal_mass_cells,
)
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

DEFAULT_BINS = 20
EQUAL_MASS = "equal-mass"
"""The edges that are taken from the scores that are counted, each a cell of its own."""

_MARGIN = 2.0**-50


@dataclass(frozen=True)
class CalibrationQuestion:
    """Right and wrong predictions per bin of confidence.

    `of_arrays` and `of_columns` make it from what was passed.

    Attributes
    ----------
    grid
        The bins.
    slots : mapping of str to Slot
        The columns that each row brings.
    scope : str
        "top" for one table, else what each group is.
    members : tuple of str
        The groups that overlap, where a mapping of them was passed: a truth value for each row and
        group.

    Examples
    --------
    >>> question = CalibrationQuestion.of_columns(confidence="score", correct="right", n_bins=10)
    >>> question.grid, question.outcomes
    (EqualWidthBins(n_bins=10), ('wrong', 'right'))
    """

    kind: ClassVar[Kind] = "calibration"
    roles: ClassVar[Mapping[str, bool]] = {
        "confidence": True,
        "correct": False,
        "prediction": False,
        "label": False,
        "groups": False,
    }
    columns: ClassVar[tuple[RowColumn, ...]] = COLUMNS
    binned_by: ClassVar[tuple[str, ...]] = ("n_bins", "edges")
    """What else may be passed: the bins."""
    scopes: ClassVar[tuple[Scope, ...]] = (
        "top",
        "groups",
        "overlapping-groups",
        "per-class",
        "all-labels",
    )
    labelled_by: ClassVar[tuple[str, ...]] = ("label", "correct")
    labels_may_be_missing: ClassVar[bool] = False
    lowest_cell: ClassVar[int] = 0
    outcomes: ClassVar[tuple[str, ...]] = OUTCOMES

    grid: Bins
    slots: Mapping[str, Slot]
    scope: Scope = "top"
    members: tuple[str, ...] = ()

    @classmethod
    def of_columns(cls, **given: Any) -> CalibrationQuestion:
        """The question about a table: `confidence`; `correct`, or `prediction` and `label`."""
        named = cls._known(given)
        require_outcome(named)
        require_two_columns(named)
        if isinstance(named.get("edges"), str):
            raise InvalidValueError(
                f"edges={named['edges']!r} is not known here: expected a list of numbers, or "
                "'equal-mass'."
            )
        grid = bins_for(n_bins=named.get("n_bins", DEFAULT_BINS), edges=named.get("edges"))
        groups = named.pop("groups", None)
        return cls(grid, **slots_of_columns(slots_of(named), groups))

    @classmethod
    def of_arrays(cls, **given: Any) -> tuple[CalibrationQuestion, dict[str, Any]]:
        """The question about arrays, and the arrays by slot."""
        passed = cls._known(given)
        require_outcome(passed)
        edges, groups = passed.get("edges"), passed.pop("groups", None)
        scores = as_score_column(passed["confidence"], "confidence") if edges is not None else None
        grid = bins_for(n_bins=passed.get("n_bins", DEFAULT_BINS), edges=edges, scores=scores)
        slots = slots_of({role: role for role in passed})
        found, arrays = slots_of_arrays(slots, passed, groups)
        return cls(grid, **found), arrays

    @classmethod
    def _known(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        known = {**cls.roles, **dict.fromkeys(cls.binned_by, False)}
        return only_known(given, known, "A calibration")

    @classmethod
    def check_layout(cls, layout: Layout) -> str | None:
        """What is wrong with the layout of a tally, which came from a file; None if nothing is."""
        if isinstance(layout.grid, DyadicGrid):
            return "a dyadic grid"
        return layout.wrong_for(cls.scopes, layout.grid, OUTCOMES)

    @classmethod
    def known_again_by(cls, counts: Integers, width: int) -> None:
        """Nothing: every row that is counted has its label."""

    def judge(self, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Judged:
        """The bin of each row's confidence, and whether the prediction was right."""
        scores = rows.scores("confidence")
        cells, right = self.grid.cells(scores)[:, None], right_rows(rows, vocabulary, evidence)
        return grouped(self, rows, Judged(len(rows), cells, right, told=(scores, right)))

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:
        """The same inside an engine."""
        if self._may_be_plain(rows):
            plain = self._judge_plain(rows)
            if plain is not None:
                return plain
        keys = {"cell": rows.cell_key("confidence", self.grid), **group_keys(self, rows)}
        counts, right = count_right(rows, self.slots, keys, evidence)
        cells = rows.cells(counts, "cell", "confidence", self.grid)[:, None]
        judged = Judged(int(counts.rows.sum()), cells, right, times=counts.rows)
        return grouped_inside(self, rows, counts, judged)

    def _may_be_plain(self, rows: EngineRows) -> bool:
        plain = self.slots.keys() == {"confidence", "correct"} and rows.read_again
        plain = plain and self.slots["confidence"].scale is None
        return plain and isinstance(self.grid, EqualWidthBins) and rows.flag("correct").is_boolean

    def _judge_plain(self, rows: EngineRows) -> Judged | None:
        """The same by arithmetic alone, which is faster; None unless all scores and flags are
        plain.

        With edges fl(k/K) and products each within a factor 1 ± 2^-53 of the real ones: where the
        two floors meet, at k, a score p has fl(k/K) < p < fl((k+1)/K), or it is 0 and k is too.
        Elsewhere it is within 16 floats of an edge, and kept as it is.
        """
        bins, score = self.grid.n_cells, rows.plain_number("confidence")
        least, most = ((score * (bins * factor)).floor() for factor in (1 - _MARGIN, 1 + _MARGIN))
        right = rows.flag("correct").key
        counts = rows.count_plain({"cell": least, "near": score * (most - least), "right": right})
        cells, near, flags = (counts.numbers(key) for key in ("cell", "near", "right"))
        # A score below 0 has a floor below 0, one above 1 a floor of K or more; null or NaN is
        # neither.
        if not ((cells >= 0) & (cells < bins) & (near <= 1) & (flags >= 0)).all():
            return None
        exact = np.where(near > 0, self.grid.cells(near), cells).astype(np.int64)
        rows_seen = int(counts.rows.sum())
        return Judged(rows_seen, exact[:, None], flags.astype(np.int64), times=counts.rows)


def is_equal_mass(edges: Any) -> bool:
    """Whether edges are to be taken from the rows; they may be an array, which equals no text."""
    return isinstance(edges, str) and edges == EQUAL_MASS


def bins_for(*, n_bins: int, edges: Any, scores: NDArray[Any] | None = None) -> Bins:
    """The bins that the arguments describe; `scores` are those to be counted."""
    if edges is None:
        return EqualWidthBins(n_bins)
    if isinstance(edges, str):
        if edges != EQUAL_MASS or scores is None:
            raise InvalidValueError(
                f"edges={edges!r} is not known here: expected a list of numbers, or 'equal-mass' "
                "for all rows."
            )
        return equal_mass_cells(as_scores(scores, "confidence"), n_bins)
    if isinstance(edges, AtomBins | GivenBins | EqualWidthBins):
        return edges
    return GivenBins(tuple(as_scores(edges, "edges").tolist()))

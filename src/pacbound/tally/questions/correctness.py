"""Whether predictions are right: calibration and abstention, which ask about one answer per row.

A row brings a confidence, and says whether the prediction was right: as a truth value, `correct`,
as the predicted and the true class, `prediction` and `label`, or as a `quality` from 0 to 1, whose
level is the outcome then. A calibration counts by bins of the
confidence, and an abstention by the fine cells that thresholds are taken from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import MISSING
from pacbound.tally.columns import QUALITY, Array, Integers, Rows, Slot, as_score_column
from pacbound.tally.grades import Graded, graded_quality, not_graded
from pacbound.tally.grids import DEFAULT_BINS, DyadicGrid, EqualWidthBins, bins_for
from pacbound.tally.questions.question import Judged, Layout, Question, RowColumn

if TYPE_CHECKING:
    import narwhals as nw

    from pacbound.tally.classes import Evidence, Vocabulary
    from pacbound.tally.frames.counting import KeyCounts
    from pacbound.tally.frames.engine_rows import EngineRows

_MARGIN = 2.0**-50


@dataclass(frozen=True, kw_only=True)
class Correctness(Question):
    """Right and wrong predictions per cell of confidence.

    Examples
    --------
    >>> question = CALIBRATION.of_columns(confidence="score", correct="right", n_bins=10)
    >>> question.grid, question.outcomes
    (EqualWidthBins(n_bins=10), ('wrong', 'right'))
    """

    def check_layout(self, layout: Layout) -> str | None:
        """What is wrong with the layout of a tally, which came from a file; None if nothing is."""
        if not self.options:
            return super().check_layout(layout)
        if isinstance(layout.grid, DyadicGrid):
            return "a dyadic grid"
        return layout.wrong_for(self.scopes, layout.grid, self.outcomes)

    def judge(self, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Judged:
        """The cell of each row's confidence, and whether the prediction was right."""
        scores = rows.scores("confidence")
        if QUALITY in rows.slots:
            right = self._levels(rows)
        else:
            right = _right_rows(rows, vocabulary, evidence)
        judged = Judged(len(rows), self.grid.cells(scores)[:, None], right, told=(scores, right))
        return self._in_groups(rows, judged)

    def _levels(self, rows: Rows) -> Array:
        """The level of each row's grade; its quality, where the outcomes are no levels."""
        graded = self.graded or Graded()
        quality = graded_quality(rows, QUALITY, graded)
        return graded.levels(quality, self.levels) if self._counts_levels else quality

    @property
    def _counts_levels(self) -> bool:
        return self.graded is not None and len(self.outcomes) == self.graded.steps(self.levels) + 1

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:
        """The same inside an engine."""
        if self._may_be_plain(rows):
            plain = self._judge_plain(rows)
            if plain is not None:
                return plain
        keys = self._group_keys(rows)
        if not self._is_one_rate:
            keys = {"cell": rows.cell_key("confidence", self.grid), **keys}
        counts, right = self._count_right(rows, keys, evidence)
        if self._is_one_rate:
            cells = np.zeros(len(counts.rows), dtype=np.int64)
        else:
            cells = rows.cells(counts, "cell", "confidence", self.grid)
        return self._counted_inside(rows, counts, cells[:, None], right)

    @property
    def _is_one_rate(self) -> bool:
        """Whether there is no confidence, and one bin for all rows."""
        return self.slots["confidence"].constant is not None

    def _named(self, named: Mapping[str, Any]) -> Self:
        return self._binned(self._of_outcomes(named), named)._of_one_rate()

    def _of_outcomes(self, named: Mapping[str, Any]) -> Self:
        outcome = [role for role in ("correct", "prediction", "label", QUALITY) if role in named]
        if outcome not in (["correct"], ["prediction", "label"], [QUALITY]):
            raise InvalidTypeError(
                "Pass either correct, or both prediction and label, or quality: what says whether "
                f"a prediction was right is {', '.join(outcome) or 'missing'}."
            )
        if "label" in named and named["label"] == named["prediction"]:
            raise InvalidValueError(
                f"label and prediction are both {named['label']!r}, so that every row would be "
                "right: name the column of the true classes."
            )
        return super()._named(named)

    def _of_one_rate(self) -> Self:
        """The same question; without a confidence, rows are all in one bin, if there is but one."""
        if "confidence" in self.slots:
            return self
        if self.grid.n_cells != 1:
            raise InvalidTypeError(
                f"{self.what} needs 'confidence'. Without one there is a single rate for all rows, "
                "or for all rows of a group: pass n_bins=1 for it."
            )
        slots = {"confidence": Slot("number", "confidence", constant=1.0), **self.slots}
        return replace(self, slots=slots)

    def _passed(self, passed: Mapping[str, Any]) -> tuple[Self, dict[str, Any]]:
        columns = {role: role for role in passed if role not in self.options}
        by_edges = passed.get("edges") is not None and "confidence" in columns
        scores = as_score_column(passed["confidence"], "confidence") if by_edges else None
        own = self._binned(self._of_outcomes(columns), passed, scores)._of_one_rate()
        return own, {role: passed[role] for role in columns}

    def _binned(self, own: Self, given: Mapping[str, Any], scores: Array | None = None) -> Self:
        """The question on the bins that were asked for, which may be taken from the `scores`."""
        if not self.options:
            return own
        n_bins, edges = given.get("n_bins", DEFAULT_BINS), given.get("edges")
        return replace(own, grid=bins_for(n_bins=n_bins, edges=edges, scores=scores))

    def _count_right(
        self, rows: EngineRows, keys: Mapping[str, nw.Expr], evidence: Evidence
    ) -> tuple[KeyCounts, Integers]:
        """How many rows have each combination of the `keys` and of being right, and which of the
        combinations are right.
        """
        if "correct" in self.slots:
            flag = rows.flag("correct")
            counts = rows.count({**keys, "right": flag.key})
            return counts, flag.checked(counts, "right")
        if QUALITY in self.slots:
            graded = self.graded or Graded()
            rows.refuse_beyond([QUALITY], graded)
            key = rows.level(QUALITY, graded, self.levels)
            counts = rows.count({**keys, "right": key}, outcomes=len(self.outcomes))
            right = counts.numbers("right").astype(np.int64)
            if (right < 0).any():
                missing = counts.rows_where(right < 0)
                raise not_graded(f"{rows.name(QUALITY)} is missing", missing)
            return counts, right
        answers = rows.answers(["prediction"], "label", evidence)
        counts = rows.count({**keys, "right": answers.coded(answers.right_as_number(0))})
        right = answers.checked(counts, "right")
        return counts, right

    def _may_be_plain(self, rows: EngineRows) -> bool:
        plain = self.slots.keys() == {"confidence", "correct"} and rows.read_again
        plain = plain and self.slots["confidence"].scale is None and not self._is_one_rate
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
        return self._counted_inside(rows, counts, exact[:, None], flags.astype(np.int64))


def _right_rows(rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Integers:
    """1 for each row whose prediction was right, 0 for the others."""
    if "correct" in rows.slots:
        return rows.flags("correct").astype(np.int64)
    said, truth = (rows.classes(slot, vocabulary) for slot in ("prediction", "label"))
    for slot, codes in (("prediction", said), ("label", truth)):
        rows.refuse_missing(
            slot,
            codes == MISSING,
            "every row needs a prediction and a label. Label them; to drop rows because their "
            "label is missing voids the guarantee unless that has nothing to do with being right",
        )
    right = said == truth
    wrong = np.bincount(truth[~right], minlength=len(vocabulary))
    evidence.saw(rows.name("prediction"), vocabulary.classes(np.unique(said).tolist()))
    evidence.labelled |= vocabulary.classes(np.unique(truth).tolist())
    evidence.unmatched += vocabulary.counted(wrong)
    return np.asarray(right, dtype=np.int64)


CALIBRATION = Correctness(
    kind="calibration",
    what="A calibration",
    columns=(
        RowColumn(
            "confidence",
            "The confidence of each prediction, from 0 to 1; none is needed for a single bin.",
            "number",
            needed=False,
        ),
        RowColumn("correct", "Whether each prediction was right.", "flag", needed=False),
        RowColumn(
            "prediction",
            "The predicted class of each row; with label, in place of correct.",
            "class",
            needed=False,
        ),
        RowColumn("label", "The true class of each row.", "class", needed=False),
        RowColumn(
            QUALITY,
            "How good each answer is, graded from 0 to 1; in place of correct.",
            "number or nothing",
            needed=False,
        ),
    ),
    outcomes=("wrong", "right"),
    labelled_by=("label", "correct"),
    grid=EqualWidthBins(DEFAULT_BINS),
    scopes=("top", "groups", "overlapping-groups", "per-class", "all-labels"),
    options=("n_bins", "edges"),
    may_be_graded=True,
    levels=256,
)
ABSTENTION = Correctness(
    kind="abstention",
    what="An abstention",
    columns=(
        RowColumn("confidence", "The confidence of each prediction, from 0 to 1.", "number"),
        *CALIBRATION.columns[1:],
    ),
    outcomes=CALIBRATION.outcomes,
    labelled_by=CALIBRATION.labelled_by,
    may_be_graded=True,
    levels=256,
    scopes=("top", "groups"),
)

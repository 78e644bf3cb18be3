"""Replacement: what does answering with a new model do to each row, against the old one?

A row brings the answer of the old model, then that of each candidate for its place, and a label,
which may be missing in any row, or in all; or in their place the quality of each model's answer.
There is no score, so there is one cell. The outcome is joint over the candidates, in the order in
which they are named. Of graded answers the cell is the difference of the qualities, of each
candidate, and there is one outcome.

Equal answers need no label. What is not known counts against the new model: a missing label where
answers differ, a missing answer of its own, and a missing answer of the old model unless the new
one is known to be right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import MISSING
from pacbound.tally.columns import (
    QUALITY,
    Floats,
    Integers,
    Rows,
    Slot,
    as_array,
    numeric,
    same_length,
)
from pacbound.tally.grades import Graded
from pacbound.tally.grids import DifferenceGrid, DyadicGrid
from pacbound.tally.questions.cascade import (
    ALL_ROWS,
    LABEL,
    label_column,
    prediction_columns,
    preferred_quality,
    witness,
)
from pacbound.tally.questions.question import Comparison, Judged, Layout, RowColumn

if TYPE_CHECKING:
    import narwhals as nw

    from pacbound.tally.classes import Evidence, Vocabulary
    from pacbound.tally.frames.engine_rows import EngineRows

# Of a candidate: as good as the old model; it alone is right; the old one alone is right; both are
# wrong, in different ways. Where something is missing that may still come: anything, a loss or
# nothing, nothing or a gain.
OUTCOMES: Final = (
    "equal",
    "only_new",
    "only_old",
    "neither",
    "unlabelled",
    "may_lose",
    "may_gain",
)
EQUAL, ONLY_NEW, ONLY_OLD, NEITHER, UNLABELLED, MAY_LOSE, MAY_GAIN = range(7)

# What counts as a loss, and what may still become a gain, or cease to be a loss.
LOST: Final = [ONLY_OLD, UNLABELLED, MAY_LOSE]
OPEN: Final = [UNLABELLED, MAY_LOSE, MAY_GAIN]

# What is so of a row, and its outcome then: the first that holds decides, else NEITHER.
DECIDED: Final = (
    (("no new answer",), ONLY_OLD),
    (("no old answer", "new right"), EQUAL),
    (("no old answer", "no label"), MAY_LOSE),
    (("no old answer",), ONLY_OLD),
    (("agree",), EQUAL),
    (("no label",), UNLABELLED),
    (("new right",), ONLY_NEW),
    (("old right",), ONLY_OLD),
)

# The keys that engines count the outcome of each candidate by.
_CANDIDATE: Final = "candidate "

# Joint outcomes are 7 to the power of the candidates.
MOST_CANDIDATES: Final = 4


@dataclass(frozen=True, kw_only=True)
class ReplacementQuestion(Comparison):
    """What each candidate's answer does against the old model's.

    Examples
    --------
    >>> question = REPLACEMENT.of_columns(prediction=["old", "new"], label="y")
    >>> question.candidates, question.outcomes
    (1, ('equal', 'only_new', 'only_old', 'neither', 'unlabelled', 'may_lose', 'may_gain'))
    """

    @property
    def candidates(self) -> int:
        """The number of models that may take the place of the old one."""
        return max(len(self._slots("prediction")), len(self._slots(QUALITY)), 2) - 1

    models: tuple[str, ...] = ()

    @property
    def cell_columns(self) -> int:
        """The difference of each candidate, where answers are graded."""
        return 1 if self.graded is None else self.candidates

    def counting_grades(self, graded: Graded | None) -> Self:
        """The same question, where the cell of a row is the difference of its qualities."""
        if graded is None:
            return self
        steps = graded.steps(self.levels)
        # One column on an even number of steps differs by even ones.
        steps = steps // 2 if self._is_single and graded.declared and steps % 2 == 0 else steps
        grid = DifferenceGrid(steps=steps)
        return replace(self, graded=graded, grid=grid, outcomes=GRADED_OUTCOMES)

    def lacks_labels(self, cells: Integers, counts: Integers) -> bool:
        """Whether a label or a grade may still come for a row that was counted."""
        if not isinstance(self.grid, DifferenceGrid):
            return super().lacks_labels(cells, counts)
        return bool((cells[:, -self.candidates :] > 2 * self.grid.steps).any())

    def _named(self, named: Mapping[str, Any]) -> Self:
        """The question about a table: columns in the order of the models, the old one first."""
        columns = {
            role: [names] if isinstance(names, str) else list(names)
            for role, names in named.items()
            if role in ("prediction", QUALITY)
        }
        label = named.get("label")
        if label is not None and label in columns.get("prediction", []):
            raise InvalidValueError(
                f"label and prediction are both {label!r}, so that a model would always be right: "
                "name the column of the true classes."
            )
        own = self._of_models(columns, label, named.get("preferred"))
        return replace(own, models=tuple(columns.get("prediction", ("old", "new"))))

    def _passed(self, passed: Mapping[str, Any]) -> tuple[Self, dict[str, Any]]:
        """The question about (n, M) answers and (n,) labels, or (n, M) qualities."""
        columns: dict[str, list[Any]] = {}
        if "prediction" in passed:
            columns["prediction"] = prediction_columns(passed["prediction"])
        if QUALITY in passed:
            quality = numeric(as_array(passed[QUALITY], QUALITY), QUALITY)
            columns[QUALITY] = list(np.atleast_2d(quality.T))
        single = [role for role in ("label", "preferred") if role in passed]
        names = {
            role: [f"{role}[:, {m}]" if len(each) > 1 else role for m in range(len(each))]
            for role, each in columns.items()
        }
        given = {role: role for role in single}
        question = self._of_models(names, given.get("label"), given.get("preferred"))
        question = replace(question, models=("old", "new"))
        arrays = [column for each in columns.values() for column in each]
        arrays += [label_column(passed[role], role) for role in single]
        same_length(**dict(zip(question.slots, arrays, strict=True)))
        return question, dict(zip(question.slots, arrays, strict=True))

    def _of_models(
        self, names: Mapping[str, Sequence[str]], label: str | None, preferred: str | None
    ) -> Self:
        ways = [label is not None, QUALITY in names, preferred is not None]
        if sum(ways) > 1 or not (names or preferred) or (label and "prediction" not in names):
            raise InvalidTypeError(
                "Pass prediction and label, or quality, or preferred: one of them says which model "
                "is better."
            )
        most = max([2, *map(len, names.values())])
        if preferred is not None and most > 2:
            raise InvalidTypeError("preferred names one of two models, and there are more.")
        for role, each in names.items():
            models = 2 if role == QUALITY and len(each) == 1 else len(each)
            if models != most or models > MOST_CANDIDATES + 1:
                raise InvalidTypeError(
                    f"{role} has {len(each)} columns: expected the old model's, then one for each "
                    f"new model, of which there may be 1 to {MOST_CANDIDATES}."
                )
        held = {"prediction": "class", QUALITY: "number or nothing"}
        slots = {
            f"{role} {m}": Slot(held[role], name)  # type: ignore[arg-type]
            for role, each in names.items()
            for m, name in enumerate(each)
        }
        slots |= {} if label is None else {"label": Slot("class", label)}
        slots |= {} if preferred is None else {"preferred": Slot("class", preferred)}
        own = replace(self, slots=slots)
        return replace(own, outcomes=outcomes_of(own.candidates))

    def check_layout(self, layout: Layout) -> str | None:
        """What is wrong with the layout of a tally, which came from a file; None if nothing is."""
        if self.graded is not None:
            return self._wrong_of_grades(layout)
        known = [outcomes_of(number) for number in range(1, MOST_CANDIDATES + 1)]
        fitting = layout.outcomes if layout.outcomes in known else self.outcomes
        return layout.wrong_for(self.scopes, self.grid, fitting)

    def _wrong_of_grades(self, layout: Layout) -> str | None:
        """The same where answers are graded."""
        grid, graded = layout.grid, self.graded or Graded()
        steps = graded.steps(self.levels)
        if not isinstance(grid, DifferenceGrid) or grid.steps not in possible_steps(graded, steps):
            return "another grid than that of its grades"
        if layout.scope not in self.scopes or not 1 <= layout.scores <= MOST_CANDIDATES:
            return f"scope {layout.scope!r} and {layout.scores} candidates"
        return None if layout.outcomes == GRADED_OUTCOMES else "other outcomes"

    def judge(self, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Judged:
        """What each candidate's answer does."""
        answers = [rows.classes(slot, vocabulary) for slot in self._slots("prediction")]
        if answers and "label" in self.slots:
            truth = rows.classes("label", vocabulary)
        else:
            truth = np.full(len(rows), MISSING)
        self._see(rows, answers, truth, vocabulary, evidence)
        differs = [(new != answers[0]).astype(np.int64) << m for m, new in enumerate(answers[1:])]
        # Not by the labels: the same rows with more of them are still the same rows.
        told: Any = (np.zeros(len(rows)), np.sum(differs, axis=0)) if answers else None
        if self.takes_quality:
            old, *candidates = self.qualities(rows)
            same = [(new == answers[0]) & (new != MISSING) for new in answers[1:]]
            same = same or [np.zeros(len(rows), dtype=np.bool_)] * len(candidates)
            pairs = zip(candidates, same, strict=True)
            cells = np.column_stack([self._difference(old, new, alike) for new, alike in pairs])
            lost = np.where(same[0], 0.0, old - candidates[0])
            zeros = np.zeros(len(rows), dtype=np.int64)
            return self._in_groups(rows, Judged(len(rows), cells, zeros, told=(lost, zeros)))
        singles = [outcome_of(answers[0], new, truth) for new in answers[1:]]
        cells = np.zeros((len(rows), 1), dtype=np.int64)
        return self._in_groups(rows, Judged(len(rows), cells, _joint(singles), told=told))

    def _difference(self, old: Floats, new: Floats, alike: Any) -> Integers:
        """The cell of a candidate by two qualities, which differ by nothing if answers are
        `alike`.
        """
        grid, graded = self.grid, self.graded or Graded()
        if not isinstance(grid, DifferenceGrid):
            return np.zeros(len(old), dtype=np.int64)
        most = np.where(np.isnan(old), 1.0, old) - np.where(np.isnan(new), 0.0, new)
        missing = np.where(alike, 0, np.isnan(old).astype(np.int64) + np.isnan(new))
        return grid.coded(np.where(alike, 0.0, most), missing, declared=graded.declared)

    def qualities(self, rows: Rows) -> list[Floats]:
        """The quality of each model's answer, NaN where it is missing."""
        if "preferred" in self.slots:
            new = preferred_quality(rows, self._preferred)
            return [1.0 - new, new]
        graded = self.graded or Graded()
        found = [
            graded.quality(rows.numbers(slot), rows.name(slot), rows.start)
            for slot in self._slots(QUALITY)
        ]
        # One column is the new model's: 1 where it wins, 0.5 for a tie, 0 where it loses.
        return found if len(found) > 1 else [1.0 - found[0], found[0]]

    @property
    def _preferred(self) -> dict[str, float]:
        """The quality of the new model's answer, by which one is preferred."""
        return {self.models[0]: 0.0, self.models[1]: 1.0, "tie": 0.5}

    def judge_inside(self, rows: EngineRows, evidence: Evidence) -> Judged:
        """The same inside an engine: a key for the outcome of each candidate."""
        # Labels are held against the last one.
        predictions = self._slots("prediction")[::-1]
        label = "label" if "label" in self.slots else None
        answers = rows.answers(predictions, label, evidence, gaps=True) if predictions else None
        if answers is not None and not self.takes_quality:
            singles = answers.replaced(DECIDED, NEITHER)[::-1]
        else:
            agree = [None] * self.candidates if answers is None else answers.agree[::-1]
            old, *candidates = self._qualities_inside(rows)
            pairs = zip(candidates, agree, strict=True)
            singles = [self._difference_inside(rows, old, *pair) for pair in pairs]
        keys = {f"{_CANDIDATE}{m}": single for m, single in enumerate(singles)}
        counts = rows.count({**keys, **self._group_keys(rows)}, outcomes=len(self.outcomes))
        codes = [counts.numbers(key).astype(np.int64) for key in keys]
        if answers is not None:
            answers.checked(counts, next(iter(keys)))
        cells = np.zeros((len(counts.rows), 1), dtype=np.int64)
        if self.takes_quality:
            return self._counted_inside(rows, counts, np.column_stack(codes), cells[:, 0])
        return self._counted_inside(rows, counts, cells, _joint(codes))

    def _difference_inside(
        self, rows: EngineRows, old: nw.Expr, new: nw.Expr, agree: nw.Expr | None
    ) -> nw.Expr:
        """The cell of a candidate inside an engine."""
        graded, grid = self.graded or Graded(), self.grid
        steps = grid.steps if isinstance(grid, DifferenceGrid) else 1
        return rows.difference(old, new, agree, steps, declared=graded.declared)

    def _qualities_inside(self, rows: EngineRows) -> list[nw.Expr]:
        """The quality of each model's answer, null where it is missing."""
        graded = self.graded or Graded()
        if "preferred" in self.slots:
            found = [rows.preferred("preferred", self._preferred)]
        else:
            rows.refuse_beyond(self._slots(QUALITY), graded)
            rows.refuse_undeclared(self._slots(QUALITY), graded)
            found = [rows.quality(slot, graded) for slot in self._slots(QUALITY)]
        return found if len(found) > 1 else [1.0 - found[0], found[0]]

    def _see(
        self,
        rows: Rows,
        answers: Sequence[Integers],
        truth: Integers,
        vocabulary: Vocabulary,
        evidence: Evidence,
    ) -> None:
        """Let `evidence` take in the classes; labels are held against the old model's answers."""
        # The last that is seen is the one that labels are held against.
        ordered = [*zip(self._slots("prediction"), answers, strict=True)][::-1]
        for slot, codes in ordered:
            evidence.slow = rows.name(slot)
            there = np.unique(codes[codes != MISSING])
            evidence.saw(evidence.slow, vocabulary.classes(there.tolist()))
        if answers:
            whole = np.all([codes != MISSING for codes in answers], axis=0)
            against = [codes[whole] for _, codes in ordered]
            witness(against, truth[whole], vocabulary, evidence)


# Of graded rows: what becomes of them is in their cells.
GRADED_OUTCOMES: Final = ("graded",)


def possible_steps(graded: Graded, steps: int) -> tuple[int, ...]:
    """The steps that differences of such grades may have: half as many, where one column says which
    answer is better.
    """
    return (steps, steps // 2) if graded.declared and steps % 2 == 0 else (steps,)


def differences(codes: Integers, rows: Integers, steps: int) -> Integers:
    """How many rows have each cell of a difference."""
    return np.bincount(codes, weights=rows, minlength=3 * steps + 3).astype(np.int64)


def at_worst(cells: Integers, *, best: bool = False) -> Integers:
    """Counts of the cells of a difference as counts of its levels from -1 to 1, each row at the
    worst that it can be; or at its `best`.
    """
    steps = cells.size // 3 - 1
    known = cells[: 2 * steps + 1].copy()
    half, both = cells[2 * steps + 1 : -1], cells[-1]
    if best:
        known[: steps + 1] += half
        known[0] += both
    else:
        known[steps:] += half
        known[-1] += both
    return known


def seen_of(cells: Integers) -> Integers:
    """Counts of the cells of a difference as counts of `OUTCOMES`: which way rows point."""
    steps = cells.size // 3 - 1
    known, half = cells[: 2 * steps + 1], cells[2 * steps + 1 : -1]
    found = np.zeros(len(OUTCOMES), dtype=np.int64)
    found[ONLY_NEW], found[EQUAL] = known[:steps].sum(), known[steps]
    found[ONLY_OLD] = known[steps + 1 :].sum()
    found[MAY_GAIN], found[MAY_LOSE] = half[0], half[-1]
    found[UNLABELLED] = half[1:-1].sum() + cells[-1]
    return found


def _joint(singles: Sequence[Integers]) -> Integers:
    """The joint outcome of each row, by the outcome of each candidate."""
    joint = np.zeros(len(singles[0]), dtype=np.int64)
    for single in singles:
        joint = joint * len(OUTCOMES) + single
    return joint


def outcomes_of(candidates: int) -> tuple[str, ...]:
    """The names of the joint outcomes of so many candidates."""
    return tuple(map("|".join, product(OUTCOMES, repeat=candidates)))


def of_candidates(counts: Integers) -> Integers:
    """Counts of joint outcomes as (candidates, outcomes): those of each candidate, the others
    disregarded.
    """
    width = len(OUTCOMES)
    table = counts.reshape((width,) * round(np.log(counts.size) / np.log(width)))
    every = range(table.ndim)
    return np.array([table.sum(axis=tuple(set(every) - {own})) for own in every])


def at_best(counts: Integers) -> Integers:
    """Counts of a candidate's outcomes, if all that is missing spoke for it."""
    best = counts.copy()
    best[ONLY_NEW] += counts[UNLABELLED] + counts[MAY_GAIN]
    best[EQUAL] += counts[MAY_LOSE]
    best[OPEN] = 0
    return best


def outcome_of(old: Integers, new: Integers, truth: Integers) -> Integers:
    """The outcome of each row by the numbers of the classes, -1 where one is missing."""
    unknown = truth == MISSING
    so = {
        "no new answer": new == MISSING,
        "no old answer": old == MISSING,
        "no label": unknown,
        "agree": new == old,
        "new right": (new == truth) & ~unknown,
        "old right": (old == truth) & ~unknown,
    }
    found = [np.all([so[fact] for fact in facts], axis=0) for facts, _ in DECIDED]
    return np.select(found, [outcome for _, outcome in DECIDED], NEITHER)


REPLACEMENT = ReplacementQuestion(
    kind="replacement",
    what="A replacement",
    columns=(
        RowColumn(
            "prediction",
            "The answer of each model, the old model's first.",
            "class",
            several=True,
            needed=False,
        ),
        LABEL,
        RowColumn(
            QUALITY,
            "In place of label: how good each model's answer is, 0 to 1, the old model's first.",
            "number or nothing",
            several=True,
            needed=False,
        ),
        RowColumn(
            "preferred",
            "Which of two models answered better: the name of its prediction, old, new, or tie.",
            "class",
            needed=False,
        ),
    ),
    outcomes=OUTCOMES,
    labelled_by=("label",),
    grid=DyadicGrid(1),
    labels_may_be_missing=True,
    may_be_graded=True,
    levels=256,
    joins=True,
    reference="old model",
    everyone=(ALL_ROWS,),
)

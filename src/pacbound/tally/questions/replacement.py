"""Replacement: what does answering with a new model do to each row, against the old one?

A row brings the answer of the old model, then that of each candidate for its place, and a label,
which may be missing in any row, or in all; or in their place the quality of each model's answer.
There is no score, so there is one cell. The outcome is joint over the candidates, in the order in
which they are named. A coin makes the difference of two qualities a loss, a gain or neither
(`pacbound.tally.coins`).

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
from pacbound.tally.coins import COIN, Graded, tossed_differences
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
from pacbound.tally.grids import DyadicGrid
from pacbound.tally.questions.cascade import (
    ALL_ROWS,
    LABEL,
    label_column,
    prediction_columns,
    preferred_quality,
    witness,
)
from pacbound.tally.questions.question import Judged, Layout, Question, RowColumn

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
class ReplacementQuestion(Question):
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
        known = [outcomes_of(number) for number in range(1, MOST_CANDIDATES + 1)]
        fitting = layout.outcomes if layout.outcomes in known else self.outcomes
        return layout.wrong_for(self.scopes, self.grid, fitting)

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
            singles = [self._compared(rows, old, new) for new in candidates]
            lost = old - candidates[0]
            for single, new in zip(singles, answers[1:], strict=False):
                same = (new == answers[0]) & (new != MISSING)
                single[same], lost = EQUAL, np.where(same, 0.0, lost)
            told = lost, np.zeros(len(rows), dtype=np.int64)
        else:
            singles = [outcome_of(answers[0], new, truth) for new in answers[1:]]
        cells = np.zeros((len(rows), 1), dtype=np.int64)
        return self._in_groups(rows, Judged(len(rows), cells, _joint(singles), told=told))

    def _compared(self, rows: Rows, old: Floats, new: Floats) -> Integers:
        """The outcome of a candidate by two qualities; without coins, which way it points."""
        coin = rows.numbers(COIN) if COIN in rows.slots else np.zeros(len(rows))
        return outcome_between(*tossed_differences(coin, old, new))

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
            tossed = zip(candidates, agree, strict=True)
            singles = [rows.tossed(COIN, old, new, same) for new, same in tossed]
        keys = {f"{_CANDIDATE}{m}": single for m, single in enumerate(singles)}
        counts = rows.count({**keys, **self._group_keys(rows)}, outcomes=len(self.outcomes))
        codes = [counts.numbers(key).astype(np.int64) for key in keys]
        if answers is not None:
            answers.checked(counts, next(iter(keys)))
        if self.takes_quality:
            codes = [outcome_between(code // 3 - 1, code % 3 - 1) for code in codes]
        cells = np.zeros((len(counts.rows), 1), dtype=np.int64)
        return self._counted_inside(rows, counts, cells, _joint(codes))

    def _qualities_inside(self, rows: EngineRows) -> list[nw.Expr]:
        """The quality of each model's answer, null where it is missing."""
        graded = self.graded or Graded()
        if "preferred" in self.slots:
            found = [rows.preferred("preferred", self._preferred)]
        else:
            rows.refuse_beyond(self._slots(QUALITY), graded)
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

    def _slots(self, role: str) -> list[str]:
        return [slot for slot in self.slots if slot.startswith(f"{role} ")]


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


def outcome_between(most: Integers, least: Integers) -> Integers:
    """The outcome of each row by the most and the least that it can lose: -1, 0 or 1."""
    return np.select(
        [most == least, least == 0, most == 0],
        [np.array([ONLY_NEW, EQUAL, ONLY_OLD])[most + 1], MAY_LOSE, MAY_GAIN],
        UNLABELLED,
    )


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
    tosses=True,
    joins=True,
    reference="old model",
    everyone=(ALL_ROWS,),
)

"""What many models say about each row, whatever it was read from: scores, classes, and the label.

All of it is held in memory, because the rows that choose a cascade and those that certify it are
drawn from the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.rows import ReadingOptions, read_rows
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.paths import Paths
from pacbound.sources.values import MISSING, Values
from pacbound.stats.arguments import whole_number
from pacbound.tally.classes import ALL_PREDICT, ClassRule, Evidence, Vocabulary
from pacbound.tally.columns import (
    QUALITY,
    Floats,
    Integers,
    Rows,
    Slot,
    as_array,
    blocks,
    numeric,
    only_known,
    read_in_blocks,
    same_length,
    same_rows,
    scaled,
)
from pacbound.tally.count import Counting
from pacbound.tally.grades import Graded
from pacbound.tally.label_matches import LabelMatches
from pacbound.tally.questions.cascade import (
    CASCADE,
    TWO_MODELS,
    label_column,
    prediction_columns,
    quality_columns,
    witness,
)
from pacbound.tally.tally import Tally

_ROLES = {"confidence": True, "prediction": False, "label": False, QUALITY: False}


@dataclass(frozen=True)
class ModelTable:
    """The scores (n, M) and classes (n, M) of M models, and the true class of each row, -1 where it
    is missing. Classes are numbers into `classes`, in the smallest integers that hold them. Where
    answers are graded, their qualities (n, M) stand in the place of the true class, and models
    without predictions always differ.
    """

    scores: Floats
    answers: NDArray[Any]
    truth: NDArray[Any]
    classes: list[Any]
    names: Names
    rule: ClassRule
    sources: tuple[str, ...] | None
    quality: Floats | None = None
    graded: Graded | None = None

    @classmethod
    def of_arrays(
        cls, columns: Mapping[str, Any], rule: ClassRule, graded: Graded | None
    ) -> ModelTable:
        """The table of (n, M) confidences, (n, M) predictions and (n,) labels; or (n, M) qualities
        in the place of labels.
        """
        _require_outcome(columns)
        given = {name: column for name, column in columns.items() if column is not None}
        same_rows(**given)
        scores = numeric(as_array(given["confidence"], "confidence"), "confidence")
        answers = prediction_columns(given["prediction"]) if "prediction" in given else []
        quality = quality_columns(given[QUALITY]) if QUALITY in given else []
        for role, several in (("prediction", answers), (QUALITY, quality)):
            if role in given and (scores.ndim != 2 or scores.shape[1] != len(several)):
                raise InvalidValueError(
                    f"confidence of shape {scores.shape} and {role} of {len(several)} models do "
                    "not fit together: expected (n, M) of both, a column for every model, the slow "
                    "one included."
                )
        truth = [label_column(given["label"])] if "label" in given else []
        columns_taken = [*scores.T, *answers, *truth, *quality]
        names = Names.of_arrays(scores.shape[1], given)
        taken = dict(zip(names.slots, columns_taken, strict=True))
        same_length(**{names.slots[key].name: column for key, column in taken.items()})
        # Scores that are float64 already need no copy.
        exact = scores.dtype == np.float64 and bool(scores.size and scores.max() <= 1)

        def read(parts: Iterable[Rows]) -> ModelTable:
            reading = _Reading(names, rule, graded, scores if exact else None)
            for rows in parts:
                reading.take(rows)
            return reading.result(None)

        return read_in_blocks(names.slots, taken, read)

    @classmethod
    def of_files(
        cls,
        paths: Paths,
        columns: Mapping[str, Any],
        reading: ReadingOptions,
        graded: Graded | None,
    ) -> ModelTable:
        """The table of files, by the names of their columns."""
        _require_outcome(columns)
        names = Names.of_columns(columns)
        table = _Reading(names, reading.rule, graded)
        slots = scaled(names.slots, reading.notation.scale)
        tables = read_rows(paths, slots, table.take, reading)
        if not table.rows:
            raise InvalidValueError(
                f"{tables.listed}: no rows. Choosing and certifying need at least two."
            )
        return table.result(tables.fingerprints)

    def __len__(self) -> int:
        return len(self.truth)

    @property
    def models(self) -> int:
        """How many models there are."""
        return int(self.answers.shape[1])

    @property
    def is_named(self) -> bool:
        """Whether columns have names: those of files have."""
        return self.sources is not None

    def place(self, model: Any, option: str) -> int:
        """The place of a model among all, from its place or, where columns have names, from that of
        its predictions.
        """
        names = self.names.predictions
        if isinstance(model, str):
            if self.is_named and model in names:
                return names.index(model)
            known = f"expected one of {', '.join(names)}" if self.is_named else "arrays have none"
            raise InvalidValueError(f"{option}={model!r} is not a column of predictions: {known}.")
        place = whole_number(model, option)
        if place >= self.models:
            raise InvalidValueError(
                f"{option}={place} is not a model: there are {self.models}, counted from 0."
            )
        return place

    def cells(self, rows: Integers) -> Integers:
        """The cell of every score of some rows, on the finest grid."""
        return TWO_MODELS.cells(self.scores[rows])

    def differing(self, rows: Integers, models: Sequence[int]) -> NDArray[np.bool_]:
        """In which of the rows the models do not all predict the same."""
        answers = self.answers[rows[:, None], np.array(models)]
        return np.asarray((answers != answers[:, -1:]).any(axis=1))

    def require_labels(self, rows: Integers, models: Sequence[int], what: str, seed: int) -> None:
        """Raise if a label is missing in a row where these models differ; `what` says whose, and
        `seed` drew them.
        """
        if self.quality is None:
            missing, column = self.truth[rows] == MISSING, f"label in {self.names.labels}"
        else:
            missing = np.isnan(self.quality[rows[:, None], np.array(models)]).any(axis=1)
            column = f"grade in one of {', '.join(self.names.qualities)}"
        lacking = np.sort(rows[self.differing(rows, models) & missing])
        if lacking.size:
            first = ", ".join(map(str, lacking[:5].tolist()))
            raise InvalidValueError(
                f"{lacking.size} rows of {what} have no {column} although predictions differ "
                f"(first rows: {first}): label them, and pass seed={seed} (--seed {seed}), so that "
                "the same rows are drawn again. Rows may not be dropped for it."
            )

    def losses(self, rows: Integers, slow: int) -> Floats:
        """+1 where answering by a model loses against the slow one, -1 where it gains; between
        where answers are graded, in 64ths.
        """
        differs = self.answers[rows] != self.answers[rows, slow][:, None]
        if self.quality is None:
            right = (self.answers[rows] == self.truth[rows][:, None]).astype(np.float64)
            return np.asarray((right[:, slow][:, None] - right) * differs)
        quality = np.nan_to_num(self.quality[rows])
        return np.asarray(np.rint((quality[:, [slow]] - quality) * differs * 64) / 64)

    def mean_quality(self, rows: Integers) -> list[float]:
        """How good each model is on average: the share that is right, or the mean grade."""
        if self.quality is not None:
            return list(np.nan_to_num(self.quality[rows]).mean(axis=0).tolist())
        right = self.answers[rows] == self.truth[rows][:, None]
        return list(right.mean(axis=0).tolist())

    def tally(self, rows: Integers, models: Sequence[int]) -> Tally:
        """The counts of a cascade of some of the models, the slow one last, over some rows."""
        names = self.names.of(models)
        # A cascade has no use for the score of its slow model.
        graded = self.quality is not None
        question = CASCADE.of_models(
            names.confidences[:-1], names.answers, None if graded else names.labels, names.qualities
        )
        question = question.counting_grades(self.graded)
        # Labels may have been bought where any of the models differs, so all of them are looked at.
        counting = Counting(question, replace(self.rule, unrelated_labels=True))
        for part in blocks(len(rows)):
            columns = dict(zip(question.slots, self._columns(rows[part], models), strict=True))
            counting.ask(Rows(question.slots, columns, part.start))
        counted = counting.result(self.sources)
        if graded:
            return Tally.of(question, counted)
        return Tally.of(question, replace(counted, matches=self._matches(rows, models[-1])))

    def _columns(self, rows: Integers, models: Sequence[int]) -> list[Any]:
        """What a question asks of some models in some rows: scores, classes, grades."""
        scores = [self.scores[rows, m] for m in models[:-1]]
        codes = [self.answers[rows, m] for m in models] if self.names.answers else []
        codes += [self.truth[rows]] if self.quality is None else []
        grades = [] if self.quality is None else [self.quality[rows, m] for m in models]
        return [*scores, *(Values(self.classes, column) for column in codes), *grades]

    def _matches(self, rows: Integers, slow: int) -> LabelMatches | None:
        """How often labels agree with the slow model, where all models agree and elsewhere. Raises
        if the labels seem to be of other rows.
        """
        vocabulary, evidence = Vocabulary(self.rule), Evidence()
        for found in self.classes:
            vocabulary.code(found)
        order = [m for m in range(self.models) if m != slow] + [slow]
        for part in blocks(len(rows)):
            some = rows[part]
            answers = [self.answers[some, m] for m in order]
            witness(answers, self.truth[some], vocabulary, evidence)
        matches = evidence.matches(self.rule)
        if matches is not None:
            matches.require_related(len(rows), self.names.labels, self.names.predictions[slow])
        return matches


@dataclass(frozen=True)
class Names:
    """What the columns are called where they come from, a confidence and a prediction of every
    model.
    """

    confidences: tuple[str, ...]
    answers: tuple[str, ...]
    labels: str
    qualities: tuple[str, ...] = ()

    @property
    def predictions(self) -> tuple[str, ...]:
        """What models are called: as their predictions, or as their qualities without these."""
        return self.answers or self.qualities

    @property
    def grade_slots(self) -> list[str]:
        """The slots of the qualities."""
        return [f"{QUALITY} {m}" for m in range(len(self.qualities))]

    @classmethod
    def of_arrays(cls, models: int, given: Mapping[str, Any]) -> Names:
        """What the columns of arrays are called in messages."""
        confidences, predictions, qualities = (
            tuple(f"{name}[:, {m}]" for m in range(models)) if name in given else ()
            for name in ("confidence", "prediction", QUALITY)
        )
        return cls(confidences, predictions, "label", qualities)

    @classmethod
    def of_columns(cls, columns: Mapping[str, Any]) -> Names:
        """The names that the user gave."""
        named = only_known(columns, _ROLES, "A design")
        confidences, predictions, qualities = (
            (names,) if isinstance(names, str) else tuple(names)
            for names in (named.get(role, ()) for role in ("confidence", "prediction", QUALITY))
        )
        several = {"prediction": predictions, QUALITY: qualities}
        for role, columns_of in several.items():
            if role in named and len(confidences) != len(columns_of):
                what = "predictions" if role == "prediction" else "qualities"
                raise InvalidTypeError(
                    f"{len(confidences)} confidences and {len(columns_of)} {what}: name one of "
                    "each for every model, the slow one included."
                )
            twice = [name for name in columns_of if columns_of.count(name) > 1]
            if twice:
                raise InvalidValueError(f"The {role} {twice[0]!r} is named twice: name each once.")
        return cls(confidences, predictions, named.get("label", "label"), qualities)

    @property
    def slots(self) -> dict[str, Slot]:
        """The columns as a reader asks for them."""
        scores, answers = enumerate(self.confidences), enumerate(self.answers)
        grades = zip(self.grade_slots, self.qualities, strict=True)
        return {
            **{f"confidence {m}": Slot("number", name) for m, name in scores},
            **{f"prediction {m}": Slot("class", name) for m, name in answers},
            **({} if self.qualities else {"label": Slot("class", self.labels)}),
            **{slot: Slot("number or nothing", name) for slot, name in grades},
        }

    def of(self, models: Sequence[int]) -> Names:
        """The names of some models, in their order."""

        def some(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(names[m] for m in models) if names else ()

        return Names(some(self.confidences), some(self.answers), self.labels, some(self.qualities))

    @property
    def recorded(self) -> dict[str, str]:
        """The columns of a cascade, as a certificate keeps them."""
        answers = {"prediction": ",".join(self.answers)} if self.answers else {}
        outcome = {QUALITY: ",".join(self.qualities)} if self.qualities else {"label": self.labels}
        return {"confidence": ",".join(self.confidences[:-1]), **answers, **outcome}


class _Reading:
    """A table in the making."""

    def __init__(
        self, names: Names, rule: ClassRule, graded: Graded | None, scores: Floats | None = None
    ) -> None:
        """`scores` are those of all rows, if they are there already."""
        self._names, self._scores = names, scores
        self._rule = rule
        self._graded = graded if names.qualities else None
        self._vocabulary = Vocabulary(rule)
        self._parts: list[tuple[Floats, Integers, Integers, Floats]] = []
        self.rows = 0

    def take(self, rows: Rows) -> None:
        """Take some rows."""
        models = range(len(self._names.predictions))
        scores = [rows.scores(f"confidence {m}") for m in models]
        named = range(len(self._names.answers))
        answers = [rows.classes(f"prediction {m}", self._vocabulary) for m in named]
        truth = np.full(len(rows), MISSING, dtype=np.int64)
        grades = np.zeros((len(rows), 0))
        if self._graded is None:
            truth = rows.classes("label", self._vocabulary)
        else:
            given = [(rows.numbers(slot), rows.name(slot)) for slot in self._names.grade_slots]
            grades = np.column_stack([self._graded.quality(*one, rows.start) for one in given])
        for m, codes in enumerate(answers):
            rows.refuse_missing(f"prediction {m}", codes == MISSING, ALL_PREDICT)
        # Models without predictions always differ.
        apart = np.column_stack(answers or [np.full(len(rows), m) for m in models])
        small = np.min_scalar_type(-max(len(self._vocabulary), len(models)) - 1)
        kept = np.column_stack(scores if self._scores is None else [np.empty((len(rows), 0))])
        self._parts.append((kept, apart.astype(small), truth.astype(small), grades))
        self.rows += len(rows)

    def result(self, sources: tuple[str, ...] | None) -> ModelTable:
        """The whole table."""
        scores, answers, truth, grades = (
            np.concatenate(columns) for columns in zip(*self._parts, strict=True)
        )
        scores = scores if self._scores is None else self._scores
        classes = list(self._vocabulary.names())
        table = ModelTable(scores, answers, truth, classes, self._names, self._rule, sources)
        if self._graded is None:
            return table
        return replace(table, quality=grades, graded=self._graded)


def _require_outcome(columns: Mapping[str, Any]) -> None:
    """Raise unless predictions and labels, or qualities, say how good the models are."""
    given = {name for name, column in columns.items() if column is not None}
    if {"label", QUALITY} <= given:
        raise InvalidTypeError("label and quality both say how good answers are: pass one of them.")
    needed = ["confidence"] if QUALITY in given else ["confidence", "prediction", "label"]
    absent = next((name for name in needed if name not in given), None)
    if absent is not None:
        raise InvalidTypeError(
            f"{absent} is missing: pass all columns, or quality in place of label."
        )

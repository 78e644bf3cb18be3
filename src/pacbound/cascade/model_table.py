"""What many models say about each row, whatever it was read from: scores, classes, and the label.

All of it is held in memory, because the rows that choose a cascade and those that certify it are
drawn from the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.rows import ReadingOptions, read_rows
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import Paths
from pacbound.sources.values import MISSING, Values
from pacbound.stats.arguments import whole_number
from pacbound.tally.classes import ClassRule, Evidence, Vocabulary
from pacbound.tally.columns import (
    Rows,
    Slot,
    as_array,
    numeric,
    only_known,
    same_length,
    same_rows,
    scaled,
)
from pacbound.tally.count import Counting
from pacbound.tally.label_matches import LabelMatches
from pacbound.tally.questions.cascade import (
    ALL_PREDICT,
    CASCADE,
    TWO_MODELS,
    label_column,
    prediction_columns,
    witness,
)
from pacbound.tally.tally import Tally

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROLES = {"confidence": True, "prediction": True, "label": True}


@dataclass(frozen=True)
class ModelTable:
    """The scores (n, M) and classes (n, M) of M models, and the true class of each row, -1 where it
    is missing. Classes are numbers into `classes`.
    """

    scores: Floats
    answers: Integers
    truth: Integers
    classes: list[Any]
    names: Names
    rule: ClassRule
    sources: tuple[str, ...] | None

    @classmethod
    def of_arrays(cls, columns: Mapping[str, Any], rule: ClassRule) -> ModelTable:
        """The table of (n, M) confidences, (n, M) predictions and (n,) labels."""
        absent = next((name for name, column in columns.items() if column is None), None)
        if absent is not None:
            raise InvalidTypeError(
                f"{absent} is missing: pass all arrays, or paths and their columns."
            )
        same_rows(**columns)
        scores = numeric(as_array(columns["confidence"], "confidence"), "confidence")
        answers = prediction_columns(columns["prediction"])
        if scores.ndim != 2 or scores.shape[1] != len(answers):
            raise InvalidValueError(
                f"confidence of shape {scores.shape} and prediction of {len(answers)} models do "
                "not fit together: expected (n, M) of both, a column for every model, the slow one "
                "included."
            )
        truth = label_column(columns["label"])
        same_length(confidence=scores, prediction=answers[0], label=truth)
        names = Names.of_arrays(len(answers))
        taken = dict(zip(names.slots, [*scores.T, *answers, truth], strict=True))
        vocabulary = Vocabulary(rule)
        part = _read(Rows.of_arrays(names.slots, taken), vocabulary)
        return cls(*part, list(vocabulary.names()), names, rule, None)

    @classmethod
    def of_files(
        cls, paths: Paths, columns: Mapping[str, Any], reading: ReadingOptions
    ) -> ModelTable:
        """The table of files, by the names of their columns."""
        names, vocabulary = Names.of_columns(columns), Vocabulary(reading.rule)
        slots = scaled(names.slots, reading.notation.scale)
        parts: list[tuple[Floats, Integers, Integers]] = []
        tables = read_rows(
            paths, slots, lambda rows: parts.append(_read(rows, vocabulary)), reading
        )
        if not sum(len(truth) for _, _, truth in parts):
            raise InvalidValueError(
                f"{tables.listed}: no rows. Choosing and certifying need at least two."
            )
        scores, answers, truth = map(np.concatenate, zip(*parts, strict=True))
        sources = tuple(tables.fingerprints or ())
        return cls(scores, answers, truth, list(vocabulary.names()), names, reading.rule, sources)

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

    def require_labels(self, rows: Integers, models: Sequence[int], what: str) -> None:
        """Raise if a label is missing in a row where these models differ; `what` says whose."""
        lacking = np.sort(rows[self.differing(rows, models) & (self.truth[rows] == MISSING)])
        if lacking.size:
            first = ", ".join(map(str, lacking[:5].tolist()))
            raise InvalidValueError(
                f"{lacking.size} rows of {what} have no label in {self.names.labels} although "
                f"predictions differ (first rows: {first}): label them. Rows may not be dropped "
                "for it."
            )

    def tally(self, rows: Integers, models: Sequence[int]) -> Tally:
        """The counts of a cascade of some of the models, the slow one last, over some rows."""
        names = self.names.of(models)
        # A cascade has no use for the score of its slow model.
        question = CASCADE.of_models(names.confidences[:-1], names.predictions, names.labels)
        scores = [self.scores[rows, m] for m in models[:-1]]
        codes = [self.answers[rows, m] for m in models] + [self.truth[rows]]
        classes = [Values(self.classes, column) for column in codes]
        columns = dict(zip(question.slots, [*scores, *classes], strict=True))
        # Labels may have been bought where any of the models differs, so all of them are looked at.
        counting = Counting(question, replace(self.rule, unrelated_labels=True))
        counting.ask(Rows(question.slots, columns))
        counted = counting.result(self.sources)
        return Tally.of(question, replace(counted, matches=self._matches(rows, models[-1])))

    def _matches(self, rows: Integers, slow: int) -> LabelMatches | None:
        """How labels and a slow model meet, in rows on which all models agree and in others; labels
        of other rows raise.
        """
        vocabulary, evidence = Vocabulary(self.rule), Evidence()
        for found in self.classes:
            vocabulary.code(found)
        order = [m for m in range(self.models) if m != slow] + [slow]
        witness([self.answers[rows, m] for m in order], self.truth[rows], vocabulary, evidence)
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
    predictions: tuple[str, ...]
    labels: str

    @classmethod
    def of_arrays(cls, models: int) -> Names:
        """What the columns of arrays are called in messages."""
        confidences, predictions = (
            tuple(f"{name}[:, {m}]" for m in range(models)) for name in ("confidence", "prediction")
        )
        return cls(confidences, predictions, "label")

    @classmethod
    def of_columns(cls, columns: Mapping[str, Any]) -> Names:
        """The names that the user gave."""
        named = only_known(columns, _ROLES, "A design")
        confidences, predictions = (
            (names,) if isinstance(names, str) else tuple(names)
            for names in (named["confidence"], named["prediction"])
        )
        if len(confidences) != len(predictions):
            raise InvalidTypeError(
                f"{len(confidences)} confidences and {len(predictions)} predictions: name one of "
                "each for every model, the slow one included."
            )
        twice = [name for name in predictions if predictions.count(name) > 1]
        if twice:
            raise InvalidValueError(f"The prediction {twice[0]!r} is named twice: name each once.")
        return cls(confidences, predictions, named["label"])

    @property
    def slots(self) -> dict[str, Slot]:
        """The columns as a reader asks for them."""
        scores, answers = enumerate(self.confidences), enumerate(self.predictions)
        return {
            **{f"confidence {m}": Slot("number", name) for m, name in scores},
            **{f"prediction {m}": Slot("class", name) for m, name in answers},
            "label": Slot("class", self.labels),
        }

    def of(self, models: Sequence[int]) -> Names:
        """The names of some models, in their order."""
        return Names(
            tuple(self.confidences[m] for m in models),
            tuple(self.predictions[m] for m in models),
            self.labels,
        )

    @property
    def recorded(self) -> dict[str, str]:
        """The columns of a cascade, as a certificate keeps them."""
        return {
            "confidence": ",".join(self.confidences[:-1]),
            "prediction": ",".join(self.predictions),
            "label": self.labels,
        }


def _read(rows: Rows, vocabulary: Vocabulary) -> tuple[Floats, Integers, Integers]:
    """The scores of some rows, the numbers of the classes that the models answer, and of labels."""
    scores, predictions = (
        [slot for slot in rows.slots if slot.startswith(role)]
        for role in ("confidence", "prediction")
    )
    table = np.column_stack([rows.scores(slot) for slot in scores])
    answers = [rows.classes(slot, vocabulary) for slot in predictions]
    for slot, codes in zip(predictions, answers, strict=True):
        rows.refuse_missing(slot, codes == MISSING, ALL_PREDICT)
    return table, np.column_stack(answers), rows.classes("label", vocabulary)

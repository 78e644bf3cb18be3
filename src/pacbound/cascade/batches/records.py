"""The records of a batch: a score and the fast model's answer each, from arrays or from files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound import documents
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import PLAIN, Notation, Paths, Progress, open_tables
from pacbound.sources.batches import part_of, require_columns
from pacbound.sources.fingerprints import fingerprinting
from pacbound.sources.notation import shown, unscaled
from pacbound.sources.values import MISSING, Values, values_of
from pacbound.tally.classes import ClassRule, Vocabulary
from pacbound.tally.columns import (
    as_numbers_with_gaps,
    checked_scores,
    numeric,
    same_length,
    same_rows,
)
from pacbound.tally.fingerprint import ARRAY

MOST_NAMES = 20
RECORDS_A_NAME = 10
"""Fast answers may be named anew if there are at most so many different ones, in at least so many
records for each."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Records:
    """Scores, NaN where there is none, and the fast answers by their numbers in the vocabulary, -1
    where there is none.
    """

    scores: Floats
    fast: Integers
    vocabulary: Vocabulary
    rule: ClassRule
    sources: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which records can keep the fast answer: those that have one, and a score."""
        return np.asarray(~np.isnan(self.scores) & (self.fast != MISSING))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the scores and of which fast answers are equal; `named` is what these are
        called.
        """
        _, first, places = np.unique(self.fast, return_index=True, return_inverse=True)
        by_row = np.argsort(np.argsort(first))[places]
        fast = np.where(self.fast == MISSING, MISSING, by_row).astype("<i8")
        # -0.0 is 0.0, and every NaN is the same.
        scores = np.where(np.isnan(self.scores), np.nan, self.scores + 0.0).astype("<f8")
        return f"sha256:{hashlib.sha256(scores.tobytes() + fast.tobytes()).hexdigest()}"

    @property
    def few_names(self) -> bool:
        """Whether the fast answers are so few that each stands for many records: then which of
        them are equal, the fingerprint, says nearly all of them, whatever they are called.
        """
        different = len(np.unique(self.fast[self.fast != MISSING]))
        return different <= MOST_NAMES and different * RECORDS_A_NAME <= len(self)

    @cached_property
    def named(self) -> str:
        """SHA-256 of the fast answers' names, in the order in which the rows bring them.

        It is apart from the fingerprint, because a batch whose fast answers were not named as the
        slow model names its own can be taken up again under the right names.
        """
        _, first = np.unique(self.fast, return_index=True)
        names = self.vocabulary.names()
        met = [names[code] for code in self.fast[np.sort(first)].tolist() if code != MISSING]
        return documents.digest(met)


def records_of_arrays(confidence: Any, prediction: Any, rule: ClassRule) -> Records:
    """The records in two columns of one length."""
    same_rows(confidence=confidence, prediction=prediction)
    scores = _scores(as_numbers_with_gaps(_one_model(confidence), "confidence"), "confidence", 0)
    vocabulary = Vocabulary(rule)
    fast = vocabulary.codes(values_of(prediction, "prediction"), "prediction")
    same_length(confidence=scores, prediction=fast)
    return _with_source(_some(Records(scores, fast, vocabulary, rule)))


def records_of_files(
    source: Paths,
    *,
    confidence: str,
    prediction: str,
    rule: ClassRule,
    notation: Notation = PLAIN,
    progress: Progress | None = None,
) -> Records:
    """The records in two columns of one or more files, in order."""
    tables, vocabulary = open_tables(source, notation), Vocabulary(rule)
    scores, fast = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    with fingerprinting([table.path for table in tables], notation) as fingerprints:
        for place, table in enumerate(tables):
            require_columns(table, [confidence, prediction])
            share = part_of(progress, place / len(tables), 1 / len(tables))
            for batch in table.batches([confidence, prediction], progress=share):
                try:
                    found = numeric(batch.numbers(confidence, missing=True), confidence)
                    name = shown(confidence, notation.scale)
                    scores.append(_scores(unscaled(found, notation.scale), name, batch.start))
                    fast.append(vocabulary.codes(batch.values(prediction), prediction, batch.start))
                except (InvalidValueError, InvalidTypeError) as error:
                    raise type(error)(f"{table.path}: {error}") from None
        sources = frozenset(fingerprint.result() for fingerprint in fingerprints)
    return _some(Records(np.concatenate(scores), np.concatenate(fast), vocabulary, rule, sources))


def codes_of(answers: Any, records: Records, name: str) -> Integers:
    """The slow model's answers by their numbers in the vocabulary, -1 where there is none."""
    values = answers if isinstance(answers, Values) else values_of(answers, name)
    return records.vocabulary.codes(values, name)


def joined(parts: Iterable[Values]) -> Values:
    """Columns of consecutive batches as one."""
    distinct: dict[Any, int] = {}
    places, typed = [np.zeros(0, dtype=np.int64)], True
    for part in parts:
        typed = part.typed
        numbers = [distinct.setdefault(value, len(distinct)) for value in part.distinct]
        places.append(np.array([*numbers, MISSING], dtype=np.int64)[part.places])
    return Values(list(distinct), np.concatenate(places), typed)


def _one_model(confidence: Any) -> Any:
    shape = tuple(getattr(confidence, "shape", ()))
    if len(shape) == 2 and shape[-1] > 1:
        raise InvalidValueError(
            f"confidence has shape {shape}: a batch has one fast model and the slow one, so "
            "expected one score per record. For more models certify a cascade, or pass one column."
        )
    return confidence


def _scores(found: NDArray[Any], name: str, start: int) -> Floats:
    values = found.astype(np.float64)
    gaps = np.isnan(values)
    checked = checked_scores(np.where(gaps, 0.0, values), name, start=start)
    return np.where(gaps, np.nan, checked)


def _with_source(records: Records) -> Records:
    return replace(records, sources=frozenset([f"{ARRAY}{records.fingerprint}"]))


def _some(records: Records) -> Records:
    if not len(records):
        raise InvalidValueError("There are no records: a batch has at least one.")
    return records

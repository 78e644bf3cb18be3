"""The records of a batch: a score and the fast model's answer each, from arrays or from files; in
the order of their scores, which of them are sampled, and where the sampled disagreements let the
batch stop.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound import documents
from pacbound.errors import InvalidValueError
from pacbound.procedures import batch
from pacbound.procedures.batch import BatchPlan, keyed_permutation
from pacbound.sources.batches import Progress, in_order, located
from pacbound.sources.fingerprints import fingerprinting
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.opening import open_tables
from pacbound.sources.paths import Paths
from pacbound.sources.values import MISSING
from pacbound.tally.classes import ClassRule, Vocabulary
from pacbound.tally.columns import (
    ARRAY,
    Rows,
    Slot,
    checked_scores,
    same_length,
    same_rows,
    scaled,
    wanted,
)

MOST_NAMES = 20
# Fast answers may be named anew if there are at most so many different ones, in at least so many
# records for each.
RECORDS_A_NAME = 10

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


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
    # That of the fast answers, where they came in an array.
    dtype: Any = None

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


class SampledOrder:
    """The order, which is fixed before anything is asked, and a sample that follows from the key.

    Records that have no score are in neither.
    """

    def __init__(self, scores: Floats, scored: Mask, plan: BatchPlan, key: str) -> None:
        rows = np.flatnonzero(scored)
        self._plan = plan
        # By falling score and, among equal ones, by row.
        self._order = rows[np.argsort(-scores[rows], kind="stable")]
        self._scores = scores[self._order]
        self._rank = np.full(len(scores), -1, dtype=np.int64)
        self._rank[self._order] = np.arange(len(rows))
        self._permuted = rows[keyed_permutation(len(rows), key)]
        self.looked = 0
        self.sample: Mask = np.zeros(len(scores), dtype=bool)

    def draw(self, look: int) -> None:
        """Take the sample of a look, which holds those of the looks before."""
        self.looked = look
        self.sample[self._sampled(look)] = True

    def worth_another_look(self, differ: Mask) -> bool:
        """Whether there is a second look, not yet taken, that will probably keep more."""
        return (
            self.looked == 1
            and len(self._plan.drawn) == 2
            and batch.worth_another_look(
                self._ranks(differ, 1), self._plan.drawn, self._plan.allowed, self._plan.scored
            )
        )

    def disagreements(self, differ: Mask) -> list[Integers]:
        """For each look that was taken, the places of the sampled disagreements in the order."""
        return [self._ranks(differ, look) for look in range(1, self.looked + 1)]

    def stop(self, ranks: Sequence[Integers]) -> int:
        """How many records stand before the disagreement that stops the longest look."""
        return max(
            (
                batch.stop(places, count, self._plan.scored)
                for places, count in zip(ranks, self._plan.allowed, strict=False)
            ),
            default=0,
        )

    def sampled_before(self, stop: int) -> int:
        """How many of the first `stop` records are sampled."""
        return int(self.sample[self._order[:stop]].sum())

    def beginning(self, ranks: Sequence[Integers], *, whole_ties: bool) -> int:
        """How many records of the order are kept or sampled: up to where the longest look stops, or
        as many as may differ in any case; with `whole_ties`, not half of one.
        """
        if self._plan.asks_all:
            return 0
        left = np.cumsum(~self.sample[self._order])
        free = int(np.searchsorted(left, self._plan.tolerated, side="right"))
        prefix = max(free, self.stop(ranks))
        if whole_ties and prefix < len(self._order):
            prefix = int(np.searchsorted(-self._scores, -self._scores[prefix], side="left"))
        return prefix

    def kept(self, prefix: int) -> Mask:
        """Which records keep the fast answer: of the first `prefix` those not sampled."""
        kept = np.zeros(len(self.sample), dtype=bool)
        kept[self._order[:prefix]] = True
        return kept & ~self.sample

    def lowest(self, prefix: int) -> float:
        """The lowest score of the first `prefix` records; +inf if there are none."""
        return float(self._scores[prefix - 1]) if prefix else np.inf

    def _sampled(self, look: int) -> Integers:
        return self._permuted[: self._plan.drawn[look - 1]]

    def _ranks(self, differ: Mask, look: int) -> Integers:
        rows = self._sampled(look)
        return np.sort(self._rank[rows[differ[rows]]])


def records_of_arrays(confidence: Any, prediction: Any, rule: ClassRule) -> Records:
    """The records in two columns of one length."""
    same_rows(confidence=confidence, prediction=prediction)
    shape = tuple(getattr(confidence, "shape", ()))
    if len(shape) == 2 and shape[-1] > 1:
        raise InvalidValueError(
            f"confidence has shape {shape}: a batch has one fast model and the slow one, so "
            "expected one score per record. For more models certify a cascade, or pass one column."
        )
    slots = _slots("confidence", "prediction", None)
    rows = Rows.of_arrays(slots, {"confidence": confidence, "prediction": prediction})
    vocabulary = Vocabulary(rule)
    scores, fast = _read(rows, vocabulary)
    same_length(confidence=scores, prediction=fast)
    records = Records(scores, fast, vocabulary, rule, dtype=getattr(prediction, "dtype", None))
    return replace(_some(records), sources=frozenset([f"{ARRAY}{records.fingerprint}"]))


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
    slots = _slots(confidence, prediction, notation.scale)
    parts = [(np.zeros(0), np.zeros(0, dtype=np.int64))]
    with fingerprinting([table.path for table in tables], notation) as fingerprints:
        for path, batch in in_order(tables, wanted(slots), progress):
            with located(path):
                parts.append(_read(Rows.of_batch(slots, batch), vocabulary))
        sources = frozenset(fingerprint.result() for fingerprint in fingerprints)
    scores, fast = map(np.concatenate, zip(*parts, strict=True))
    return _some(Records(scores, fast, vocabulary, rule, sources))


def _slots(confidence: str, prediction: str, scale: float | None) -> dict[str, Slot]:
    score, answer = Slot("number or nothing", confidence), Slot("class", prediction)
    return scaled({"confidence": score, "prediction": answer}, scale)


def _read(rows: Rows, vocabulary: Vocabulary) -> tuple[Floats, Integers]:
    """Scores, NaN where one is missing, and the numbers of the fast answers."""
    found = rows.numbers("confidence").astype(np.float64)
    gaps = np.isnan(found)
    checked = checked_scores(np.where(gaps, 0.0, found), rows.name("confidence"), start=rows.start)
    return np.where(gaps, np.nan, checked), rows.classes("prediction", vocabulary)


def _some(records: Records) -> Records:
    if not len(records):
        raise InvalidValueError("There are no records: a batch has at least one.")
    return records

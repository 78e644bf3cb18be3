"""The records of a batch: a score and the fast model's answer each, from arrays or from files; in
the order of their scores, which of them are sampled, and where the sampled disagreements let the
batch stop.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound import documents
from pacbound.cascade.rows import ReadingOptions, read_rows
from pacbound.errors import InvalidValueError
from pacbound.procedures import batch
from pacbound.procedures.batch import BatchPlan, keyed_permutation
from pacbound.sources.paths import Paths
from pacbound.sources.values import MISSING
from pacbound.tally.classes import ClassRule, Vocabulary
from pacbound.tally.columns import (
    ARRAY,
    Floats,
    Integers,
    Rows,
    Slot,
    blocks,
    checked_scores,
    read_in_blocks,
    same_length,
    same_rows,
    scaled,
)

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Records:
    """Scores, NaN where there is none, and the fast answers by their numbers in the vocabulary, -1
    where there is none, in the smallest integers that hold them.
    """

    scores: Floats
    fast: NDArray[Any]
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
        """SHA-256 of the scores and of which fast answers are equal, whatever they are called."""
        digest = hashlib.sha256()
        for part in blocks(len(self)):
            # -0.0 is 0.0, and every NaN is the same.
            scores = self.scores[part]
            digest.update(np.where(np.isnan(scores), np.nan, scores + 0.0).astype("<f8").tobytes())
        # The last place, -1, is that of a missing answer.
        by_row = np.full(len(self.vocabulary) + 1, MISSING, dtype="<i8")
        by_row[self.met] = np.arange(len(self.met))
        by_row[MISSING] = MISSING
        for part in blocks(len(self)):
            digest.update(by_row[self.fast[part]].tobytes())
        return f"sha256:{digest.hexdigest()}"

    @cached_property
    def met(self) -> list[int]:
        """The numbers of the fast answers, -1 among them, in the order in which the rows bring
        them.
        """
        found: dict[int, None] = {}
        for part in blocks(len(self)):
            codes, first = np.unique(self.fast[part], return_index=True)
            found |= dict.fromkeys(codes[np.argsort(first)].tolist())
        return list(found)

    @cached_property
    def table(self) -> str:
        """SHA-256 of the scores and the fast answers, read as numbers and classes."""
        names = self.vocabulary.names()
        named = [names[code] for code in self.met if code != MISSING]
        return documents.digest([self.fingerprint, named])


class SampledOrder:
    """The order, which is fixed before anything is asked, and a sample that follows from the key.

    Records that have no score are in neither. The order is by falling score and, among equal ones,
    by row. Of the places in it only those of the sampled records are kept.
    """

    def __init__(self, scores: Floats, scored: Mask, plan: BatchPlan, key: str) -> None:
        self._plan, self._all = plan, scores
        self._scored: Mask | None = None if scored.all() else scored
        drawn = keyed_permutation(plan.scored, key, max(plan.drawn, default=0))
        self._permuted = drawn if self._scored is None else np.flatnonzero(scored)[drawn]
        self._rank = _places_in_order(scores, self._scored, self._permuted)
        self.begin()

    def begin(self) -> None:
        """Before the first look."""
        self.looked = 0
        self.sample: Mask = np.zeros(len(self._all), dtype=bool)

    def draw(self, look: int) -> None:
        """Take the sample of a look, which holds those of the looks before."""
        self.looked = look
        self.sample[self._permuted[: self._plan.drawn[look - 1]]] = True

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
        return int((self._sampled_places < stop).sum())

    def beginning(self, ranks: Sequence[Integers], *, whole_ties: bool) -> int:
        """How many records of the order are kept or sampled: up to where the longest look stops, or
        as many as may differ in any case; with `whole_ties`, no tie is split.
        """
        if self._plan.asks_all:
            return 0
        # How many stand before each sampled record that are not sampled.
        before = self._sampled_places - np.arange(len(self._sampled_places))
        tolerated = self._plan.tolerated
        free = min(tolerated + int((before <= tolerated).sum()), self._plan.scored)
        prefix = max(free, self.stop(ranks))
        if whole_ties and prefix < self._plan.scored:
            prefix = int(self._above(self._score_at(prefix)).sum())
        return prefix

    def kept(self, prefix: int) -> Mask:
        """Which records keep the fast answer: of the first `prefix` those not sampled."""
        if not prefix:
            return np.zeros_like(self.sample)
        lowest = self.lowest(prefix)
        kept, ties = self._above(lowest), np.flatnonzero(self._all == lowest)
        if self._scored is not None:
            ties = ties[self._scored[ties]]
        kept[ties[: prefix - int(kept.sum())]] = True
        return kept & ~self.sample

    def lowest(self, prefix: int) -> float:
        """The lowest score of the first `prefix` records; +inf if there are none."""
        return self._score_at(prefix - 1) if prefix else np.inf

    def _score_at(self, place: int) -> float:
        """The score of the record at a place in the order."""
        scores = self._all.copy() if self._scored is None else self._all[self._scored]
        behind = len(scores) - 1 - place
        scores.partition(behind)
        return float(scores[behind])

    def _above(self, score: float) -> Mask:
        above = np.asarray(self._all > score)
        return above if self._scored is None else above & self._scored

    @property
    def _sampled_places(self) -> Integers:
        """The places of all sampled records in the order, rising."""
        return np.sort(self._rank[: self._plan.drawn[self.looked - 1] if self.looked else 0])

    def _ranks(self, differ: Mask, look: int) -> Integers:
        rows = self._permuted[: self._plan.drawn[look - 1]]
        return np.sort(self._rank[: len(rows)][differ[rows]])


def _places_in_order(scores: Floats, scored: Mask | None, rows: Integers) -> Integers:
    """How many of the scored records stand before each of `rows`: those with a higher score, and
    those of the same score in earlier rows.
    """
    levels, at = np.unique(scores[rows], return_inverse=True)
    reached, equal = np.zeros(len(levels) + 1, np.int64), np.zeros(len(levels), np.int64)
    earlier = np.zeros(len(rows), dtype=np.int64)
    for part in blocks(len(scores) if len(rows) else 0):
        found = scores[part] if scored is None else np.where(scored[part], scores[part], -np.inf)
        level = np.searchsorted(levels, found)
        reached += np.bincount(level, minlength=len(reached))
        same = np.flatnonzero(found == levels[np.minimum(level, len(levels) - 1)])
        here = (rows >= part.start) & (rows < part.stop)
        mine = np.searchsorted(same, rows[here] - part.start)
        earlier[here] = equal[at[here]] + _times_before(level[same])[mine]
        equal += np.bincount(level[same], minlength=len(equal))
    # A score is above a level if it reaches a later one.
    return (len(scores) - np.cumsum(reached))[at] + earlier


def _times_before(values: Integers) -> Integers:
    """How often each value came before."""
    order = np.argsort(values, kind="stable")
    rising, times = values[order], np.empty(len(values), dtype=np.int64)
    times[order] = np.arange(len(values)) - np.searchsorted(rising, rising)
    return times


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
    arrays = {"confidence": confidence, "prediction": prediction}

    def records_of(parts: Iterable[Rows]) -> Records:
        reading = _RecordReader(rule)
        for rows in parts:
            reading.take(rows)
        return reading.records()

    records = read_in_blocks(slots, arrays, records_of)
    sources = frozenset([f"{ARRAY}{records.fingerprint}"])
    return replace(records, dtype=getattr(prediction, "dtype", None), sources=sources)


def records_of_files(
    source: Paths, confidence: str, prediction: str, reading: ReadingOptions
) -> Records:
    """The records in two columns of one or more files, in order."""
    slots = _slots(confidence, prediction, reading.notation.scale)
    records = _RecordReader(reading.rule)
    read = read_rows(source, slots, records.take, reading, copies=True)
    return replace(records.records(), sources=frozenset(read.fingerprints))


class _RecordReader:
    """Records in the making."""

    def __init__(self, rule: ClassRule) -> None:
        self._vocabulary, self._rule = Vocabulary(rule), rule
        self._scores, self._fast = [np.zeros(0)], [np.zeros(0, dtype=np.int8)]

    def take(self, rows: Rows) -> None:
        """Take some rows."""
        found = rows.numbers("confidence")
        gaps = np.isnan(found)
        named = rows.name("confidence")
        scores = checked_scores(np.where(gaps, 0.0, found), named, start=rows.start)
        scores[gaps] = np.nan
        codes = rows.classes("prediction", self._vocabulary)
        same_length(confidence=scores, prediction=codes)
        self._scores.append(scores)
        self._fast.append(codes.astype(codes_type(self._vocabulary)))

    def records(self) -> Records:
        """All of them."""
        scores = np.concatenate(self._scores)
        if not len(scores):
            raise InvalidValueError("There are no records: a batch has at least one.")
        return Records(scores, np.concatenate(self._fast), self._vocabulary, self._rule)


def codes_type(vocabulary: Vocabulary) -> np.dtype[Any]:
    """The smallest type that holds the numbers of all classes, and two below 0."""
    return np.min_scalar_type(-len(vocabulary) - 2)


def _slots(confidence: str, prediction: str, scale: float | None) -> dict[str, Slot]:
    score, answer = Slot("number or nothing", confidence), Slot("class", prediction)
    return scaled({"confidence": score, "prediction": answer}, scale)

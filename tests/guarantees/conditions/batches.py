"""A batch of known records: every pattern of disagreements, every sample."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from tests.guarantees.conditions.pairs import DELTA, pair

from pacbound.procedures import batch

RECORDS, TOLERATED, SAMPLE = 7, 1, 4
Truths = NDArray[np.bool_]
PATTERNS = [np.array(bits, dtype=bool) for bits in product([False, True], repeat=RECORDS)]


@cache
def _allowed(size: int) -> int:
    (allowed,) = batch.allowed(RECORDS, TOLERATED, [size], delta=DELTA)
    return allowed


def _too_many(differ: Truths, sample: tuple[int, ...]) -> bool:
    """Whether more answers than are tolerated differ, if these records were sampled."""
    sampled = np.isin(np.arange(RECORDS), sample)
    free = int((np.cumsum(~sampled) <= TOLERATED).sum())
    found = np.flatnonzero(sampled & differ)
    stop = max(batch.stop(found, _allowed(len(sample)), RECORDS), free)
    return int((differ & ~sampled)[:stop].sum()) > TOLERATED


@cache
def _worst() -> float:
    """The worst pattern that was fixed before the sample."""
    samples = list(combinations(range(RECORDS), SAMPLE))
    return float(max(np.mean([_too_many(one, sample) for sample in samples]) for one in PATTERNS))


@pair("one-permutation")
def a_second_permutation(kept: bool, rows: int) -> float:
    """Another sample is drawn if the first shows too many disagreements."""
    return _worst() if kept else 1 - (1 - _worst()) ** 2


@pair("records-before-the-sample", "answers-whatever-is-asked")
def answers_that_know_the_sample(kept: bool, rows: int) -> float:
    """The fast model differs just where nobody looks: it was changed after the draw, or the slow
    model answers otherwise where it is asked.
    """
    if kept:
        return _worst()
    samples = list(combinations(range(RECORDS), SAMPLE))
    unseen = [~np.isin(np.arange(RECORDS), sample) for sample in samples]
    return float(np.mean([_too_many(*one) for one in zip(unseen, samples, strict=True)]))


@pair("sample-before-asking")
def a_sample_that_grows_until_it_shows_few_disagreements(kept: bool, rows: int) -> float:
    """One record more is sampled if the first ones show too many disagreements."""
    if kept:
        return _worst()
    orders = [
        (*sample, more)
        for sample in combinations(range(RECORDS), SAMPLE)
        for more in set(range(RECORDS)) - set(sample)
    ]
    firsts = [np.arange(RECORDS) < count for count in range(RECORDS + 1)]
    grown = [
        np.mean([_too_many(one, o[:-1]) or _too_many(one, o) for o in orders]) for one in firsts
    ]
    return float(max(grown))

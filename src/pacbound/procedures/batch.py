"""Which records of a batch keep the fast model's answer, so that at most m answers differ from the
slow model's.

The N records are known and fixed: nothing is assumed about where they come from, and the only
randomness is which of them are sampled, by one permutation that is drawn once. m = floor(xi N) in
exact arithmetic. The records that have a score stand in one order, by falling score and among equal
ones by their row, so that ties need no care: what keeps the fast answer is a set of records.

**Theorem (credit).** Draw n of the records that have a score. Let k = k*(n) be the largest number
in -1, 0, .., n with P(Hyp(N', m + 1 + k, n) <= k) <= delta, N' being the number of records that
have a score. Let every record that was not sampled and stands before the (k + 1)-th sampled
disagreement keep the fast answer (all, if fewer were sampled; none if k = -1), and let the slow
model answer all others. Then more than m of the answers differ from the slow model's with
probability at most delta.

*Proof.* More than m differ iff at least m + 1 disagreements that were not sampled stand before the
(k + 1)-th sampled one, which is to say that of the first J = m + 1 + k disagreements at most k were
sampled. If fewer than J exist, mark further records at will: the event only grows. The number of J
marked records in the sample is hypergeometric, so the chance is P(Hyp(N', J, n) <= k). It is
attained where there are J disagreements. QED

**Free exits.** The first records of which at most m were not sampled may always keep the fast
answer: of m answers at most m differ. So the longer of the two beginnings of the order is kept.

**Theorem (looks).** Looks n_1 < .. < n_L of one permutation, with c_1 <= .. <= c_L. If the chance
that some look errs (`stats.hypergeometric.chance_that_a_look_errs`) is at most delta, then every
choice of the look, after seeing everything, is valid, and so is the longest beginning of all looks
that were seen. *Proof.* As above for each look; given the places of the first J_l disagreements
relative to the looks, the others lie in random order in the other places. QED

Shortening what is kept, such as leaving out a whole tie, keeps the bound. So do records without a
score, which go to the slow model and leave the order while m stays floor(xi N); and so does
counting a sampled record on which the slow model gives no answer as a disagreement.

The permutation follows from a key, and is the same on every machine and with every version of
NumPy: its words come from the counter-based generator Philox, whose stream is fixed; `Generator`
itself promises no such thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pacbound.stats.hypergeometric import largest_count, planned_sample, staged_counts

Integers = NDArray[np.int64]

KEY_BYTES = 16

# By the number of looks at the sample.
NAMES: Final = {1: "batch/credit/1", 2: "batch/credit-two-looks/1"}

# How many times larger the sample is at the second look.
SECOND_LOOK: Final = 3

# So many random words are drawn at a time.
_BLOCK: Final = 2**20

# How two looks share in the nominal level: the first mostly decides.
WEIGHTS: Final = (0.85, 0.15)


@dataclass(frozen=True)
class BatchPlan:
    """How many records are sampled at each look, and how many sampled disagreements each allows.

    `scored` of the `records` have a score. No look at all means that everything is asked, or that
    nothing needs to be sampled.
    """

    records: int
    scored: int
    tolerated: int
    drawn: tuple[int, ...]
    allowed: tuple[int, ...]

    @property
    def asks_all(self) -> bool:
        """Whether every record goes to the slow model whatever it answers."""
        return self.tolerated == 0


def tolerated_answers(records: int, xi: float) -> int:
    """floor(xi N), of the decimal number that `xi` was written as: 0.29 of 100 records are 29."""
    return floor(Fraction(repr(float(xi))) * records)


def plan(
    records: int,
    scored: int,
    *,
    xi: float,
    delta: float,
    looks: int = 1,
    drawn: int | None = None,
) -> BatchPlan:
    """The plan by the rule for the size of a sample, or for a first look of `drawn` records.

    Where not one answer may differ, nothing could be kept unless nearly all records were sampled,
    so that everything is asked. Where no sample could keep more records than are free without one,
    nothing is sampled.
    """
    tolerated = tolerated_answers(records, xi)
    if tolerated == 0 or tolerated >= scored:
        return BatchPlan(records, scored, tolerated, (), ())
    if drawn is None:
        level = delta if looks == 1 else WEIGHTS[0] * delta
        drawn, _ = planned_sample(
            population=scored, tolerated=tolerated, rate=xi * (records / scored), delta=level
        )
        if scored - drawn <= tolerated:
            # So large a sample leaves no more to keep than what is free without any.
            return BatchPlan(records, scored, tolerated, (), ())
    sizes = tuple(sorted({min(scored, drawn * SECOND_LOOK**look) for look in range(looks)}))
    return BatchPlan(
        records, scored, tolerated, sizes, allowed(scored, tolerated, sizes, delta=delta)
    )


def allowed(scored: int, tolerated: int, drawn: Sequence[int], *, delta: float) -> tuple[int, ...]:
    """How many sampled disagreements each look of so many records allows."""
    if len(drawn) <= 1:
        return tuple(
            largest_count(population=scored, tolerated=tolerated, drawn=size, delta=delta)
            for size in drawn
        )
    return staged_counts(
        population=scored, tolerated=tolerated, looks=drawn, delta=delta, weights=WEIGHTS
    )


def stop(ranks: Integers, allowed_count: int, scored: int) -> int:
    """How many records stand before the first sampled disagreement that is too many; `ranks` are
    the places of the sampled disagreements in the order, counted from 0.
    """
    if allowed_count < 0:
        return 0
    return int(ranks[allowed_count]) if len(ranks) > allowed_count else scored


def kept(prefix: int, sampled_before: int, *, scored: int, sampled: int, tolerated: int) -> int:
    """How many records keep the fast answer: those of the first `prefix` that were not sampled, or
    the free ones if they are more.
    """
    return max(prefix - sampled_before, min(tolerated, scored - sampled))


def worth_another_look(
    ranks: Integers, drawn: Sequence[int], allowed_counts: Sequence[int], scored: int
) -> bool:
    """Whether a second look will probably keep more records than the first, by the disagreements
    that the first has found.

    Any rule is valid here, by the theorem on looks. This one expects the disagreements to go on as
    they were seen: the one that stops the second look then stands where the first look has about
    n_1 / n_2 as many.
    """
    first, second = drawn
    expected = stop(ranks, allowed_counts[1] * first // second, scored)
    now = stop(ranks, allowed_counts[0], scored)
    return expected * (scored - second) > now * (scored - first)


def is_key(value: object) -> bool:
    """Whether it is a key: 128 bits, in 32 hexadecimal digits."""
    digits = set("0123456789abcdef")
    return isinstance(value, str) and len(value) == 2 * KEY_BYTES and set(value) <= digits


def keyed_permutation(size: int, key: str, first: int | None = None) -> NDArray[np.int64]:
    """The numbers from 0 to `size` - 1 in the order that `key` gives them, or the `first` of them.

    Each gets 128 random bits and the order is theirs. Two are equal with a chance below `size`^2 /
    2^129, which is below 1e-20 for a billion of them.
    """
    words, places = _lowest_words(size, key, size if first is None else first)
    order = np.argsort(words)
    # The second 64 bits are looked at only where the first are equal, which is rare.
    if (np.diff(words[order]) == 0).any():
        both = np.random.Philox(key=int(key, 16)).random_raw(2 * size).reshape(2, size)
        return np.lexsort((both[1], both[0]))[:first]
    return np.asarray(places[order][:first])


def _lowest_words(size: int, key: str, count: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The `count` lowest of the first 64 bits, all of those that are equal to the last of them, and
    whose they are. A block at a time, so that few of many take little memory.
    """
    stream = np.random.Philox(key=int(key, 16))
    words, places = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    for start in range(0, size if count else 0, max(_BLOCK, count)):
        more = stream.random_raw(min(max(_BLOCK, count), size - start))
        # Most of the later words are above those that are there already.
        near = np.flatnonzero(more <= words.max()) if len(words) >= count else np.arange(len(more))
        words = np.concatenate([words, more[near]])
        places = np.concatenate([places, start + near])
        if len(words) > count:
            low = words <= np.partition(words, count - 1)[count - 1]
            words, places = words[low], places[low]
    return words, places

"""The records of a batch in the order of their scores, which of them are sampled, and where the
sampled disagreements let it stop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pacbound.procedures import batch
from pacbound.procedures.batch import BatchPlan, keyed_permutation

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


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

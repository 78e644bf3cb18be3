"""However a labeller behaves, some look claims a bad threshold with probability at most delta.

The labeller here knows all labels and the true loss at every threshold, tells what suits it in the
order that suits it, tells no losses, forgets labels and begins again, looks after every step, and
stops the first time that a claimed threshold is bad. Every law has thresholds whose true loss is
above xi by a hair.

The last law is for a publisher who has no labels yet: it publishes what is claimed without a label
if that is good, and labels on otherwise. Its chance to publish something false is computed exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from tests.products import standing_for

from pacbound import certify_cascade
from pacbound.claims.cascade import CascadeCertificate

Judge = Callable[[int, int, float], None]
XI, DELTA, ROWS = 0.05, 0.1, 300


@dataclass(frozen=True)
class Kind:
    """Rows of one kind: how many there are, the scores of the exits, and what each model says; the
    label is always 0."""

    share: float
    scores: tuple[float, ...]
    says: tuple[int, ...]

    def loss(self, thresholds: NDArray[np.float64]) -> int:
        """What the cascade does here, against its slow model."""
        exits = [m for m, score in enumerate(self.scores) if score >= thresholds[m]]
        answer = self.says[exits[0]] if exits else self.says[-1]
        return (answer != 0) - (self.says[-1] != 0)


def true_loss(law: tuple[Kind, ...], thresholds: NDArray[np.float64]) -> float:
    return sum(kind.share * kind.loss(thresholds) for kind in law)


def with_agreement(scores: tuple[float, ...], share: float, *kinds: Kind) -> tuple[Kind, ...]:
    """The kinds, and all else at these scores agreed on by all models."""
    rest = share - sum(kind.share for kind in kinds)
    return *kinds, Kind(rest, scores, (0,) * (len(scores) + 1))


LAWS: dict[str, tuple[Kind, ...]] = {
    "bad below": (
        *with_agreement((0.9,), 0.5, Kind(0.01, (0.9,), (1, 0)), Kind(0.01, (0.9,), (0, 1))),
        *with_agreement(
            (0.6,),
            0.5,
            Kind(0.1, (0.6,), (1, 0)),
            Kind(0.0499, (0.6,), (0, 1)),
            Kind(0.05, (0.6,), (1, 2)),
        ),
    ),
    "bad at the top": (
        *with_agreement((1.0,), 0.7, Kind(0.07, (1.0,), (1, 0)), Kind(0.0199, (1.0,), (0, 1))),
        *with_agreement((0.2,), 0.3),
    ),
    "three models": (
        *with_agreement(
            (0.97, 0.99),
            0.6,
            Kind(0.08, (0.97, 0.99), (1, 0, 0)),
            Kind(0.0299, (0.97, 0.99), (0, 1, 1)),
        ),
        *with_agreement((0.1, 0.9), 0.4, Kind(0.03, (0.1, 0.9), (0, 1, 0))),
    ),
}


def cheats(law: tuple[Kind, ...], rng: np.random.Generator) -> bool:
    """Whether the labeller gets some look to claim a bad threshold, at any time."""
    drawn = [law[place] for place in rng.choice(len(law), ROWS, p=[kind.share for kind in law])]
    rows = [kind.scores for kind in drawn], [kind.says for kind in drawn]
    labels = np.full(ROWS, np.nan)
    slow_wrong = np.array([kind.says[-1] != 0 for kind in drawn])
    differ = np.array([len(set(kind.says)) > 1 for kind in drawn])

    def is_bad() -> bool:
        look = certify_cascade(*rows, labels, xi=XI, delta=DELTA, classes=range(3))
        return true_loss(law, look.thresholds) > XI

    # The gains one after the other, then what is neither; the losses are never told.
    helpful = rng.permutation(np.flatnonzero(differ & slow_wrong))
    for part in np.array_split(helpful, 4):
        if is_bad():
            return True
        labels[part] = 0
    if is_bad():
        return True
    # Half of the labels are lost, and it begins again with the losses among them.
    labels[rng.permutation(ROWS)[: ROWS // 2]] = np.nan
    labels[np.flatnonzero(differ & ~slow_wrong)[::2]] = 0
    if is_bad():
        return True
    labels[differ] = 0
    return is_bad()


@pytest.mark.parametrize("name", standing_for(LAWS, ["bad at the top"], rest="long"))
def test_a_labeller_who_stops_at_the_best_moment_cannot_make_a_look_claim_too_much(
    name: str, judge: Judge
) -> None:
    law = LAWS[name]
    lowest: Any = np.zeros(len(law[0].scores))
    assert abs(sum(kind.share for kind in law) - 1) < 1e-9
    assert XI < true_loss(law, lowest) < XI + 0.031
    rng, runs = np.random.default_rng(2024), 60 if name == "three models" else 300
    violations = sum(cheats(law, rng) for _ in range(runs))
    judge(violations, runs, DELTA)
    # The law bites: with a little more slack some look would be caught.
    assert name == "three models" or violations > 0.2 * DELTA * runs


# The rows of the publisher. Sure ones differ and are wrong on both sides: from 0.9 on, 10 % of all
# answers differ, and nothing is lost. Doubtful ones lose and gain: from 0.6 on, 10 % are lost. Both
# rates are above xi by a hair, which changes no probability that is computed here.
SURE, LOST, GAINED = 0.1, 0.12, 0.02
N, ALLOWED, LEVEL = 300, 0.1, 0.05
TRUE_RATE_OF_SURE = {"differ": SURE, "loss": 0.0}


def claimed(sure: int, lost: int, gained: int, *, labelled: bool) -> CascadeCertificate:
    """What a look at 300 such rows claims."""
    kinds = [(0.9, 1, 2)] * sure + [(0.6, 1, 0)] * lost + [(0.6, 0, 1)] * gained
    kinds += [(0.6, 0, 0)] * (N - len(kinds))
    scores, fast, slow = map(np.array, zip(*kinds, strict=True))
    labels = np.zeros(len(scores)) if labelled else None
    asked: Any = {"xi": ALLOWED, "delta": LEVEL, "classes": range(3)}
    return certify_cascade(scores, np.column_stack([fast, slow]), labels, **asked)


def exits_from(certificate: CascadeCertificate) -> float | None:
    """The lowest score that exits early, None if nothing does."""
    return next((score for score in (0.6, 0.9) if score >= certificate.thresholds[0]), None)


@cache
def most_sure() -> int:
    """The most sure rows that differ at which something is certified without a label."""
    return _last(lambda sure: exits_from(claimed(sure, 99, 0, labelled=False)) is not None)


@cache
def most_lost(gained: int) -> int:
    """The most lost rows beside so many gained ones at which all rows exit, with all labels."""
    return _last(lambda lost: exits_from(claimed(0, lost, gained, labelled=True)) == 0.6)


def _last(passes: Callable[[int], bool]) -> int:
    """The last number that passes, by halving: a count that passes passes with less."""
    low, high = -1, N // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def chance_to_publish_something_false(first: str) -> float:
    """Exactly, if the claim without a label is about `first` and the one with all labels about the
    loss.

    Summed over how many rows are sure and how many gain, but for less than 1e-11; given both, the
    lost ones are binomial. Where the first claim is published at 0.9 and true, the one with labels
    is counted too, as if both were published: the most that can be false.
    """
    total = 0.0
    for sure in range(N + 1):
        drawn = float(binom.pmf(sure, N, SURE))
        if sure <= most_sure() and TRUE_RATE_OF_SURE[first] >= ALLOWED:
            total += drawn
        elif drawn > 1e-14:
            gaining = binom.pmf(np.arange(N - sure + 1), N - sure, GAINED / (1 - SURE))
            gained = np.flatnonzero(gaining > 1e-14)
            most = np.array([most_lost(int(count)) for count in gained])
            lost = binom.cdf(most, N - sure - gained, LOST / (1 - SURE - GAINED))
            total += drawn * float(gaining[gained] @ lost)
    return total


def test_publishing_the_claim_without_labels_or_labelling_on_is_wrong_with_at_most_delta() -> None:
    without = claimed(most_sure(), 99, 0, labelled=False)
    assert exits_from(without) == 0.9
    assert "loses at most 10 % accuracy" in without.summary()
    assert "differ from the slow model's" not in without.summary()
    # The law bites: whoever claimed "differ" first would break its delta.
    assert round(chance_to_publish_something_false("differ"), 4) == 0.0924
    assert chance_to_publish_something_false(without.bounded) <= LEVEL

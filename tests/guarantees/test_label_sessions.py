"""However a labeller behaves, a session claims a bad threshold with probability at most delta.

The labeller here knows all labels and the true loss at every threshold, tells what suits it in the
order that suits it, declines the losses, looks after every step, and stops the first time that a
claimed threshold is bad. Every law has thresholds whose true loss is above xi by a hair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pacbound.cascade import LabelSession

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
    """Whether the labeller gets a session to claim a bad threshold, at any time."""
    drawn = [law[place] for place in rng.choice(len(law), ROWS, p=[kind.share for kind in law])]
    session = LabelSession(
        [kind.scores for kind in drawn],
        [kind.says for kind in drawn],
        xi=XI,
        delta=DELTA,
        classes=range(3),
    )
    slow_wrong = np.array([kind.says[-1] != 0 for kind in drawn])
    differ = np.array([len(set(kind.says)) > 1 for kind in drawn])

    def is_bad() -> bool:
        return true_loss(law, session.progress.thresholds) > XI

    # The gains one after the other, then what is neither; the losses are never told.
    helpful = rng.permutation(np.flatnonzero(differ & slow_wrong))
    session.decline(np.flatnonzero(differ & ~slow_wrong)[::2])
    for part in np.array_split(helpful, 4):
        if is_bad():
            return True
        session.tell(part, np.zeros(len(part), dtype=int))
    return is_bad()


@pytest.mark.parametrize("name", LAWS)
def test_a_labeller_who_stops_at_the_best_moment_cannot_make_a_session_claim_too_much(
    name: str, judge: Judge
) -> None:
    law = LAWS[name]
    lowest: Any = np.zeros(len(law[0].scores))
    assert abs(sum(kind.share for kind in law) - 1) < 1e-9
    assert XI < true_loss(law, lowest) < XI + 0.031
    rng, runs = np.random.default_rng(2024), 60 if name == "three models" else 300
    violations = sum(cheats(law, rng) for _ in range(runs))
    judge(violations, runs, DELTA)
    # The law bites: with a little more slack a session would be caught.
    assert name == "three models" or violations > 0.2 * DELTA * runs

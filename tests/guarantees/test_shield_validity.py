"""A certified shield leaves more than xi of the rollouts unsafe with probability at most delta:
enumerated, and simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import binom
from tests.products import standing_for

from pacbound import Tally, certify_shield

Floats = NDArray[np.float64]
Judge = Callable[[int, int, float], None]

XI, DELTA, ROLLOUTS = 0.1, 0.1, 150
LOST = -np.inf
HAIR = 1e-9


@dataclass(frozen=True)
class Law:
    """The unsafe rollouts by their score, as atoms (score, mass), and the rest of the unsafe mass
    spread evenly over [0, 1]."""

    atoms: tuple[tuple[float, float], ...] = ()
    even: float = 0.0

    def missed(self, threshold: float) -> float:
        """The share of all rollouts that is unsafe although the shield fires at or above the
        threshold."""
        return sum(mass for score, mass in self.atoms if score < threshold) + self.even * float(
            np.clip(threshold, 0, 1)
        )

    def draw(self, rng: np.random.Generator, n: int) -> Tally:
        masses = np.array([mass for _, mass in self.atoms] + [self.even])
        kind = np.searchsorted(np.cumsum(masses), rng.random(n), side="right")
        score = rng.random(n)
        for place, (value, _) in enumerate(self.atoms):
            score[kind == place] = value
        return Tally.count("shield", score=score, unsafe=kind <= len(self.atoms))


LAWS = {
    "even": Law(even=0.4),
    "three values, the second breaks xi by a hair": Law(
        ((0.2, 0.04), (0.5, XI + HAIR - 0.04), (1.0, 0.3))
    ),
    "saturated": Law(((1.0, XI + HAIR),)),
    "all at zero": Law(((0.0, XI + HAIR),)),
    "lost at the start": Law(((LOST, XI + HAIR), (0.7, 0.2))),
    "some lost at the start": Law(((LOST, 0.06),), even=0.3),
    "next to each other": Law(((0.5 - 2**-17, 0.05), (0.5, 0.05 + HAIR), (0.5 + 2**-17, 0.3))),
    "always unsafe": Law(even=1.0),
}


@pytest.mark.parametrize("name", standing_for(LAWS, ["even", "next to each other"], rest="long"))
def test_a_certified_shield_misses_more_than_xi_with_probability_at_most_delta(
    name: str, judge: Judge
) -> None:
    law, rng, runs = LAWS[name], np.random.default_rng(301), 1000
    assert law.missed(np.inf) > XI
    violations = 0
    for _ in range(runs):
        certificate = certify_shield(data=law.draw(rng, ROLLOUTS), xi=XI, delta=DELTA)
        violations += certificate.certified and law.missed(certificate.threshold) > XI
    judge(violations, runs, DELTA)
    if "hair" in name or name == "saturated":
        assert violations > 0.4 * DELTA * runs, "this law should come close to delta"


def test_a_search_at_the_observed_rate_misses_more_than_xi_far_more_often_than_delta() -> None:
    # What a threshold chosen by the empirical rate does: it lets xi * n rollouts pass and is wrong
    # about half of the time.
    law, rng, runs, violations = LAWS["even"], np.random.default_rng(302), 200, 0
    for _ in range(runs):
        tally = law.draw(rng, ROLLOUTS)
        misses = np.cumsum(tally.counts[:, 1])
        threshold = tally.cells[np.flatnonzero(misses > XI * ROLLOUTS)[0], 0] / 2**16
        violations += law.missed(threshold) > XI
    assert violations > 0.3 * runs


@dataclass(frozen=True)
class Task:
    """A rollout of a few steps; each may be the first un-recoverable one, and its danger is high
    more often if it is."""

    steps: int = 6
    hazard: float = 0.08
    levels: tuple[float, ...] = (0.1, 0.5, 0.9)
    before: tuple[float, ...] = (0.8, 0.15, 0.05)
    at: tuple[float, ...] = (0.25, 0.25, 0.5)

    def unsafe_under_shield(self, threshold: float) -> float:
        """The chance that an un-recoverable step comes before any danger at or above the threshold
        has been seen."""
        quiet, quiet_at = (
            sum(
                chance
                for level, chance in zip(self.levels, chances, strict=True)
                if level < threshold
            )
            for chances in (self.before, self.at)
        )
        return sum(
            ((1 - self.hazard) * quiet) ** step * self.hazard * quiet_at
            for step in range(self.steps)
        )

    def unsafe_at_last_danger_below(self, threshold: float) -> float:
        """The chance of an un-recoverable step whose own danger is below the threshold, whatever
        was seen before it."""
        quiet = sum(
            chance for level, chance in zip(self.levels, self.at, strict=True) if level < threshold
        )
        return (1 - (1 - self.hazard) ** self.steps) * quiet

    def rollouts(
        self, rng: np.random.Generator, n: int
    ) -> tuple[Floats, NDArray[np.bool_], Floats]:
        """The running maximum of the danger up to the first un-recoverable step, whether there is
        one, and the danger there."""
        bad = rng.random((n, self.steps)) < self.hazard
        unsafe: NDArray[np.bool_] = np.asarray(bad.any(axis=1))
        first = np.where(unsafe, bad.argmax(axis=1), self.steps - 1)
        danger = rng.choice(self.levels, size=(n, self.steps), p=self.before)
        danger[unsafe, first[unsafe]] = rng.choice(self.levels, size=int(unsafe.sum()), p=self.at)
        seen = np.where(np.arange(self.steps) <= first[:, None], danger, 0.0)
        return seen.max(axis=1), unsafe, np.where(unsafe, danger[np.arange(n), first], np.nan)


def test_the_running_maximum_up_to_the_first_unrecoverable_step_is_the_right_score() -> None:
    task, rng = Task(), np.random.default_rng(303)
    score, unsafe, _ = task.rollouts(rng, 200_000)
    for threshold in (0.0, 0.1, 0.3, 0.5, 0.9, np.inf):
        share = float((unsafe & (score < threshold)).mean())
        assert share == pytest.approx(task.unsafe_under_shield(threshold), abs=0.004)


def test_rollouts_under_a_certified_shield_are_unsafe_beyond_xi_with_chance_at_most_delta(
    judge: Judge,
) -> None:
    task, rng, runs, violations = Task(), np.random.default_rng(304), 1000, 0
    # The rate at the threshold 0.9 is a hair above xi, so that certifying it is a violation, and
    # one that is likely.
    xi = task.unsafe_under_shield(0.9) - HAIR
    for _ in range(runs):
        score, unsafe, _ = task.rollouts(rng, 120)
        certificate = certify_shield(
            data=Tally.count("shield", score=score, unsafe=unsafe), xi=xi, delta=DELTA
        )
        violations += certificate.certified and task.unsafe_under_shield(certificate.threshold) > xi
    judge(violations, runs, DELTA)
    assert violations > 0.3 * DELTA * runs


# ---- every sample of a few rollouts


def splits(n: int, parts: int) -> NDArray[np.int64]:
    """Every way to put n rollouts into so many categories."""
    bars = np.array(list(combinations(range(n + parts - 1), parts - 1)), dtype=np.int64).reshape(
        -1, parts - 1
    )
    padded = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), n + parts - 1)])
    return np.diff(padded, axis=1) - 1


SCORES = np.array([LOST, 0.0, 0.5, 1.0, 0.3])
UNSAFE = np.array([True, True, True, True, False])


def chances_to_miss_too_often(n: int, laws: Floats, xi: float, delta: float) -> Floats:
    """For each law the total weight of the samples whose certified shield misses more than xi."""
    counts, missed = splits(n, 5), []
    for line in counts:
        tally = Tally.count("shield", score=np.repeat(SCORES, line), unsafe=np.repeat(UNSAFE, line))
        certificate = certify_shield(data=tally, xi=xi, delta=delta)
        # A refusal claims nothing: its threshold, -inf, is above no score.
        missed.append(UNSAFE & np.less(SCORES, certificate.threshold))
    weights = np.exp(
        gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)[:, None] + counts @ np.log(laws).T
    )
    assert weights.sum(axis=0) == pytest.approx(1, abs=1e-9)
    return np.asarray(((np.array(missed) @ laws.T > xi) * weights).sum(axis=0))


def small_laws(xi: float) -> Floats:
    """Probabilities of lost, unsafe at 0, at 1/2, at 1, and safe: at random, and with xi broken by
    a hair at each of them."""
    random = np.random.default_rng(305).dirichlet(np.full(5, 0.5), size=400)
    edge = np.array(
        [
            [xi + HAIR if i == place else 1 - xi - HAIR if i == 4 else 0.0 for i in range(5)]
            for place in range(4)
        ]
    )
    split = np.array(
        [
            [xi / 2, 0, xi / 2 + HAIR, 0.1, 0.9 - xi - HAIR],
            [0, xi / 2, 0, xi / 2 + HAIR, 1 - xi - HAIR],
        ]
    )
    laws: Floats = np.maximum(np.concatenate([random, edge, split]), 1e-300)
    return laws


@pytest.mark.parametrize(
    ("n", "xi", "delta"), [(1, 0.8, 0.3), (4, 0.5, 0.2), (8, 0.3, 0.06), (8, 0.6, 0.1)]
)
def test_no_law_over_four_scores_breaks_the_promise_when_summed_over_every_sample(
    n: int, xi: float, delta: float
) -> None:
    chance = chances_to_miss_too_often(n, small_laws(xi), xi, delta)
    assert 0.3 * delta < chance.max() <= delta * (1 + 1e-9)


def test_the_chance_to_miss_more_than_xi_of_the_unsafe_rollouts_is_at_most_delta() -> None:
    unsafe, xi, delta, chance = 120, 0.1, 0.05, 0.0
    for misses in range(unsafe + 1):
        certificate = certify_shield(
            np.repeat([0.25, 0.5], [misses, unsafe - misses]),
            [True] * unsafe,
            xi=xi,
            delta=delta,
            rate="among-unsafe",
        )
        chance += float(binom.pmf(misses, unsafe, xi + HAIR)) * (certificate.threshold > 0.25)
    assert 0.3 * delta < chance <= delta


# ---- the paper's product

PRODUCT_LAWS = {
    "even": Law(even=0.4),
    "the second value breaks xi by a hair": Law(((0.2, 0.04), (0.5, XI + HAIR - 0.04), (1.0, 0.3))),
    "every unsafe rollout is missed or none": Law(((0.5, XI + HAIR),)),
    "half of the unsafe rollouts are missed": Law(((0.5, XI + HAIR), (1.0, XI))),
    "lost at the start": Law(((LOST, XI + HAIR), (0.7, 0.2))),
    "always unsafe": Law(even=1.0),
}


def test_a_search_by_the_product_of_estimates_misses_more_than_xi_far_more_often_than_delta() -> (
    None
):
    law, rng, runs, violations = PRODUCT_LAWS["even"], np.random.default_rng(402), 200, 0
    for _ in range(runs):
        tally = law.draw(rng, ROLLOUTS)
        misses, unsafe = np.cumsum(tally.counts[:, 1]), int(tally.counts[:, 1].sum())
        estimate = (unsafe / ROLLOUTS) * (misses / unsafe)
        violations += law.missed(tally.cells[np.flatnonzero(estimate > XI)[0], 0] / 2**16) > XI
    assert violations > 0.3 * runs

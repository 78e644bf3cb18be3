"""The paper's product leaves more than xi of the rollouts unsafe with probability at most delta: enumerated, and simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln

from pacbound import Tally, certify_shield
from pacbound.certificate import ShieldCertificate

Floats = NDArray[np.float64]
Judge = Callable[[int, int, float], None]

XI, DELTA, ROLLOUTS = 0.1, 0.1, 150
LOST = -np.inf
HAIR = 1e-9


@dataclass(frozen=True)
class Law:
    """Unsafe rollouts by their last danger, as atoms (danger, mass); `even` is unsafe mass spread evenly over [0, 1]."""

    atoms: tuple[tuple[float, float], ...] = ()
    even: float = 0.0

    def missed(self, threshold: float) -> float:
        return sum(mass for score, mass in self.atoms if score < threshold) + self.even * float(np.clip(threshold, 0, 1))

    def draw(self, rng: np.random.Generator, n: int) -> Tally:
        masses = np.array([mass for _, mass in self.atoms] + [self.even])
        kind = np.searchsorted(np.cumsum(masses), rng.random(n), side="right")
        score = rng.random(n)
        for place, (value, _) in enumerate(self.atoms):
            score[kind == place] = value
        return Tally.from_arrays(scores=score, unsafe=kind <= len(self.atoms))


LAWS = {
    "even": Law(even=0.4),
    "the second value breaks xi by a hair": Law(((0.2, 0.04), (0.5, XI + HAIR - 0.04), (1.0, 0.3))),
    "every unsafe rollout is missed or none": Law(((0.5, XI + HAIR),)),
    "half of the unsafe rollouts are missed": Law(((0.5, XI + HAIR), (1.0, XI))),
    "lost at the start": Law(((LOST, XI + HAIR), (0.7, 0.2))),
    "always unsafe": Law(even=1.0),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_product_misses_more_than_xi_with_probability_at_most_delta(name: str, judge: Judge) -> None:
    law, rng, runs, violations, certified = LAWS[name], np.random.default_rng(401), 600, 0, 0
    assert law.missed(np.inf) > XI
    for _ in range(runs):
        certificate = ShieldCertificate.from_tally(law.draw(rng, ROLLOUTS), xi=XI, delta=DELTA, bound="product")
        certified += certificate.certified
        violations += certificate.certified and law.missed(certificate.threshold) > XI
    judge(violations, runs, DELTA)
    assert certified > 0.5 * runs or name == "lost at the start"


def test_a_search_by_the_product_of_the_two_estimates_misses_more_than_xi_far_more_often_than_delta() -> None:
    law, rng, runs, violations = LAWS["even"], np.random.default_rng(402), 200, 0
    for _ in range(runs):
        tally = law.draw(rng, ROLLOUTS)
        misses, unsafe = np.cumsum(tally.counts[:, 1]), int(tally.counts[:, 1].sum())
        estimate = (unsafe / ROLLOUTS) * (misses / unsafe)
        violations += law.missed(tally.cells[np.flatnonzero(estimate > XI)[0], 0] / 2**16) > XI
    assert violations > 0.3 * runs


@dataclass(frozen=True)
class Task:
    """A rollout of a few steps; each may be the first un-recoverable one, and its danger is high more often if it is."""

    steps: int = 6
    hazard: float = 0.1
    levels: tuple[float, ...] = (0.1, 0.5, 0.9)
    before: tuple[float, ...] = (0.8, 0.15, 0.05)
    at: tuple[float, ...] = (0.25, 0.25, 0.5)

    def rollouts(self, rng: np.random.Generator, n: int) -> tuple[Floats, NDArray[np.bool_], Floats]:
        """The running maximum of the danger, whether there is an un-recoverable step, and the danger there."""
        bad = rng.random((n, self.steps)) < self.hazard
        unsafe: NDArray[np.bool_] = np.asarray(bad.any(axis=1))
        first = np.where(unsafe, bad.argmax(axis=1), self.steps - 1)
        danger = rng.choice(self.levels, size=(n, self.steps), p=self.before)
        danger[unsafe, first[unsafe]] = rng.choice(self.levels, size=int(unsafe.sum()), p=self.at)
        seen = np.where(np.arange(self.steps) <= first[:, None], danger, 0.0)
        return seen.max(axis=1), unsafe, np.where(unsafe, danger[np.arange(n), first], np.nan)

    def unsafe_at_last_danger_below(self, threshold: float) -> float:
        quiet = sum(chance for level, chance in zip(self.levels, self.at, strict=True) if level < threshold)
        return (1 - (1 - self.hazard) ** self.steps) * quiet


def test_the_product_from_the_last_danger_bounds_what_the_shield_lets_through(judge: Judge) -> None:
    task, rng, runs, violations = Task(), np.random.default_rng(403), 600, 0
    # The shield sees every danger, so it lets through even less than what this counts as missed.
    xi = task.unsafe_at_last_danger_below(0.9) - HAIR
    for _ in range(runs):
        score, unsafe, final = task.rollouts(rng, 120)
        certificate = certify_shield(score, unsafe, xi=xi, delta=DELTA, bound="product", final_scores=final)
        violations += certificate.certified and task.unsafe_at_last_danger_below(certificate.threshold) > xi
    judge(violations, runs, DELTA)


# ---- every sample of a few rollouts


def splits(n: int, parts: int) -> NDArray[np.int64]:
    """Every way to put n rollouts into so many categories."""
    bars = np.array(list(combinations(range(n + parts - 1), parts - 1)), dtype=np.int64).reshape(-1, parts - 1)
    padded = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), n + parts - 1)])
    return np.diff(padded, axis=1) - 1


SCORES = np.array([LOST, 0.0, 0.5, 1.0, 0.3])
UNSAFE = np.array([True, True, True, True, False])


def small_laws(xi: float) -> Floats:
    """Probabilities of lost, unsafe at 0, at 1/2, at 1, and safe: at random, and with xi broken by a hair in different ways."""
    random = np.random.default_rng(404).dirichlet(np.full(5, 0.5), size=400)
    edge = np.array([[xi + HAIR if i == place else 1 - xi - HAIR if i == 4 else 0.0 for i in range(5)] for place in range(4)])
    share = np.linspace(0.1, 0.9, 9)[:, None] * (1 - xi - HAIR)
    caught = np.column_stack([np.zeros(9), np.full(9, xi + HAIR), np.zeros(9), share, 1 - xi - HAIR - share])
    laws: Floats = np.maximum(np.concatenate([random, edge, caught]), 1e-300)
    return laws


@pytest.mark.parametrize(("n", "xi", "delta"), [(1, 0.97, 0.2), (7, 0.6, 0.1), (8, 0.5, 0.3), (9, 0.4, 0.3)])
def test_no_law_over_four_dangers_breaks_the_product_when_summed_over_every_sample(n: int, xi: float, delta: float) -> None:
    counts, laws = splits(n, 5), small_laws(xi)
    missed = []
    for line in counts:
        tally = Tally.from_arrays(scores=np.repeat(SCORES, line), unsafe=np.repeat(UNSAFE, line))
        certificate = ShieldCertificate.from_tally(tally, xi=xi, delta=delta, bound="product")
        missed.append(UNSAFE & np.less(SCORES, certificate.threshold))
    weights = np.exp(gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)[:, None] + counts @ np.log(laws).T)
    chance = ((np.array(missed) @ laws.T > xi) * weights).sum(axis=0)
    assert weights.sum(axis=0) == pytest.approx(1, abs=1e-9)
    # Two two-sided intervals at delta/2 leave less than delta to lose; a law that never loses would show nothing.
    assert 0.05 * delta < chance.max() <= delta * (1 + 1e-9)

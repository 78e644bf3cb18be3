"""A certified cascade loses more than xi with probability at most delta: by enumeration, and by
simulation.

Every law here has a threshold at which the true loss is above xi, most of them by a hair, so that a
certificate that claims too much is seen as such. The true loss at the certified threshold is
computed from the law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import binom
from tests.decisions import TOP, walk_from_counts
from tests.products import standing_for

from pacbound import Tally
from pacbound.claims.cascade import certify_cascade
from pacbound.procedures.cascade import XI_ZERO_GRID, every_threshold
from pacbound.stats.paired import mcnemar_test, paired_test

Floats = NDArray[np.float64]
Judge = Callable[[int, int, float], None]

XI, DELTA, ROWS = 0.05, 0.1, 400
HAIR = 1e-9


@dataclass(frozen=True)
class Segment:
    """Scores uniform from low to high, or all equal to low; of these rows so many lose, gain, or
    differ to no effect."""

    low: float
    high: float
    mass: float
    loss: float = 0.0
    gain: float = 0.0
    neither: float = 0.0

    def above(self, threshold: float) -> float:
        if self.low == self.high:
            return float(self.low >= threshold)
        return float(np.clip((self.high - threshold) / (self.high - self.low), 0, 1))


@dataclass(frozen=True)
class Law:
    segments: tuple[Segment, ...]

    def risk(self, threshold: float) -> float:
        """P[cascade wrong] - P[slow wrong] if scores at or above the threshold exit early."""
        return sum(
            part.mass * part.above(threshold) * (part.loss - part.gain) for part in self.segments
        )

    def draw(self, rng: np.random.Generator, n: int) -> Tally:
        mass = np.array([part.mass for part in self.segments])
        which = rng.choice(len(mass), size=n, p=mass / mass.sum())
        low, high, loss, gain, neither = (
            np.array([getattr(part, name) for part in self.segments])[which]
            for name in ("low", "high", "loss", "gain", "neither")
        )
        score = low + (high - low) * rng.random(n)
        # The true label is 0. Where both models say 3 they agree, and the label is left out.
        draw = rng.random(n)
        marks = [draw < loss, draw < loss + gain, draw < loss + gain + neither]
        fast, slow = np.select(marks, [1, 0, 1], 3), np.select(marks, [0, 1, 2], 3)
        labels = np.where(fast == slow, np.nan, 0.0)
        predictions = np.column_stack([fast, slow])
        return Tally.count(
            "cascade",
            confidence=score,
            prediction=predictions,
            label=labels,
            classes=range(4),
        )


LAWS = {
    "saturated, no gains": Law(
        (Segment(1, 1, 0.6, loss=(XI + HAIR) / 0.6), Segment(0.5, 0.5, 0.4))
    ),
    "saturated, many gains": Law(
        (Segment(1, 1, 0.8, loss=0.25 + (XI + HAIR) / 0.8, gain=0.25), Segment(0, 1, 0.2))
    ),
    "one step below one": Law(
        (Segment(1, 1, 0.5), Segment(1 - 2**-17, 1 - 2**-17, 0.5, loss=2 * (XI + HAIR)))
    ),
    "all scores zero": Law((Segment(0, 0, 1.0, loss=0.1 + XI + HAIR, gain=0.1, neither=0.1),)),
    "five tied scores": Law(
        (
            Segment(1, 1, 0.2, loss=0.05),
            Segment(0.9, 0.9, 0.2, loss=0.1),
            Segment(0.8, 0.8, 0.2, loss=0.1 + HAIR),
            Segment(0.7, 0.7, 0.2, loss=0.3, gain=0.3),
            Segment(0.6, 0.6, 0.2, loss=0.5),
        )
    ),
    "losses that grow as scores fall": Law(
        tuple(Segment(1 - (k + 1) / 10, 1 - k / 10, 0.1, loss=0.03 * k) for k in range(10))
    ),
    "a long plateau just above xi": Law(
        (Segment(0.9, 1, 0.2, loss=(XI + HAIR) / 0.2), Segment(0.1, 0.9, 0.8, loss=0.3, gain=0.3))
    ),
    "risk up, down and up": Law(
        (
            Segment(0.9, 1, 0.1),
            Segment(0.7, 0.9, 0.3, loss=0.2),
            Segment(0.4, 0.7, 0.3, gain=0.15),
            Segment(0, 0.4, 0.3, loss=0.5),
        )
    ),
    "fast better at the top": Law(
        (
            Segment(0.8, 1, 0.3, gain=0.2),
            Segment(0.5, 0.8, 0.4, loss=(0.06 + XI + HAIR) / 0.4),
            Segment(0, 0.5, 0.3, loss=0.3, gain=0.3),
        )
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_each_law_has_thresholds_that_break_xi(name: str) -> None:
    assert max(LAWS[name].risk(j / 1000) for j in range(1001)) > XI


@pytest.mark.parametrize("name", standing_for(LAWS, ["a long plateau just above xi"], rest="long"))
def test_a_certified_threshold_loses_more_than_xi_with_probability_at_most_delta(
    name: str, judge: Judge
) -> None:
    law, rng, runs = LAWS[name], np.random.default_rng(201), 1500
    violations = 0
    for _ in range(runs):
        certificate = certify_cascade(data=law.draw(rng, ROWS), xi=XI, delta=DELTA)
        violations += law.risk(float(certificate.thresholds[0])) > XI
    judge(violations, runs, DELTA)
    if name.startswith("saturated"):
        assert violations > 0.5 * DELTA * runs, "this law should come close to delta"


@pytest.mark.parametrize(
    ("n", "xi", "delta"),
    [(1, 0.8, 0.3), (20, 0.2, 0.05), pytest.param(2000, 0.02, 0.01, marks=pytest.mark.long)],
)
def test_other_sizes_and_levels_keep_their_promise(
    n: int, xi: float, delta: float, judge: Judge
) -> None:
    rng, runs, violations = np.random.default_rng(202), 1000, 0
    law = Law((Segment(1, 1, 0.95, loss=(xi + HAIR) / 0.95, gain=0.0), Segment(0, 0.5, 0.05)))
    for _ in range(runs):
        certificate = certify_cascade(data=law.draw(rng, n), xi=xi, delta=delta)
        violations += law.risk(float(certificate.thresholds[0])) > xi
    judge(violations, runs, delta)


def test_the_lowest_threshold_that_passes_anywhere_violates_far_more_often_than_delta(
    judge: Judge,
) -> None:
    # The paper's line search takes the best threshold of all. On a plateau just above xi the counts
    # wander: somewhere they pass.
    law, rng, runs = LAWS["a long plateau just above xi"], np.random.default_rng(203), 400
    searched = walked = 0
    for _ in range(runs):
        tally = law.draw(rng, ROWS)
        walk = walk_from_counts(tally.cells[:, 0], tally.counts)
        passes = paired_test(walk.only_slow[0], walk.only_fast[0], ROWS, xi=XI, delta=DELTA)
        passing = walk.cells[0, passes]
        searched += passing.size > 0 and law.risk(passing.min() / 2**16) > XI
        certificate = certify_cascade(data=tally, xi=XI, delta=DELTA)
        walked += law.risk(float(certificate.thresholds[0])) > XI
    assert binom.sf(searched - 1, runs, 1.5 * DELTA) < 1e-9
    judge(walked, runs, DELTA)


# ---- xi = 0

LAWS_WITHOUT_LOSS = {
    "always slightly worse": Law((Segment(0, 1, 1.0, loss=0.3 + HAIR, gain=0.3),)),
    "worse at the top, saturated": Law(
        (Segment(1, 1, 0.5, loss=0.4 + HAIR, gain=0.4), Segment(0, 1, 0.5))
    ),
    "better at the top, worse in all": Law(
        (Segment(0.9, 1, 0.2, gain=0.3), Segment(0, 0.9, 0.8, loss=0.375 + HAIR, gain=0.3))
    ),
    "a step between two thresholds": Law(
        (Segment(0.55, 0.55, 0.5, loss=0.3 + HAIR, gain=0.3), Segment(0, 0, 0.5))
    ),
}


@pytest.mark.parametrize(
    "name", standing_for(LAWS_WITHOUT_LOSS, [*LAWS_WITHOUT_LOSS][:2], rest="long")
)
def test_no_loss_at_all_is_claimed_wrongly_with_probability_at_most_delta(
    name: str, judge: Judge
) -> None:
    law, rng, runs, delta = LAWS_WITHOUT_LOSS[name], np.random.default_rng(204), 800, 0.2
    assert law.risk(0.0) > 0
    violations = 0
    for _ in range(runs):
        certificate = certify_cascade(data=law.draw(rng, ROWS), xi=0.0, delta=delta)
        violations += certificate.certified and law.risk(float(certificate.thresholds[0])) > 0
    judge(violations, runs, delta)


def test_twenty_thresholds_at_full_delta_would_claim_no_loss_too_often() -> None:
    law, rng, runs, delta = (
        LAWS_WITHOUT_LOSS["always slightly worse"],
        np.random.default_rng(205),
        300,
        0.2,
    )
    violations = 0
    for _ in range(runs):
        tally = law.draw(rng, ROWS)
        walk = walk_from_counts(tally.cells[:, 0], tally.counts)
        tried = every_threshold().at(walk, TOP - np.array(XI_ZERO_GRID))
        violations += bool(mcnemar_test(tried.only_slow, tried.only_fast, delta=delta).any())
    assert binom.sf(violations - 1, runs, 1.3 * delta) < 1e-6


# ---- every sample of a few rows


def splits(n: int, parts: int) -> NDArray[np.int64]:
    """Every way to put n rows into so many categories."""
    bars = np.array(list(combinations(range(n + parts - 1), parts - 1)), dtype=np.int64).reshape(
        -1, parts - 1
    )
    padded = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), n + parts - 1)])
    return np.diff(padded, axis=1) - 1


SCORES = np.array([1.0, 0.5, 0.0])
ANSWERS = np.array([[0, 0], [1, 0], [0, 1]])
"""What the fast and the slow model say where the label is 0: they agree, the fast one loses, the
fast one gains."""


def small_laws(xi: float) -> Floats:
    """(laws, scores * outcomes) of probabilities: at random, and with a loss just above xi at each
    of the three scores."""
    rng = np.random.default_rng(206)
    random = rng.dirichlet(np.full(9, 0.4), size=400)
    edge = []
    for place, gain in [
        (place, gain)
        for place in range(3)
        for gain in (0.0, 0.1 * (1 - xi), 0.3 * (1 - xi), 0.49 * (1 - xi))
    ]:
        law = np.zeros((3, 3))
        law[place, 1], law[place, 2] = gain + xi + HAIR, gain
        law[(place + 1) % 3, 0] = 1 - law.sum()
        edge.append(law.ravel())
    laws: Floats = np.maximum(np.concatenate([random, edge]), 1e-300)
    return laws


def certified_places(n: int, counts: NDArray[np.int64], **claim: Any) -> NDArray[np.int64]:
    """For each sample, how many of the three scores exit early at the certified threshold."""
    score, answers = np.repeat(SCORES, 3), np.tile(ANSWERS, (3, 1))
    places = []
    for line in counts:
        tally = Tally.count(
            "cascade",
            confidence=np.repeat(score, line),
            prediction=np.repeat(answers, line, axis=0),
            label=np.zeros(n),
            classes=range(4),
        )
        threshold = certify_cascade(data=tally, **claim).thresholds[0]
        places.append(sum(score >= threshold for score in SCORES.tolist()))
    return np.array(places)


@pytest.mark.parametrize(("n", "xi"), [(2, 0.7), (5, 0.5)])
def test_no_law_over_three_scores_breaks_the_promise_when_summed_over_every_sample(
    n: int, xi: float
) -> None:
    delta, counts, laws = 0.25, splits(n, 9), small_laws(xi)
    places = certified_places(n, counts, xi=xi, delta=delta)
    weights = np.exp(
        gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)[:, None] + counts @ np.log(laws).T
    )
    table = laws.reshape(-1, 3, 3)
    loss = np.cumsum(table[:, :, 1] - table[:, :, 2], axis=1)
    loss_at_place = np.column_stack([np.zeros(len(laws)), loss])[:, places].T
    chance = ((loss_at_place > xi) * weights).sum(axis=0)
    assert weights.sum(axis=0) == pytest.approx(1, abs=1e-9)
    assert chance.max() <= delta * (1 + 1e-9)
    assert chance.max() > 0.1 * delta, "these laws hardly test the bound"

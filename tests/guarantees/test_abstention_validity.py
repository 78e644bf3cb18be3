"""Certified answers are wrong more often than xi with probability at most delta: enumerated over
all samples of a few cells, and simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy
from tests.products import standing_for

from pacbound import certify_abstention
from pacbound.procedures import abstention
from pacbound.stats.binomial import binomial_upper_within

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Judge = Callable[[int, int, float], None]
Ranges = tuple[tuple[int, int], ...]

HAIR = 1e-9


# ---- every sample of a few cells

CELLS = np.array([20_000, 30_000, 65_536])
"""Rows may have scores in these; the highest is saturated."""

TOUCHING = np.array([20_000, 20_001, 20_002])

XI = 0.3


@cache
def samples(rows: int, kinds: int) -> Integers:
    """All ways in which so many rows can be of so many kinds."""
    places = np.array(list(combinations(range(rows + kinds - 1), kinds - 1)))
    ends = np.column_stack(
        [np.full(len(places), -1), places, np.full(len(places), rows + kinds - 1)]
    )
    return np.diff(ends, axis=1) - 1


def chances(law: Floats, rows: int) -> Floats:
    """The probability of each of these samples; `law` has that of each kind of row."""
    found = samples(rows, law.size)
    logs = gammaln(rows + 1) + (xlogy(found, law) - gammaln(found + 1)).sum(axis=1)
    return np.asarray(np.exp(logs))


def claimed_cells(claimed: Ranges, cells: Integers) -> list[bool]:
    """For each cell whether a threshold is claimed that answers it and none below it."""
    below = np.append(-1, cells[:-1])
    return [
        any(low <= cell and high > under for low, high in claimed)
        for under, cell in zip(below.tolist(), cells.tolist(), strict=True)
    ]


Decide = Callable[[Integers, Integers, Integers], Ranges]


def verdicts(decide: Decide, cells: Integers, rows: int) -> NDArray[np.bool_]:
    """What is claimed on each sample: the wrong rows of each cell come first, then the right."""
    found = []
    for sample in samples(rows, 2 * cells.size):
        wrong, right = sample[: cells.size], sample[cells.size :]
        hit = wrong + right > 0
        found.append(claimed_cells(decide(cells[hit], wrong[hit], right[hit]), cells))
    return np.array(found)


def laws(rng: np.random.Generator, cells: int, number: int) -> list[tuple[Floats, Floats]]:
    """Masses and risks of the cells: drawn, with risks close to xi; and some that are known to
    hurt."""
    known = [
        (np.full(cells, 1 / cells), np.full(cells, XI + HAIR)),
        (np.array([0.2, 0.6, 0.2]), np.array([0.0, XI + 0.2, 0.1])),
        (np.array([0.5, 0.3, 0.2]), np.array([XI + 0.01, 0.1, XI + 0.3])),
        (np.array([0.05, 0.9, 0.05]), np.array([1.0, XI + HAIR, 0.0])),
        (np.array([0.4, 0.2, 0.4]), np.array([XI + 0.06, 0.0, XI + HAIR])),
    ]
    drawn = [
        (
            rng.dirichlet(np.full(cells, 0.7)),
            np.clip(XI + rng.choice([-0.3, -0.05, HAIR, 0.03, 0.3], size=cells), 0, 1),
        )
        for _ in range(number)
    ]
    return known + drawn


def worst(claimed: NDArray[np.bool_], rows: int, seed: int) -> float:
    """The largest probability over the laws that some threshold is claimed whose risk is above
    xi."""
    most = 0.0
    for mass, risk in laws(np.random.default_rng(seed), claimed.shape[1], 150):
        answered, errors = (np.cumsum(part[::-1])[::-1] for part in (mass, mass * risk))
        bad = errors > XI * answered * (1 + 1e-12)
        false = (claimed & bad).any(axis=1)
        law = np.concatenate([mass * risk, mass * (1 - risk)])
        most = max(most, float(chances(law, rows)[false].sum()))
    return most


@pytest.mark.parametrize("cells", [CELLS, TOUCHING], ids=["apart", "touching"])
@pytest.mark.parametrize(
    ("delta", "rows"), standing_for([(0.5, 12), (0.2, 10)], [(0.2, 10)], rest="long")
)
def test_no_law_of_three_cells_makes_a_false_claim_more_often_than_delta(
    cells: Integers, delta: float, rows: int
) -> None:
    def decide(cells: Integers, wrong: Integers, right: Integers) -> Ranges:
        return abstention.claimed(cells, wrong, right, xi=XI, delta=delta)

    claimed = verdicts(decide, cells, rows)
    assert claimed.any()
    most = worst(claimed, rows, seed=1)
    assert most <= delta
    if cells is CELLS:
        assert most > 0.3 * delta, "these laws should come near delta"


SETTINGS = [
    (cells, rows, xi, delta)
    for cells, sizes in ((3, (10, 13, 16)), (4, (10, 11, 12)))
    for rows in sizes
    for xi in (0.2, 0.4)
    for delta in (0.2, 0.5)
]


def walked(cells: int, rows: int, xi: float, delta: float) -> NDArray[np.bool_]:
    """As `verdicts`, for all samples at once: each walk as the theorem has it."""
    found = samples(rows, 2 * cells)
    errors = np.cumsum(found[:, :cells][:, ::-1], axis=1)
    answered = errors + np.cumsum(found[:, cells:][:, ::-1], axis=1)
    holds = np.zeros(errors.shape, dtype=np.bool_)
    for walk in abstention.walks_of(rows, xi=xi, delta=delta):
        passes = binomial_upper_within(errors, answered, xi, delta=walk.level)
        started = answered >= walk.count
        holds |= started & np.logical_and.accumulate(passes | ~started, axis=1)
    return holds[:, ::-1]


def near_laws(rng: np.random.Generator, cells: int, xi: float) -> tuple[Floats, Floats]:
    """A mass and a risk of each cell such that many thresholds have a risk of just above xi."""
    mass = rng.dirichlet(np.full(cells, 0.7))
    cumulated = np.cumsum(mass[::-1])
    wanted = cumulated * (xi + rng.choice([HAIR, HAIR, -0.1, -0.3, 0.2], size=cells))
    wanted = np.maximum.accumulate(np.maximum(wanted, 0.0))
    return mass, np.clip(np.diff(wanted, prepend=0.0)[::-1] / mass, 0.0, 1.0)


@pytest.mark.parametrize("one_in", standing_for([1, 5], [5], rest="long"))
def test_an_exact_search_over_laws_in_24_settings_stays_within_delta(one_in: int) -> None:
    rng, most = np.random.default_rng(5), []
    assert len(SETTINGS) == 24
    for cells, rows, xi, delta in SETTINGS[::one_in]:
        claimed = walked(cells, rows, xi, delta)
        places = np.arange(10, 10 + cells)
        found = samples(rows, 2 * cells)
        for place in rng.integers(len(found), size=20).tolist():
            wrong, right = np.split(found[place], 2)
            hit = wrong + right > 0
            own = abstention.claimed(places[hit], wrong[hit], right[hit], xi=xi, delta=delta)
            assert claimed_cells(own, places) == claimed[place].tolist()
        worst_chance = 0.0
        for _ in range(60):
            mass, risk = near_laws(rng, cells, xi)
            answered, errors = (np.cumsum(part[::-1])[::-1] for part in (mass, mass * risk))
            false = (claimed & (errors > xi * answered * (1 + 1e-12))).any(axis=1)
            law = np.concatenate([mass * risk, mass * (1 - risk)])
            worst_chance = max(worst_chance, float(chances(law, rows)[false].sum()))
        assert worst_chance <= delta
        most.append(worst_chance / delta)
    assert max(most) > 0.6, "these laws should come near delta"


@pytest.mark.parametrize("declared", [65_536, 30_000, 5])
def test_no_law_makes_a_declared_start_claim_falsely_more_often_than_delta(declared: int) -> None:
    def decide(cells: Integers, wrong: Integers, right: Integers) -> Ranges:
        return abstention.claimed(cells, wrong, right, xi=XI, delta=0.4, declared=declared)

    most = worst(verdicts(decide, CELLS, 8), 8, seed=2)
    assert 0.1 * 0.4 < most <= 0.4


# ---- larger samples, drawn


@dataclass(frozen=True)
class Law:
    """Scores on the cells of 2^-16, with a mass and a risk each."""

    cells: Integers
    mass: Floats
    risk: Floats

    def draw(self, rng: np.random.Generator, rows: int) -> tuple[Integers, Integers, Integers]:
        """The occupied cells and their wrong and right rows."""
        seen = rng.multinomial(rows, self.mass)
        wrong = rng.binomial(seen, self.risk)
        return self.cells[seen > 0], wrong[seen > 0], (seen - wrong)[seen > 0]

    def bad(self, threshold: float) -> bool:
        """Whether more than xi of the answers at this threshold are wrong."""
        above = self.cells >= threshold * 65_536
        return bool((self.mass * (self.risk - XI_DRAWN))[above].sum() > 1e-12)


XI_DRAWN, DELTA, ROWS = 0.1, 0.1, 600
EVEN = np.arange(0, 65_536, 128)


def even(risk: Floats) -> Law:
    return Law(EVEN, np.full(EVEN.size, 1 / EVEN.size), risk)


def excess(*steps: tuple[float, float]) -> Floats:
    """A risk by share of the scores, from the highest down."""
    shares = np.repeat([risk for _, risk in steps], [round(share * 512) for share, _ in steps])
    return shares[::-1]


LAWS = {
    "flat risk just above xi": even(np.full(EVEN.size, XI_DRAWN + HAIR)),
    "saw-teeth": even(np.where(np.arange(EVEN.size) // 8 % 2, 0.0, 2 * XI_DRAWN + 0.004)),
    "wide saw-teeth": even(excess(*[(1 / 8, 0.02), (1 / 8, 0.181)] * 4)),
    "bad top": even(excess((1 / 16, 0.9), (15 / 16, 0.0475))),
    "heavy atoms": Law(
        np.array([10, 40_000, 50_000, 65_536]),
        np.array([0.3, 0.3, 0.38, 0.02]),
        np.array([0.5, XI_DRAWN + 0.003, XI_DRAWN - 0.003, 0.1]),
    ),
    "an atom at one": Law(np.array([0, 65_536]), np.array([0.1, 0.9]), np.array([0.9, 0.1001])),
}


@pytest.mark.parametrize("name", standing_for(LAWS, ["bad top"], rest="long"))
def test_answers_are_wrong_more_often_than_xi_with_probability_at_most_delta(
    name: str, judge: Judge
) -> None:
    law, rng, runs = LAWS[name], np.random.default_rng(500), 400
    assert law.bad(0.0)
    violations = 0
    for _ in range(runs):
        claimed = abstention.claimed(*law.draw(rng, ROWS), xi=XI_DRAWN, delta=DELTA)
        violations += any(law.bad(cell / 65_536) for ends in claimed for cell in ends)
    judge(violations, runs, DELTA)
    if name.startswith(("flat", "an atom")):
        assert violations > 0.15 * DELTA * runs, "this law should come near delta"


def test_taking_the_lowest_threshold_that_passes_anywhere_is_false_far_more_often() -> None:
    # What a search without a walk does: every bad threshold gets a chance of its own.
    law, rng, violations = LAWS["flat risk just above xi"], np.random.default_rng(500), 0
    for _ in range(100):
        _, wrong, right = law.draw(rng, ROWS)
        errors = np.cumsum(wrong[::-1])
        answered = errors + np.cumsum(right[::-1])
        violations += bool(binomial_upper_within(errors, answered, XI_DRAWN, delta=DELTA).any())
    assert violations > 30


def test_every_group_keeps_xi_together(judge: Judge) -> None:
    names, rng, runs = ("a", "b", "c"), np.random.default_rng(502), 40
    law = {name: LAWS[key] for name, key in zip(names, list(LAWS)[:3], strict=True)}
    violations = 0
    for _ in range(runs):
        groups = rng.choice(names, size=ROWS)
        score, right = np.empty(ROWS), np.empty(ROWS, dtype=bool)
        for name in names:
            own = groups == name
            kind = rng.choice(law[name].cells.size, size=own.sum(), p=law[name].mass)
            score[own] = law[name].cells[kind] / 65_536
            right[own] = rng.random(own.sum()) >= law[name].risk[kind]
        certificate = certify_abstention(score, right, groups=groups, xi=XI_DRAWN, delta=DELTA)
        violations += any(
            np.isfinite(limit) and law[name].bad(limit)
            for name, limit in certificate.thresholds.items()
        )
    judge(violations, runs, DELTA)

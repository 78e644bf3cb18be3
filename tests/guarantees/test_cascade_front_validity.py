"""A cascade that a fold chose loses more than xi with probability at most delta.

Exactly, by enumeration, for sequences of thresholds that were declared beforehand; and by
simulation for the whole of it, on laws where whatever the search finds is false by a hair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln
from tests.decisions import decided

from pacbound.cascade.design import design_cascade
from pacbound.cascade.design_search import Fold, declared_sequence, search
from pacbound.procedures.cascade import Declared, step_passes
from pacbound.procedures.joint_walk import routed, top_of
from pacbound.stats.paired import PairedBound
from pacbound.tally.questions.cascade import AGREE, ONLY_FAST, ONLY_SLOW, TWO_MODELS

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Judge = Callable[[int, int, float], None]

HAIR = 1e-9

CELLS = np.array([[1000, 200], [300, 900], [600, 600], [100, 100]])
SEQUENCE = np.array([[950, 1025], [1025, 850], [550, 950], [500, 800], [0, 0]]).T
"""No step is above another in both exits but the last."""


def compositions(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, parts - 1):
            yield (first, *rest)


def outcome_table(effects: list[tuple[int, int]]) -> Integers:
    """One row of each kind: the joint outcome of its two exits."""
    table = np.zeros((len(effects), 16), dtype=np.int64)
    for kind, (one, other) in enumerate(effects):
        table[kind, 4 * one + other] = 1
    return table


def true_losses(mass: Floats, effects: list[tuple[int, int]]) -> Floats:
    """The loss of every step, for kinds of rows with these masses."""
    signs = {AGREE: 0, ONLY_SLOW: 1, ONLY_FAST: -1}
    losses = []
    for step in SEQUENCE.T:
        reached = step <= CELLS
        first = reached.argmax(axis=1)
        loss = [signs[effects[k][first[k]]] if reached[k].any() else 0 for k in range(len(mass))]
        losses.append(float((mass * np.array(loss)).sum()))
    return np.array(losses)


LAWS = {
    "every step loses, by a hair": ((0.2 + HAIR, 0.2 + HAIR, 0.2 + HAIR), [1, 1, 1]),
    "gains before the losses": ((0.1, 0.35, 0.2), [-1, 1, 1]),
    "the first step alone is bad": ((0.2 + HAIR, 0.3, 0.1), [1, -1, -1]),
    "the second is bad, the third mends it": ((0.05, 0.25, 0.3), [-1, 1, -1]),
}


@pytest.mark.parametrize("bound", ["exact", "pair"])
@pytest.mark.parametrize("law", LAWS)
def test_a_declared_sequence_is_violated_with_probability_at_most_delta(
    law: str, bound: PairedBound
) -> None:
    """The sum over all samples of twelve rows of four kinds."""
    n, xi, delta = 12, 0.2, 0.3
    shares, signs = LAWS[law]
    mass = np.array([*shares, 1 - sum(shares)])
    outcome = {1: ONLY_SLOW, -1: ONLY_FAST}
    effects = [(outcome[sign], outcome[sign]) for sign in signs] + [(AGREE, AGREE)]
    losses = true_losses(mass, effects)
    assert (losses > xi).any(), "this law cannot be violated"
    declared = Declared((0, 1, 2), (1.0, 2.0, 3.0), 0.2, 0, 5, SEQUENCE)
    unit = outcome_table(effects)
    claimed = anywhere = total = 0.0
    for counts in compositions(n, 4):
        weights = np.array(counts)
        log = gammaln(n + 1) - gammaln(weights + 1).sum() + (weights * np.log(mass)).sum()
        chance = float(np.exp(log))
        total += chance
        walk = routed(SEQUENCE, CELLS, unit * weights[:, None])
        decision = decided(walk, n, xi=xi, delta=delta, bound=bound, declared=declared)
        if decision.cells is not None:
            step = SEQUENCE.T.tolist().index(list(decision.cells))
            # All steps up to it are claimed together.
            claimed += chance * bool((losses[: step + 1] > xi).any())
        passes = step_passes(walk.losses, walk.gains, n, xi=xi, level=delta, bound=bound)
        anywhere += chance * bool((passes & (losses > xi)).any())
    assert total == pytest.approx(1)
    assert claimed <= delta
    assert claimed <= anywhere


def test_to_keep_whatever_passes_violates_more_often_than_delta() -> None:
    """So the order matters: without the stop at the first failure the claim would be false."""
    n, xi, delta = 12, 0.2, 0.3
    mass = np.array([0.2 + HAIR, 0.2 + HAIR, 0.2 + HAIR, 0.4 - 3 * HAIR])
    anywhere = 0.0
    for counts in compositions(n, 4):
        weights = np.array(counts)
        log = gammaln(n + 1) - gammaln(weights + 1).sum() + (weights * np.log(mass)).sum()
        effects = [(ONLY_SLOW, ONLY_SLOW)] * 3 + [(AGREE, AGREE)]
        walk = routed(SEQUENCE, CELLS, outcome_table(effects) * weights[:, None])
        passes = step_passes(walk.losses, walk.gains, n, xi=xi, level=delta)
        anywhere += float(np.exp(log)) * bool(passes.any())
    assert anywhere > delta


class Population:
    """A finite law: each draw is one of these rows, so that true losses are finite sums."""

    def __init__(self, seed: int, loss: Floats) -> None:
        """`loss` is what always answering by each model loses; scores tell nothing."""
        rng, size, models = np.random.default_rng(seed), 4000, len(loss)
        self.scores = rng.random((size, models + 1))
        wrong = np.zeros((size, models + 1), dtype=np.int64)
        for m, share in enumerate(loss):
            wrong[rng.permutation(size)[: int(np.ceil(share * size))], m] = 1
        self.predictions = wrong
        self.labels = np.zeros(size, dtype=np.int64)

    def true_loss(self, models: tuple[int, ...], thresholds: Floats) -> float:
        left, lost = np.ones(len(self.labels), dtype=bool), 0
        for m, threshold in zip(models[:-1], thresholds, strict=True):
            leaves = left & (self.scores[:, m] >= threshold)
            lost += int(self.predictions[leaves, m].sum())
            left &= ~leaves
        return lost / len(self.labels)


@pytest.mark.long
def test_designs_violate_xi_no_more_often_than_delta(judge: Judge) -> None:
    """Six models that cost next to nothing and lose xi and a little more, on scores that tell
    nothing: the search finds what chance favours, and the rows that certify do not know of it.
    """
    xi, delta, runs = 0.1, 0.2, 200
    population = Population(0, np.full(6, 0.103))
    violations = exits = 0
    for run in range(runs):
        rows = np.random.default_rng(run).integers(0, len(population.labels), size=400)
        design = design_cascade(
            population.scores[rows],
            population.predictions[rows],
            population.labels[rows],
            costs=[1, 1, 1, 1, 1, 1, 100],
            xi=xi,
            delta=delta,
            last=6,
            most=3,
            fold=0.3,
            seed=run,
        )
        loss = population.true_loss(design.models, design.certificate.thresholds)
        violations += loss > xi
        exits += design.certificate.exit_rates.sum() > 0.3
    judge(violations, runs, delta)
    assert exits > runs / 2, "these designs hardly exit"
    assert violations > 0, "this law does not hurt"


def test_rows_that_choose_and_certify_alike_violate_far_more_often_than_delta() -> None:
    """What the fold is for: on the same law, the choosing rows certify their own choice."""
    xi, delta, runs = 0.1, 0.2, 40
    population = Population(0, np.full(6, 0.103))
    violations = 0
    for run in range(runs):
        rows = np.random.default_rng(run).integers(0, len(population.labels), size=120)
        cells = TWO_MODELS.cells(population.scores[rows])
        fold = Fold(cells, population.predictions[rows].astype(float), (1.0,) * 6 + (100.0,), 6)
        models = search(fold, target=0.05, most=3)[0][0].models
        steps = declared_sequence(fold, models, target=0.05)
        declared = Declared(models, (1.0,) * len(models), 0.3, run, 120, steps)
        exits = len(models) - 1
        joint = np.zeros((len(rows), 4**exits), dtype=np.int64)
        lost = population.predictions[rows][:, list(models[:-1])]
        key = (lost * ONLY_SLOW) @ (4 ** np.arange(exits)[::-1])
        joint[np.arange(len(rows)), key] = 1
        shift = 0 if exits == 1 else 6
        walk = routed(steps, cells[:, list(models[:-1])] >> shift, joint)
        decision = decided(walk, len(rows), xi=xi, delta=delta, declared=declared)
        if decision.cells is not None:
            thresholds = np.array(decision.cells) / top_of(exits)
            violations += population.true_loss(models, thresholds) > xi
    assert violations / runs > 2 * delta

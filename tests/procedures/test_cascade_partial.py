"""A disagreement without a label counts as a loss: against all labels that the rows could have."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.decisions import TOP, decided, walk_from_counts
from tests.products import standing_for

from pacbound.procedures.cascade import (
    TILTS,
    XI_ZERO_GRID,
    CascadeDecision,
    first_failure,
    settled,
    step_passes,
    walks_from_counts,
)
from pacbound.procedures.joint_walk import JointWalk, top_of
from pacbound.stats.paired import PairedBound, paired_test
from pacbound.tally.questions.cascade import outcomes_of

Integers = NDArray[np.int64]

JOINT_TOP = top_of(2)
BOUNDS: tuple[PairedBound, ...] = ("exact", "pair")
FAST, SLOW, NEITHER, UNLABELLED = "only_fast", "only_slow", "neither", "unlabelled"
PLACES = (TOP, 60_000, 60_000, 40_000, 0)
"""The cells of the rows that differ: the first saturated, two tied, the last at the bottom."""


def completions(outcomes: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Everything that labels for the rows without one could make of them."""
    return product(*((FAST, SLOW, NEITHER) if o == UNLABELLED else (o,) for o in outcomes))


def two_models(
    outcomes: tuple[str, ...], agreeing: int, places: tuple[int, ...] = PLACES
) -> JointWalk:
    """The walk of rows that differ at `places`, and of as many that agree at the top."""
    cells = np.array(sorted({TOP, *places}))
    counts = np.zeros((len(cells), 5), dtype=np.int64)
    counts[-1, 0] = agreeing
    for place, outcome in zip(places, outcomes, strict=True):
        counts[np.searchsorted(cells, place), outcomes_of(1).index(outcome)] += 1
    return walk_from_counts(cells, counts)


def lowest(decision: CascadeDecision) -> int:
    return TOP + 1 if decision.cells is None else decision.cells[0]


def best_possible(walks: tuple[JointWalk, ...], n: int, **asked: Any) -> CascadeDecision:
    return decided(tuple(walk.with_gains() for walk in walks), n, **asked)


EXACT = ("exact", 0.15, 0.3)
CASES = [EXACT, ("pair", 0.2, 0.4), ("exact", 0.0, 0.95)]


@pytest.mark.parametrize(("bound", "xi", "delta"), standing_for(CASES, [EXACT], rest="long"))
def test_whatever_passes_with_some_labels_passes_with_all_and_the_stop_rule_is_exact(
    bound: PairedBound, xi: float, delta: float
) -> None:
    """Every labelling of the rows that differ, with every label that the others could get."""
    places = XI_ZERO_GRID[:12:2] if xi == 0 else PLACES
    agreeing = 0 if xi == 0 else 20
    n = agreeing + len(places)

    @cache
    def end(outcomes: tuple[str, ...]) -> int:
        walk = two_models(outcomes, agreeing, places).as_judged()
        return lowest(decided(walk, n, xi=xi, delta=delta, bound=bound))

    ends, stopped = set(), 0
    for outcomes in product((FAST, SLOW, NEITHER, UNLABELLED), repeat=len(places)):
        walk = two_models(outcomes, agreeing, places).as_judged()
        now = decided(walk, n, xi=xi, delta=delta, bound=bound)
        best = best_possible((walk,), n, xi=xi, delta=delta, bound=bound)
        possible = {end(labels) for labels in completions(outcomes)}
        assert max(possible) == lowest(now), "the present end is the worst that labels can do"
        assert min(possible) == lowest(best)
        assert settled(now, best) == (possible == {lowest(now)})
        ends |= possible
        stopped += UNLABELLED in outcomes and settled(now, best)
    assert len(ends) > 2, "the labels decide where the walk ends"
    assert stopped, "some walks are settled before all labels are there"


ROWS: tuple[tuple[int, int, int], ...] = ((1020, 900, 3), (1000, 1010, 2), (700, 990, 1))
"""The cells of rows that differ at two exits, and at which: 1 the second, 2 the first, 3 both."""

LABELLED: dict[int, list[tuple[str, str]]] = {
    1: [("agree", other) for other in (FAST, SLOW, NEITHER)],
    2: [(other, "agree") for other in (FAST, SLOW, NEITHER)],
    3: [(SLOW, SLOW), *((one, other) for one in (FAST, NEITHER) for other in (FAST, NEITHER))],
}
"""What a label can make of a row: the slow model is right and both exits wrong, or it is wrong and
each exit is right or not."""

WITHOUT = {1: ("agree", UNLABELLED), 2: (UNLABELLED, "agree"), 3: (UNLABELLED, UNLABELLED)}


def three_models(rows: tuple[tuple[str, str], ...], agreeing: int) -> tuple[Integers, Integers]:
    names = outcomes_of(2)
    table = {(JOINT_TOP, JOINT_TOP): np.eye(len(names), dtype=np.int64)[0] * agreeing}
    for (first, second, _), outcome in zip(ROWS, rows, strict=True):
        counts = table.setdefault((first, second), np.zeros(len(names), dtype=np.int64))
        counts[names.index("|".join(outcome))] += 1
    occupied = sorted(table)
    return np.array(occupied), np.array([table[cell] for cell in occupied])


def ends_of(
    walks: tuple[JointWalk, ...], n: int, xi: float, delta: float, bound: PairedBound
) -> list[int]:
    def test(walk: JointWalk) -> Any:
        level = delta / len(TILTS)
        return step_passes(walk.losses, walk.gains, n, xi=xi, level=level, bound=bound)

    return [first_failure(walk, test) for walk in walks]


PAIR = ("pair", 0.055, 0.9, 40)
PATHS = [("exact", 0.05, 0.9, 40), PAIR]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bound", "xi", "delta", "agreeing"), standing_for(PATHS, [PAIR], rest="long")
)
def test_every_path_ends_before_its_end_with_all_labels_and_the_stop_rule_is_exact(
    bound: PairedBound, xi: float, delta: float, agreeing: int
) -> None:
    n, costs = agreeing + len(ROWS), (1.0, 3.0, 9.0)
    every = [[*LABELLED[which], WITHOUT[which]] for _, _, which in ROWS]
    found_for: dict[tuple[Any, ...], tuple[list[int], CascadeDecision, CascadeDecision]] = {}
    for rows in product(*every):
        walks = walks_from_counts(*three_models(rows, agreeing))
        now = decided(walks, n, xi=xi, delta=delta, bound=bound, costs=costs)
        best = best_possible(walks, n, xi=xi, delta=delta, bound=bound, costs=costs)
        found_for[rows] = ends_of(walks, n, xi, delta, bound), now, best
    found, stopped = set(), 0
    for rows, (ends, now, best) in found_for.items():
        options: list[list[tuple[str, str]]] = [
            LABELLED[which] if UNLABELLED in outcome else [outcome]
            for (_, _, which), outcome in zip(ROWS, rows, strict=True)
        ]
        possible = set()
        for labels in product(*options):
            full, with_all, _ = found_for[labels]
            assert all(end <= whole for end, whole in zip(ends, full, strict=True))
            possible.add((with_all.cells, with_all.chosen) if with_all.cells else None)
        present = (now.cells, now.chosen) if now.cells else None
        assert settled(now, best) == (possible == {present})
        found |= possible
        stopped += any(UNLABELLED in row for row in rows) and len(possible) == 1
    assert len(found) > 1
    assert stopped


def test_without_loss_more_models_pass_with_some_labels_only_what_passes_with_all() -> None:
    """xi = 0: the declared steps that pass with some labels are among those that pass with all."""
    names = outcomes_of(2)
    cells = np.array([[900, 1000]])
    kinds = [names.index(kind) for kind in ("only_fast|agree", "only_slow|agree")]
    without = names.index("unlabelled|agree")
    for gains, losses, missing in product((0, 12, 20), (0, 3), (0, 1, 8)):
        n = gains + losses + missing

        def found(
            gains: int, losses: int, missing: int, n: int = n, *, best: bool = False
        ) -> CascadeDecision:
            counts = np.zeros((1, len(names)), dtype=np.int64)
            counts[0, [*kinds, without]] = gains, losses, missing
            walks = walks_from_counts(cells, counts)
            decide = best_possible if best else decided
            return decide(walks, n, xi=0.0, delta=0.5, bound="exact", costs=(1.0, 2.0, 3.0))

        if n == 0:
            continue
        now = found(gains, losses, missing)
        best = found(gains, losses, missing, best=True)
        possible = {
            found(gains + more, losses + missing - more, 0).cells for more in range(missing + 1)
        }
        assert now.cells in possible
        assert now.cells is None or None not in possible
        assert settled(now, best) == (possible == {now.cells})


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("n", "xi", "delta"), [(30, 0.1, 0.05), (60, 0.2, 0.1), (200, 0.02, 0.3)])
def test_without_labels_more_than_xi_of_the_answers_differ_with_probability_at_most_delta(
    n: int, xi: float, delta: float, bound: PairedBound
) -> None:
    """The chance that a threshold passes at which a little more than xi of the answers differ, by
    the exact binomial law of how many differ."""
    differ = np.arange(n + 1)
    zeros = np.zeros_like(differ)
    counts = (np.full(n + 1, TOP), np.full(n + 1, n), differ, zeros, zeros, differ)
    walk = JointWalk(*(column[None] for column in counts))
    passes = np.asarray(paired_test(walk.losses, zeros, n, xi=xi, delta=delta, bound=bound))
    chance = sum(comb(n, k) * xi**k * (1 - xi) ** (n - k) for k in differ[passes].tolist())
    assert chance <= delta
    assert chance > 0 or (1 - xi) ** n > 0.8 * delta


@pytest.mark.parametrize("bound", BOUNDS)
def test_every_test_keeps_passing_with_fewer_losses_and_with_more_gains(bound: PairedBound) -> None:
    """All counts of up to 40 rows that differ, among 60: the lemma that everything rests on."""
    n, xi, delta = 60, 0.25, 0.2
    for differ in (1, 7, 25, 40):
        pairs = np.array([(b, c) for b in range(differ + 1) for c in range(differ + 1 - b)])
        losses, gains = pairs.T
        passes = np.asarray(paired_test(losses, gains, n, xi=xi, delta=delta, bound=bound))
        table = dict(zip(map(tuple, pairs.tolist()), passes.tolist(), strict=True))
        for (b, c), passed in table.items():
            assert not passed or b == 0 or table[b - 1, c]
            assert not passed or table.get((b, c + 1), True)


def test_a_refusal_says_that_labels_for_saturated_scores_may_help() -> None:
    walk = two_models((UNLABELLED,) * 6, 40, (TOP,) * 6)
    refused = decided(walk, 46, xi=0.05, delta=0.1, bound="exact")
    assert refused.cells is None
    assert refused.refusal is not None
    assert refused.refusal.code == "saturated-unlabelled"
    assert refused.refusal.numbers["unlabelled"] == 6


def test_where_no_rows_could_certify_the_claim_it_is_settled_at_once() -> None:
    walk = two_models((UNLABELLED,) * 5, 4)
    now = decided(walk, 10, xi=0.001, delta=0.01, bound="exact")
    assert now.cells is None
    best = best_possible((walk,), 10, xi=0.001, delta=0.01, bound="exact")
    assert settled(now, best) == (best.cells is None)

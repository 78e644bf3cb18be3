"""The paper's greedy thresholds, against a literal search of one exit after the other; and that
they are never certified."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.products import standing_for

from pacbound.claims.cascade import certify_cascade
from pacbound.procedures.cascade import Bound, product_bound
from pacbound.procedures.cascade_paths import NO_PROOF
from pacbound.procedures.cascade_paths import decide_greedily as decide
from pacbound.procedures.cascade_paths import decide_greedily_again as decide_again
from pacbound.procedures.joint_walk import NEVER, TOP, JointWalk, along
from pacbound.stats.paired import paired_test

Integers = NDArray[np.int64]

BOUNDS: tuple[Bound, ...] = ("exact", "pair", "product")
AGREE, ONLY_FAST, ONLY_SLOW, NEITHER = range(4)


def random_table(rng: np.random.Generator, n: int, n_exits: int) -> tuple[Integers, Integers]:
    pool = np.concatenate(
        [rng.integers(0, TOP + 1, size=rng.integers(1, 40)), [0, 1, TOP - 1, TOP]]
    )
    cells = rng.choice(pool[rng.integers(0, 4) :], size=(n, n_exits))
    loss = rng.uniform(0, 0.3) * (1 - cells / TOP) + rng.choice([0.0, 0.01])
    draw = rng.random((n, n_exits))
    outcomes = np.select(
        [draw < loss, draw < 1.5 * loss, draw < 1.8 * loss], [ONLY_SLOW, ONLY_FAST, NEITHER], AGREE
    )
    occupied, place = np.unique(cells, axis=0, return_inverse=True)
    counts = np.zeros((len(occupied), 4**n_exits), dtype=np.int64)
    np.add.at(counts, (place.ravel(), outcomes @ 4 ** np.arange(n_exits - 1, -1, -1)), 1)
    return occupied, counts


def passes(walk: JointWalk, used: int, n: int, *, xi: float, delta: float, bound: Bound) -> bool:
    if bound == "product":
        return bool(product_bound(walk, n, delta, used=used)[0] <= xi)
    level = delta / len(walk.cells)
    return bool(
        paired_test(int(walk.losses[0]), int(walk.gains[0]), n, xi=xi, delta=level, bound=bound)
    )


def literal(
    cells: Integers, counts: Integers, n: int, *, xi: float, delta: float, bound: Bound
) -> tuple[int, ...]:
    """Each threshold in turn, from the top to the last cell before the first failure; later exits
    are not used yet."""
    n_exits = cells.shape[1]
    thresholds, memory = [NEVER] * n_exits, {}
    for m in range(n_exits):
        for cell in range(TOP, -1, -1):
            seen = (m, (cells[:, m] >= cell).tobytes())
            if seen not in memory:
                trial = np.array([*thresholds[:m], cell, *thresholds[m + 1 :]])[:, None]
                memory[seen] = passes(
                    along(trial, cells, counts), m + 1, n, xi=xi, delta=delta, bound=bound
                )
            if not memory[seen]:
                break
            thresholds[m] = cell
    return tuple(thresholds)


@pytest.mark.parametrize("bound", standing_for(BOUNDS, ["exact"], rest="slow"))
def test_each_threshold_is_lowered_in_turn_to_the_last_cell_before_the_first_failure(
    bound: Bound,
) -> None:
    rng, found = np.random.default_rng(31), set()
    for case in range(6):
        n, n_exits = (60, 400, 2500)[case % 3], 2 + case % 2
        cells, counts = random_table(rng, n, n_exits)
        decision = decide(cells, counts, n, xi=0.06, delta=0.1, bound=bound)
        assert decision.cells == literal(cells, counts, n, xi=0.06, delta=0.1, bound=bound)
        found.add(NEVER in decision.cells)
    assert False in found


@pytest.mark.slow
@pytest.mark.parametrize("bound", BOUNDS)
def test_the_steps_that_are_kept_lead_to_the_same_thresholds(bound: Bound) -> None:
    rng = np.random.default_rng(32)
    for case in range(6):
        n, n_exits = (60, 400, 400)[case % 3], 2 + case % 2
        cells, counts = random_table(rng, n, n_exits)
        decision = decide(cells, counts, n, xi=0.06, delta=0.1, bound=bound)
        again = decide_again(decision.walks, n, xi=0.06, delta=0.1, bound=bound)
        assert (again.cells, again.chosen, again.refusal) == (
            decision.cells,
            decision.chosen,
            decision.refusal,
        )
        for one, other in zip(again.walks, decision.walks, strict=True):
            assert all(
                np.array_equal(a, b) for a, b in zip(astuple(one), astuple(other), strict=True)
            )


def test_an_exit_that_cannot_pass_is_never_taken_and_later_ones_still_may_be() -> None:
    # At score 1.0 the first exit loses 30 %, the second one nothing.
    counts = np.zeros((2, 16), dtype=np.int64)
    counts[0, AGREE], counts[1, 4 * ONLY_SLOW] = 700, 300
    decision = decide(
        np.array([[0, TOP], [TOP, TOP]]), counts, 1000, xi=0.05, delta=0.1, bound="exact"
    )
    assert decision.cells == (NEVER, 0)
    assert decision.chosen == 1
    assert decision.walks[1].exits[:, -1].tolist() == [0, 1000]


def test_greedy_thresholds_for_more_than_two_models_are_never_certified() -> None:
    rng = np.random.default_rng(33)
    answers = np.zeros((500, 3), dtype=int)
    for bound in BOUNDS:
        certificate = certify_cascade(
            rng.random((500, 2)),
            answers,
            answers[:, 0],
            xi=0.2,
            delta=0.1,
            method="greedy",
            bound=bound,
            costs=(1, 2, 3),
        )
        assert not certificate.certified
        assert certificate.refusal == NO_PROOF
        assert certificate.thresholds.tolist() == [0.0, 0.0]
        assert "REFUSED" in certificate.summary()
        assert certificate.verify()


def test_where_nothing_passes_greedy_never_exits() -> None:
    answers = np.tile([1, 1, 0], (50, 1))
    certificate = certify_cascade(
        np.ones((50, 2)), answers, np.zeros(50), xi=0.05, delta=0.1, method="greedy"
    )
    assert np.isinf(certificate.thresholds).all()
    assert certificate.exit_rates.tolist() == [0, 0]
    assert certificate.verify()

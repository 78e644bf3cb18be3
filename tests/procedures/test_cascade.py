"""From counts to a threshold, against a walk that visits every one of the 65,537 thresholds."""

from __future__ import annotations

from dataclasses import astuple
from fractions import Fraction
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.decisions import TOP, walk_from_counts
from tests.decisions import decided as decide
from tests.products import standing_for

from pacbound.procedures.cascade import XI_ZERO_GRID, CascadeDecision, every_threshold
from pacbound.procedures.joint_walk import JointWalk
from pacbound.stats.paired import PairedBound, paired_test

Integers = NDArray[np.int64]
Table = dict[int, tuple[int, int, int, int]]

BOUNDS: tuple[PairedBound, ...] = ("exact", "pair")
AGREE, ONLY_FAST, ONLY_SLOW, NEITHER = range(4)


def walk_of(table: Table) -> JointWalk:
    cells = sorted(table)
    return walk_from_counts(
        np.array(cells, dtype=np.int64),
        np.array([table[c] for c in cells], dtype=np.int64).reshape(-1, 4),
    )


def lowest(decision: CascadeDecision) -> int | None:
    """The threshold of the one exit."""
    return None if decision.cells is None else decision.cells[0]


def rows_of(table: Table) -> int:
    return sum(map(sum, table.values()))


def exited(table: Table) -> Integers:
    """The counts of the rows that exit at each threshold TOP, TOP - 1, …, 0, one line per
    threshold."""
    dense = np.zeros((TOP + 1, 4), dtype=np.int64)
    for cell, counts in table.items():
        dense[cell] = counts
    return np.cumsum(dense[::-1], axis=0)


def literal_walk(
    table: Table, n: int, *, xi: float, delta: float, bound: PairedBound
) -> int | None:
    """Every threshold in turn, from 1.0 down to 0.0; the last one before the first failure."""
    lines = exited(table)
    b, c = lines[:, ONLY_SLOW], lines[:, ONLY_FAST]
    # Equal counts are tested once; the verdicts are then read in the order of the thresholds.
    _, first, kind = np.unique(b * (n + 1) + c, return_index=True, return_inverse=True)
    verdicts = paired_test(b[first], c[first], n, xi=xi, delta=delta, bound=bound)
    last = None
    for step, passes in enumerate(verdicts[kind.ravel()].tolist()):
        if not passes:
            break
        last = TOP - step
    return last


def random_table(rng: np.random.Generator, n: int) -> Table:
    """Rows in a few or in many cells, some of them at 0, at 1.0 and next to it, with losses that
    grow as scores fall."""
    pool = np.concatenate(
        [rng.integers(0, TOP + 1, size=rng.integers(1, 200)), [0, 1, TOP - 1, TOP]]
    )
    cells = rng.choice(pool[rng.integers(0, 4) :], size=n)
    loss = rng.uniform(0, 0.15) * (1 - cells / TOP) + rng.choice([0.0, 0.01])
    draw = rng.random(n)
    outcome = np.select(
        [draw < loss, draw < 1.4 * loss, draw < 1.6 * loss], [ONLY_SLOW, ONLY_FAST, NEITHER], AGREE
    )
    table: dict[int, list[int]] = {}
    for cell, what in zip(cells.tolist(), outcome.tolist(), strict=True):
        table.setdefault(cell, [0, 0, 0, 0])[what] += 1
    return {cell: (a, f, s, e) for cell, (a, f, s, e) in table.items()}


def same_walk(one: JointWalk, other: JointWalk) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(astuple(one), astuple(other), strict=True))


@pytest.mark.parametrize("bound", standing_for(BOUNDS, ["exact"], rest="slow"))
def test_the_decision_is_that_of_a_walk_over_every_threshold_of_the_grid(
    bound: PairedBound,
) -> None:
    rng = np.random.default_rng(7)
    found: set[str] = set()
    for case in range(40):
        n = (60, 400, 1000)[case % 3]
        table, xi, delta = random_table(rng, n), (0.02, 0.05, 0.1)[case % 3], 0.05
        decision = decide(walk_of(table), n, xi=xi, delta=delta, bound=bound)
        cell = lowest(decision)
        assert cell == literal_walk(table, n, xi=xi, delta=delta, bound=bound)
        assert (decision.refusal is None) == (cell is not None)
        found.add("refused" if cell is None else "all" if cell == 0 else "some")
    assert found >= {"refused", "some"}


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("xi", [0.0, 0.05])
def test_the_steps_that_a_decision_keeps_lead_to_the_same_decision_with_the_counts_of_the_data(
    bound: PairedBound, xi: float
) -> None:
    rng = np.random.default_rng(8)
    for _ in range(15):
        table = random_table(rng, 400)
        decision = decide(walk_of(table), 400, xi=xi, delta=0.05, bound=bound)
        (walk,) = decision.walks
        lines = exited(table)[TOP - walk.cells[0]]
        assert np.array_equal(walk.exits[0], lines.sum(axis=1))
        assert np.array_equal(walk.differ[0], lines[:, 1:].sum(axis=1))
        assert np.array_equal(walk.only_slow[0], lines[:, ONLY_SLOW])
        assert np.array_equal(walk.only_fast[0], lines[:, ONLY_FAST])
        again = decide(walk, 400, xi=xi, delta=0.05, bound=bound)
        assert (again.cells, again.refusal) == (decision.cells, decision.refusal)
        assert same_walk(again.walks[0], walk)


def test_a_walk_has_the_counts_of_every_threshold_whichever_cells_are_occupied() -> None:
    rng = np.random.default_rng(9)
    every = np.arange(TOP, -1, -1)
    for table in (
        {},
        {TOP: (1, 2, 3, 4)},
        {0: (1, 2, 3, 4)},
        {5: (1, 0, 0, 0), TOP: (0, 0, 2, 0)},
        random_table(rng, 300),
    ):
        lines = exited(table)
        walk = every_threshold().at(walk_of(table), TOP - every)
        assert np.array_equal(walk.cells[0], every)
        assert np.array_equal(walk.exits[0], lines.sum(axis=1))
        assert np.array_equal(walk.differ[0], lines[:, 1:].sum(axis=1))
        assert np.array_equal(walk.only_slow[0], lines[:, ONLY_SLOW])
        assert np.array_equal(walk.only_fast[0], lines[:, ONLY_FAST])


def test_a_walk_changes_only_where_rows_differ_and_always_starts_at_the_top() -> None:
    table = {
        9: (5, 0, 0, 0),
        8: (0, 0, 0, 1),
        7: (4, 0, 0, 0),
        6: (0, 1, 0, 0),
        5: (0, 0, 1, 0),
        0: (9, 0, 0, 0),
    }
    top: Table = {TOP: (3, 0, 0, 0), 0: (1, 0, 0, 0)}
    for counts, expected in ((table, [TOP, 8, 6, 5]), (top, [TOP]), ({}, [TOP])):
        walk = walk_of(counts)
        assert walk.cells[0, walk.changes()].tolist() == expected


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_threshold_stops_just_above_the_cell_that_breaks_it(bound: PairedBound) -> None:
    for breaking in (TOP - 1, 40_000, 1, 0):
        table: Table = {breaking: (0, 0, 500, 0), TOP: (500, 0, 0, 0)}
        found = decide(walk_of(table), 1000, xi=0.05, delta=0.05, bound=bound)
        assert found.cells == (breaking + 1,)


@pytest.mark.parametrize("bound", BOUNDS)
def test_rows_that_lose_at_score_zero_count_at_threshold_zero_only(bound: PairedBound) -> None:
    harmless = decide(walk_of({0: (996, 1, 1, 2)}), 1000, xi=0.05, delta=0.05, bound=bound)
    assert (harmless.cells, harmless.walks[0].exits[0, -1]) == ((0,), 1000)
    losing = decide(walk_of({0: (0, 0, 1000, 0)}), 1000, xi=0.05, delta=0.05, bound=bound)
    assert losing.cells == (1,)


def test_a_later_recovery_does_not_reopen_a_walk_that_has_failed() -> None:
    table: Table = {TOP: (500, 0, 0, 0), 300: (0, 0, 100, 0), 200: (0, 400, 0, 0)}
    assert paired_test(100, 400, 1000, xi=0.05, delta=0.05)
    for bound in BOUNDS:
        assert decide(walk_of(table), 1000, xi=0.05, delta=0.05, bound=bound).cells == (301,)


# ---- xi = 0


def literal_mcnemar(b: int, c: int, level: Fraction) -> bool:
    return Fraction(sum(comb(b + c, i) for i in range(b + 1)), 2 ** (b + c)) <= level


def test_without_allowed_loss_the_lowest_of_twenty_thresholds_that_passes_mcnemar_is_taken() -> (
    None
):
    rng = np.random.default_rng(11)
    found = set()
    for _ in range(60):
        table = random_table(rng, 300)
        # Give the fast model an edge here and there, so that some of the tests pass.
        table = {cell: (a, 3 * f + 2 * (cell % 2), s, e) for cell, (a, f, s, e) in table.items()}
        lines, n = exited(table), rows_of(table)
        level = Fraction(0.1) / len(XI_ZERO_GRID)
        passing = [
            cell
            for cell in XI_ZERO_GRID
            if literal_mcnemar(
                int(lines[TOP - cell, ONLY_SLOW]), int(lines[TOP - cell, ONLY_FAST]), level
            )
        ]
        decision = decide(walk_of(table), n, xi=0.0, delta=0.1, bound="exact")
        assert lowest(decision) == min(passing, default=None)
        assert decision.walks[0].cells.tolist() == [list(XI_ZERO_GRID)]
        found.add(decision.cells is None)
    assert found == {True, False}


def test_the_grid_for_no_loss_falls_from_one_to_zero_without_repeats() -> None:
    assert (XI_ZERO_GRID[0], XI_ZERO_GRID[-1], len(XI_ZERO_GRID)) == (TOP, 0, 20)
    assert all(a > b for a, b in pairwise(XI_ZERO_GRID))


def test_no_disagreement_at_all_is_no_evidence_for_no_loss() -> None:
    decision = decide(walk_of({TOP: (10**6, 0, 0, 0)}), 10**6, xi=0.0, delta=0.1, bound="exact")
    assert decision.cells is None
    assert decision.refusal is not None
    assert decision.refusal.needed is None


# ---- refusals


def at_the_top(
    losses: int, gains: int, neither: int, n: int, *, xi: float, delta: float, bound: PairedBound
) -> CascadeDecision:
    table: Table = {TOP: (n - losses - gains - neither, gains, losses, neither)}
    return decide(walk_of(table), n, xi=xi, delta=delta, bound=bound)


@pytest.mark.parametrize("bound", ["exact", "pair"])
@pytest.mark.parametrize(("xi", "delta"), [(0.02, 1e-3), (0.1, 0.05), (0.5, 0.5), (0.003, 0.01)])
def test_the_rows_that_a_refusal_asks_for_certify_without_a_loss_and_one_fewer_do_not(
    bound: PairedBound, xi: float, delta: float
) -> None:
    refusal = at_the_top(0, 0, 0, 1, xi=xi, delta=delta, bound=bound).refusal
    assert refusal is not None
    assert refusal.code == "too-few"
    assert refusal.needed is not None
    assert at_the_top(0, 0, 0, refusal.needed, xi=xi, delta=delta, bound=bound).cells == (0,)
    assert at_the_top(0, 0, 0, refusal.needed - 1, xi=xi, delta=delta, bound=bound).cells is None


def test_the_exact_walk_starts_where_one_minus_xi_to_the_n_is_delta() -> None:
    refusal = at_the_top(0, 0, 0, 10, xi=0.02, delta=1e-3, bound="exact").refusal
    assert refusal is not None
    assert refusal.needed == int(np.ceil(np.log(1e-3) / np.log(0.98))) == 342


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(
    ("losses", "gains", "neither", "n"),
    [(0, 0, 0, 50), (0, 0, 40, 50), (3, 0, 0, 200), (6, 4, 5, 400), (0, 3, 0, 60), (5, 5, 0, 300)],
)
def test_the_rows_that_a_refusal_asks_for_certify_at_the_same_rates(
    bound: PairedBound, losses: int, gains: int, neither: int, n: int
) -> None:
    xi, delta = 0.02, 1e-3
    refusal = at_the_top(losses, gains, neither, n, xi=xi, delta=delta, bound=bound).refusal
    assert refusal is not None
    assert refusal.needed is not None
    assert refusal.needed > n
    rows = refusal.needed
    more = (-(-losses * rows // n), gains * rows // n, neither * rows // n)
    assert at_the_top(*more, rows, xi=xi, delta=delta, bound=bound).cells == (0,)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(
    ("losses", "gains", "n", "xi"),
    [(30, 0, 1000, 0.02), (25, 5, 1000, 0.02), (1000, 0, 1000, 0.9), (7, 0, 100, 0.07)],
)
def test_saturated_rows_that_alone_break_xi_are_refused_for_good(
    bound: PairedBound, losses: int, gains: int, n: int, xi: float
) -> None:
    # 0.07 * 100 is above 7 in floating point, yet no number of rows tells the rate 0.07 from xi =
    # 0.07.
    refusal = at_the_top(losses, gains, 0, n, xi=xi, delta=0.01, bound=bound).refusal
    assert refusal is not None
    assert refusal.needed is None
    assert refusal.code == "saturated"


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("xi", [1e-17, 1e-300, 5e-324])
def test_more_rows_than_can_be_counted_are_not_asked_for(bound: PairedBound, xi: float) -> None:
    refusal = at_the_top(0, 0, 0, 100, xi=xi, delta=0.01, bound=bound).refusal
    assert refusal is not None
    assert refusal.needed is None


def test_rows_below_the_top_do_not_change_a_refusal_at_the_top() -> None:
    top: Table = {TOP: (170, 0, 30, 0)}
    one = decide(walk_of(top), 1000, xi=0.02, delta=0.01, bound="exact")
    other = decide(walk_of({**top, 100: (0, 800, 0, 0)}), 1000, xi=0.02, delta=0.01, bound="exact")
    assert (one.cells, one.refusal) == (other.cells, other.refusal)
    assert one.walks[0].cells.tolist() == other.walks[0].cells.tolist() == [[TOP]]


@pytest.mark.parametrize("bound", ["exact", "pair"])
def test_asking_where_losses_rise_decides_as_asking_at_every_step(
    bound: PairedBound,
) -> None:
    rng = np.random.default_rng(8)
    ends = set()
    for _ in range(60):
        n, steps = 400, int(rng.integers(1, 60))
        cells = np.sort(rng.choice(2**16, steps, replace=False))
        counts = rng.integers(0, [6, 2, 3, 2, 2], size=(steps, 5)) * (rng.random((steps, 5)) < 0.5)
        walk = walk_from_counts(cells, counts)
        passes = paired_test(walk.losses, walk.gains, n, xi=0.05, delta=0.1, bound=bound)
        failing = np.flatnonzero(~passes)
        expected = 0 if not failing.size else int(walk.cells[0, failing[0]]) + 1
        found = lowest(decide(walk, n, xi=0.05, delta=0.1, bound=bound))
        assert found == expected
        ends.add(found)
    assert len(ends) > 20

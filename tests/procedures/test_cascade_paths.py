"""Seven declared paths, against a literal walk over all 1,025 steps of each; and the paths
themselves, frozen."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import astuple
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.decisions import decided as decide
from tests.products import standing_for

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures import cascade
from pacbound.procedures.cascade import (
    STEPS,
    TILTS,
    WITHOUT_LOSS,
    CascadeDecision,
    checked_costs,
    total_cost,
    walks_from_counts,
)
from pacbound.procedures.joint_walk import JointWalk, top_of
from pacbound.stats.paired import PairedBound, labels_needed_by_walk, mcnemar_test, paired_test

Integers = NDArray[np.int64]
Walks = tuple[JointWalk, ...]

BOUNDS: tuple[PairedBound, ...] = ("exact", "pair")
TOP = top_of(2)
AGREE, ONLY_FAST, ONLY_SLOW, NEITHER = range(4)


# ---- the paths


def declared_path(tilt: float, exits: int) -> Integers:
    return cascade.declared_path(tilt, exits).cells


FROZEN = {
    2: "fd17a1b0d809681d73d9fa308cd48d4c32f534c5f88121f0ea15c8290f389c07",
    3: "417235da30926bb8caee8af0b886125108381bfdaa873bc70823633a2126f573",
    4: "f3d82a2c728f516f00948f6dd1bd8b2b53113251a08b22e7a47d6257a0d36cc5",
    5: "cffa23ea8a4e5f1e2bd1320b25f09296d476242793db2f394950765f15511767",
}


def test_the_declared_paths_never_change() -> None:
    # A certificate is read against these integers: another digest here means that earlier
    # certificates no longer verify.
    digest = {
        exits: (
            hashlib.sha256(
                b"".join(declared_path(tilt, exits).astype("<i8").tobytes() for tilt in TILTS)
            ).hexdigest()
        )
        for exits in (2, 3, 4, 5)
    }
    assert digest == FROZEN


@pytest.mark.parametrize("exits", [2, 3, 4, 5])
@pytest.mark.parametrize("tilt", TILTS)
def test_a_path_falls_in_every_exit_from_next_to_one_down_to_zero(tilt: float, exits: int) -> None:
    path = declared_path(tilt, exits)
    assert path.shape == (exits, STEPS + 1)
    assert path.dtype == np.int64
    assert (np.diff(path) <= 0).all()
    assert (path[:, 0] >= TOP - 2).all()
    assert (path[:, 0] <= TOP).all()
    assert path[0, 0] == TOP
    assert not path[:, -1].any()
    assert path[:, -2].all(), "zero is reached by the last step alone"
    with pytest.raises(ValueError, match="read-only"):
        path[0, 0] = 5


@pytest.mark.parametrize("exits", [2, 3, 4])
def test_a_path_is_its_formula_and_no_value_is_near_enough_to_an_integer_to_round_another_way(
    exits: int,
) -> None:
    with mpmath.workdps(40):
        for tilt in TILTS:
            path = declared_path(tilt, exits)
            for m in range(exits):
                kappa = mpmath.mpf(tilt) * m / (exits - 1)
                for i in range(0, STEPS, 7):
                    value = TOP / (1 + mpmath.exp(-(8 - mpmath.mpf(16) * i / (STEPS - 1) + kappa)))
                    assert path[m, i] == int(mpmath.ceil(value))
                    assert abs(value - mpmath.nint(value)) > 1e-9


def test_a_positive_tilt_asks_more_of_later_exits() -> None:
    assert (declared_path(2.0, 3)[2] >= declared_path(2.0, 3)[0]).all()
    assert (declared_path(-2.0, 3)[2] <= declared_path(-2.0, 3)[0]).all()
    assert (declared_path(0.0, 3) == declared_path(0.0, 3)[0]).all()
    for tilt in TILTS:
        assert np.array_equal(declared_path(tilt, 3)[0], declared_path(0.0, 3)[0])


def test_there_are_seven_paths() -> None:
    assert len(TILTS) == 7


# ---- the decision


def random_rows(rng: np.random.Generator, n: int, n_exits: int) -> tuple[Integers, Integers]:
    """Scores in few or in many cells, with losses that grow as scores fall, and outcomes that hang
    together."""
    pool = np.concatenate(
        [rng.integers(0, TOP + 1, size=rng.integers(1, 60)), [0, 1, TOP - 1, TOP]]
    )
    cells = rng.choice(pool[rng.integers(0, 4) :], size=(n, n_exits))
    loss = rng.uniform(0, 0.3) * (1 - cells / TOP) + rng.choice([0.0, 0.0, 0.02])
    draw = rng.random((n, 1)) if rng.random() < 0.5 else rng.random((n, n_exits))
    outcomes = np.select(
        [draw < loss, draw < 1.5 * loss, draw < 1.8 * loss], [ONLY_SLOW, ONLY_FAST, NEITHER], AGREE
    )
    return cells, outcomes


def tabulated(cells: Integers, outcomes: Integers) -> tuple[Integers, Integers]:
    joint = outcomes @ 4 ** np.arange(cells.shape[1] - 1, -1, -1)
    occupied, place = np.unique(cells, axis=0, return_inverse=True)
    counts = np.zeros((len(occupied), 4 ** cells.shape[1]), dtype=np.int64)
    np.add.at(counts, (place.ravel(), joint), 1)
    return occupied, counts


def literal_steps(
    tilt: float, cells: Integers, outcomes: Integers
) -> list[list[tuple[int, int, int, int]]]:
    """For each of the 1,025 steps, and each exit in it: rows that exit, that differ, only_slow,
    only_fast."""
    n_exits, memory, steps = cells.shape[1], {}, []
    padded = np.column_stack([outcomes, np.zeros(len(cells), dtype=np.int64)])
    for thresholds in declared_path(tilt, n_exits).T.tolist():
        if tuple(thresholds) not in memory:
            reached = cells >= np.array(thresholds)
            exit_ = np.where(reached.any(axis=1), reached.argmax(axis=1), n_exits)
            seen = np.bincount(
                4 * exit_ + padded[np.arange(len(cells)), exit_], minlength=4 * n_exits
            )[: 4 * n_exits]
            memory[tuple(thresholds)] = [
                (sum(part), sum(part[1:]), part[ONLY_SLOW], part[ONLY_FAST])
                for part in seen.reshape(n_exits, 4).tolist()
            ]
        steps.append(memory[tuple(thresholds)])
    return steps


def literal_test(
    n: int, xi: float, delta: float, bound: PairedBound
) -> Callable[[list[tuple[int, int, int, int]]], bool]:
    """The test of one step at one seventh of delta."""
    memory: dict[Any, bool] = {}

    def passes(step: list[tuple[int, int, int, int]]) -> bool:
        counts = tuple(part[1:] for part in step)
        if counts not in memory:
            b, c = sum(part[1] for part in counts), sum(part[2] for part in counts)
            memory[counts] = paired_test(b, c, n, xi=xi, delta=delta / 7, bound=bound)
        return memory[counts]

    return passes


def literal_decision(
    cells: Integers,
    outcomes: Integers,
    n: int,
    *,
    xi: float,
    delta: float,
    bound: PairedBound,
    costs: tuple[float, ...],
) -> tuple[tuple[int, ...] | None, int | None]:
    """Every step of every path in turn; then the cheapest of the last ones before the first
    failures."""
    passes, best = literal_test(n, xi, delta, bound), None
    for place, tilt in enumerate(TILTS):
        steps, last = literal_steps(tilt, cells, outcomes), None
        for i, step in enumerate(steps):
            if not passes(step):
                break
            last = i
        if last is None:
            continue
        answered = [part[0] for part in steps[last]]
        cost = sum(
            rows * Fraction(price)
            for rows, price in zip([*answered, n - sum(answered)], costs, strict=True)
        )
        if best is None or cost < best[0]:
            best = (cost, tuple(declared_path(tilt, cells.shape[1])[:, last].tolist()), place)
    return (None, None) if best is None else best[1:]


@pytest.mark.slow
@pytest.mark.parametrize("bound", standing_for(BOUNDS, ["exact"], rest="long"))
def test_the_decision_is_that_of_a_walk_over_every_step_of_every_path(bound: PairedBound) -> None:
    rng, found, chosen = np.random.default_rng(21), set(), set()
    for case in range(20):
        n, xi, n_exits = (
            (150, 400, 900, 70)[case % 4],
            (0.05, 0.05, 0.1, 0.05)[case % 4],
            2 + case % 3 // 2,
        )
        costs = tuple(np.cumsum(rng.integers(1, 9, size=n_exits + 1)).astype(float).tolist())
        cells, outcomes = random_rows(rng, n, n_exits)
        decision = decide(
            walks_from_counts(*tabulated(cells, outcomes)),
            n,
            xi=xi,
            delta=0.1,
            bound=bound,
            costs=costs,
        )
        expected, place = literal_decision(
            cells, outcomes, n, xi=xi, delta=0.1, bound=bound, costs=costs
        )
        assert decision.cells == expected
        assert (decision.refusal is None) == (expected is not None)
        if place is not None:
            assert decision.chosen == place
            chosen.add(place)
        found.add("refused" if expected is None else "all" if not any(expected) else "some")
    assert found >= {"refused", "some"}
    assert len(chosen) >= 3, "these rows hardly tell the paths apart"


def same_decision(one: CascadeDecision, other: CascadeDecision) -> bool:
    walks = zip(one.walks, other.walks, strict=True)
    same = all(
        np.array_equal(a, b) for u, v in walks for a, b in zip(astuple(u), astuple(v), strict=True)
    )
    return same and (one.cells, one.chosen, one.refusal) == (
        other.cells,
        other.chosen,
        other.refusal,
    )


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.sampled_from([80, 200, 400]),
    st.integers(2, 3),
    st.sampled_from([0.0, 0.05, 0.1]),
    st.sampled_from(["exact", "pair"]),
)
def test_the_steps_that_are_kept_lead_to_the_same_decision(
    seed: int, n: int, n_exits: int, xi: float, bound: Any
) -> None:
    cells, outcomes = random_rows(np.random.default_rng(seed), n, n_exits)
    claim = {
        "xi": xi,
        "delta": 0.1,
        "bound": bound,
        "costs": tuple(float(m) for m in range(1, n_exits + 2)),
    }
    decision = decide(walks_from_counts(*tabulated(cells, outcomes)), n, **claim)
    assert same_decision(decide(decision.walks, n, **claim), decision)


def test_a_walk_ends_before_the_first_failure_and_a_later_recovery_does_not_reopen_it() -> None:
    # From cell 600 down the second exit breaks xi; from 300 down the same rows leave by the first
    # one, which gains.
    cells = np.array([[300, 600], [0, 1]])
    counts = np.zeros((2, 16), dtype=np.int64)
    counts[0, 4 * ONLY_FAST + ONLY_SLOW], counts[1, 0] = 300, 700
    assert paired_test(0, 300, 1000, xi=0.05, delta=0.1 / 7)
    decision = decide(
        walks_from_counts(cells, counts),
        1000,
        xi=0.05,
        delta=0.1,
        bound="exact",
        costs=(1.0, 2.0, 3.0),
    )
    assert decision.cells == (0, 0)
    assert TILTS[decision.chosen] > 0, (
        "only where later exits are asked for more does the first one come first"
    )
    flat = decision.walks[TILTS.index(0.0)]
    assert (flat.cells[1] >= 600 - 5).all(), "the walk goes on after it has failed"


@pytest.mark.parametrize("gap", [-2.0, -1.0, 0.0, 1.0, 2.0])
def test_the_path_is_chosen_that_reaches_both_exits_at_once(gap: float) -> None:
    # Exit 1 may answer from the logit 0 on, exit 2 from `gap` on; a little below, each breaks xi.
    cells = [int(TOP / (1 + np.exp(-logit))) for logit in (0.0, gap)]
    rows = np.array([[cells[0], 0], [cells[0] - 12, 0], [0, cells[1]], [0, cells[1] - 12]])
    counts = np.zeros((4, 16), dtype=np.int64)
    counts[[0, 2], 0] = 400
    counts[1, 4 * ONLY_SLOW] = counts[3, ONLY_SLOW] = 100
    order = np.lexsort(rows.T[::-1])
    walks = walks_from_counts(rows[order], counts[order])
    decision = decide(walks, 1000, xi=0.05, delta=0.1, bound="exact", costs=(1.0, 2.0, 3.0))
    assert TILTS[decision.chosen] == gap
    assert decision.cells is not None
    assert all(cell - 12 < found <= cell for cell, found in zip(cells, decision.cells, strict=True))


def test_costs_choose_the_cheapest_among_valid_ends_and_nothing_else() -> None:
    rng, different = np.random.default_rng(23), 0
    for _ in range(40):
        cells, outcomes = random_rows(rng, 400, 2)
        walks = walks_from_counts(*tabulated(cells, outcomes))
        prices = ((1.0, 1.0001, 9.0), (1.0, 8.9999, 9.0))
        one, other = (
            decide(walks, 400, xi=0.1, delta=0.1, bound="pair", costs=costs) for costs in prices
        )
        if one.cells is None or other.cells is None:
            assert one.cells == other.cells
            continue
        ends = {tuple(walk.cells[:, -1].tolist()) for walk in one.walks} | {
            tuple(walk.cells[:, -2].tolist()) for walk in one.walks if len(walk) > 1
        }
        assert {one.cells, other.cells} <= ends
        for costs, mine, theirs in ((prices[0], one, other), (prices[1], other, one)):
            assert seen_cost(mine, 400, costs) <= seen_cost(theirs, 400, costs)
        different += one.cells != other.cells
    assert different >= 3, "the costs hardly matter here"


def seen_cost(decision: CascadeDecision, n: int, costs: tuple[float, ...]) -> float:
    walk = decision.walks[decision.chosen]
    step, *_ = np.flatnonzero((walk.cells == np.array(decision.cells)[:, None]).all(axis=0))
    return total_cost(walk.exits[:, step], n, costs)


def test_equal_costs_keep_the_first_path() -> None:
    # All rows at one, none of them lost: every path goes down to zero and costs the same.
    counts = np.zeros((1, 16), dtype=np.int64)
    counts[0, 0] = 1000
    walks = walks_from_counts(np.array([[TOP, TOP]]), counts)
    decision = decide(walks, 1000, xi=0.05, delta=0.1, bound="exact", costs=(0.1, 0.2, 0.3))
    assert (decision.cells, decision.chosen) == ((0, 0), 0)


def test_a_cost_is_the_exact_sum_rounded_once() -> None:
    rng = np.random.default_rng(24)
    for _ in range(200):
        exits, costs = rng.integers(0, 10**9, size=3), tuple(np.cumsum(rng.random(4)).tolist())
        n = int(exits.sum()) + int(rng.integers(0, 10**9))
        exact = sum(
            Fraction(int(rows)) * Fraction(cost)
            for rows, cost in zip(exits, costs[:3], strict=True)
        )
        assert total_cost(exits, n, costs) == float(
            exact + (n - int(exits.sum())) * Fraction(costs[3])
        )
    assert total_cost(np.array([10, 0]), 20, (0.1, 0.2, 0.3)) == total_cost(
        np.array([0, 20]), 20, (0.1, 0.2, 0.3)
    )


# ---- xi = 0


@pytest.mark.slow
def test_without_allowed_loss_the_cheapest_of_147_thresholds_that_pass_mcnemar_is_taken() -> None:
    rng, found = np.random.default_rng(26), set()
    for case in range(18):
        n_exits, n = 2 + case % 2, 400
        cells, outcomes = random_rows(rng, n, n_exits)
        if case % 3:
            outcomes = np.where(rng.random(outcomes.shape) < 0.06, ONLY_FAST, outcomes)
        costs = tuple(float(m) for m in range(1, n_exits + 2))
        decision = decide(
            walks_from_counts(*tabulated(cells, outcomes)),
            n,
            xi=0.0,
            delta=0.1,
            bound="exact",
            costs=costs,
        )
        best = None
        for place, tilt in enumerate(TILTS):
            steps, path = (
                literal_steps(tilt, cells, outcomes),
                declared_path(tilt, n_exits).T.tolist(),
            )
            for i in range(24, 1025, 50):
                b, c = sum(part[2] for part in steps[i]), sum(part[3] for part in steps[i])
                if mcnemar_test(b, c, delta=0.1 / 147):
                    answered = [part[0] for part in steps[i]]
                    option = (total_cost(np.array(answered), n, costs), place, i, tuple(path[i]))
                    best = option if best is None else min(best, option)
        assert decision.cells == (None if best is None else best[3])
        assert [len(walk) for walk in decision.walks] == [21] * 7
        found.add(best is None)
    assert found == {True, False}


def test_without_loss_the_declared_steps_are_kept_whatever_steps_a_document_has() -> None:
    cells, outcomes = random_rows(np.random.default_rng(27), 200, 2)
    walks = walks_from_counts(*tabulated(cells, outcomes))
    for steps in (list(range(21)), [*WITHOUT_LOSS[:-1], 1023], list(WITHOUT_LOSS[:-1])):
        found = decide(tuple(walk.take(steps) for walk in walks), 200, xi=0.0, delta=0.1)
        for walk, tilt in zip(found.walks, TILTS, strict=True):
            assert np.array_equal(walk.cells, declared_path(tilt, 2)[:, list(WITHOUT_LOSS)])


def test_no_disagreement_at_all_is_no_evidence_for_no_loss() -> None:
    counts = np.zeros((1, 16), dtype=np.int64)
    counts[0, 0] = 10**6
    walks = walks_from_counts(np.array([[TOP, TOP]]), counts)
    decision = decide(walks, 10**6, xi=0.0, delta=0.1, bound="exact", costs=(1.0, 2.0, 3.0))
    assert decision.cells is None
    assert decision.refusal is not None
    assert decision.refusal.needed is None
    assert decision.refusal.numbers["tried"] == 147


# ---- refusals


def at_the_top(
    n: int,
    n_exits: int,
    bound: PairedBound,
    *,
    losses: int = 0,
    gains: int = 0,
    xi: float,
    delta: float,
) -> CascadeDecision:
    """All rows at score 1.0 in every exit; at the first exit so many of them lose and gain."""
    counts = np.zeros((1, 4**n_exits), dtype=np.int64)
    unit = 4 ** (n_exits - 1)
    counts[0, [0, ONLY_SLOW * unit, ONLY_FAST * unit]] = n - losses - gains, losses, gains
    walks = walks_from_counts(np.full((1, n_exits), TOP), counts)
    return decide(
        walks,
        n,
        xi=xi,
        delta=delta,
        bound=bound,
        costs=tuple(float(m) for m in range(1, n_exits + 2)),
    )


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("n_exits", [2, 3])
@pytest.mark.parametrize(("xi", "delta"), [(0.05, 0.05), (0.02, 1e-3)])
def test_the_rows_that_a_refusal_asks_for_certify_without_a_loss(
    bound: PairedBound, n_exits: int, xi: float, delta: float
) -> None:
    refusal = at_the_top(20, n_exits, bound, xi=xi, delta=delta).refusal
    assert refusal is not None
    assert refusal.needed is not None
    assert refusal.code == "too-few"
    assert at_the_top(refusal.needed, n_exits, bound, xi=xi, delta=delta).cells == (0,) * n_exits
    assert at_the_top(refusal.needed - 1, n_exits, bound, xi=xi, delta=delta).cells is None
    assert refusal.needed == labels_needed_by_walk(xi, delta=delta / 7, bound=bound)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("losses", "gains"), [(2, 0), (4, 3), (0, 3)])
def test_the_rows_that_a_refusal_asks_for_certify_at_the_same_rates(
    bound: PairedBound, losses: int, gains: int
) -> None:
    n, xi, delta = 60, 0.05, 0.05
    refusal = at_the_top(n, 2, bound, losses=losses, gains=gains, xi=xi, delta=delta).refusal
    assert refusal is not None
    assert refusal.needed is not None
    assert n < refusal.needed < 10**5
    more = {"losses": -(-losses * refusal.needed // n), "gains": gains * refusal.needed // n}
    assert at_the_top(refusal.needed, 2, bound, xi=xi, delta=delta, **more).cells == (0, 0)


@pytest.mark.parametrize("bound", BOUNDS)
def test_saturated_rows_that_alone_break_xi_are_refused_for_good(bound: PairedBound) -> None:
    refusal = at_the_top(1000, 2, bound, losses=60, xi=0.05, delta=0.05).refusal
    assert refusal is not None
    assert refusal.needed is None
    assert refusal.code == "saturated"


@pytest.mark.parametrize("bound", BOUNDS)
def test_more_rows_than_can_be_counted_are_not_asked_for(bound: PairedBound) -> None:
    refusal = at_the_top(100, 2, bound, xi=1e-17, delta=0.01).refusal
    assert refusal is not None
    assert refusal.needed is None


# ---- costs


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ((1, 2), "2 values for 3 models"),
        ((1, 2, 3, 4), "4 values for 3 models"),
        (5, "1 values for 3 models"),
        ((1, 3, 2), "do not rise"),
        ((1, 1, 2), "do not rise"),
        ((0, 1, 2), "do not rise"),
        ((-1, 1, 2), "do not rise"),
        ((1, 2, np.inf), "do not rise"),
        ((1, np.nan, 3), "NaN"),
    ],
)
def test_costs_that_are_no_costs_are_refused(costs: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        checked_costs(costs, 3)


@pytest.mark.parametrize("costs", [("1", "2", "3"), (1, None, 3), "123", (1, 2, 1j), (True, 2, 3)])
def test_costs_of_another_type_are_refused(costs: Any) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match="costs"):
        checked_costs(costs, 3)


@pytest.mark.parametrize(
    "costs", [[1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3], dtype=np.float32), range(1, 4)]
)
def test_costs_come_in_any_list(costs: Any) -> None:
    assert checked_costs(costs, 3) == (1.0, 2.0, 3.0)

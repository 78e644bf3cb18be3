"""The walk along a declared sequence of thresholds: what is counted, and which step is kept."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.decisions import decided

from pacbound.errors import InvalidValueError
from pacbound.procedures.cascade import CascadeDecision, Declared, declared_path
from pacbound.procedures.joint_walk import JointWalk, along, routed, top_of
from pacbound.stats.paired import mcnemar_test, paired_test
from pacbound.tally.questions.cascade import LABELLED_OUTCOMES

N = 400


def decide(walk: JointWalk, declared: Declared, n: int, **asked: Any) -> CascadeDecision:
    return decided(walk, n, declared=declared, **asked)


def sequence(*steps: tuple[int, ...]) -> Declared:
    exits = len(steps[0])
    models, costs = tuple(range(exits + 1)), tuple(float(m + 1) for m in range(exits + 1))
    return Declared(models, costs, 0.2, 0, 100, np.array(steps).T)


def single(counts: list[tuple[int, int]], declared: Declared) -> JointWalk:
    """A walk of one exit with these losses and gains."""
    losses, gains = np.array(counts).T[:, None, :]
    cells = declared.cells[:, : len(counts)]
    none = np.zeros_like(losses)
    return JointWalk(cells, np.full_like(losses, N), losses + gains, losses, gains, none)


@pytest.mark.parametrize("exits", [1, 2, 3])
def test_the_counts_of_every_step_are_those_of_routing_row_by_row(exits: int) -> None:
    rng = np.random.default_rng(exits)
    top = top_of(exits)
    cells = rng.integers(0, top + 1, size=(200, exits))
    outcomes = len(LABELLED_OUTCOMES)
    counts = rng.integers(0, 3, size=(200, outcomes**exits))
    steps = rng.integers(0, top + 2, size=(exits, 25))
    walk = routed(steps, cells, counts)
    expected = np.zeros((3, exits, 25), dtype=int)
    for step in range(25):
        for cell, row in zip(cells, counts, strict=True):
            out = next((m for m in range(exits) if cell[m] >= steps[m, step]), None)
            if out is None:
                continue
            for joint, times in enumerate(row.tolist()):
                outcome = LABELLED_OUTCOMES[joint // outcomes ** (exits - 1 - out) % outcomes]
                kinds = (True, outcome == "only_slow", outcome == "only_fast")
                expected[:, out, step] += times * np.array(kinds)
    for part, column in zip(expected, (walk.exits, walk.only_slow, walk.only_fast), strict=True):
        np.testing.assert_array_equal(part, column)


def test_along_a_path_that_falls_it_counts_what_the_paths_count() -> None:
    rng = np.random.default_rng(0)
    cells, counts = rng.integers(0, 1025, size=(300, 2)), rng.integers(0, 2, size=(300, 16))
    path = declared_path(0.5, 2).cells[:, ::64]
    ours, (theirs,) = routed(path, cells, counts), along([path], cells, counts)
    for name in vars(ours):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


@pytest.mark.parametrize("bound", ["exact", "pair"])
def test_the_last_step_before_the_first_failure_is_kept(bound: Any) -> None:
    declared = sequence((60000,), (50000,), (55000,), (40000,), (30000,))
    counts = [(0, 0), (2, 3), (60, 0), (1, 1), (0, 0)]
    decision = decide(single(counts, declared), declared, N, xi=0.05, delta=0.05, bound=bound)
    verdicts = [paired_test(b, c, N, xi=0.05, delta=0.05, bound=bound) for b, c in counts]
    assert verdicts == [True, True, False, True, True]
    assert decision.cells == (50000,)
    assert len(decision.walks[0]) == 3
    assert decision.refusal is None


def test_the_whole_delta_is_spent_on_every_step() -> None:
    """However long the sequence is: the largest count that passes alone passes as any step."""
    most = max(b for b in range(N) if paired_test(b, 0, N, xi=0.05, delta=0.05))
    declared = sequence(*[(cell,) for cell in range(60000, 50000, -1000)])
    ends = []
    for losses in (most, most + 1):
        walk = single([(losses, 0)] * 10, declared)
        ends.append(decide(walk, declared, N, xi=0.05, delta=0.05, bound="exact").cells)
    assert ends == [(51000,), None]


def test_a_sequence_without_a_failure_ends_at_its_last_step() -> None:
    declared = sequence((60000,), (0,))
    decision = decide(
        single([(0, 0), (0, 5)], declared), declared, N, xi=0.05, delta=0.05, bound="exact"
    )
    assert decision.cells == (0,)
    assert len(decision.walks[0]) == 2


def test_no_loss_is_walked_with_mcnemars_test_at_the_full_delta() -> None:
    counts = [(2, 15), (3, 14), (8, 9), (0, 20)]
    assert [mcnemar_test(b, c, delta=0.05) for b, c in counts] == [True, True, False, True]
    declared = sequence((60000,), (50000,), (40000,), (30000,))
    decision = decide(single(counts, declared), declared, N, xi=0.0, delta=0.05, bound="exact")
    assert decision.cells == (50000,)


@pytest.mark.parametrize("bound", ["exact", "pair"])
@pytest.mark.parametrize(
    ("first", "xi", "code"),
    [
        ((0, 0), 0.001, "fold-too-few"),
        ((22, 6), 0.05, "fold-near"),
        ((30, 2), 0.05, "fold-loses"),
        ((20, 0), 0.05, "fold-loses"),
        ((5, 5), 0.0, "fold-even"),
        ((5, 6), 0.0, "fold-near"),
    ],
)
def test_a_first_step_that_fails_refuses_and_says_what_would_pass(
    first: tuple[int, int], xi: float, code: str, bound: Any
) -> None:
    declared = sequence((60000,), (50000,))
    walk = single([first, (0, 0)], declared)
    decision = decide(walk, declared, N, xi=xi, delta=0.01, bound=bound)
    assert decision.cells is None
    assert decision.refusal is not None
    assert decision.refusal.code == code
    assert len(decision.walks[0]) == 1
    needed = decision.refusal.needed
    assert (needed is None) == (first[0] - first[1] >= xi * N)
    if needed is not None:
        up = [np.array([[-(-count * needed // N)]]) for count in (N, sum(first), first[0])]
        gains = np.array([[first[1] * needed // N]])
        exits, differ, losses = up
        none = np.zeros_like(gains)
        scaled = JointWalk(walk.cells[:, :1], exits, differ, losses, gains, none)
        alone = replace(declared, cells=declared.cells[:, :1])
        assert decide(scaled, alone, needed, xi=xi, delta=0.01, bound=bound).cells is not None


def test_losses_at_several_exits_of_a_few_rows_are_a_refusal() -> None:
    """Scaled down to one row, each exit would still have a loss of its own."""
    declared = sequence((900, 900), (0, 0))
    ones = np.ones((2, 1), dtype=np.int64)
    walk = JointWalk(declared.cells[:, :1], 4 * ones, ones, ones, 0 * ones, 0 * ones)
    found = decide(walk, declared, 8, xi=0.3, delta=0.001, bound="pair")
    assert found.refusal is not None
    assert found.refusal.needed is not None
    assert found.refusal.needed > 8


def test_a_walk_that_stops_before_it_fails_ends_where_it_has_no_counts() -> None:
    declared = sequence((60000,), (50000,), (40000,))
    walk = single([(0, 0), (0, 0)], declared)
    found = decide(walk, declared, N, xi=0.05, delta=0.05, bound="exact")
    assert (found.cells, len(found.walks[0])) == ((40000,), 3), "not what the document holds"


def test_a_walk_along_other_thresholds_is_refused() -> None:
    declared = sequence((60000,), (50000,))
    walk = single([(0, 0), (0, 0)], sequence((60000,), (40000,)))
    with pytest.raises(InvalidValueError, match="not those of its declared path"):
        decide(walk, declared, N, xi=0.05, delta=0.05, bound="exact")


def test_a_model_that_is_never_asked_costs_nothing() -> None:
    declared = Declared((3, 1, 0), (1.0, 4.0, 9.0), 0.2, 0, 50, np.array([[1025], [500]]))
    assert declared.running_costs == (1.0, 5.0, 14.0)
    assert declared.costs_at((1025, 500)) == (0.0, 4.0, 13.0)
    assert declared.costs_at((1024, 1025)) == (1.0, 1.0, 10.0)


@pytest.mark.parametrize("bound", ["exact", "pair"])
def test_losses_at_several_exits_are_refused_with_the_rows_that_they_would_take(bound: Any) -> None:
    declared = sequence((900, 800, 700), (500, 500, 500))
    losses = np.ones((3, 1), dtype=int)
    counts = (np.full((3, 1), 60), losses, losses, np.zeros_like(losses), np.zeros_like(losses))
    walk = JointWalk(declared.cells[:, :1], *counts)
    decision = decide(walk, declared, 200, xi=0.04, delta=0.001, bound=bound)
    assert decision.cells is None
    assert decision.refusal is not None
    assert decision.refusal.needed is not None
    assert decision.refusal.needed > 200

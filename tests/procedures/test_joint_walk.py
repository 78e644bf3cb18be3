"""Counts along a list of threshold vectors, against a loop over every step and every row."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.decisions import walk_from_counts

from pacbound.procedures import joint_walk
from pacbound.procedures.cascade import every_threshold
from pacbound.procedures.joint_walk import JointWalk, top_of

Integers = NDArray[np.int64]
TOP = top_of(2)
NEVER = TOP + 1

AGREE, ONLY_FAST, ONLY_SLOW, NEITHER = range(4)
LEVELS = (0, 1, 2, 511, 512, 513, 1023, TOP)
"""Few values, so that scores and thresholds are often equal, or next to each other."""


def along(path: Integers, cells: Integers, counts: Integers) -> JointWalk:
    return joint_walk.along([path], cells, counts)[0]


def literal(
    path: Integers, cells: Integers, outcomes: Integers
) -> tuple[Integers, Integers, Integers, Integers]:
    """For every step and row: the first exit whose cell is at or above the threshold, and what it
    does there."""
    exits, differ, only_slow, only_fast = (np.zeros(path.shape, dtype=np.int64) for _ in range(4))
    for step in range(path.shape[1]):
        for row in range(len(cells)):
            for m in range(path.shape[0]):
                if cells[row, m] >= path[m, step]:
                    exits[m, step] += 1
                    differ[m, step] += outcomes[row, m] != AGREE
                    only_slow[m, step] += outcomes[row, m] == ONLY_SLOW
                    only_fast[m, step] += outcomes[row, m] == ONLY_FAST
                    break
    return exits, differ, only_slow, only_fast


def tabulated(cells: Integers, outcomes: Integers) -> tuple[Integers, Integers]:
    """The occupied joint cells in order, and how often each joint outcome was seen there; the first
    exit's digit leads."""
    n_exits = cells.shape[1]
    joint = outcomes @ 4 ** np.arange(n_exits - 1, -1, -1)
    occupied = sorted({tuple(row) for row in cells.tolist()})
    counts = np.zeros((len(occupied), 4**n_exits), dtype=np.int64)
    for row, what in zip(cells.tolist(), joint.tolist(), strict=True):
        counts[occupied.index(tuple(row)), what] += 1
    return np.array(occupied, dtype=np.int64).reshape(-1, n_exits), counts


@st.composite
def walked(draw: st.DrawFn) -> tuple[Integers, Integers, Integers]:
    """A path that falls, with exits that are never taken and steps that stand still; and rows with
    their outcomes."""
    n_exits = draw(st.integers(1, 4))
    level = st.one_of(st.sampled_from(LEVELS), st.integers(0, TOP))
    threshold = st.one_of(level, st.just(NEVER))
    steps = draw(st.integers(1, 8))
    path = [
        sorted(draw(st.lists(threshold, min_size=steps, max_size=steps)), reverse=True)
        for _ in range(n_exits)
    ]
    row = st.tuples(*[level] * n_exits, *[st.integers(0, 3)] * n_exits)
    rows = np.array(draw(st.lists(row, min_size=0, max_size=25)), dtype=np.int64).reshape(
        -1, 2 * n_exits
    )
    return np.array(path, dtype=np.int64), rows[:, :n_exits], rows[:, n_exits:]


@given(walked())
def test_the_counts_along_a_path_are_those_of_a_loop_over_every_step_and_row(
    case: tuple[Integers, Integers, Integers],
) -> None:
    path, cells, outcomes = case
    walk = along(path, *tabulated(cells, outcomes))
    assert np.array_equal(walk.cells, path)
    counts = astuple(walk)[1:]
    for counted, expected in zip(counts[:4], literal(path, cells, outcomes), strict=True):
        assert np.array_equal(counted, expected)
    assert not walk.unlabelled.any()


@given(walked())
def test_no_row_is_lost_or_counted_twice_along_a_path(
    case: tuple[Integers, Integers, Integers],
) -> None:
    path, cells, outcomes = case
    to_the_end = np.concatenate([path, np.zeros((len(path), 1), dtype=np.int64)], axis=1)
    walk = along(to_the_end, *tabulated(cells, outcomes))
    left = walk.exits.sum(axis=0)
    assert (left <= len(cells)).all()
    assert left[-1] == walk.exits[0, -1] == len(cells), (
        "at thresholds of zero all rows leave at the first exit"
    )
    assert (np.diff(np.cumsum(walk.exits, axis=0)) >= 0).all(), (
        "a row that has left by some exit stays or leaves earlier"
    )
    assert (walk.only_slow + walk.only_fast <= walk.differ).all()
    assert (walk.differ <= walk.exits).all()
    assert walk.losses[-1] == (outcomes[:, :1] == ONLY_SLOW).sum()
    assert walk.gains[-1] == (outcomes[:, :1] == ONLY_FAST).sum()


@given(walked())
def test_rows_without_a_label_are_unlabelled_where_the_answering_exit_differs(
    case: tuple[Integers, Integers, Integers],
) -> None:
    """The same rows with all labels taken away: what differed is unlabelled, and nothing else."""
    path, cells, outcomes = case
    n_exits = cells.shape[1]
    pattern = (outcomes != AGREE) @ 2 ** np.arange(n_exits - 1, -1, -1)
    occupied = sorted({tuple(row) for row in cells.tolist()})
    counts = np.zeros((len(occupied), 4**n_exits + 2**n_exits - 1), dtype=np.int64)
    for row, differs in zip(cells.tolist(), pattern.tolist(), strict=True):
        counts[occupied.index(tuple(row)), 4**n_exits + differs - 1 if differs else 0] += 1
    table = np.array(occupied, dtype=np.int64).reshape(-1, n_exits), counts
    labelled, without = along(path, *tabulated(cells, outcomes)), along(path, *table)
    assert np.array_equal(without.exits, labelled.exits)
    assert np.array_equal(without.differ, labelled.differ)
    assert np.array_equal(without.unlabelled, labelled.differ)
    assert not without.only_slow.any()
    assert not without.only_fast.any()


@given(walked())
def test_several_paths_at_once_give_the_walks_of_each(
    case: tuple[Integers, Integers, Integers],
) -> None:
    path, cells, outcomes = case
    table = tabulated(cells, outcomes)
    paths = [path, np.minimum(path, 600), np.full_like(path, NEVER)]
    for walk, alone in zip(
        joint_walk.along(iter(paths), *table), [along(each, *table) for each in paths], strict=True
    ):
        assert all(np.array_equal(a, b) for a, b in zip(astuple(walk), astuple(alone), strict=True))
    assert not along(paths[2], *table).exits.any(), "a threshold above every score is never reached"


@given(walked())
def test_counts_stay_the_same_between_two_changes(
    case: tuple[Integers, Integers, Integers],
) -> None:
    path, cells, outcomes = case
    walk = along(path, *tabulated(cells, outcomes))
    changes = walk.changes()
    assert changes[0] == 0
    judged = np.concatenate([walk.differ, walk.only_slow, walk.only_fast])
    last = changes[np.searchsorted(changes, np.arange(len(walk)), side="right") - 1]
    assert np.array_equal(judged, judged[:, last])
    assert (judged[:, changes[1:]] != judged[:, changes[1:] - 1]).any(axis=0).all()


def test_a_score_equal_to_the_threshold_exits_and_one_cell_below_does_not() -> None:
    path = np.array([[TOP, 700, 699, 0], [TOP, 800, 800, 0]])
    cells = np.array([[699, 799], [699, 800], [700, 800], [TOP, TOP]])
    walk = along(path, cells, np.eye(16, dtype=np.int64)[[0, 0, 0, 0]])
    assert walk.exits.tolist() == [[1, 2, 4, 4], [0, 1, 0, 0]]


def test_counts_beyond_the_integers_of_32_bits_stay_exact() -> None:
    counts = np.zeros((2, 16), dtype=np.int64)
    counts[0, 4 * ONLY_SLOW + ONLY_FAST], counts[1, 4 * ONLY_FAST + NEITHER] = 2**51 + 1, 2**51 - 1
    walk = along(np.array([[900, 100], [100, 100]]), np.array([[200, 300], [950, 950]]), counts)
    assert walk.exits.tolist() == [[2**51 - 1, 2**52], [2**51 + 1, 0]]
    assert walk.losses.tolist() == [0, 2**51 + 1]
    assert walk.gains.tolist() == [2**52, 2**51 - 1]


def test_a_walk_of_one_exit_is_the_walk_of_two_models() -> None:
    rng = np.random.default_rng(3)
    cells, outcomes = rng.integers(0, TOP + 1, size=(80, 1)), rng.integers(0, 4, size=(80, 1))
    falling = np.arange(TOP, -1, -1)[None]
    table = tabulated(cells, outcomes)
    alone = walk_from_counts(table[0][:, 0], table[1])
    # The walk of two models begins at 2^16; below the cells of this grid it has the same counts.
    joint = along(falling, *table)
    single = every_threshold().at(alone, top_of(1) - falling[0])
    assert all(np.array_equal(a, b) for a, b in zip(astuple(joint), astuple(single), strict=True))


def test_no_test_looks_at_rows_that_differ_to_no_effect() -> None:
    walk = along(
        np.array([[0], [0]]), np.array([[5, 5]]), np.eye(16, dtype=np.int64)[[4 * NEITHER]]
    )
    assert walk.differ.tolist() == [[1], [0]]
    assert walk.as_judged().differ.tolist() == [[0], [0]]

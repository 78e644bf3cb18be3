"""Groups: the walk of all of them together, against one that tests every group at every step."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.decisions import TOP, decided

from pacbound.errors import InvalidValueError
from pacbound.procedures.cascade import (
    Asked,
    GroupCounts,
    decide,
    decide_apart,
    refused,
    step_passes,
    total_cost,
    walks_from_counts,
)
from pacbound.stats.binomial import sidak_level
from pacbound.stats.paired import PairedBound
from pacbound.tally.questions.cascade import grid_of, outcomes_of

Integers = NDArray[np.int64]
BOUNDS: tuple[PairedBound, ...] = ("exact", "pair")


def table(seed: int, n: int, exits: int, *, losing: float = 0.1) -> tuple[Integers, Integers]:
    """Random rows, some without a label, as cells and counts of joint outcomes."""
    rng = np.random.default_rng(seed)
    cells = grid_of(exits).cells(rng.beta(3, 1, size=(n, exits)).round(2).ravel())
    outcomes = outcomes_of(exits)
    weights = np.array(
        [losing ** sum(part != "agree" for part in name.split("|")) for name in outcomes]
    )
    drawn = rng.choice(len(outcomes), size=n, p=weights / weights.sum())
    occupied, places = np.unique(cells.reshape(n, exits), axis=0, return_inverse=True)
    counts = np.zeros((len(occupied), len(outcomes)), dtype=np.int64)
    np.add.at(counts, (places.ravel(), drawn), 1)
    return occupied, counts


def groups_of(seed: int, exits: int, *, sizes: tuple[int, ...]) -> list[GroupCounts]:
    return [
        GroupCounts(n, walks_from_counts(*table(100 * seed + g, n, exits, losing=0.04 * (g + 1))))
        for g, n in enumerate(sizes)
    ]


def passed(groups: list[GroupCounts], path: int, asked: Asked) -> int:
    """How many steps of a path every group passes, each step tested."""
    tested = {"xi": asked.xi, "level": asked.delta / 7, "bound": asked.bound}
    walks = [(group.n, group.walks[path]) for group in groups]
    together = np.logical_and.reduce(
        [step_passes(walk.losses, walk.gains, n, **tested) for n, walk in walks]  # type: ignore[arg-type]
    )
    return len(together) if together.all() else int(together.argmin())


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("seed", range(4))
def test_two_models_end_where_the_first_group_fails(seed: int, bound: PairedBound) -> None:
    groups = groups_of(seed, 1, sizes=(300, 200, 90))
    asked = Asked(0.2, 0.1, (1.0, 2.0), bound)
    found = decide(groups, asked)
    ends = []
    for group in groups:
        walk = group.walks[0]
        for step, cell in enumerate(walk.cells[0].tolist()):
            at = walk.take(np.array([step]))
            # As the first step of a walk of its own, which fails or passes alone.
            alone = replace(at, cells=np.array([[TOP]]))
            if decide([GroupCounts(group.n, (alone,))], asked)[0].cells is None:
                ends.append(cell + 1)
                break
    expected = None if TOP + 1 in ends else (max(ends, default=0),)
    assert {decision.cells for decision in found} == {expected}


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_path_ends_where_the_first_group_fails_and_the_cheapest_is_kept(
    seed: int, bound: PairedBound
) -> None:
    groups = groups_of(seed, 2, sizes=(400, 250))
    costs = (1.0, 2.5, 9.0)
    asked = Asked(0.35, 0.2, costs, bound)
    found = decide(groups, asked)
    best: list[tuple[float, int, tuple[int, ...]]] = []
    for path in range(7):
        end = passed(groups, path, asked) - 1
        if end >= 0:
            exits = np.asarray(sum(group.walks[path].exits[:, end] for group in groups))
            cells = tuple(groups[0].walks[path].cells[:, end].tolist())
            best.append((total_cost(exits, 650, costs), path, cells))
    expected = min(best)[1:] if best else None
    assert {(part.chosen, part.cells) for part in found if part.cells} == (
        {expected} if expected else set()
    )


@pytest.mark.parametrize("shared", ["common", "own"])
@pytest.mark.parametrize("exits", [1, 2])
@pytest.mark.parametrize("xi", [0.0, 0.3])
def test_what_is_kept_decides_the_same_again(shared: str, exits: int, xi: float) -> None:
    groups = groups_of(5, exits, sizes=(300, 200, 0))
    for some in (groups[:2], groups):
        asked = Asked(xi, 0.2, tuple(float(cost) for cost in range(1, exits + 2)))
        way = decide if shared == "common" else partial(decide_apart, dependent=False)
        first = way(some, asked)
        kept = [GroupCounts(group.n, part.walks) for group, part in zip(some, first, strict=True)]
        again = way(kept, asked)
        for one, other in zip(first, again, strict=True):
            assert (one.cells, one.chosen, one.refusal) == (
                other.cells,
                other.chosen,
                other.refusal,
            )
            for walk, same in zip(one.walks, other.walks, strict=True):
                assert all(
                    np.array_equal(getattr(walk, name), getattr(same, name)) for name in vars(walk)
                )


@pytest.mark.parametrize("bound", BOUNDS)
def test_own_thresholds_are_those_of_each_group_alone_at_the_sidak_level(
    bound: PairedBound,
) -> None:
    groups = groups_of(1, 1, sizes=(300, 200, 3))
    asked = Asked(0.2, 0.1, (1.0, 2.0), bound)
    found = decide_apart(groups, asked, dependent=False)
    level = sidak_level(0.1, 3)
    for group, part in zip(groups, found, strict=True):
        alone = decided(group.walks, group.n, xi=0.2, delta=level, bound=bound)
        assert part.cells == alone.cells
    assert found[2].cells is None
    assert refused(["a", "b", "c"], groups, found) is None


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("exits", [1, 2])
def test_a_group_without_rows_is_to_blame_and_named_with_the_rows_it_would_take(
    bound: PairedBound, exits: int
) -> None:
    groups = groups_of(2, exits, sizes=(500, 0))
    costs = tuple(float(cost) for cost in range(1, exits + 2))
    found = decide(groups, Asked(0.3, 0.1, costs, bound))
    why = refused(["day", "dawn"], groups, found)
    assert [part.cells for part in found] == [None, None]
    assert why is not None
    assert (why.group, why.numbers["rows"], why.code) == ("dawn", 0, "too-few")
    assert why.needed is not None
    assert why.needed > 5
    assert found[0].refusal is None


@pytest.mark.parametrize("exits", [1, 2])
def test_a_walk_that_leaves_out_its_first_steps_is_not_decided(exits: int) -> None:
    """Else those that fail could be left out of a certificate."""
    (group,) = groups_of(3, exits, sizes=(400,))
    asked = Asked(0.3, 0.2, tuple(float(cost) for cost in range(1, exits + 2)))
    later = tuple(walk.take(slice(walk.changes()[1], None)) for walk in group.walks)
    with pytest.raises(InvalidValueError, match="does not begin with the first step"):
        decide([GroupCounts(group.n, later)], asked)
    back = tuple(walk.take(slice(None, None, -1)) for walk in group.walks)
    with pytest.raises(InvalidValueError, match="not those of its declared path"):
        decide([GroupCounts(group.n, back)], asked)

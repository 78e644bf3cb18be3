"""From counts to the thresholds that are claimed, against the theorem taken literally: a test at
every one of the 65,536 thresholds."""

from __future__ import annotations

from fractions import Fraction
from math import inf, log, log1p

import numpy as np
import pytest
from numpy.typing import NDArray

from pacbound.procedures import abstention
from pacbound.procedures.abstention import FIRST, Runs, levels_of, start_counts
from pacbound.stats.binomial import binomial_upper, binomial_upper_within

Integers = NDArray[np.int64]
Ranges = tuple[tuple[int, int], ...]


def literal_counts(n: int, xi: float, delta: float) -> list[int]:
    unit = log(delta) / log1p(-xi)
    counts = [int(np.ceil(unit * 2**s)) for s in range(1, 60)]
    return [count for count in counts if count <= n] or [n]


def literal_walk(
    cells: Integers,
    wrong: Integers,
    right: Integers,
    joins: dict[int, int],
    levels: NDArray[np.float64],
    xi: float,
    first: int,
) -> set[int]:
    """The cells whose threshold passes; `joins` says how many starts join at each."""
    dense = np.zeros((2, first + 1), dtype=np.int64)
    np.add.at(dense[0], np.minimum(cells, first), wrong + right)
    np.add.at(dense[1], np.minimum(cells, first), wrong)
    answered, errors = np.cumsum(dense[:, ::-1], axis=1)[:, ::-1]
    carried, passed = 0, set()
    verdicts: dict[tuple[int, int, int], bool] = {}
    for cell in range(first, -1, -1):
        carried += joins.get(cell, 0)
        key = (int(answered[cell]), int(errors[cell]), carried)
        if carried and key not in verdicts:
            verdicts[key] = binomial_upper(key[1], key[0], delta=levels[carried - 1]) <= xi
        if carried and answered[cell] and verdicts[key]:
            passed.add(cell)
        else:
            carried = 0
    return passed


def literal_rank_joins(
    cells: Integers, rows: Integers, counts: list[int], first: int
) -> dict[int, int]:
    """Start s joins at the lowest threshold that answers fewer than k_s rows, or at the first."""
    dense = np.zeros(first + 1, dtype=np.int64)
    np.add.at(dense, np.minimum(cells, first), rows)
    answered = np.cumsum(dense[::-1])[::-1]
    joins: dict[int, int] = {}
    for count in counts:
        fewer = np.flatnonzero(answered < count)
        place = int(fewer[0]) if fewer.size else first
        joins[place if answered[first] < count else first] = (
            joins.get(place if answered[first] < count else first, 0) + 1
        )
    return joins


def spread(claimed: Ranges) -> set[int]:
    return {cell for low, high in claimed for cell in range(low, high + 1)}


def random_rows(rng: np.random.Generator, *, gap: int) -> tuple[Integers, Integers, Integers, int]:
    """Cells at least `gap` apart, with risks that jump; and the first threshold."""
    first = int(rng.choice([300, 900, 2000]))
    top = min(first + 2, 65_536)
    cells = np.unique(rng.integers(0, top // gap + 1, size=rng.integers(1, 60)) * gap)
    rows = rng.integers(1, 40, size=cells.size)
    wrong = rng.binomial(rows, rng.choice([0.0, 0.02, 0.3, 0.7], size=cells.size))
    return cells, wrong, rows - wrong, first


@pytest.mark.parametrize("gap", [1, 3])
def test_what_is_claimed_is_what_the_theorem_passes(gap: int) -> None:
    rng = np.random.default_rng(gap)
    some = more = 0
    for _ in range(40):
        cells, wrong, right, first = random_rows(rng, gap=gap)
        n, xi, delta = int((wrong + right).sum()), float(rng.choice([0.05, 0.3])), 0.2
        counts = literal_counts(n, xi, delta)
        joins = literal_rank_joins(cells, wrong + right, counts, first)
        levels = levels_of(Fraction(delta) / (1 + Fraction(delta)), len(counts))
        literal = literal_walk(cells, wrong, right, joins, levels, xi, first)
        decision = abstention.decide(cells, wrong, right, xi=xi, delta=delta, first=first)
        claimed = spread(decision.claimed)
        assert decision.threshold == (min(claimed) / 65_536 if claimed else inf)
        assert (decision.refusal is None) == bool(claimed)
        # Where cells touch, the first of the two tests is made without the starts that join.
        assert claimed == literal if gap > 1 else claimed <= literal
        some += bool(claimed)
        more += len(decision.claimed) > 1
    assert some > 8
    assert more > 0


def test_the_whole_grid_is_walked() -> None:
    rng = np.random.default_rng(7)
    cells = np.unique(rng.integers(60_000, 65_537, size=60))
    wrong = rng.binomial(20, 0.02, size=cells.size)
    right = 20 - wrong
    n = 20 * cells.size
    counts = literal_counts(n, 0.1, 0.2)
    joins = literal_rank_joins(cells, wrong + right, counts, FIRST)
    levels = levels_of(Fraction(0.2) / (1 + Fraction(0.2)), len(counts))
    literal = literal_walk(cells, wrong, right, joins, levels, 0.1, FIRST)
    decision = abstention.decide(cells, wrong, right, xi=0.1, delta=0.2)
    assert spread(decision.claimed) <= literal
    assert decision.threshold == min(literal) / 65_536


@pytest.mark.parametrize("gap", [1, 3])
def test_declared_starts_claim_what_the_fallback_passes(gap: int) -> None:
    rng = np.random.default_rng(10 + gap)
    some = 0
    for _ in range(40):
        cells, wrong, right, first = random_rows(rng, gap=gap)
        starts = rng.integers(0, first + 1, size=rng.integers(1, 5)).tolist()
        starts += rng.choice(np.minimum(cells, first), 1).tolist()
        joins = {cell: starts.count(cell) for cell in starts}
        levels = levels_of(Fraction(0.3), len(starts))
        literal = literal_walk(cells, wrong, right, joins, levels, 0.2, first)
        decision = abstention.decide(cells, wrong, right, starts, xi=0.2, delta=0.3, first=first)
        assert spread(decision.claimed) == literal
        some += bool(literal)
    assert some > 8


def test_a_pass_of_the_second_test_alone_claims_one_threshold() -> None:
    # Two rows above: the start joins just above the second cell, where the ten rows of the first
    # pass at its level, and not before.
    counts = start_counts(24, xi=0.3, delta=0.2)
    assert counts == (10, 19)
    cells, right = np.array([100, 200, 300]), np.array([6, 9, 9])
    decision = abstention.decide(cells, np.zeros(3, dtype=np.int64), right, xi=0.3, delta=0.2)
    # Nine rows at 300: the first start joins at 201, and passes there.
    assert binomial_upper(0, 9, delta=float(levels_of(Fraction(1, 6), 2)[0])) <= 0.3
    assert decision.claimed == ((0, 201),)
    assert decision.threshold == 0.0
    # With an error in every later cell only that one threshold is left.
    decision = abstention.decide(cells, np.array([6, 9, 0]), np.array([0, 0, 9]), xi=0.3, delta=0.2)
    assert decision.claimed == ((201, 201),)


def test_a_heavy_top_loses_every_start_unless_a_lower_first_threshold_is_declared() -> None:
    cells, none, right = np.array([50_000]), np.array([0]), np.array([5000])
    lost = abstention.decide(cells, none, right, xi=0.05, delta=0.01)
    assert lost.threshold == inf
    assert lost.refusal is not None
    assert (lost.refusal.heavy, lost.refusal.heavy_at) == (5000, 50_000 / 65_536)
    assert lost.refusal.needed is None
    kept = abstention.decide(cells, none, right, xi=0.05, delta=0.01, first=50_000)
    assert kept.threshold == 0.0


def test_saturated_scores_do_not_waste_the_starts() -> None:
    # Scores of exactly 1 count with those just below it.
    cells, right = np.array([65_535, 65_536]), np.array([5000, 1])
    decision = abstention.decide(cells, np.array([0, 1]), right, xi=0.05, delta=0.01)
    assert decision.claimed == ((0, 65_535),)


@pytest.mark.parametrize("n", [1, 5, 44, 45, 100, 5000, 10**6, 2**53])
@pytest.mark.parametrize(("xi", "delta"), [(0.1, 0.1), (0.01, 1e-3), (0.5, 0.9), (1e-9, 1e-200)])
def test_starts_double_from_twice_what_one_perfect_test_needs(
    n: int, xi: float, delta: float
) -> None:
    counts = start_counts(n, xi=xi, delta=delta)
    expected = literal_counts(n, xi, delta)
    assert len(counts) == len(expected)
    np.testing.assert_allclose(counts, expected, rtol=1e-12, atol=1)
    assert counts[-1] <= n


def test_levels_are_rounded_down_and_share_delta() -> None:
    for total in (Fraction(0.1), Fraction(1, 3), Fraction(5e-324)):
        levels = levels_of(total, 7)
        assert all(Fraction(level) <= total * (m + 1) / 7 for m, level in enumerate(levels))
    assert levels_of(Fraction(0.1), 3)[-1] == 0.1


# ---- refusals


@pytest.mark.parametrize(("xi", "delta"), [(0.05, 0.05), (0.02, 1e-3), (0.3, 0.5)])
def test_fewer_rows_than_a_refusal_asks_for_are_refused_however_right(
    xi: float, delta: float
) -> None:
    refusal = abstention.decide(
        np.array([FIRST]), np.array([0]), np.array([1]), xi=xi, delta=delta
    ).refusal
    assert refusal is not None
    assert refusal.needed is not None
    for rows, certified in ((refusal.needed - 1, False), (refusal.needed, True)):
        decision = abstention.decide(
            np.array([FIRST]), np.array([0]), np.array([rows]), xi=xi, delta=delta
        )
        assert (decision.refusal is None) == certified


def test_the_rows_that_a_refusal_asks_for_certify_if_they_are_of_the_same_kind() -> None:
    cells = np.arange(60_000, 60_100)
    wrong = np.where(np.arange(100) % 10 == 0, 1, 0)
    right = np.full(100, 9)
    refusal = abstention.decide(cells, wrong, right, xi=0.02, delta=1e-3).refusal
    assert refusal is not None
    assert refusal.needed is not None
    runs = Runs.of(cells, wrong, right, FIRST).scaled(refusal.needed)
    assert (runs.tops[0], runs.answered[0]) == (FIRST, 0)
    added, errors = np.diff(runs.answered)[::-1], np.diff(runs.errors)[::-1]
    more = abstention.decide(cells, errors, added - errors, xi=0.02, delta=1e-3)
    assert more.refusal is None


def test_a_refusal_knows_how_many_answers_are_wrong_without_abstaining() -> None:
    cells, right = np.arange(100, 200), np.full(100, 6)
    refusal = abstention.decide(cells, np.full(100, 4), right, xi=0.2, delta=0.01).refusal
    assert refusal is not None
    assert (refusal.code, refusal.errors, refusal.rows) == ("no-pass", 400, 1000)
    assert refusal.needed is None


def test_no_number_of_rows_certifies_that_no_answer_is_ever_wrong() -> None:
    refusal = abstention.decide(
        np.array([5]), np.array([0]), np.array([10**6]), xi=0.0, delta=0.1
    ).refusal
    assert refusal is not None
    assert refusal.needed is None


@pytest.mark.parametrize("xi", [1e-17, 1e-300, 5e-324])
@pytest.mark.parametrize("delta", [0.5, 5e-324])
def test_more_rows_than_can_be_counted_are_not_asked_for(xi: float, delta: float) -> None:
    cells, none, right = np.array([FIRST]), np.array([0]), np.array([10**6])
    refusal = abstention.decide(cells, none, right, xi=xi, delta=delta).refusal
    assert refusal is not None
    assert refusal.needed is None


def test_counts_of_any_size_are_decided() -> None:
    cells = np.array([10, 20, 65_536])
    huge = np.array([2**50, 2**51, 2**52])
    decision = abstention.decide(cells, huge // 1000, huge, xi=0.01, delta=1e-9)
    assert decision.claimed == ((0, FIRST),)


# ---- starts from a pool


def test_starts_from_a_pool_answer_about_as_many_rows_as_the_ranks() -> None:
    pool = np.arange(10_000)
    starts = abstention.starts_from(pool, 5000, xi=0.05, delta=0.01, first=9_000)
    counts = start_counts(5000, xi=0.05, delta=0.01)
    assert len(starts) == len(counts)
    assert [int(np.sum(pool >= cell)) for cell in starts] == [
        max(1000, 2 * count) for count in counts
    ]
    tiny = abstention.starts_from(np.array([3]), 5000, xi=0.05, delta=0.01)
    assert set(tiny) == {3}


# ---- the test itself


def test_the_quick_verdict_is_that_of_the_bound() -> None:
    rng = np.random.default_rng(0)
    trials = rng.integers(0, 3000, size=3000)
    successes = rng.binomial(trials, 0.04)
    levels = np.array([1e-250, 1e-9, 0.01, 0.4])[:, None]
    quick = binomial_upper_within(successes, trials, 0.05, delta=levels)
    assert np.array_equal(quick, binomial_upper(successes, trials, delta=levels) <= 0.05)
    # Exactly at the level, rounding decides, and it is the bound's.
    for n in range(1, 60):
        level = 0.95**n
        assert binomial_upper_within(0, n, 0.05, delta=level) == (
            binomial_upper(0, n, delta=level) <= 0.05
        )

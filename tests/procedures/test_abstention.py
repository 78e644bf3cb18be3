"""From counts to the thresholds that are claimed, against the theorem taken literally: a test at
every one of the 65,537 thresholds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import bdtr

from pacbound import certify_abstention
from pacbound.procedures import abstention
from pacbound.procedures.abstention import Runs, Walk, least_rows, walks_of
from pacbound.stats.binomial import binomial_upper, binomial_upper_within

Integers = NDArray[np.int64]
Ranges = tuple[tuple[int, int], ...]
TOP = 65_536


def literal_claims(
    cells: Integers,
    wrong: Integers,
    right: Integers,
    walks: tuple[Walk, ...],
    xi: float,
    first: int = TOP,
) -> set[int]:
    """The cells whose threshold some walk passes: each goes down from the first threshold that
    answers its count."""
    dense = np.zeros((2, first + 1), dtype=np.int64)
    np.add.at(dense[0], np.minimum(cells, first), wrong + right)
    np.add.at(dense[1], np.minimum(cells, first), wrong)
    answered, errors = np.cumsum(dense[:, ::-1], axis=1)[:, ::-1]
    pairs, where = np.unique(np.stack([errors, answered]), axis=1, return_inverse=True)
    passed: set[int] = set()
    for walk in walks:
        passes = (binomial_upper(*pairs, delta=walk.level) <= xi)[where.ravel()]
        start = int(np.sum(answered >= walk.count))
        failed = np.flatnonzero(~passes[:start])
        passed.update(range(int(failed[-1]) + 1 if failed.size else 0, start))
    return passed


def spread(claimed: Ranges) -> set[int]:
    return {cell for low, high in claimed for cell in range(low, high + 1)}


def random_rows(rng: np.random.Generator) -> tuple[Integers, Integers, Integers]:
    """Occupied cells at or near the top, with risks that jump."""
    cells = TOP - np.unique(rng.integers(0, 300, size=rng.integers(1, 60)))[::-1]
    rows = rng.integers(1, 40, size=cells.size)
    wrong = rng.binomial(rows, rng.choice([0.0, 0.02, 0.3, 0.7], size=cells.size))
    return cells, wrong, rows - wrong


def test_what_is_claimed_is_what_the_walks_pass() -> None:
    rng = np.random.default_rng(1)
    some = more = 0
    for _ in range(25):
        cells, wrong, right = random_rows(rng)
        n, xi = int((wrong + right).sum()), float(rng.choice([0.05, 0.3]))
        literal = literal_claims(cells, wrong, right, walks_of(n, xi=xi, delta=0.2), xi)
        claimed = abstention.claimed(cells, wrong, right, xi=xi, delta=0.2)
        assert spread(claimed) == literal
        some += bool(claimed)
        more += len(claimed) > 1
    assert some > 5
    assert more > 0


def test_a_declared_start_has_one_walk_down_from_it_with_the_whole_of_delta() -> None:
    rng = np.random.default_rng(2)
    some = 0
    for _ in range(25):
        cells, wrong, right = random_rows(rng)
        declared = int(rng.integers(TOP - 300, TOP + 1))
        walk = Walk(least_rows(xi=0.2, delta=0.3) or 0, 0.3)
        literal = literal_claims(cells, wrong, right, (walk,), 0.2, declared)
        claimed = abstention.claimed(cells, wrong, right, xi=0.2, delta=0.3, declared=declared)
        assert spread(claimed) == literal
        some += bool(claimed)
    assert some > 4


@pytest.mark.parametrize(("xi", "delta"), [(0.05, 0.1), (0.01, 1e-3), (0.3, 0.5), (0.2, 0.01)])
@pytest.mark.parametrize("n", [10, 59, 200, 500, 2000, 100_000])
def test_the_first_walk_starts_where_a_quarter_or_four_times_the_least_are_answered(
    n: int, xi: float, delta: float
) -> None:
    walks = walks_of(n, xi=xi, delta=delta)
    least = least_rows(xi=xi, delta=walks[0].level) or 0
    count, level = walks[0].count, walks[0].level
    allowed = int(np.flatnonzero(bdtr(np.arange(count), count, xi) <= level)[-1])
    most = max(least, min(n / 4, 4 * np.log(level) / np.log1p(-xi)))
    assert least <= count <= most
    assert bdtr(allowed, count - 1, xi) > level, "one row fewer would do"
    more = int(most)
    assert count == least or bdtr(allowed + 1, more, xi) > level, "more errors would fit"
    if len(walks) == 1:
        assert level == delta
        assert 2 * walks_of(10**9, xi=xi, delta=delta)[0].count > n or n < 4 * least
    else:
        assert [walk.count for walk in walks[1:]] == [count * 2**s for s in range(1, len(walks))]
        assert walks[-1].count <= n < 2 * walks[-1].count
        assert level == pytest.approx(0.8 * delta, rel=1e-15)


@pytest.mark.parametrize("delta", [0.5, 0.1, 1 / 3, 1e-9, 5e-324])
def test_walks_spend_no_more_than_delta(delta: float) -> None:
    for n in (1, 100, 5_000, 2**53):
        levels = [Fraction(walk.level) for walk in walks_of(n, xi=0.01, delta=delta)]
        assert 0 < len(levels) < 60
        assert sum(levels) <= Fraction(delta)


def test_a_heavy_top_is_where_the_walk_starts() -> None:
    cells, none, right = np.array([50_000]), np.array([0]), np.array([5000])
    assert abstention.claimed(cells, none, right, xi=0.05, delta=0.01) == ((0, 50_000),)


def test_saturated_scores_do_not_waste_the_start() -> None:
    cells, right = np.array([65_535, 65_536]), np.array([5000, 1])
    claimed = abstention.claimed(cells, np.array([0, 1]), right, xi=0.05, delta=0.01)
    assert claimed == ((0, 65_535),)


def test_rows_that_share_one_score_are_certified_as_by_a_single_test() -> None:
    certificate = certify_abstention(np.full(500, 0.9), np.arange(500) >= 3, xi=0.05, delta=0.1)
    assert certificate.certified
    assert certificate.coverage == 1.0


# ---- refusals


@pytest.mark.parametrize(("xi", "delta"), [(0.05, 0.05), (0.02, 1e-3), (0.3, 0.5)])
@pytest.mark.parametrize("declared", [None, TOP, 7])
def test_fewer_rows_than_a_refusal_asks_for_are_refused_however_right(
    xi: float, delta: float, declared: int | None
) -> None:
    def claimed(rows: int) -> Ranges:
        counts = np.array([TOP]), np.array([0]), np.array([rows])
        return abstention.claimed(*counts, xi=xi, delta=delta, declared=declared)

    counts = np.array([TOP]), np.array([0]), np.array([1])
    refusal = abstention.refusal(*counts, xi=xi, delta=delta, declared=declared)
    assert refusal.code == "too-few"
    assert refusal.needed == least_rows(xi=xi, delta=delta)
    assert refusal.needed is not None
    assert not claimed(refusal.needed - 1)
    assert claimed(refusal.needed)


def test_the_rows_that_a_refusal_asks_for_certify_if_they_are_of_the_same_kind() -> None:
    cells = np.arange(60_000, 60_100)
    wrong = np.where(np.arange(100) % 10 == 0, 1, 0)
    right = np.full(100, 9)
    refusal = abstention.refusal(cells, wrong, right, xi=0.02, delta=1e-3)
    assert refusal.code == "no-pass"
    assert refusal.needed is not None
    runs = Runs.of(cells, wrong, right, None).scaled(refusal.needed)
    added = np.diff(runs.answered, prepend=0)[::-1]
    errors = np.diff(runs.errors, prepend=0)[::-1]
    assert abstention.claimed(cells, errors, added - errors, xi=0.02, delta=1e-3)


def test_a_refusal_knows_how_many_answers_are_wrong_without_abstaining() -> None:
    cells, right = np.arange(100, 200), np.full(100, 6)
    refusal = abstention.refusal(cells, np.full(100, 4), right, xi=0.2, delta=0.01)
    assert (refusal.code, refusal.errors, refusal.rows) == ("no-pass", 400, 1000)
    assert refusal.needed is None


def test_no_number_of_rows_certifies_that_no_answer_is_ever_wrong() -> None:
    counts = np.array([5]), np.array([0]), np.array([10**6])
    assert not abstention.claimed(*counts, xi=0.0, delta=0.1)
    refusal = abstention.refusal(*counts, xi=0.0, delta=0.1)
    assert (refusal.code, refusal.needed) == ("zero", None)


@pytest.mark.parametrize("xi", [1e-17, 1e-300, 5e-324])
@pytest.mark.parametrize("delta", [0.5, 5e-324])
def test_more_rows_than_can_be_counted_are_not_asked_for(xi: float, delta: float) -> None:
    counts = np.array([TOP]), np.array([0]), np.array([10**6])
    assert not abstention.claimed(*counts, xi=xi, delta=delta)
    assert abstention.refusal(*counts, xi=xi, delta=delta).needed is None


def test_counts_of_any_size_are_decided() -> None:
    cells = np.array([10, 20, 65_536])
    huge = np.array([2**50, 2**51, 2**52])
    assert abstention.claimed(cells, huge // 1000, huge, xi=0.01, delta=1e-9) == ((0, TOP),)


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

"""From counts to a threshold, against searches that try every one of the 65,537 thresholds, bounds
in exact arithmetic, and intervals from SciPy."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import inf
from operator import ge

import numpy as np
import pytest
from numpy.typing import NDArray

from pacbound import planned_looks
from pacbound.procedures.threshold import (
    LOST,
    TOP,
    Decision,
    NoThreshold,
    Search,
    Side,
    allowed_events,
    decide,
    decide_at_look,
)
from pacbound.stats.binomial import binomial_upper
from pacbound.stats.planning import largest_passing

Integers = NDArray[np.int64]


def literal_allowed(n: int, rate: float, delta: float) -> int:
    """The largest k that is improbable, at most delta, if the true rate were `rate`: in exact
    arithmetic."""
    hit, whole = Fraction(rate).as_integer_ratio()
    budget = Fraction(delta) * whole**n
    term = chance = (whole - hit) ** n
    for k in range(n):
        if chance > budget:
            return k - 1
        term = term * (n - k) * hit // ((k + 1) * (whole - hit))
        chance += term
    return n - 1


def literal_threshold(search: Search, allowed: int) -> float:
    """The farthest from the refusal of all thresholds j / 2^16, and of +inf where trials are events
    below it, with at most `allowed` events; the refusal's own if there is none."""
    dense = np.zeros(TOP + 2, dtype=np.int64)
    np.add.at(dense, search.cells + 1, search.events)
    below = search.lost + np.cumsum(dense)  # at j: the cells up to j - 1, all scores below j / 2^16
    if search.side == "below":
        if below[-1] <= allowed:
            return inf
        good = [j for j in range(TOP + 1) if below[j] <= allowed]
        return max(good) / TOP if good else -inf
    from_on = below[-1] - below[:-1] + search.lost
    good = [j for j in range(TOP + 1) if from_on[j] <= allowed]
    return min(good) / TOP if good else inf


def random_search(rng: np.random.Generator, side: Side, *, every_row: bool) -> Search:
    lowest = LOST if side == "below" else 0
    some = rng.integers(lowest, TOP + 1, size=rng.integers(1, 60))
    cells = np.unique(np.concatenate([some, rng.choice([lowest, 0, 1, TOP - 1, TOP], 2)]))
    events = rng.integers(0, 4, size=cells.size)
    lost = int(rng.choice([0, 3])) if side == "from" else 0
    more = int(rng.integers(1, 400)) if every_row else 0
    if not every_row:
        events[rng.integers(cells.size)] += int(rng.integers(1, 400))
    return Search(cells, events, lost + int(events.sum()) + more, side, lost)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "every_row", "ends"),
    [
        ("below", True, {"finite", "inf", "-inf"}),
        ("below", False, {"finite", "-inf"}),
        ("from", False, {"finite", "inf"}),
    ],
)
def test_the_threshold_is_the_farthest_of_the_whole_grid_that_keeps_the_budget(
    side: Side, every_row: bool, ends: set[str]
) -> None:
    rng = np.random.default_rng(3)
    found = set()
    for _ in range(60):
        search = random_search(rng, side, every_row=every_row)
        rate, delta = float(rng.choice([0.02, 0.1, 0.3])), 0.05
        decision = decide(search, rate=rate, delta=delta)
        allowed = literal_allowed(search.trials, rate, delta)
        assert decision.allowed == allowed
        assert decision.threshold == literal_threshold(search, allowed)
        refused = decision.threshold == (-inf if side == "below" else inf)
        assert (decision.refusal is not None) == refused
        if not refused:
            assert search.events_at(decision.threshold) <= allowed
        found.add("finite" if np.isfinite(decision.threshold) else str(decision.threshold))
    assert found == ends


def test_trials_in_the_cell_of_the_threshold_are_caught_and_alarms_there_are_raised() -> None:
    cells, allowed = np.array([100, 200, 300]), literal_allowed(200, 0.1, 0.05)

    def threshold(events: list[int], side: Side) -> float:
        return decide(Search(cells, np.array(events), 200, side), rate=0.1, delta=0.05).threshold

    assert threshold([allowed, 5, 5], "below") == 200 / TOP
    assert threshold([allowed + 1, 5, 5], "below") == 100 / TOP
    assert threshold([5, 5, allowed], "from") == 201 / TOP
    assert threshold([5, 5, allowed + 1], "from") == 301 / TOP


def test_the_ends_of_the_grid() -> None:
    def decided(cell: int, side: Side) -> Decision:
        return decide(Search(np.array([cell]), np.array([150]), 200, side), rate=0.1, delta=0.05)

    assert decided(TOP, "below").threshold == 1.0
    assert decided(0, "below") == Decision(0.0, literal_allowed(200, 0.1, 0.05), None)
    assert decided(0, "from").threshold == 1 / TOP
    assert decided(TOP, "from").threshold == inf
    few = Search(np.array([0, TOP]), np.array([1, 1]), 200, "from")
    assert decide(few, rate=0.1, delta=0.05).threshold == 0.0


def test_lost_rollouts_are_events_at_every_threshold() -> None:
    allowed = literal_allowed(200, 0.1, 0.05)
    for missed, others, threshold in ((0, 1, 1.0), (0, 0, inf), (1, 0, -inf)):
        search = Search(np.array([LOST, TOP]), np.array([allowed + missed, others]), 200, "below")
        assert decide(search, rate=0.1, delta=0.05).threshold == threshold
        assert search.unavoidable == search.events_at(-inf) == allowed + missed
    for lost, threshold in ((allowed, 11 / TOP), (allowed + 1, inf)):
        search = Search(np.array([10]), np.array([200 - lost]), 200, "from", lost)
        assert decide(search, rate=0.1, delta=0.05).threshold == threshold
        assert search.unavoidable == search.events_at(inf) == lost


@pytest.mark.parametrize("n", [1, 7, 59, 300, 1000])
@pytest.mark.parametrize("rate", [0.0, 0.02, 0.05, 0.5, 0.97])
@pytest.mark.parametrize("delta", [0.3, 0.05, 0.01, 1e-6])
def test_allowed_events_are_the_largest_count_that_is_improbable_at_the_rate(
    n: int, rate: float, delta: float
) -> None:
    allowed = allowed_events(n, rate=rate, delta=delta)
    assert allowed == (literal_allowed(n, rate, delta) if rate > 0 else -1)
    assert allowed < 0 or binomial_upper(allowed, n, delta=delta) <= rate
    assert binomial_upper(allowed + 1, n, delta=delta) > rate


def test_two_thousand_rollouts_may_miss_twenty_five_for_two_per_cent() -> None:
    assert allowed_events(2000, rate=0.02, delta=0.01) == 25
    assert allowed_events(59, rate=0.05, delta=0.05) == 0
    assert allowed_events(58, rate=0.05, delta=0.05) == -1


@pytest.mark.parametrize("delta", [0.0, 5e-324, 1e-300])
def test_a_level_that_is_nearly_or_quite_zero_allows_nothing(delta: float) -> None:
    search = Search(np.array([7]), np.array([3]), 398, "below")
    assert decide(search, rate=0.2, delta=delta, passes=lambda *_: False).allowed == -1


def test_the_largest_count_that_passes_is_found() -> None:
    for most in (0, 1, 9):
        for end in range(-1, most + 1):
            for near in (None, *range(-2, most + 3)):
                assert largest_passing(partial(ge, end), most, near) == end


# ---- refusals


def lost(events: int, n: int, *, rate: float, delta: float) -> Decision:
    search = Search(np.array([LOST]), np.array([events]), n, "below")
    return decide(search, rate=rate, delta=delta, unavoidable_first=True)


def refusal_of(decision: Decision) -> NoThreshold:
    assert decision.refusal is not None
    return decision.refusal


@pytest.mark.parametrize(
    ("rate", "delta"), [(0.05, 0.05), (0.02, 1e-3), (0.5, 0.4), (1e-4, 0.01), (0.999, 1e-9)]
)
def test_the_trials_that_a_refusal_asks_for_pass_without_an_event_and_one_fewer_do_not(
    rate: float, delta: float
) -> None:
    refusal = refusal_of(lost(0, 1, rate=rate, delta=delta))
    assert refusal.code == "too-few"
    assert refusal.needed is not None
    assert lost(0, refusal.needed, rate=rate, delta=delta).threshold == inf
    assert lost(0, refusal.needed - 1, rate=rate, delta=delta).threshold == -inf
    none = decide(Search(np.array([]), np.array([]), 0, "from"), rate=rate, delta=delta)
    assert (none.threshold, none.allowed) == (inf, -1)
    assert none.refusal == NoThreshold("none", 0, refusal.needed)


@pytest.mark.parametrize("events", [0, 3])
def test_too_few_trials_are_refused_whether_or_not_some_were_events(events: int) -> None:
    search = Search(np.array([500]), np.array([events]), 50, "below")
    assert decide(search, rate=0.05, delta=0.05) == Decision(
        -inf, -1, NoThreshold("too-few", 0, 59)
    )


@pytest.mark.parametrize(
    ("events", "n", "rate"), [(4, 250, 0.02), (15, 1000, 0.02), (4, 100, 0.05), (40, 100, 0.5)]
)
def test_the_trials_that_a_refusal_asks_for_pass_at_the_same_rate_of_lost_starts(
    events: int, n: int, rate: float
) -> None:
    refusal = refusal_of(lost(events, n, rate=rate, delta=0.01))
    assert (refusal.code, refusal.unavoidable) == ("unavoidable", events)
    assert refusal.needed is not None
    assert refusal.needed > n
    again = lost(-(-events * refusal.needed // n), refusal.needed, rate=rate, delta=0.01)
    assert again.refusal is None


def test_unavoidable_events_that_alone_break_the_rate_are_refused_for_good() -> None:
    # 0.07 * 100 is above 7 in floating point, yet no number of rollouts tells the rate 0.07 from a
    # rate of 0.07.
    for events, n, rate in (
        (50, 1000, 0.02),
        (20, 1000, 0.02),
        (1000, 1000, 0.999),
        (30, 100, 0.07),
        (7, 100, 0.07),
    ):
        assert refusal_of(lost(events, n, rate=rate, delta=0.01)) == NoThreshold(
            "hopeless", events, None
        )


def test_too_few_trials_are_named_first_unless_lost_ones_are_to_be() -> None:
    search = Search(np.array([LOST]), np.array([1]), 20, "below")
    few = refusal_of(decide(search, rate=0.1, delta=0.05))
    stuck = refusal_of(decide(search, rate=0.1, delta=0.05, unavoidable_first=True))
    assert (few.code, few.needed) == ("too-few", 29)
    assert stuck.code == "unavoidable"
    assert stuck.needed is not None
    assert stuck.needed > 29


@pytest.mark.parametrize("events", [0, 5])
def test_no_number_of_trials_certifies_that_nothing_is_ever_an_event(events: int) -> None:
    search = Search(np.array([100]), np.array([events]), 10**6, "below")
    assert decide(search, rate=0.0, delta=0.05) == Decision(-inf, -1, NoThreshold("zero", 0, None))


@pytest.mark.parametrize("rate", [1e-17, 1e-300, 5e-324])
def test_more_trials_than_can_be_counted_are_not_asked_for(rate: float) -> None:
    assert refusal_of(lost(0, 100, rate=rate, delta=0.01)).needed is None


# ---- looks


def test_a_look_allows_what_its_plan_does_and_names_the_next_that_can_pass() -> None:
    plan = planned_looks(0.05, delta=0.01, looks=[50, 70, 100, 400])
    early = decide_at_look(Search(np.array([9]), np.array([0]), 50, "below"), plan)
    assert early == Decision(
        -inf, -1, NoThreshold("too-few", 0, min(n for n in plan.looks if plan.allowed(n) >= 0))
    )
    most = plan.allowed(400)
    for lost_ones, found in ((most, 1.0), (most + 1, -inf)):
        search = Search(np.array([LOST, TOP]), np.array([lost_ones, 9]), 400, "below")
        decision = decide_at_look(search, plan)
        assert (decision.threshold, decision.allowed) == (found, most)
    assert decision.refusal == NoThreshold("hopeless", most + 1, None)

"""The plan of a batch, and what the sampled disagreements leave."""

import numpy as np
import pytest

from pacbound.procedures.batch import (
    BatchPlan,
    kept,
    plan,
    stop,
    tolerated_answers,
    worth_another_look,
)
from pacbound.stats.hypergeometric import chance_that_a_look_errs


@pytest.mark.parametrize(
    ("records", "xi", "expected"),
    [(100, 0.29, 29), (100, 0.57, 57), (10, 0.1, 1), (9, 0.1, 0), (1, 0.999, 0), (3, 0.0, 0)],
)
def test_what_may_differ_is_the_decimal_that_was_written_rounded_down(
    records: int, xi: float, expected: int
) -> None:
    assert tolerated_answers(records, xi) == expected
    assert tolerated_answers(records, np.float64(xi)) == expected


def test_nothing_is_sampled_where_no_sample_could_keep_more() -> None:
    assert plan(19, 19, xi=0.05, delta=0.1) == BatchPlan(19, 19, 0, (), ())
    assert plan(20, 5, xi=0.25, delta=0.1) == BatchPlan(20, 5, 5, (), ())
    assert plan(20, 20, xi=0.05, delta=0.001) == BatchPlan(20, 20, 1, (), ())
    assert plan(19, 19, xi=0.05, delta=0.1).asks_all
    assert not plan(20, 5, xi=0.25, delta=0.1).asks_all


def test_the_plan_is_the_rule_or_what_was_asked_for() -> None:
    assert plan(1000, 1000, xi=0.05, delta=0.1) == BatchPlan(1000, 1000, 50, (118,), (3,))
    assert plan(1000, 1000, xi=0.05, delta=0.1, drawn=10).drawn == (10,)
    assert plan(1000, 1000, xi=0.05, delta=0.1, drawn=10).allowed == (-1,)


def test_records_without_a_score_leave_the_population_and_not_the_tolerance() -> None:
    assert plan(1000, 600, xi=0.05, delta=0.1).tolerated == 50
    assert plan(1000, 600, xi=0.05, delta=0.1).drawn[0] < 118


@pytest.mark.parametrize("records", [2, 3, 10, 200, 5_000])
def test_two_looks_keep_delta_together(records: int) -> None:
    found = plan(records, records, xi=0.5, delta=0.2, looks=2)
    chance = chance_that_a_look_errs(
        population=records, tolerated=found.tolerated, looks=found.drawn, counts=found.allowed
    )
    assert chance <= 0.2
    assert max(found.drawn, default=0) <= records


def test_the_record_after_the_allowed_disagreements_stops() -> None:
    ranks = np.array([4, 9, 30])
    assert [stop(ranks, allowed, 50) for allowed in (-1, 0, 1, 2, 3)] == [0, 4, 9, 30, 50]
    assert stop(np.array([], dtype=np.int64), 0, 50) == 50


def test_as_many_as_may_differ_are_always_kept() -> None:
    assert kept(0, 0, scored=50, sampled=10, tolerated=3) == 3
    assert kept(20, 4, scored=50, sampled=10, tolerated=3) == 16
    assert kept(0, 0, scored=12, sampled=10, tolerated=3) == 2


def test_a_second_look_is_taken_where_it_promises_more() -> None:
    dense = np.arange(0, 1000, 25)
    assert not worth_another_look(dense, (100, 300), (3, 10), 1000)
    clustered = np.array([10, 11, 12, 13, 900, 950])
    assert worth_another_look(clustered, (100, 300), (3, 13), 1000)

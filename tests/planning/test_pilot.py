"""Plans from a pilot: estimates that are near the truth, and say that they are estimates."""

from typing import Any

import numpy as np
import pytest
from tests.kinds import KINDS as TRIED
from tests.products import standing_for
from tests.tally.question_names import question_of

from pacbound import (
    Tally,
    plan_from_pilot,
)
from pacbound.claims.cascade.claim import EXACT_WORK
from pacbound.errors import InvalidValueError
from pacbound.planning import PilotPlan
from pacbound.planning.pilot import measures_of
from pacbound.stats.paired import paired_test_work
from pacbound.tally.questions import QUESTIONS

KINDS = {
    pilot.asked.get("claim", name): pilot for name, kind in TRIED.items() if (pilot := kind.pilot)
}


def _counted(rows: dict[str, Any]) -> Tally:
    """The tally of rows; those of two models are counted for a cascade."""
    return Tally.count(**{"question": question_of(rows), **rows})


def pilot_of(kind: str, rows: int = 1000, seed: int = 0) -> Tally:
    return _counted(KINDS[kind].rows(rows, np.random.default_rng(seed)))


def plan_of(kind: str, seed: int = 0, **options: Any) -> PilotPlan:
    given = {**KINDS[kind].asked, "delta": 0.05, "sizes": [300, 1500], "draws": 20, **options}
    return plan_from_pilot(pilot_of(kind, seed=seed), **given)


def test_every_question_that_has_a_measure_is_tested() -> None:
    # What a claim of sets is worth depends on the sizes of sets, which no tally holds; a rate is
    # planned by `plan rate`; which turns belong to one rollout no tally of forks holds.
    planned = {name for kind in QUESTIONS for name in measures_of(kind)}
    assert set(KINDS) == planned == {*QUESTIONS, *planned} - {"sets", "pass-rate", "forks"}


@pytest.mark.parametrize("kind", standing_for(KINDS, ["cascade", "recall"], rest="long"))
def test_a_plan_is_near_what_samples_of_that_size_give(kind: str) -> None:
    """The pilot is one of many, so its plan is compared with the truth on average over ten."""
    pilot = KINDS[kind]
    rng = np.random.default_rng(1)
    true = np.mean([pilot.value(_counted(pilot.rows(1500, rng))) for _ in range(40)])
    planned = [plan_of(kind, seed=seed, sizes=[1500], draws=10) for seed in range(10)]
    assert np.mean([plan.points[0].value for plan in planned]) == pytest.approx(
        true, abs=pilot.near
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_more_rows_give_more(kind: str) -> None:
    plan = plan_of(kind, sizes=[300, 1200, 4800])
    values = [point.value for point in plan.points]
    assert values == sorted(values, reverse=not plan.larger)
    assert all(point.low <= point.value <= point.high for point in plan.points)


def test_labels_of_a_cascade_are_the_rows_on_which_models_differ() -> None:
    rows = KINDS["cascade"].rows(1000, np.random.default_rng(0))
    differ = float((rows["prediction"][:, 0] != rows["prediction"][:, 1]).mean())
    plan = plan_of("cascade", label_cost=0.5, draws=50)
    for point in plan.points:
        assert point.labels / point.rows == pytest.approx(differ, rel=0.1)
        assert point.cost == point.labels * 0.5


def test_a_plan_for_answers_that_differ_takes_no_labels() -> None:
    assert [point.labels for point in plan_of("differ").points] == [0, 0]
    with pytest.raises(InvalidValueError, match=r"have a label.*count it without labels"):
        plan_from_pilot(pilot_of("cascade"), xi=0.1, delta=0.05, claim="differ")
    with pytest.raises(InvalidValueError, match="claim='differ' is not what a pilot of a recall"):
        plan_from_pilot(pilot_of("recall"), xi=0.1, delta=0.05, claim="differ")


def test_needed_is_the_smallest_size_found_that_reaches_the_goal() -> None:
    plan = plan_of("calibration", goal=0.1, sizes=[100, 10_000], draws=30)
    assert plan.needed is not None
    assert 100 < plan.needed.rows < 10_000
    assert plan.needed.reached >= 0.9
    again = plan_of("calibration", goal=0.1, sizes=[plan.needed.rows // 2], draws=30)
    assert again.needed is None
    assert again.points[0].reached < 0.9


def test_a_goal_out_of_reach_is_said_to_be_so() -> None:
    plan = plan_of("cascade", goal=0.999)
    assert plan.needed is None
    assert "No size up to 1,500 rows is enough" in plan.summary()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cascade", "recall", "shield"])
def test_the_usual_sizes_begin_where_certifying_does(kind: str) -> None:
    (rate,) = KINDS[kind].asked.values()
    least = measures_of(kind)[kind].least(pilot_of(kind), rate, 0.05)
    points = plan_of(kind, sizes=None, draws=10).points
    assert least <= points[0].rows <= least * 1.1 + 1
    assert points[0].certified > 0.0
    assert points[-1].rows >= 20_000
    assert plan_of(kind, sizes=[least // 2], draws=10).points[0].certified == 0.0


def test_large_samples_of_a_cascade_are_judged_by_the_pair_and_marked() -> None:
    plan = plan_of("cascade", sizes=[500, 100_000, 10**6], draws=10)
    assert [point.coarse for point in plan.points] == [False, True, False]
    # From 200,000 rows on the exact test is itself the pair, and nothing stands in for it.
    assert paired_test_work(500, xi=0.05, delta=0.05) < EXACT_WORK
    assert "100,000*" in plan.summary()
    assert "* judged by a quicker" in plan.summary()


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_says_that_it_is_an_estimate_and_leaves_the_pilot_out(kind: str) -> None:
    words = plan_of(kind).summary()
    assert "nothing here is guaranteed" in words
    assert "leave those of the pilot out" in words


def test_the_same_pilot_gives_the_same_plan_and_another_seed_another() -> None:
    first, second = plan_of("shield"), plan_of("shield")
    assert first == second
    assert plan_of("shield", rng=np.random.default_rng(0)) == first
    assert plan_of("shield", rng=np.random.default_rng(1)) != first


def test_groups_are_drawn_together() -> None:
    rows = KINDS["calibration"].rows(400, np.random.default_rng(0))
    pilot = Tally.count("calibration", **rows, groups=np.where(np.arange(400) % 4, "a", "b"))
    plan = plan_from_pilot(pilot, delta=0.05, sizes=[400], draws=10)
    single = plan_from_pilot(Tally.count("calibration", **rows), delta=0.05, sizes=[400], draws=10)
    assert plan.points[0].value > single.points[0].value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"xi": None}, "xi is missing"),
        ({"xi": 0.0}, "xi"),
        ({"xi": 1.0}, "xi"),
        ({"delta": 0.0}, "delta"),
        ({"goal": 0.0}, "goal=0.0 is not a goal for the intervention rate"),
        ({"goal": 1.5}, "goal"),
        ({"power": 1.0}, "power"),
        ({"draws": 9}, "draws"),
        ({"sizes": []}, "sizes"),
        ({"sizes": [0]}, "sizes"),
        ({"sizes": [10**10]}, "sizes"),
        ({"label_cost": -1.0}, r"expected 0 or more\.$"),
        ({"xi": 1e-12, "sizes": None}, "Allow a larger xi"),
    ],
)
def test_numbers_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        plan_of("shield", **options)


@pytest.mark.parametrize(
    ("columns", "xi", "message"),
    [
        ({"score": [], "unsafe": []}, 0.1, "no rows"),
        ({"score": [0.1] * 9, "unsafe": [False] * 9}, 0.1, "every row of it is 'safe'"),
        ({"confidence": [0.9] * 9, "correct": [True] * 9}, None, "every row of it is 'right'"),
        (
            {"confidence": [0.9] * 9, "prediction": [[1, 1]] * 9, "label": [1] * 9},
            0.1,
            "its models never differ",
        ),
        (
            {
                "confidence": [0.9, 0.8],
                "correct": [True, False],
                "groups": {"a": [True, True], "b": [True, False]},
            },
            None,
            "groups overlap",
        ),
    ],
)
def test_a_pilot_that_says_nothing_is_refused(
    columns: dict[str, Any], xi: float | None, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        plan_from_pilot(_counted(columns), xi=xi, delta=0.05)


def test_a_pilot_of_two_rows_is_enough_to_be_planned_from() -> None:
    pilot = Tally.count("shield", score=[0.1, 0.9], unsafe=[False, True])
    plan = plan_from_pilot(pilot, xi=0.1, delta=0.05, sizes=[50], draws=10)
    assert plan.pilot_rows == 2


def test_saturated_scores_that_lose_are_never_certified() -> None:
    pilot = Tally.count(
        "cascade",
        confidence=[1.0] * 100,
        prediction=[[0, 1]] * 50 + [[1, 1]] * 50,
        label=[1] * 100,
    )
    plan = plan_from_pilot(pilot, xi=0.1, delta=0.05, sizes=[1000], draws=10)
    assert plan.points[0].certified == 0.0
    assert plan.points[0].value == 0.0
    assert plan.points[0].thresholds == (np.inf,)
    assert "inf" in plan.summary()

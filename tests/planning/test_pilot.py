"""Plans from a pilot: estimates that are near the truth, and say that they are estimates."""

import json
from typing import Any

import numpy as np
import pytest
from tests.kinds import KINDS as TRIED
from tests.kinds.graded import graded_rows
from tests.products import standing_for
from tests.tally.question_names import question_of

from pacbound import (
    Tally,
    certify_abstention,
    plan_from_pilot,
)
from pacbound.claims.cascade.claim import EXACT_WORK
from pacbound.errors import InvalidTypeError, InvalidValueError
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


@pytest.mark.parametrize("kind", standing_for(KINDS, ["cascade", "recall"], rest="slow"))
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


def test_labels_of_a_replacement_are_the_rows_on_which_models_differ() -> None:
    pilot = pilot_of("replacement")
    differ = 1 - pilot.totals["equal"] / pilot.rows
    for point in plan_of("replacement", draws=50).points:
        assert point.labels / point.rows == pytest.approx(differ, rel=0.1)


def test_labels_of_three_models_are_the_rows_on_which_any_differs() -> None:
    rng = np.random.default_rng(6)
    label = rng.integers(0, 10, size=500)
    right = rng.random((500, 3)) < [0.8, 0.9, 0.95]
    predictions = np.where(right, label[:, None], (label[:, None] + 1 + np.arange(3)) % 10)
    confidences = np.sort(rng.beta(5, 1, size=(500, 2)), axis=1)
    pilot = Tally.count("cascade", confidence=confidences, prediction=predictions, label=label)
    differ = (predictions[:, :2] != predictions[:, 2:]).any(axis=1).mean()
    plan = plan_from_pilot(pilot, xi=0.1, delta=0.05, sizes=[400], draws=20)
    assert plan.points[0].labels == pytest.approx(400 * differ, rel=0.1)
    assert len(plan.points[0].thresholds) == 2


def test_a_plan_for_answers_that_differ_takes_no_labels() -> None:
    assert [point.labels for point in plan_of("differ").points] == [0, 0]
    with pytest.raises(InvalidValueError, match=r"have a label.*count it without labels"):
        plan_from_pilot(pilot_of("cascade"), xi=0.1, delta=0.05, claim="differ")
    with pytest.raises(InvalidValueError, match="claim='differ' is not what a pilot of a recall"):
        plan_from_pilot(pilot_of("recall"), xi=0.1, delta=0.05, claim="differ")


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"cascade", "differ", "replacement"}))
def test_every_row_needs_a_label_elsewhere(kind: str) -> None:
    assert [point.labels for point in plan_of(kind).points] == [300.0, 1500.0]


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


def test_a_size_below_the_fewest_is_not_certified() -> None:
    plan = plan_of("shield", sizes=[20])
    assert plan.points[0].certified == 0.0
    assert plan.points[0].value == 1.0
    assert plan.points[0].thresholds == (-np.inf,)
    assert plan.needed is None
    document = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert document["points"][0]["thresholds"] == ["-inf"]
    assert document["status"] == "estimate"


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


def test_a_calibration_without_a_goal_needs_nothing() -> None:
    plan = plan_of("calibration")
    assert plan.needed is None
    assert "Name a goal for the mean width" in plan.summary()


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


def test_a_smaller_pilot_leaves_a_wider_spread() -> None:
    widths = [
        plan_from_pilot(pilot_of("cascade", rows), xi=0.05, delta=0.05, sizes=[5000], draws=60)
        for rows in (100, 5000)
    ]
    small, large = (plan.points[0].high - plan.points[0].low for plan in widths)
    assert small > 2 * large


def test_groups_are_drawn_together() -> None:
    rows = KINDS["calibration"].rows(400, np.random.default_rng(0))
    pilot = Tally.count("calibration", **rows, groups=np.where(np.arange(400) % 4, "a", "b"))
    plan = plan_from_pilot(pilot, delta=0.05, sizes=[400], draws=10)
    single = plan_from_pilot(Tally.count("calibration", **rows), delta=0.05, sizes=[400], draws=10)
    assert plan.points[0].value > single.points[0].value


def test_progress_rises_to_one() -> None:
    seen: list[float] = []
    plan_of("shield", progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


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
    ("kind", "options", "message"),
    [
        ("calibration", {"xi": 0.1}, "xi=0.1 says nothing about a calibration"),
        ("calibration", {"target": 0.1}, "target=0.1 says nothing about a calibration"),
        ("recall", {"xi": 0.1}, "xi=0.1 says nothing about a recall"),
        ("abstention", {"target": 0.9}, "target=0.9 says nothing about an abstention"),
        ("recall", {"target": None}, "target is missing: a recall is planned for"),
        ("abstention", {"xi": None}, "xi is missing: an abstention is planned for"),
        ("recall", {"target": 1.0}, "target"),
        ("false-alarms", {"target": 0.9}, "target=0.9 says nothing about a claim about false al"),
        ("false-alarms", {"xi": None}, "xi is missing: a claim about false alarms is planned"),
        ("calibration", {"claim": "false-alarms"}, "is not what a pilot of a calibration can be"),
        ("recall", {"claim": "alarms"}, "claim='alarms' is not what a pilot"),
        ("recall", {"target": 1 - 1e-12, "sizes": None}, "Allow a smaller target"),
    ],
)
def test_each_question_has_its_own_rate(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        plan_of(kind, **options)


def test_rare_positives_take_more_rows() -> None:
    rng = np.random.default_rng(8)
    positive = np.arange(4000) < 8
    score = np.where(positive, rng.beta(6, 2, size=4000), rng.beta(1, 6, size=4000))
    rare = Tally.count("recall", score=score, positive=positive)
    plan = plan_from_pilot(rare, target=0.9, delta=0.05, draws=10)
    # 29 positives certify 0.9 if none is missed, and one row in 500 is positive.
    assert plan.points[0].rows >= 29 * 500
    assert plan.points[-1].certified == 1.0
    assert plan.needed is not None


def test_an_abstention_of_groups_is_planned_from() -> None:
    rng = np.random.default_rng(9)
    rows = KINDS["abstention"].rows(1000, rng)
    groups = rng.choice(["north", "south"], size=1000, p=[0.99, 0.01])
    pilot = Tally.count(**rows, groups=groups)
    plan = plan_from_pilot(pilot, xi=0.1, delta=0.05, sizes=[100, 1500], draws=10)
    assert plan.points[1].certified == 1.0
    assert plan.points[1].thresholds == ()
    assert "Plan for an abstention, xi = 0.1, delta = 0.05" in plan.summary()


def test_a_pilot_of_graded_answers_is_planned_from() -> None:
    pilot = Tally.count("abstention", **graded_rows(1000))
    plan = plan_from_pilot(pilot, xi=0.25, delta=0.05, sizes=[300, 1500], draws=20)
    direct = certify_abstention(xi=0.25, delta=0.05, **graded_rows(1500, seed=5)).coverage
    assert plan.points[1].value == pytest.approx(direct, abs=0.06)


@pytest.mark.parametrize("rng", [0, np.random.RandomState(0), "seed"])
def test_a_seed_is_no_generator(rng: object) -> None:
    with pytest.raises(InvalidTypeError, match="default_rng"):
        plan_of("shield", rng=rng)


def test_a_pilot_that_was_not_counted_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match="Count the pilot"):
        plan_from_pilot([0.1, 0.2], xi=0.1, delta=0.1)  # type: ignore[arg-type]


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


def test_a_pilot_whose_models_differ_without_a_label_is_refused() -> None:
    rows = KINDS["cascade"].rows(1000, np.random.default_rng(0))
    labels = rows["label"].astype(object)
    labels[np.flatnonzero(rows["prediction"][:, 0] != rows["prediction"][:, 1])[:3]] = None
    without = Tally.count("cascade", **{**rows, "label": labels})
    with pytest.raises(InvalidValueError, match="3 of its rows on which models differ"):
        plan_from_pilot(without, xi=0.05, delta=0.05)


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


def test_false_alarms_of_rollouts_are_planned_in_rollouts() -> None:
    plan = plan_from_pilot(
        pilot_of("shield"), xi=0.05, delta=0.05, claim="false-alarms", sizes=[500], draws=10
    )
    assert (plan.unit, plan.measure) == ("rollouts", "share found")
    assert plan.summary().startswith("Plan for a claim about false alarms, xi = 0.05")


def test_rare_negatives_take_more_rows() -> None:
    positive = np.arange(1000) >= 10
    rare = Tally.count("recall", score=np.where(positive, 0.9, 0.1), positive=positive)
    plan = plan_from_pilot(rare, xi=0.1, delta=0.05, claim="false-alarms", draws=10)
    # 29 negatives certify 0.1 if none raises an alarm, and one row in 100 is negative.
    assert plan.points[0].rows >= 29 * 100

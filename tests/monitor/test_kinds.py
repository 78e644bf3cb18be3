"""What rows bring for each kind of certificate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.kinds.abstention import watched as abstention
from tests.kinds.calibration import watched as calibration
from tests.kinds.cascade import watched as cascade
from tests.kinds.cascade_groups import watched as groups
from tests.kinds.false_alarms import watched as false_alarms
from tests.kinds.recall import watched as recall

from pacbound import (
    Monitor,
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_recall,
    certify_shield,
    load_certificate,
)
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.monitor.state import watch_of


def _same(rows: dict[str, Any], losses: list[int]) -> bool:
    one, other = (Monitor(cascade(), delta=1e-3) for _ in range(2))
    one.update(rows)
    other.update(losses)
    return one.to_dict()["wealth"] == other.to_dict()["wealth"] and one.seen == other.seen


def test_a_label_is_needed_only_where_the_answering_model_differs_from_the_slow_one() -> None:
    rows = {
        "confidence": [0.9, 0.0, 0.9],
        "prediction": [[1, 1], [0, 1], [0, 1]],
        "label": [None, None, 1],
    }
    assert _same(rows, [0, 0, 1])


def test_a_cascade_of_which_few_answers_differ_is_watched_without_labels() -> None:
    answers, scores = [[1, 1]] * 900 + [[0, 1]] * 100, [0.9] * 900 + [0.1] * 100
    certificate = certify_cascade(scores, answers, xi=0.02, delta=0.05, claim="differ")
    rows = {"confidence": [0.9] * 3, "prediction": [[0, 1], [1, 1], [2, 1]]}
    monitor = Monitor(certificate, delta=1e-3)
    monitor.update(rows)
    assert monitor.seen == {"gained": 0, "equal": 1, "lost": 2}
    alarm = monitor.update([1] * 100)
    assert alarm is not None
    assert "of the answers differ from the slow model's" in str(alarm)
    with pytest.raises(InvalidTypeError, match="has no 'label'"):
        monitor.update(rows | {"label": [1, 1, 1]})
    with pytest.raises(InvalidValueError, match="1 where the answer differs"):
        monitor.update([0, -1])
    with pytest.raises(InvalidValueError, match="gains=0"):
        monitor.update_counts(losses=1, gains=1, labels=10)


def test_with_three_models_the_first_that_is_sure_answers() -> None:
    n = 2000
    answers = np.ones((n, 3), dtype=int)
    answers[:400, 0] = 0
    confidence = np.full((n, 2), 0.95)
    confidence[:400, 0] = 0.05
    certificate = certify_cascade(confidence, answers, np.ones(n), xi=0.05, delta=0.05)
    assert certificate.certified
    first, second = certificate.thresholds
    monitor = Monitor(certificate, delta=1e-3)
    monitor.update(
        {
            "confidence": [[first, 0], [np.nextafter(first, 0), second], [0, 0], [1, 1]],
            "prediction": [[0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 0, 0]],
            "label": [1, 1, 1, 1],
        }
    )
    assert monitor.seen == {"gained": 1, "equal": 1, "lost": 2}


def test_labels_that_no_model_predicts_are_refused_once_there_are_enough_rows() -> None:
    monitor = Monitor(cascade(), delta=1e-3)
    rows = {
        "confidence": [0.9] * 50,
        "prediction": [["cat", "dog"]] * 50,
        "label": ["Dog"] * 50,
    }
    for _ in range(3):
        monitor.update(rows)
    before = monitor.to_dict()
    with pytest.raises(InvalidValueError, match="no class in common"):
        monitor.update(rows)
    assert monitor.to_dict() == before


def test_both_sides_of_a_bin_are_watched() -> None:
    certificate = calibration()
    for share in (0.0, 1.0):
        monitor = Monitor(certificate, delta=1e-3)
        right = np.full(100, share == 1.0)
        alarm = monitor.update({"confidence": np.full(100, 0.5), "correct": right})
        assert alarm is not None
        assert alarm.where == "bin (0.4, 0.6]"


def test_on_the_second_clock_bins_are_added_up_and_on_the_first_averaged(clock: str) -> None:
    certificate = calibration()
    found = []
    for confidence in ([0.1] * 6, [0.9] * 6, [0.1, 0.9] * 6):
        monitor = Monitor(certificate, delta=1e-3, false_alarms=clock)
        monitor.update({"confidence": confidence, "correct": [True] * len(confidence)})
        found.append(monitor.evidence)
    alone, other, both = found
    # What a bin without rows has: a share of 1 on the first clock, nothing on the second.
    assert both - alone - other == pytest.approx(-1 if clock == "ever" else 0, rel=1e-9, abs=1e-9)


def test_on_the_second_clock_a_label_of_any_bin_adds_about_one_and_never_more() -> None:
    certificate = calibration()
    for cell, score in enumerate((0.1, 0.3, 0.5, 0.7, 0.9)):
        evidence = []
        for right in (False, True):
            monitor = Monitor(certificate, delta=1e-3, false_alarms=1e6)
            monitor.update({"confidence": [score], "correct": [right]})
            evidence.append(monitor.evidence)
        for rate in (certificate.bins.lower[cell], certificate.bins.upper[cell]):
            assert 0.5 < (1 - rate) * evidence[0] + rate * evidence[1] <= 1


def test_each_group_has_bins_of_its_own() -> None:
    rng = np.random.default_rng(0)
    confidence, groups = rng.random(4000), rng.choice(["north", "south"], 4000)
    right = rng.random(4000) < np.where(groups == "north", confidence, confidence / 2)
    certificate = calibrate(confidence, right, groups=groups, delta=0.01, n_bins=4)
    monitor = Monitor(certificate, delta=1e-3)
    assert monitor.update({"confidence": confidence, "correct": right, "groups": groups}) is None
    swapped = np.where(groups == "north", "south", "north")
    alarm = monitor.update({"confidence": confidence, "correct": right, "groups": swapped})
    assert alarm is not None
    assert alarm.where is not None
    assert alarm.where.endswith(("of 'north'", "of 'south'"))
    with pytest.raises(InvalidValueError, match="'east' was not certified"):
        monitor.update({"confidence": [0.5], "correct": [True], "groups": ["east"]})


def test_rows_in_bins_without_rows_are_labels_that_bring_no_evidence(clock: str) -> None:
    certificate = calibrate([0.9] * 1000, [True] * 900 + [False] * 100, delta=0.01)
    monitor = Monitor(certificate, delta=1e-3, false_alarms=clock)
    before = monitor.evidence
    monitor.update({"confidence": [0.1] * 10, "correct": [False] * 10})
    monitor.update_counts(successes=[1] + [0] * 19, trials=[5] + [0] * 19)
    assert (monitor.labels, monitor.evidence) == (15, before)


def test_only_answers_are_labels_of_an_abstention() -> None:
    certificate = abstention()
    below = np.nextafter(certificate.threshold, 0)
    monitor = Monitor(certificate, delta=1e-3)
    assert monitor.update({"confidence": [below] * 5000, "correct": [False] * 5000}) is None
    assert (monitor.rows, monitor.labels, monitor.evidence) == (5000, 0, 1)
    monitor.update({"confidence": [certificate.threshold, 1.0], "correct": [True, False]})
    assert monitor.seen == {"right": 1, "wrong": 1}


def _grouped() -> Any:
    confidence = np.tile(np.linspace(0.5, 0.999, 1000), 3)
    groups = np.repeat(["north", "south", "west"], 1000)
    right = (confidence > 0.8) | (groups == "north")
    right[groups == "west"] = False
    return certify_abstention(confidence, right, xi=0.05, delta=0.05, groups=groups)


def test_each_group_is_answered_from_its_own_threshold() -> None:
    certificate = _grouped()
    assert certificate.thresholds["north"] < 0.6 < certificate.thresholds["south"] < 0.85
    assert certificate.thresholds["west"] == np.inf
    monitor = Monitor(certificate, delta=1e-3)
    rows = {"confidence": [0.6] * 3, "correct": [False] * 3, "groups": ["north", "south", "west"]}
    monitor.update(rows)
    assert (monitor.rows, monitor.seen) == (3, {"right": 0, "wrong": 1})
    alarm = monitor.update(
        {"confidence": [0.9] * 200, "correct": [False] * 200, "groups": ["south"] * 200}
    )
    assert alarm is not None
    assert alarm.where == "group 'south'"
    assert "of all answers of each group are wrong" in str(alarm)
    with pytest.raises(InvalidValueError, match="'east' was not certified"):
        monitor.update({"confidence": [0.5], "correct": [True], "groups": ["east"]})
    with pytest.raises(InvalidTypeError, match="per group: name groups"):
        monitor.update({"confidence": [0.5], "correct": [True]})


def test_right_answers_of_one_group_do_not_hide_wrong_ones_of_another() -> None:
    rng = np.random.default_rng(5)
    groups = rng.choice(["north", "south"], 4000, p=[0.95, 0.05])
    right = (groups == "north") | (rng.random(4000) < 0.5)
    monitor = Monitor(_grouped(), delta=1e-3)
    rows = {"confidence": np.full(4000, 0.95), "correct": right, "groups": groups}
    assert (~right).mean() < 0.05
    alarm = monitor.update(rows)
    assert alarm is not None
    assert alarm.where == "group 'south'"


def test_only_positives_are_labels_of_a_recall() -> None:
    certificate = recall()
    below = np.nextafter(certificate.threshold, 0)
    monitor = Monitor(certificate, delta=1e-3)
    assert monitor.update({"score": [below] * 5000, "positive": [False] * 5000}) is None
    assert (monitor.rows, monitor.labels, monitor.evidence) == (5000, 0, 1)
    monitor.update({"score": [certificate.threshold, below], "positive": [True, True]})
    assert monitor.seen == {"flagged": 1, "missed": 1}
    alarm = monitor.update({"score": [below] * 50, "positive": [True] * 50})
    assert alarm is not None
    assert "at least 90 % of the positives are flagged" in str(alarm)


@pytest.mark.parametrize("target", [0.9, 0.7, 0.3, 0.1, 1 / 3])
def test_a_miss_rate_of_exactly_one_less_the_target_does_not_grow_the_evidence(
    target: float,
) -> None:
    certificate = certify_recall([0.8] * 500, [True] * 500, target=target, delta=0.01)
    (bets,) = watch_of(certificate).bets
    kept, lost = (map(Fraction, bets.factors[outcome].tolist()) for outcome in (0, 1))
    for keeps, loses in zip(kept, lost, strict=True):
        assert Fraction(target) * keeps + (1 - Fraction(target)) * loses <= 1


def test_misses_among_the_unsafe_rollouts_are_not_monitored(tmp_path: Any) -> None:
    scores, unsafe = [0.9] * 200 + [0.1] * 800, [True] * 200 + [False] * 800
    certificate = certify_shield(scores, unsafe, xi=0.1, delta=0.01, rate="among-unsafe")
    assert certificate.certified
    with pytest.raises(
        InvalidValueError,
        match="a rollout that the shield stopped would have been unsafe is not seen",
    ):
        Monitor(certificate, delta=1e-3)
    certificate.save(tmp_path / "shield.json")
    with pytest.raises(InvalidValueError, match="is not monitored"):
        Monitor(load_certificate(tmp_path / "shield.json"), delta=1e-3)


def test_only_negatives_are_labels_of_a_claim_about_false_alarms() -> None:
    certificate = false_alarms()
    monitor = Monitor(certificate, delta=1e-3)
    below = np.nextafter(certificate.threshold, 0)
    scores = [certificate.threshold, below, 0.0, 1.0, 1.0]
    monitor.update({"score": scores, "positive": [False, False, True, True, False]})
    assert (monitor.rows, monitor.labels) == (5, 3)
    assert monitor.seen == {"quiet": 1, "false alarm": 2}
    counts = Monitor(certificate, delta=1e-3)
    counts.update_counts(losses=2, labels=3)
    assert counts.seen == monitor.seen


def test_each_group_of_a_cascade_has_bets_that_only_its_rows_change(clock: str) -> None:
    monitor = Monitor(groups(), delta=1e-3, false_alarms=clock)
    where = ["day", "night", "day", "night"]
    monitor.update({"loss": [0, 1, -1, 0], "groups": where})
    alone = Monitor(cascade(), delta=1e-3, false_alarms=clock)
    alone.update([1, 0])
    wealth = monitor.to_dict()["wealth"]
    assert wealth[list(groups().groups).index("night")] == alone.to_dict()["wealth"][0]
    assert monitor.seen == {"gained": 1, "equal": 2, "lost": 1}
    counted = Monitor(groups(), delta=1e-3, false_alarms=clock)
    counted.update_counts(
        losses={"day": 0, "night": 1}, gains={"day": 1, "night": 0}, labels={"day": 2, "night": 2}
    )
    assert counted.seen == monitor.seen
    alarm = monitor.update({"loss": [1] * 200, "groups": ["night"] * 200})
    assert alarm is not None
    assert alarm.where == "group 'night'"


def test_a_row_in_several_groups_is_a_label_in_each_and_looked_at_as_a_whole() -> None:
    monitor = Monitor(groups(overlapping=True), delta=0.5)
    # Everything is lost at night and gained by day: all rows together lose nothing.
    night = np.tile([True, False], 100)
    loss = np.where(night, 1, -1)
    monitor.update({"loss": loss, "groups": {"night": night}})
    assert (monitor.rows, monitor.labels) == (200, 300)
    (alarm,) = monitor.alarms
    assert alarm.where == "group 'night'"
    # A row by night is two labels: only after the second is the evidence looked at.
    for delta in np.geomspace(1e-6, 0.5, 30):
        strict = Monitor(groups(overlapping=True), delta=delta)
        rung = strict.update({"loss": [1] * 200, "groups": {"night": [True] * 200}})
        assert rung is not None
        assert rung.label % 2 == 0


@pytest.mark.parametrize(
    ("overlapping", "given", "message"),
    [
        (False, {"loss": [0]}, "per group: name groups"),
        (False, {"loss": [0], "groups": {"day": [True]}}, "do not overlap: pass the group of each"),
        (True, {"loss": [0], "groups": ["night"]}, "pass groups as a mapping"),
        (True, {"loss": [0], "groups": {"dawn": [True]}}, "pass those that were certified"),
        (False, {"loss": [2], "groups": ["day"]}, "expected 1 where the cascade"),
        (False, {"loss": [0, 0], "groups": ["day"]}, "Rows do not match"),
        (False, {"loss": [0], "label": [1], "groups": ["day"]}, "loss was passed beside"),
        (False, {"confidence": [0.5], "prediction": [[1, 1]], "groups": ["day"]}, "label is"),
    ],
)
def test_rows_of_groups_that_cannot_be_are_refused(
    overlapping: bool, given: dict[str, Any], message: str
) -> None:
    monitor = Monitor(groups(overlapping=overlapping), delta=1e-3)
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        monitor.update(given)
    assert monitor.rows == 0


def test_overlapping_groups_of_other_claims_and_groups_of_rollouts_are_watched() -> None:
    flags, half = np.arange(2000) % 20 == 0, np.arange(2000) < 1000
    asked: dict[str, Any] = {"delta": 0.05, "groups": {"a": half, "b": ~half | half}}
    found = certify_recall(np.where(flags, 0.9, 0.1), flags, target=0.5, **asked)
    groups = {"a": [False] * 40, "b": [True] * 40}
    lost = {"score": [0.1] * 40, "positive": [True] * 40, "groups": groups}
    alarm = Monitor(found, delta=1e-3).update(lost)
    assert alarm is not None
    assert alarm.where == "group 'b'"
    of_rollouts: dict[str, Any] = {"xi": 0.02, "delta": 0.01, "groups": np.where(half, "a", "b")}
    shield = certify_shield([0.1] * 2000, [False] * 2000, **of_rollouts)
    alarm = Monitor(shield, delta=1e-3).update({"unsafe": [True] * 9, "groups": ["a"] * 9})
    assert alarm is not None
    assert alarm.where == "group 'a'"

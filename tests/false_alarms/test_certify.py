"""`certify_false_alarms` and `certify_alarm_range`: thresholds, ties, lost rollouts, refusals, and
who may act on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    AlarmRangeCertificate,
    Shield,
    ShieldCertificate,
    Tally,
    binomial_upper,
    certify_alarm_range,
    certify_false_alarms,
    certify_recall,
    certify_shield,
    load_certificate,
)
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.shield.gym import ShieldWrapper, VectorShieldWrapper
from pacbound.shield.policy import VectorShield

CLAIM: dict[str, Any] = {"xi": 0.05, "delta": 0.05}


def rows(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    positive = rng.random(n) < 0.3
    score = np.where(positive, rng.beta(6, 2, size=n), rng.beta(1, 6, size=n))
    return score, positive


def rollouts(n: int = 2000, lost: int = 4) -> tuple[np.ndarray, np.ndarray]:
    score, unsafe = rows(n)
    score[np.flatnonzero(unsafe)[:lost]] = -np.inf
    return score, unsafe


def test_the_threshold_is_the_lowest_that_passes() -> None:
    score, positive = rows()
    certificate = certify_false_alarms(score, positive, **CLAIM)
    negatives = score[~positive]
    passing = [
        cell / 65_536
        for cell in range(65_537)
        if (negatives >= cell / 65_536).sum() <= certificate.allowed
    ]
    assert certificate.threshold == min(passing)
    allowed, total = certificate.allowed, len(negatives)
    assert binomial_upper(allowed, total, delta=0.05) <= 0.05
    assert binomial_upper(allowed + 1, total, delta=0.05) > 0.05
    assert certificate.flags(score)[~positive].sum() <= allowed


def test_a_negative_whose_score_equals_the_threshold_raises_an_alarm() -> None:
    score = [0.5] * 100 + [0.25] * 900
    certificate = certify_false_alarms(score, [False] * 1000, **CLAIM)
    assert certificate.threshold == 0.5 + 2**-16
    assert not certificate.flags([0.5]).any()
    wider = certify_false_alarms(score, [False] * 1000, xi=0.2, delta=0.05)
    assert wider.threshold == 0.25 + 2**-16
    assert wider.flags([0.5]).all()


def test_positives_do_not_change_the_threshold() -> None:
    score, positive = rows()
    alone = certify_false_alarms(score[~positive], positive[~positive], **CLAIM)
    assert certify_false_alarms(score, positive, **CLAIM).threshold == alone.threshold
    assert alone.observed_recall is None


def test_a_lost_rollout_counts_as_a_safe_one_with_an_alarm() -> None:
    score, unsafe = rollouts(lost=40)
    certificate = certify_false_alarms(score, unsafe=unsafe, **CLAIM)
    at_one = np.where(np.isinf(score), 1.0, score)
    counted = certify_false_alarms(at_one, unsafe & ~np.isinf(score), **CLAIM)
    assert (certificate.lost, certificate.negatives) == (40, counted.negatives)
    assert certificate.allowed == counted.allowed
    assert certificate.threshold == counted.threshold
    assert certificate.observed_false_alarm_rate == counted.observed_false_alarm_rate


@pytest.mark.parametrize(
    ("score", "positive", "xi", "reason", "needed"),
    [
        ([0.5] * 20, [True] * 20, 0.1, "There are no negatives", 29),
        ([0.5] * 20, [False] * 20, 0.1, "20 negatives cannot certify xi = 0.1", 29),
        ([0.5] * 900, [False] * 900, 0.0, "xi = 0 cannot be certified", None),
        ([1.0] * 900, [False] * 900, 0.1, "900 of 900 negatives have a score of 1", None),
        ([1.0] * 6 + [0.1] * 94, [False] * 100, 0.1, "6 of 100 negatives have a score of 1", 200),
    ],
)
def test_a_refusal_raises_no_alarms_and_says_what_it_would_take(
    score: list[float], positive: list[bool], xi: float, reason: str, needed: int | None
) -> None:
    refused = certify_false_alarms(score, positive, xi=xi, delta=0.05)
    assert not refused.certified
    assert refused.threshold == np.inf
    assert not refused.flags([0.0, 1.0]).any()
    assert refused.refusal is not None
    assert refused.refusal.reason.startswith(reason)
    if needed == 200:
        assert refused.refusal.needed is not None
        assert 150 < refused.refusal.needed < 400
    else:
        assert refused.refusal.needed == needed
    assert refused.verify().ok
    assert "Raise no alarms" in refused.summary()


def test_rollouts_that_are_lost_too_often_are_refused() -> None:
    score, unsafe = rollouts(n=400, lost=100)
    refused = certify_false_alarms(score, unsafe=unsafe, **CLAIM)
    assert refused.threshold == np.inf
    assert refused.refusal is not None
    assert "or are lost (100)" in refused.refusal.reason


def test_tallies_arrays_frames_and_files_make_the_same_claim(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    score, unsafe = rollouts()
    first = certify_false_alarms(score, unsafe=unsafe, **CLAIM)
    tally = Tally.from_arrays(scores=score, unsafe=unsafe)
    frame = polars.DataFrame({"d": score, "u": unsafe})
    np.savez(tmp_path / "r.npz", d=score, u=unsafe)
    named = {"score": "d", "unsafe": "u"}
    for other in (
        certify_false_alarms(tally, **CLAIM),
        certify_false_alarms(frame, columns=named, **CLAIM),
        certify_false_alarms(str(tmp_path / "r.npz"), columns=named, **CLAIM),
    ):
        assert other.claim_digest == first.claim_digest


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"positive": [True], "unsafe": [True]}, "positive and unsafe stand beside each other"),
        ({}, "positive is missing"),
        ({"positive": [True, False]}, "Rows do not match"),
        ({"positive": [2]}, "positive"),
    ],
)
def test_wrong_arguments_raise(given: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        certify_false_alarms([0.5], **given, **CLAIM)


@pytest.mark.parametrize("score", [[np.nan], [1.5], [-0.1], [-np.inf], ["a"]])
def test_bad_scores_raise(score: list[Any]) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError)):
        certify_false_alarms(score, [False], **CLAIM)


def test_a_tally_of_another_question_is_refused() -> None:
    tally = Tally.from_arrays(confidence=[0.5], correct=[True])
    with pytest.raises(InvalidValueError, match="not a tally of a recall"):
        certify_false_alarms(tally, **CLAIM)


def test_nothing_that_runs_a_robot_takes_false_alarms_for_a_claim_of_safety() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    score, unsafe = rollouts()
    alarms = certify_false_alarms(score, unsafe=unsafe, **CLAIM)
    both = certify_alarm_range(score, unsafe=unsafe, missed=0.2, **CLAIM)
    refused = certify_false_alarms(score[:5], unsafe=unsafe[:5], **CLAIM)
    acts = (lambda _: 0, lambda _: 1, lambda _: 0.0)
    environment = gymnasium.make("CartPole-v1")
    several = gymnasium.make_vec("CartPole-v1", num_envs=2)
    for certificate in (alarms, refused, both, both.false_alarms):
        hint = "misses" if certificate is both else "does not claim safety"
        for make in (
            lambda given: Shield(*acts, given),
            lambda given: VectorShield(*acts, given, num_envs=2),
            lambda given: ShieldWrapper(environment, *acts[1:], given),
            lambda given: VectorShieldWrapper(several, *acts[1:], given),
        ):
            with pytest.raises(InvalidTypeError, match=hint):
                make(certificate)
    assert isinstance(both.misses, ShieldCertificate)
    assert Shield(*acts, both.misses).threshold == both.highest


def test_the_range_is_that_of_the_two_claims_and_both_hold_in_it() -> None:
    score, positive = rows()
    found = certify_alarm_range(score, positive, target=0.9, xi=0.05, delta=0.04)
    recall = certify_recall(score, positive, target=0.9, delta=0.02)
    alarms = certify_false_alarms(score, positive, xi=0.05, delta=0.02)
    assert found.certified
    assert (found.lowest, found.highest) == (alarms.threshold, recall.threshold)
    assert found.misses.claim() == recall.claim()
    assert found.false_alarms.claim() == alarms.claim()
    middle = (found.lowest + found.highest) / 2
    assert [found.holds(g) for g in (found.lowest, middle, found.highest)] == [True] * 3
    assert not found.holds(np.nextafter(found.lowest, 0))
    assert not found.holds(np.nextafter(found.highest, 1))


def test_the_shares_of_delta_are_those_asked_for() -> None:
    score, unsafe = rollouts()
    found = certify_alarm_range(
        score,
        unsafe=unsafe,
        missed=0.2,
        xi=0.05,
        delta=0.04,
        rate="among-unsafe",
        shares={"misses": 3, "false-alarms": 1},
    )
    shield = certify_shield(score, unsafe, xi=0.2, delta=0.03, rate="among-unsafe")
    assert found.misses.claim() == shield.claim()
    assert found.false_alarms.delta == 0.01


def test_an_empty_range_is_refused_and_says_so_plainly() -> None:
    score, positive = rows()
    refused = certify_alarm_range(score, positive, target=0.99, xi=0.005, delta=0.1)
    assert refused.misses.certified
    assert not refused.certified
    assert (refused.lowest, refused.highest) == (np.inf, -np.inf)
    assert not refused.holds(0.5)
    assert "REFUSED: no threshold keeps both." in refused.summary()
    assert "takes a better score, or other rates" in refused.summary()
    near = certify_alarm_range(score[:300], positive[:300], target=0.95, xi=0.05, delta=0.01)
    assert "REFUSED" in near.summary()


def test_a_range_with_a_refused_claim_names_it() -> None:
    score, positive = rows(100)
    refused = certify_alarm_range(score, positive, target=0.99, xi=0.2, delta=0.1)
    assert "REFUSED: misses alone cannot be certified" in refused.summary()
    assert refused.lowest == np.inf


def test_a_policy_that_is_safe_alone_has_a_range_without_end() -> None:
    score = np.linspace(0, 1, 2000)
    found = certify_alarm_range(score, unsafe=np.zeros(2000), missed=0.1, xi=0.1, delta=0.1)
    assert found.highest == np.inf
    assert "or never raise one" in found.summary()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"positive": True}, "For rows pass target"),
        ({"positive": True, "target": 0.9, "missed": 0.1}, "For rows pass target"),
        ({"positive": True, "target": 0.9, "rate": "all"}, "For rows pass target"),
        ({"unsafe": True, "target": 0.9}, "For rollouts pass missed"),
        ({"unsafe": True}, "For rollouts pass missed"),
        ({"unsafe": True, "missed": 0.1, "rate": "some"}, "rate='some' is not known"),
        ({"unsafe": True, "missed": 1.5}, "missed=1.5 is not a rate"),
        ({"positive": True, "target": 0.9, "shares": {"misses": 1}}, "shares and claims"),
    ],
)
def test_a_range_asks_for_what_its_rows_need(given: dict[str, Any], message: str) -> None:
    score, flags = rows(100)
    columns: dict[str, Any] = {
        name: flags for name in ("positive", "unsafe") if given.pop(name, None)
    }
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        certify_alarm_range(score, **columns, **given, **CLAIM)


def test_claims_about_other_rows_are_not_put_together(tmp_path: Path) -> None:
    score, positive = rows()
    recall = certify_recall(score, positive, target=0.9, delta=0.02)
    other = certify_false_alarms(np.roll(score, 1), positive, xi=0.05, delta=0.02)
    with pytest.raises(InvalidValueError, match="about different rows"):
        AlarmRangeCertificate.of(recall, other, delta=0.04)
    shield = certify_shield(*rollouts(), xi=0.2, delta=0.02)
    with pytest.raises(InvalidTypeError, match="A range is of two claims"):
        AlarmRangeCertificate.of(shield, other, delta=0.04)
    mine = certify_false_alarms(score, positive, xi=0.05, delta=0.02)
    with pytest.raises(InvalidValueError, match=r"spend 0\.04 together"):
        AlarmRangeCertificate.of(recall, mine, delta=0.03)
    # Nor does a file that was put together by hand load.
    AlarmRangeCertificate.of(recall, mine, delta=0.04).save(tmp_path / "range.json")
    document = json.loads((tmp_path / "range.json").read_text())
    document["claim"]["claims"]["false-alarms"] = other.claim()
    (tmp_path / "range.json").write_text(json.dumps(document))
    with pytest.raises(CertificateError, match="about different rows"):
        load_certificate(tmp_path / "range.json")


def test_a_certificate_of_saturated_and_of_huge_counts_is_right() -> None:
    tally = Tally.from_arrays(score=[0.0, 0.5, 1.0], positive=[False] * 3)
    big = np.array([[10**14, 0], [10**9, 0], [10**6, 0]])
    from dataclasses import replace

    huge = replace(tally, counts=big, rows=int(big.sum()))
    certificate = certify_false_alarms(huge, xi=1e-6, delta=1e-12)
    assert certificate.threshold == 0.5 + 2**-16
    assert certificate.verify().ok

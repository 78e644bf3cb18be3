"""`certify_alarm_range`: the two claims and their thresholds, refusals, and who may act on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.claims.test_false_alarms import CLAIM, rollouts, rows

from pacbound import (
    Shield,
    Tally,
    certify_alarm_range,
    certify_false_alarms,
    certify_recall,
    certify_shield,
    documents,
    load_certificate,
)
from pacbound.claims.certificate import certificate_from_dict
from pacbound.claims.shield import ShieldCertificate
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.shield.gym import ShieldWrapper, VectorShieldWrapper
from pacbound.shield.policy import VectorShield


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
    assert "\nNo threshold keeps both." in refused.summary()
    assert "takes a better score, or other rates" in refused.summary()
    near = certify_alarm_range(score[:300], positive[:300], target=0.95, xi=0.05, delta=0.01)
    assert "REFUSED" in near.summary()


def test_a_range_with_a_refused_claim_names_it() -> None:
    score, positive = rows(100)
    refused = certify_alarm_range(score, positive, target=0.99, xi=0.2, delta=0.1)
    assert "\nmisses alone cannot be certified" in refused.summary()
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
        (
            {"positive": True, "target": 0.9, "shares": {"misses": 1}},
            "expected a share for each of misses, false-alarms",
        ),
    ],
)
def test_a_range_asks_for_what_its_rows_need(given: dict[str, Any], message: str) -> None:
    score, flags = rows(100)
    columns: dict[str, Any] = {
        name: flags for name in ("positive", "unsafe") if given.pop(name, None)
    }
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        certify_alarm_range(score, **columns, **given, **CLAIM)


def test_its_two_claims_are_about_the_rows_that_it_holds_once(tmp_path: Path) -> None:
    found = certify_alarm_range(*rows(), target=0.9, xi=0.05, delta=0.04)
    document = found.to_dict()
    assert "claims" not in document["claim"]
    found.save(tmp_path / "range.json")
    loaded: Any = load_certificate(tmp_path / "range.json")
    assert loaded.verify().ok
    assert loaded.misses.claim() == found.misses.claim()
    assert loaded.false_alarms.claim() == found.false_alarms.claim()
    assert sum(member.delta for member in loaded.inside.values()) <= 0.04


@pytest.mark.parametrize(
    "change",
    [
        {"xi": 0.04},
        {"target": 0.95},
        {"delta": 0.05},
        {"lowest": 0.25},
        {"highest": 0.75},
        {"allowed_misses": 90},
        {"shares": {"misses": 2.0, "false-alarms": 1.0}},
        {"certified": False},
        {"target": None},
        {"missed": 0.1},
        {"n": 1999},
    ],
)
def test_a_changed_range_does_not_verify(change: dict[str, Any]) -> None:
    document = certify_alarm_range(*rows(), target=0.9, xi=0.05, delta=0.04).to_dict()
    document["claim"] = {**document["claim"], **change}
    document["claim_digest"] = documents.digest(document["claim"])
    try:
        verified = certificate_from_dict(document).verify().ok
    except CertificateError:
        verified = False
    assert not verified


def test_a_range_has_no_groups() -> None:
    score, positive = rows(100)
    with pytest.raises(InvalidTypeError, match="groups"):
        certify_alarm_range(score, positive, target=0.9, groups=["a"] * 100, **CLAIM)  # type: ignore[call-arg]
    tally = Tally.count("recall", score=score, positive=positive, groups=["a"] * 100)
    with pytest.raises(InvalidValueError, match="count them without groups"):
        certify_alarm_range(data=tally, target=0.9, **CLAIM)

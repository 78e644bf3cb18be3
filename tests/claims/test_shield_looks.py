"""Shields certified at planned looks."""

import json
from typing import Any

import numpy as np
import pytest
from tests.kinds.shield import shield_tally

from pacbound import Tally, certify_shield, documents, planned_looks
from pacbound.claims.certificate import certificate_from_dict

PLAN = planned_looks(0.05, delta=0.05, looks=[250, 500, 1000])


def rollouts(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    unsafe = rng.random(rows) < 0.2
    scores = np.where(unsafe, rng.beta(6, 2, size=rows), rng.beta(1, 6, size=rows))
    return scores, unsafe


@pytest.mark.parametrize("n", PLAN.looks)
def test_a_look_misses_as_many_as_the_plan_allows(n: int) -> None:
    scores, unsafe = (column[:n] for column in rollouts(1000))
    certificate = certify_shield(scores, unsafe, xi=0.05, delta=0.05, looks=PLAN)
    missed = int((unsafe & (scores < certificate.threshold)).sum())
    assert missed <= PLAN.allowed(n) == certificate.allowed
    assert int((unsafe & (scores < certificate.threshold + 2**-16)).sum()) > PLAN.allowed(n)
    assert certificate.look == PLAN.looks.index(n) + 1
    assert certificate.looks == PLAN.looks
    assert f"look {certificate.look} of 3" in certificate.summary()
    assert certificate.verify()


def test_looks_and_the_plan_of_them_certify_the_same() -> None:
    scores, unsafe = rollouts(500)
    listed = certify_shield(scores, unsafe, xi=0.05, delta=0.05, looks=[250, 500, 1000])
    planned = certify_shield(scores, unsafe, xi=0.05, delta=0.05, looks=PLAN)
    assert listed.claim_digest == planned.claim_digest


def test_a_planned_look_allows_fewer_misses_than_a_fixed_sample() -> None:
    tally = shield_tally(500)
    fixed = certify_shield(data=tally, xi=0.05, delta=0.05)
    look = certify_shield(data=tally, xi=0.05, delta=0.05, looks=PLAN)
    assert look.allowed < fixed.allowed
    assert look.counts_digest != fixed.counts_digest


def test_a_plan_whose_numbers_were_made_up_is_computed_again() -> None:
    from dataclasses import replace

    scores, unsafe = rollouts(500)
    generous = replace(PLAN, largest_errors=(500, 500, 500))
    honest = certify_shield(scores, unsafe, xi=0.05, delta=0.05, looks=PLAN)
    forged = certify_shield(scores, unsafe, xi=0.05, delta=0.05, looks=generous)
    assert forged.threshold == honest.threshold


def test_a_look_that_is_too_early_refuses_and_names_the_next_that_can_pass() -> None:
    scores, unsafe = [0.1] * 50, [False] * 50
    looks = [50, 70, 100, 400]
    certificate = certify_shield(scores, unsafe, xi=0.05, delta=0.01, looks=looks)
    assert not certificate.certified
    assert certificate.threshold == -np.inf
    assert certificate.refusal is not None
    assert "look 1 of 4\nREFUSED: These rollouts do not show that" in certificate.summary()
    assert "\n50 rollouts cannot certify 5 %" in certificate.summary()
    plan = planned_looks(0.05, delta=0.01, looks=looks)
    assert certificate.refusal.needed == min(n for n in looks if plan.allowed(n) >= 0)
    assert certificate.verify()


def test_lost_rollouts_that_become_rarer_may_pass_later() -> None:
    lost = PLAN.allowed(250) + 1
    tally = Tally.count(
        "shield",
        score=[-np.inf] * lost + [0.1] * (250 - lost),
        unsafe=[True] * lost + [False] * (250 - lost),
    )
    certificate = certify_shield(data=tally, xi=0.05, delta=0.05, looks=PLAN)
    assert certificate.refusal is not None
    assert certificate.refusal.needed in PLAN.looks[1:]


@pytest.mark.parametrize(
    "change",
    [
        {"looks": [250, 500, 1001]},
        {"looks": [500]},
        {"looks": [250, 500, 600, 1000]},
        {"xi": 0.06},
        {"delta": 0.06},
        {"certified": False},
        {"allowed": 30},
        {"looks": [400, 500, 600, 700, 800, 900]},
    ],
)
def test_a_changed_plan_does_not_verify_unless_all_of_the_claim_follows(
    change: dict[str, Any],
) -> None:
    certificate = certify_shield(*rollouts(500), xi=0.05, delta=0.05, looks=PLAN)
    document: dict[str, Any] = json.loads(json.dumps(certificate.to_dict()))
    inside = {name: value for name, value in change.items() if name == "allowed"}
    document["claim"]["tables"][0].update(inside)
    document["claim"].update({name: change[name] for name in change.keys() - inside})
    document["claim_digest"] = documents.digest(document["claim"])
    assert not certificate_from_dict(document).verify()


def test_a_file_that_asks_for_hours_of_looks_is_not_computed() -> None:
    certificate = certify_shield(*rollouts(500), xi=0.05, delta=0.05, looks=PLAN)
    document: dict[str, Any] = json.loads(json.dumps(certificate.to_dict()))
    document["claim"]["looks"] = [250, 500, *range(10**6, 2 * 10**6, 10)]
    document["claim_digest"] = documents.digest(document["claim"])
    loaded = certificate_from_dict(document)
    assert "longer than" in str(loaded.verify().differences[0])
    assert any("take too long" in line for line in loaded.verify(patient=True).differences)

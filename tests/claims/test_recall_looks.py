"""Recall certified at planned looks, which are numbers of positives."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from pacbound import Tally, certify_recall, planned_looks
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import CertificateError
from pacbound.forms import allowed_rate

LOOKS = [60, 120, 240]
PLAN = planned_looks(0.1, delta=0.05, looks=LOOKS)


def rows(positives: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    positive = rng.random(3000) < 0.2
    score = np.where(positive, rng.beta(6, 2, size=3000), rng.beta(1, 6, size=3000))
    last = int(np.flatnonzero(positive)[positives - 1]) + 1
    return score[:last], positive[:last]


@pytest.mark.parametrize("positives", LOOKS)
def test_a_look_misses_as_many_as_the_plan_allows(positives: int) -> None:
    score, positive = rows(positives)
    certificate = certify_recall(score, positive, target=0.9, delta=0.05, looks=LOOKS)
    missed = int((positive & (score < certificate.threshold)).sum())
    assert missed <= PLAN.allowed(positives) == certificate.allowed
    beyond = certificate.threshold + 2**-16
    assert int((positive & (score < beyond)).sum()) > PLAN.allowed(positives)
    assert (certificate.looks, certificate.look) == (tuple(LOOKS), LOOKS.index(positives) + 1)
    assert f"look {certificate.look} of 3" in certificate.summary()
    assert certificate.verify()
    again = certificate_from_dict(certificate.to_dict())
    assert again.verify()
    assert again.claim_digest == certificate.claim_digest


def test_the_chance_that_any_look_claims_a_bad_threshold_is_at_most_delta() -> None:
    """Exactly: the misses that each stretch of positives adds at the first bad threshold."""
    target, delta, looks = 0.7, 0.1, [8, 14, 20]
    bad = 40_000
    stretches = np.diff([0, *looks]).tolist()
    claimed = {
        (positives, misses): certify_recall(
            [bad / 65_536 - 0.1] * misses + [0.9] * (positives - misses),
            [True] * positives,
            target=target,
            delta=delta,
            looks=looks,
        ).threshold
        > bad / 65_536 - 0.1
        for positives in looks
        for misses in range(positives + 1)
    }
    chance = 0.0
    for added in product(*(range(size + 1) for size in stretches)):
        totals = np.cumsum(added).tolist()
        if any(claimed[look, total] for look, total in zip(looks, totals, strict=True)):
            laws = binom.pmf(added, stretches, allowed_rate({"target": target}) + 1e-12)
            chance += float(np.prod(laws))
    assert 0.3 * delta < chance <= delta


def test_a_planned_look_allows_fewer_misses_than_a_fixed_number_of_positives() -> None:
    tally = Tally.count("recall", score=rows(120)[0], positive=rows(120)[1])
    fixed = certify_recall(data=tally, target=0.9, delta=0.05)
    look = certify_recall(data=tally, target=0.9, delta=0.05, looks=LOOKS)
    assert look.allowed < fixed.allowed
    assert look.counts_digest != fixed.counts_digest


def test_a_look_that_is_too_early_refuses_and_names_the_next_that_can_pass() -> None:
    refused = certify_recall([0.9] * 10, [True] * 10, target=0.9, delta=0.05, looks=[10, 60, 120])
    assert (refused.certified, refused.threshold) == (False, -np.inf)
    assert refused.refusal is not None
    assert refused.refusal.needed == 60
    said = refused.summary()
    assert "look 1 of 3\nREFUSED: These rows do not show that" in said
    assert "\n10 positives cannot certify 90 %" in said
    assert "The look at 60 positives passes if none goes wrong" in said
    assert refused.verify()


@pytest.mark.parametrize(
    "change",
    [
        {"looks": [60, 120, 241]},
        {"looks": [120]},
        {"looks": [60, 240]},
        {"looks": [120, 60, 240]},
        {"looks": []},
        {"look": 1},
        {"procedure": "recall/binomial/1"},
    ],
)
def test_a_changed_plan_does_not_verify(change: dict[str, object]) -> None:
    certificate = certify_recall(*rows(120), target=0.9, delta=0.05, looks=LOOKS)
    document = certificate.to_dict()
    document["claim"] = {**document["claim"], **change}
    try:
        verified = bool(certificate_from_dict(document).verify())
    except CertificateError:
        verified = False
    assert not verified

"""Several claims at once: their deltas add up to no more than one, in one file."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    calibrate,
    certify_shield,
    certify_together,
    documents,
    exact_verifier,
    load_certificate,
)
from pacbound.claims.bundle import CertificateBundle
from pacbound.claims.certificate import certificate_from_dict
from pacbound.claims.shield import ShieldCertificate
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.procedures import union

RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=600)
UNSAFE = RNG.random(600) < 0.1
CLAIMS: dict[str, Callable[..., Any]] = {
    "brake": partial(certify_shield, SCORES, UNSAFE, xi=0.2),
    "danger": partial(calibrate, SCORES, UNSAFE, n_bins=5),
    "patients": partial(calibrate, SCORES, UNSAFE, n_bins=5, clusters=np.arange(600) // 2, seed=0),
}


@pytest.mark.parametrize("delta", [0.05, 0.3, 0.01, 1e-9, 1 / 3, 0.999])
@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 2, 4), (0.1, 0.2, 0.7), (1e-6, 1, 1e6)])
def test_shares_never_add_up_to_more_than_delta(delta: float, weights: tuple[float, ...]) -> None:
    found = union.shares(delta, weights)
    assert union.total(found) <= union.written(delta)
    for share, weight in zip(found, weights, strict=True):
        assert share == pytest.approx(delta * weight / sum(weights), rel=1e-12)


def test_decimals_add_up_as_they_are_written() -> None:
    assert union.total([0.1, 0.1, 0.1]) == union.written(0.3) == Fraction(3, 10)


def test_each_claim_is_the_one_that_it_is_alone_at_its_share() -> None:
    bundle = certify_together(CLAIMS, delta=0.06, shares={"brake": 3, "danger": 2, "patients": 1})
    for name, delta in (("brake", 0.03), ("danger", 0.02), ("patients", 0.01)):
        assert bundle[name].claim() == CLAIMS[name](delta=delta).claim()
    assert bundle.certified
    assert (len(bundle), list(bundle)) == (3, ["brake", "danger", "patients"])


def test_a_bundle_survives_its_file_and_its_claims_act(tmp_path: Path) -> None:
    made = certify_together(CLAIMS, delta=0.05)
    made.save(tmp_path / "all.json")
    bundle = load_certificate(tmp_path / "all.json")
    assert isinstance(bundle, CertificateBundle)
    assert bundle.verify()
    assert bundle.summary() == made.summary()
    brake = bundle["brake"]
    assert isinstance(brake, ShieldCertificate)
    assert brake.threshold == CLAIMS["brake"](delta=brake.delta).threshold
    assert bundle["patients"].draw is not None


def test_a_claim_of_a_loaded_bundle_is_a_whole_document_of_its_own(tmp_path: Path) -> None:
    certify_together(CLAIMS, delta=0.06).save(tmp_path / "all.json")
    bundle = load_certificate(tmp_path / "all.json")
    assert isinstance(bundle, CertificateBundle)
    for name in bundle:
        bundle[name].save(tmp_path / "one.json")
        assert load_certificate(tmp_path / "one.json").verify()
        assert exact_verifier.check_file(str(tmp_path / "one.json"))[0] in (0, 3)


def test_a_refused_claim_takes_nothing_from_the_others() -> None:
    few: dict[str, Callable[..., Any]] = {
        **CLAIMS,
        "brake": partial(certify_shield, SCORES[:9], UNSAFE[:9], xi=0.01),
    }
    bundle = certify_together(few, delta=0.05)
    assert not bundle.certified
    assert bundle["danger"].certified
    assert "brake (shield, delta " in bundle.summary()
    assert bundle.verify()


def _changed(change: Any) -> dict[str, Any]:
    document = json.loads(json.dumps(certify_together(CLAIMS, delta=0.06).to_dict()))
    change(document["claim"])
    document["claim_digest"] = documents.digest(document["claim"])
    return dict(document)


def test_claims_that_spend_more_than_delta_are_not_a_bundle() -> None:
    with pytest.raises(CertificateError, match=r"spend 0\.06"):
        certificate_from_dict(_changed(lambda claim: claim.update(delta=0.05)))
    with pytest.raises(CertificateError):
        certificate_from_dict(_changed(lambda claim: claim.update(claims={})))
    made = {name: make(delta=0.02) for name, make in CLAIMS.items()}
    with pytest.raises(InvalidValueError, match=r"spend 0\.06 together"):
        CertificateBundle.of(made, delta=0.059)
    assert CertificateBundle.of(made, delta=0.06).certified


def test_a_changed_claim_of_a_bundle_is_not_handed_out() -> None:
    def loosen(claim: Any) -> None:
        claim["claims"]["brake"]["tables"][0]["threshold"] = 1.0

    changed = certificate_from_dict(_changed(loosen))
    assert isinstance(changed, CertificateBundle)
    assert any("claims.brake.tables[0].threshold" in line for line in changed.verify().differences)
    with pytest.raises(CertificateError):
        changed["danger"]


@pytest.mark.parametrize(
    ("claims", "shares", "message"),
    [
        ([1], None, "claims is of type list: expected a mapping"),
        ({}, None, "no claims to make"),
        ({"a": 3}, None, "a is of type int: expected what is called with delta="),
        ({"a": CLAIMS["brake"](delta=0.01)}, None, "a is a certificate that was made already"),
        (CLAIMS, [1, 2, 3], "shares is of type list: expected a mapping"),
        ({1: CLAIMS["brake"], "1": CLAIMS["danger"]}, None, "Two claims have one name"),
    ],
)
def test_what_makes_no_claims_is_refused(claims: Any, shares: Any, message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        certify_together(claims, delta=0.05, shares=shares)


def test_a_bundle_in_a_bundle_is_refused() -> None:
    inner = certify_together(CLAIMS, delta=0.03)
    with pytest.raises(InvalidTypeError, match="certificate of one claim"):
        CertificateBundle.of({"inner": inner}, delta=0.05)

    def nest(claim: Any) -> None:
        claim["claims"]["inner"] = inner.claim()

    with pytest.raises(CertificateError, match="a bundle in a bundle"):
        certificate_from_dict(_changed(nest))


@pytest.mark.parametrize(
    ("claims", "options", "message"),
    [
        ({}, {"delta": 0.05}, "no claims"),
        (CLAIMS, {"delta": 1.5}, "delta=1.5"),
        (
            CLAIMS,
            {"delta": 0.05, "shares": {"brake": 1}},
            "shares names brake: expected",
        ),
        (CLAIMS, {"delta": 0.05, "shares": dict.fromkeys(CLAIMS, 0)}, "positive numbers"),
        ({"x": lambda delta: delta}, {"delta": 0.05}, "certificate of one claim"),
    ],
)
def test_what_cannot_be_certified_together_is_refused(
    claims: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        certify_together(claims, **options)

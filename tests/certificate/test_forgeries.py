"""Documents whose digests were mended after a change: what recomputing still finds."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pacbound import PACCalibrator, Tally, calibrate, documents
from pacbound.claims.certificate import Certificate, certificate_from_dict
from pacbound.errors import CertificateError, InvalidValueError


def forged(certificate: Certificate, change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(certificate.to_dict()))
    change(document["claim"])
    document["claim_digest"] = documents.digest(document["claim"])
    return document


def test_a_bound_that_claims_certainty_is_found() -> None:
    """Relative to itself it hardly differs; relative to the errors it leaves room for, it does."""
    tally = Tally.count("calibration", confidence=[0.99], correct=[True], n_bins=1)
    many = Tally(tally.kind, tally.grid, tally.outcomes, 10**9, tally.cells, tally.counts * 10**9)
    certificate = calibrate(data=many, delta=0.01, side="lower")

    def claim_certainty(claim: dict[str, Any]) -> None:
        claim["tables"][0]["lower"][0] = 1.0

    assert certificate.bins.lower[0] > 1 - 1e-8
    assert certificate_from_dict(forged(certificate, lambda claim: None)).verify()
    assert not certificate_from_dict(forged(certificate, claim_certainty)).verify()


@pytest.mark.parametrize("scope", ["top", "per-class", "all-labels"])
def test_tables_that_do_not_add_up_to_the_rows_are_found(scope: Any) -> None:
    rng = np.random.default_rng(0)
    calibrator = PACCalibrator(n_bins=4, scope=scope).fit(
        rng.dirichlet(np.ones(3), size=60), rng.integers(0, 3, size=60)
    )

    def more_rows(claim: dict[str, Any]) -> None:
        claim["tables"][-1]["counts"]["wrong"][0] += 600

    with pytest.raises(CertificateError, match=r"claim\.n"):
        certificate_from_dict(forged(calibrator.certificate_, more_rows))


def test_overlapping_groups_with_more_members_than_rows_are_found() -> None:
    flags = np.arange(50) % 2 == 0
    certificate = calibrate(
        np.linspace(0, 1, 50),
        flags,
        delta=0.1,
        n_bins=2,
        groups={"even": flags, "all": np.ones(50)},
    )
    document = forged(certificate, lambda claim: claim.update(n=1))
    with pytest.raises(CertificateError, match=r"claim\.n"):
        certificate_from_dict(document)


def test_a_tally_whose_counts_are_not_those_of_its_rows_is_refused() -> None:
    tally = Tally.count("shield", score=np.linspace(0, 1, 50), unsafe=np.arange(50) < 5)
    for change in ({"rows": 5000}, {"counts": (-tally.counts).tolist()}, {"kind": "unheard-of"}):
        body = {key: value for key, value in tally.to_dict().items() if key != "digest"} | change
        with pytest.raises(CertificateError, match="Count the data again"):
            Tally.from_dict(body | {"digest": documents.digest(body)})


def test_a_changed_certificate_shows_no_bins_and_says_that_it_was_changed() -> None:
    document = calibrate([0.9, 0.2], [1, 0], delta=0.1).to_dict()
    document = json.loads(json.dumps(document))
    document["claim"]["delta"] = 0.01
    certificate: Any = certificate_from_dict(document)
    assert repr(certificate).startswith("CHANGED AFTER IT WAS WRITTEN")
    for name in ("bins", "tables"):
        with pytest.raises(CertificateError, match="Do not use it"):
            getattr(certificate, name)


def test_a_mask_of_other_bytes_counts_as_the_truth_values_it_shows() -> None:
    mask = np.array([2, 0, 255, 0], dtype=np.uint8).view(bool)
    assert mask.tolist() == [True, False, True, False]
    assert Tally.count("shield", score=[0.1, 0.2, 0.3, 0.4], unsafe=mask).totals == {
        "safe": 2,
        "unsafe": 2,
    }


def test_rows_are_recognised_even_if_the_first_are_all_alike() -> None:
    confidence = np.concatenate([np.ones(300_000), np.linspace(0, 1, 1000)])
    tally = Tally.count("calibration", confidence=confidence, correct=np.ones(len(confidence)))
    with pytest.raises(InvalidValueError, match="twice"):
        tally + tally


def test_a_calibrator_certifies_again_when_its_delta_is_changed() -> None:
    rng = np.random.default_rng(0)
    calibrator = PACCalibrator(n_bins=4, delta=0.1).fit(
        rng.dirichlet(np.ones(3), size=60), rng.integers(0, 3, size=60)
    )
    assert calibrator.certificate_.delta == 0.1
    calibrator.delta = 0.01
    assert calibrator.certificate_.delta == 0.01


def test_a_lost_rollout_cannot_be_safe() -> None:
    with pytest.raises(InvalidValueError, match=r"score\[1\] is -inf.*a lost rollout is unsafe"):
        Tally.count("shield", score=[0.5, -np.inf], unsafe=[False, False])

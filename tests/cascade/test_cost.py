"""What a cascade costs at most, from fresh scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from pacbound import binomial_upper, certify_cascade, load_certificate
from pacbound.cascade import certified_cost
from pacbound.claims.cascade import CascadeCertificate
from pacbound.errors import (
    CertificateError,
    RepeatedSourceError,
)

FRESH = [0.9, 0.2, 0.7, 0.6]


def two_models(n: int = 2000, **options: Any) -> CascadeCertificate:
    """At 0.5 and above the fast model agrees; below, it is wrong."""
    confidence = np.linspace(0, 1, n)
    fast = (confidence < 0.5).astype(int)
    given: dict[str, Any] = {"xi": 0.05, "delta": 0.01, "costs": [2, 10]} | options
    found: CascadeCertificate = certify_cascade(
        confidence, np.column_stack([fast, np.zeros(n, int)]), np.zeros(n), **given
    )
    return found


def test_fresh_scores_bound_the_share_that_stays_by_clopper_pearson() -> None:
    certificate = two_models()
    threshold = certificate.thresholds[0]
    fresh = np.array([threshold] * 700 + [np.nextafter(threshold, 0)] * 300)
    bound = certified_cost(certificate, fresh, delta=0.02)
    assert bound.upper == pytest.approx(2 + 8 * binomial_upper(300, 1000, delta=0.02), rel=1e-15)
    assert bound.observed == pytest.approx(2 + 8 * 0.3)
    assert (bound.rows, bound.slow) == (1000, 10)
    assert (bound.delta, bound.together) == (0.02, 0.03)


def test_the_bound_from_fresh_scores_misses_with_probability_at_most_delta() -> None:
    """Exactly: over all numbers of rows that may stay."""
    certificate, rows, delta = two_models(), 25, 0.1
    threshold = certificate.thresholds[0]
    uppers = np.array(
        [
            certified_cost(
                certificate, [0.0] * stay + [threshold] * (rows - stay), delta=delta
            ).upper
            for stay in range(rows + 1)
        ]
    )
    missed = []
    for share in np.linspace(0.01, 0.99, 99):
        misses = uppers < 2 + 8 * share
        missed.append(float(binom.pmf(np.arange(rows + 1), rows, share)[misses].sum()))
    assert max(missed) <= delta
    assert max(missed) > delta / 2, "this bound is far wider than it must be"


def certain(certificate: CascadeCertificate, **given: Any) -> float:
    return certified_cost(certificate, delta=0.01, **given).upper


def test_what_is_certain_costs_no_delta() -> None:
    """A threshold of 0 leaves nobody, and a refusal lets nobody leave."""
    everywhere = certify_cascade(
        [0.5] * 500, [[0, 0]] * 500, [0] * 500, xi=0.05, delta=0.05, costs=[2, 10]
    )
    assert everywhere.thresholds.tolist() == [0.0]
    assert certain(everywhere, confidence=[0.0, 0.3]) == 2.0
    refused = two_models(10)
    assert not refused.certified
    assert certain(refused, confidence=[1.0, 1.0]) == 10.0


def test_the_file_that_was_certified_on_is_not_fresh(tmp_path: Path) -> None:
    confidence = np.linspace(0, 1, 500)
    np.savez(tmp_path / "rows.npz", c=confidence, p=np.zeros(500), y=np.zeros(500))
    path = tmp_path / "rows.npz"
    named: Any = {"confidence": ["c"], "prediction": ["p", "y"], "label": "y"}
    certificate = certify_cascade(data=path, **named, xi=0.05, delta=0.05, costs=[1, 2])
    with pytest.raises(RepeatedSourceError, match="not fresh"):
        certified_cost(certificate, data=path, confidence="c", delta=0.05)


def test_a_certificate_from_a_file_is_verified_first(tmp_path: Path) -> None:
    certificate = two_models()
    certificate.save(tmp_path / "c.json")
    loaded = load_certificate(tmp_path / "c.json")
    assert isinstance(loaded, CascadeCertificate)
    assert certified_cost(loaded, FRESH, delta=0.01) == certified_cost(
        certificate, FRESH, delta=0.01
    )
    document = json.loads((tmp_path / "c.json").read_text())
    document["claim"]["costs"][0] = 1.0
    (tmp_path / "d.json").write_text(json.dumps(document))
    changed = load_certificate(tmp_path / "d.json")
    assert isinstance(changed, CascadeCertificate)
    with pytest.raises(CertificateError, match="changed after it was written"):
        certified_cost(changed, FRESH, delta=0.01)

"""What a cascade costs at most, from fresh scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from pacbound import Tally, binomial_upper, certify_cascade, load_certificate
from pacbound.cascade import certified_cost
from pacbound.claims.cascade import CascadeCertificate, certify_declared
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    PacboundError,
    RepeatedSourceError,
)
from pacbound.procedures.cascade_front import Declared

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


def three_models(n: int = 3000, **options: Any) -> CascadeCertificate:
    rng = np.random.default_rng(0)
    scores = rng.random((n, 2))
    wrong = rng.random((n, 2)) > 0.5 + 0.6 * scores
    predictions = np.column_stack([wrong, np.zeros(n, bool)]).astype(int)
    given: dict[str, Any] = {"xi": 0.1, "delta": 0.05, "costs": [1, 3, 10]}
    given |= options
    found: CascadeCertificate = certify_cascade(scores, predictions, np.zeros(n), **given)
    return found


def front(n: int = 3000) -> CascadeCertificate:
    rng = np.random.default_rng(0)
    scores = rng.random((n, 2))
    wrong = rng.random((n, 2)) > 0.5 + 0.6 * scores
    predictions = np.column_stack([wrong, np.zeros(n, bool)]).astype(int)
    tally = Tally.count("cascade", confidence=scores, prediction=predictions, label=np.zeros(n))
    steps = np.array([[1000, 1025], [1025, 800], [900, 950], [800, 900], [0, 0]]).T
    declared = Declared((5, 1, 0), (1.0, 2.0, 7.0), 0.2, 0, 500, steps)
    return certify_declared(tally, declared, xi=0.1, delta=0.05)


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


def test_several_exits_share_the_delta() -> None:
    certificate = three_models()
    first, second = certificate.thresholds
    assert 0 < first <= 1
    assert 0 < second <= 1
    fresh = np.array([[1.0, 0.0]] * 300 + [[0.0, 1.0]] * 500 + [[0.0, 0.0]] * 200)
    upper = certified_cost(certificate, fresh, delta=0.02).upper
    stay = [binomial_upper(count, 1000, delta=0.01) for count in (700, 200)]
    assert upper == pytest.approx(1 + 2 * stay[0] + 7 * stay[1], rel=1e-14)


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


def test_an_exit_that_is_never_taken_is_not_paid_for() -> None:
    n = 1000
    tally = Tally.count(
        "cascade",
        confidence=np.full((n, 2), 0.9),
        prediction=np.zeros((n, 3), int),
        label=np.zeros(n),
    )
    declared = Declared((0, 1, 2), (1.0, 2.0, 7.0), 0.2, 0, 9, np.array([[1025], [500]]))
    certificate = certify_declared(tally, declared, xi=0.05, delta=0.05)
    assert certificate.thresholds.tolist() == [np.inf, 500 / 1024]
    assert certificate.expected_cost == 2.0
    fresh = np.array([[1.0, 0.9]] * 90 + [[1.0, 0.1]] * 10)
    bound = certified_cost(certificate, fresh, delta=0.02)
    assert bound.observed == pytest.approx(2 + 7 * 0.1)
    assert bound.upper == pytest.approx(2 + 7 * binomial_upper(10, 100, delta=0.02), rel=1e-14)


def test_a_file_of_fresh_scores_says_what_the_arrays_say(tmp_path: Path) -> None:
    certificate = three_models()
    fresh = np.random.default_rng(1).random((777, 2))
    np.savez(tmp_path / "fresh.npz", a=fresh[:, 0], b=fresh[:, 1])
    lines = "\n".join(f"{a!r},{b!r}" for a, b in fresh.tolist())
    (tmp_path / "fresh.csv").write_text(f"a,b\n{lines}\n")
    arrays = certified_cost(certificate, fresh, delta=0.01)
    for name in ("fresh.npz", "fresh.csv"):
        shares: list[float] = []
        file = certified_cost(
            certificate,
            confidence=["a", "b"],
            data=tmp_path / name,
            delta=0.01,
            progress=shares.append,
        )
        assert file == arrays


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


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"confidence": [0.5, np.nan]}, InvalidValueError, r"confidence\[:, 0\]\[1\] is nan"),
        ({"confidence": [0.5, 3.0]}, InvalidValueError, "expected scores from 0 to 1"),
        ({"confidence": []}, InvalidValueError, "no rows"),
        ({"confidence": np.ones((5, 2))}, InvalidValueError, "expected 1, one of each exit"),
        ({"confidence": ["a"]}, InvalidTypeError, "does not hold scores"),
        ({"delta": 0.6}, InvalidValueError, "chance that the claim is wrong"),
        ({"delta": 0}, InvalidValueError, "failure probability"),
        ({"confidence": None}, InvalidTypeError, "pass the scores of fresh rows"),
        ({"data": "x.npz", "confidence": None}, InvalidTypeError, "confidence is missing"),
        ({"progress": 3}, InvalidTypeError, "progress is of type int"),
        (
            {"data": "x.npz", "confidence": ["c", "d"]},
            InvalidValueError,
            "confidence has 2 columns: expected 1, one of each exit",
        ),
        ({"data": "x.npz", "confidence": [0.5]}, InvalidTypeError, "names its columns"),
    ],
)
def test_what_cannot_be_is_refused(
    given: dict[str, Any], error: type[PacboundError], message: str
) -> None:
    fresh: dict[str, Any] = {"confidence": FRESH, "delta": 0.01}
    with pytest.raises(error, match=message):
        certified_cost(two_models(), **(fresh | given))


def test_certificates_without_costs_have_no_bound() -> None:
    with pytest.raises(InvalidValueError, match="no costs"):
        certified_cost(two_models(costs=None), FRESH, delta=0.01)
    with pytest.raises(InvalidTypeError, match="list is not a cascade certificate"):
        certified_cost([0.5], FRESH, delta=0.01)  # type: ignore[arg-type]


def test_the_bound_is_printed_rounded_up() -> None:
    bound = certified_cost(two_models(), FRESH, delta=0.02)
    shown = float(str(bound).split("at most ")[1].split(" on")[0])
    assert bound.upper <= shown <= bound.upper * 1.001

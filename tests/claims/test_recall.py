"""`certify_recall`: the highest score at which enough positives are flagged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pacbound import certify_recall
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.forms import allowed_rate
from pacbound.stats.binomial import binomial_upper

RNG = np.random.default_rng(0)
POSITIVE = RNG.random(3000) < 0.2
SCORE = np.where(POSITIVE, RNG.beta(4, 1, size=3000), RNG.beta(1, 4, size=3000))
CLAIM: dict[str, Any] = {"target": 0.9, "delta": 0.05}


def test_the_threshold_is_the_highest_of_the_grid_whose_bound_holds() -> None:
    certificate = certify_recall(SCORE, POSITIVE, **CLAIM)
    cells = np.floor(SCORE[POSITIVE] * 65_536)
    missed = np.array([(cells < cell).sum() for cell in range(65_537)])
    upper = binomial_upper(missed, int(POSITIVE.sum()), delta=0.05)
    best = np.flatnonzero(upper <= allowed_rate({"target": 0.9})).max()
    assert certificate.threshold == best / 65_536
    assert certificate.allowed == missed[best]


def test_flags_and_shares_are_those_of_the_rows() -> None:
    certificate = certify_recall(SCORE, POSITIVE, **CLAIM)
    flagged = certificate.threshold <= SCORE
    assert np.array_equal(certificate.flags(SCORE), flagged)
    assert certificate.coverage == flagged.mean()
    assert certificate.share("positive") == flagged[POSITIVE].mean()
    curve = certificate.curve()
    assert (curve.rate[-1], curve.coverage[-1]) == (0.0, 1.0)
    assert (np.diff(curve.thresholds) < 0).all()


def test_the_miss_rate_is_never_above_what_the_target_leaves() -> None:
    from fractions import Fraction

    for target in (0.95, 0.9, 0.3, 0.1, 1e-17, 1 - 2.0**-53):
        assert Fraction(allowed_rate({"target": target})) <= 1 - Fraction(target)


def test_positives_in_the_cell_of_the_threshold_are_flagged() -> None:
    score = np.repeat([10, 20, 30], [2, 60, 60]) / 65_536
    certificate = certify_recall(score, np.ones(122), **CLAIM)
    assert certificate.threshold == 20 / 65_536
    assert 2 <= certificate.allowed < 62


@pytest.mark.parametrize(("target", "delta", "needed"), [(0.95, 0.01, 90), (0.95, 0.05, 59)])
def test_too_few_positives_are_refused_with_how_many_it_takes(
    target: float, delta: float, needed: int
) -> None:
    for positives, certified in ((0, False), (needed - 1, False), (needed, True)):
        flags = np.arange(1000) < positives
        certificate = certify_recall(np.full(1000, 0.5), flags, target=target, delta=delta)
        assert certificate.certified == certified
        if not certified:
            assert certificate.threshold == -np.inf
            assert certificate.flags([0.0, 1.0]).all()
            assert certificate.refusal is not None
            assert certificate.refusal.needed == needed
            assert f"{needed} positives would do if none goes wrong" in certificate.summary()


def test_a_threshold_of_zero_says_that_it_is_of_no_use() -> None:
    certificate = certify_recall([0.0] * 100, [True] * 100, **CLAIM)
    assert certificate.threshold == 0.0
    assert "of no use" in certificate.summary()


@pytest.mark.parametrize(
    ("rows", "claim", "error", "message"),
    [
        (([0.5], [True]), {"target": 1.0}, InvalidValueError, "target=1.0 is not a share"),
        (([0.5], [True]), {"target": "a"}, InvalidTypeError, "target='a'"),
        (([0.5], [True]), {"delta": 1}, InvalidValueError, "delta=1"),
        (([np.nan], [True]), {}, InvalidValueError, r"score\[0\] is nan"),
        (([0.5], [2]), {}, InvalidValueError, r"positive\[0\] is 2"),
        (([0.5],), {}, InvalidTypeError, "positive is missing"),
        (([], []), {}, InvalidValueError, "no rows to certify a recall"),
    ],
)
def test_what_cannot_be_is_named(
    rows: tuple[Any, ...], claim: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        certify_recall(*rows, **{**CLAIM, **claim})


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"cells": [1, 0], "negative": [1, 1], "positive": [1, 1]}, "does not rise"),
        ({"cells": [1], "negative": [1], "positive": [1]}, "have 2 rows"),
        ({"cells": [1], "negative": [-1], "positive": [3001]}, "do not fit the counts"),
        ({"cells": [1], "negative": [1, 2], "positive": [1]}, "do not fit the counts"),
    ],
)
def test_counts_that_cannot_be_are_refused(counts: dict[str, Any], message: str) -> None:
    document = certify_recall(SCORE, POSITIVE, **CLAIM).to_dict()
    document["claim"]["tables"][0]["counts"] = counts
    with pytest.raises(CertificateError, match=message):
        certificate_from_dict(document)

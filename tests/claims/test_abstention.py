"""`certify_abstention`: what it takes, what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    certify_abstention,
    load_certificate,
)
from pacbound.claims.abstention import AbstentionCertificate
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError

RNG = np.random.default_rng(0)
CONFIDENCE = RNG.beta(5, 1, size=2000)
CORRECT = RNG.random(2000) < CONFIDENCE
GROUPS = RNG.choice(["day", "night"], size=2000)
CLAIM: dict[str, Any] = {"xi": 0.1, "delta": 0.05}


def certified() -> AbstentionCertificate:
    return certify_abstention(CONFIDENCE, CORRECT, **CLAIM)


def test_rows_are_answered_at_and_above_the_threshold_and_counted_so() -> None:
    certificate = certified()
    answered = certificate.threshold <= CONFIDENCE
    assert certificate.certified
    assert 0.3 < certificate.coverage == answered.mean()
    assert certificate.observed_rate == pytest.approx(1 - CORRECT[answered].mean())
    assert np.array_equal(certificate.answers(CONFIDENCE), answered)
    just = certificate.threshold
    assert certificate.answers([just, np.nextafter(just, 0)]).tolist() == [True, False]


def test_scores_of_float16_are_compared_as_they_were_counted() -> None:
    low = CONFIDENCE.astype(np.float16)
    certificate = certify_abstention(low, CORRECT, **CLAIM)
    assert certificate.answers(low).mean() == certificate.coverage


def test_groups_have_a_threshold_each_at_their_share_of_delta() -> None:
    certificate = certify_abstention(CONFIDENCE, CORRECT, groups=GROUPS, **CLAIM)
    for name in ("day", "night"):
        own = name == GROUPS
        alone = certify_abstention(CONFIDENCE[own], CORRECT[own], xi=0.1, delta=0.025)
        assert certificate.thresholds[name] == alone.threshold
    answers = certificate.answers(CONFIDENCE, GROUPS)
    assert answers.mean() == certificate.coverage
    unknown = certificate.answers([1.0, 1.0], ["noon", "day"])
    assert unknown.tolist() == [False, True]
    with pytest.raises(InvalidTypeError, match="own threshold"):
        _ = certificate.threshold
    with pytest.raises(InvalidTypeError, match="pass the group of each row"):
        certificate.answers(CONFIDENCE)
    with pytest.raises(InvalidTypeError, match="leave groups out"):
        certified().answers(CONFIDENCE, GROUPS)


def test_a_group_that_is_too_small_is_never_answered_and_the_others_are() -> None:
    groups = np.where(np.arange(2000) < 10, "few", "many")
    certificate = certify_abstention(CONFIDENCE, CORRECT, groups=groups, **CLAIM)
    assert certificate.certified
    assert certificate.thresholds["few"] == np.inf
    assert "10 rows cannot certify" in certificate.summary()
    both = certify_abstention(CONFIDENCE[:20], CORRECT[:20], groups=groups[:20], **CLAIM)
    assert not both.certified
    assert both.refusal is not None


def test_all_thresholds_that_are_claimed_hold_and_others_do_not() -> None:
    certificate = certified()
    low, high = certificate.values["tables"][0]["claimed"][-1]
    assert certificate.threshold == low / 65_536
    for cell, holds in ((low, True), (high, True), (low - 1, False), (low + 0.5, False)):
        assert certificate.claims(cell / 65_536) == holds
    assert certificate.claims(np.inf)
    with pytest.raises(InvalidValueError, match="negative"):
        certificate.claims(-0.5)
    with pytest.raises(InvalidValueError, match="no group"):
        certificate.claims(0.5, "day")


def test_the_curve_begins_with_the_highest_score_and_ends_with_all_rows() -> None:
    curve = certified().curve()
    assert (np.diff(curve.thresholds) < 0).all()
    assert curve.coverage[-1] == 1.0
    assert curve.rate[-1] == pytest.approx(1 - CORRECT.mean())


def test_a_refusal_never_answers_and_says_what_it_would_take() -> None:
    refused = certify_abstention(CONFIDENCE[:100], CORRECT[:100], xi=0.01, delta=0.001)
    assert (refused.certified, refused.threshold, refused.coverage) == (False, np.inf, 0.0)
    assert refused.observed_rate is None
    assert not refused.answers([1.0, 0.5]).any()
    assert refused.refusal is not None
    assert refused.refusal.needed == 688
    assert "Never answer." in refused.summary()
    assert refused.verify()


def test_a_declared_start_has_a_procedure_of_its_own_and_stands_in_the_document(
    tmp_path: Path,
) -> None:
    certificate = certify_abstention(CONFIDENCE, CORRECT, first_threshold=0.97, **CLAIM)
    assert certificate.certified
    certificate.save(tmp_path / "c.json")
    claim = json.loads((tmp_path / "c.json").read_text())["claim"]
    assert claim["procedure"] == "abstention/declared-start/1"
    assert claim["first_threshold"] == int(0.97 * 65_536) / 65_536
    assert load_certificate(tmp_path / "c.json").verify()
    assert "first_threshold" not in certified().to_dict()["claim"]


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"xi": 1.0}, InvalidValueError, "xi=1.0 is not a rate"),
        ({"delta": 0}, InvalidValueError, "delta=0 is not"),
        ({"delta": 0.9}, InvalidValueError, "for 95 % confidence pass delta=0.05"),
        ({"first_threshold": 1.5}, InvalidValueError, "first_threshold=1.5 is not a score"),
        ({"first_threshold": "a"}, InvalidTypeError, "first_threshold='a'"),
        ({"groups": {"a": [True] * 2000}}, InvalidTypeError, "expected one group per row"),
        ({"groups": ["a"]}, InvalidValueError, "Rows do not match"),
        ({"prediction": [1] * 2000}, InvalidTypeError, "Pass either correct, or both"),
        ({"engine": "duckdb"}, InvalidTypeError, "engine is about files"),
        ({"labels": [1]}, InvalidTypeError, "labels is not an option"),
        ({"correct": "ok"}, InvalidTypeError, "there is no table"),
        ({"missing": "NA"}, InvalidTypeError, "missing is about classes"),
    ],
)
def test_bad_arguments_are_named(
    wrong: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        certify_abstention(**{"confidence": CONFIDENCE, "correct": CORRECT, **CLAIM, **wrong})


def _changed(change: dict[str, Any], **counts: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(certified().to_dict()))
    table = document["claim"]["tables"][0]
    table.update(change)
    table["counts"].update(counts)
    return document


@pytest.mark.parametrize(
    ("change", "counts", "message"),
    [
        ({}, {"cells": [1, 0]}, "does not rise"),
        ({}, {"cells": [1, 2]}, "do not fit"),
        ({}, {"cells": [5], "wrong": [0], "right": [1]}, "have 1 rows"),
        ({}, {"cells": [70_000], "wrong": [0], "right": [2000]}, "does not rise"),
        ({}, {"cells": [5], "wrong": [-1], "right": [2001]}, "do not fit"),
        ({}, {"cells": [5, 6], "wrong": [0, 0], "right": [2000, 0]}, "do not fit"),
        ({}, {"cells": [], "wrong": [], "right": []}, "are of no rows"),
        ({"claimed": [[1]]}, {}, "are not ranges"),
        ({"group": "a"}, {}, "do not fit the scope"),
        ({"starts": [1]}, {}, "unknown keys"),
    ],
)
def test_counts_that_cannot_be_are_refused(
    change: dict[str, Any], counts: dict[str, Any], message: str
) -> None:
    with pytest.raises(CertificateError, match=message):
        certificate_from_dict(_changed(change, **counts))


def test_a_threshold_that_the_counts_do_not_lead_to_is_found() -> None:
    low, high = certified().values["tables"][0]["claimed"][0]
    for change in (
        {"threshold": 0.3},
        {"claimed": [[low - 1, high]]},
        {"claimed": [], "threshold": "+inf"},
    ):
        forged = certificate_from_dict(_changed(change))
        assert not forged.verify()
        assert forged.summary().startswith("CHANGED AFTER IT WAS WRITTEN")


def test_rows_that_share_one_score_are_certified() -> None:
    tied = certify_abstention([0.9] * 500, [False] * 3 + [True] * 497, xi=0.05, delta=0.1)
    assert "Every row is answered" in tied.summary()


def test_a_refusal_explains_the_base_error() -> None:
    confidence, correct = np.arange(1000) / 1000, np.arange(1000) % 5 > 1
    refused = certify_abstention(confidence, correct, xi=0.2, delta=0.01)
    assert "40 % of all rows are wrong" in refused.summary()
    assert "at least 25 % of them must be left out" in refused.summary()
    assert "rows would do if they are like these; plan for more. Never answer." in refused.summary()

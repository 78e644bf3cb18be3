"""Cascades of which it is claimed that few answers differ from the slow model's."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from pacbound import Tally, certify_cascade, documents, exact_verifier
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import CertificateError, InvalidValueError

Array = NDArray[Any]
ASKED: dict[str, Any] = {"xi": 0.05, "delta": 0.1}


@pytest.fixture(scope="module")
def rows() -> tuple[Array, Array]:
    """Scores and answers: the surer the fast model, the rarer it differs."""
    rng = np.random.default_rng(7)
    scores, predictions = rng.random(600), np.zeros((600, 2), dtype=int)
    predictions[rng.random(600) > scores, 0] = 1
    return scores, predictions


def wrong(document: dict[str, Any]) -> list[bool]:
    """Whether the package, and whether the exact verifier, finds something wrong, once all digests
    are mended."""
    claim = document["claim"]
    document["claim_digest"] = documents.digest(claim)
    document["counts_digest"] = exact_verifier.counts_digest(exact_verifier.Part(claim, "claim"))
    try:
        package = not certificate_from_dict(document).verify()
    except CertificateError:
        package = True
    return [package, bool(exact_verifier.check_document(document).wrong)]


def written(certificate: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(certificate.to_dict()))
    return document


def test_it_has_the_thresholds_of_the_loss_without_labels_and_another_claim(
    rows: tuple[Array, Array],
) -> None:
    loss = certify_cascade(*rows, **ASKED)
    differ = certify_cascade(*rows, **ASKED, claim="differ")
    assert differ.thresholds == loss.thresholds
    assert (loss.bounded, differ.bounded) == ("loss", "differ")
    assert differ.counts_digest != loss.counts_digest
    assert "loses at most 5 % accuracy" in loss.summary()
    assert "at most 5 % of its answers differ" in differ.summary()
    assert "label" not in differ.summary()
    assert differ.settled
    assert differ.best_possible.thresholds == differ.thresholds
    said = " ".join(differ.assumed())
    assert "fixed without a look at these rows" in said
    assert "their deltas add up" in said


def test_labels_beside_it_are_refused_wherever_they_come_from(rows: tuple[Array, Array]) -> None:
    scores, predictions = rows
    frame = pl.DataFrame({"c": scores, "fast": predictions[:, 0], "slow": predictions[:, 1]})
    named: dict[str, Any] = {"confidence": ["c"], "prediction": ["fast", "slow"]}
    asked: dict[str, Any] = {**ASKED, "claim": "differ"}
    with pytest.raises(InvalidValueError, match=r"label was passed: with labels claim the loss"):
        certify_cascade(scores, predictions, np.zeros(600), **asked)
    with pytest.raises(InvalidValueError, match="label was passed"):
        certify_cascade(data=frame, **{**named, "label": "slow"}, **asked)
    with pytest.raises(InvalidValueError, match="answers was passed"):
        certify_cascade(data=frame, **named, answers=frame, **asked)
    labels = np.where(np.arange(600) < 300, 0.0, np.nan)
    for groups in (None, np.arange(600) % 2, {"late": np.arange(600) > 250}):
        tally = Tally.count(
            "cascade", confidence=scores, prediction=predictions, label=labels, groups=groups
        )
        with pytest.raises(InvalidValueError, match="rows on which models differ have one"):
            certify_cascade(data=tally, **asked)
    certify_cascade(data=frame, **named, **asked)
    with pytest.raises(InvalidValueError, match="expected 'loss' or 'differ'"):
        certify_cascade(scores, predictions, **ASKED, claim="agree")  # type: ignore[arg-type]


def test_rows_that_all_agree_can_be_claimed_to_differ_rarely() -> None:
    found = certify_cascade([0.9] * 100, [[1, 1]] * 100, xi=0.05, delta=0.05, claim="differ")
    assert found.certified
    assert wrong(written(found)) == [False, False]
    few = certify_cascade([0.9] * 10, [[1, 1]] * 10, xi=0.05, delta=0.05, claim="differ")
    assert "10 rows cannot certify 5 %, even if no answer differs" in few.summary()
    assert few.refusal is not None
    assert few.refusal.needed == 59


def test_both_verifiers_refuse_it_beside_labels(rows: tuple[Array, Array]) -> None:
    scores, predictions = rows
    labels = np.where(scores > 0.5, 0, np.nan)
    for known in (labels, np.zeros(600)):
        document = written(certify_cascade(scores, predictions, known, **ASKED))
        assert wrong(document) == [False, False]
        document["claim"]["claim"] = "differ"
        assert wrong(document) == [True, True]
    document = written(certify_cascade(scores, predictions, **ASKED, claim="differ"))
    document["claim"]["tables"][0]["labels"]["labelled"] = 1
    assert wrong(document) == [True, True]


def test_what_was_declared_is_beyond_both_verifiers_and_they_say_so(
    rows: tuple[Array, Array],
) -> None:
    loss = written(certify_cascade(*rows, **ASKED))
    differ = written(certify_cascade(*rows, **ASKED, claim="differ"))
    rewritten = {
        **loss["claim"],
        "claim": "differ",
        "assumes": differ["claim"]["assumes"],
    }
    best = differ["claim"]["tables"][0]["best_possible"]
    rewritten["tables"][0]["best_possible"] = best
    assert rewritten == differ["claim"]
    assert wrong(differ) == [False, False]
    trusted = exact_verifier.check_document(differ).trusted
    assert any("'differ' was declared beforehand" in line for line in trusted)
    assert not any("declared" in line for line in exact_verifier.check_document(loss).trusted)

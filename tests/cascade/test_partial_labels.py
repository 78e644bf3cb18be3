"""Cascades certified with few labels, or none: what is claimed, what more labels could gain."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pacbound import certify_cascade, documents
from pacbound.claims.certificate import certificate_from_dict
from pacbound.data import fashion_mnist
from pacbound.errors import CertificateError

Array = NDArray[Any]


@pytest.fixture(scope="module")
def images() -> tuple[Array, Array, Array]:
    """The confidence of the fast model, both predictions, and the labels."""
    table = fashion_mnist()
    predictions = np.column_stack([table.prediction_fast, table.prediction_slow])
    return table.confidence_fast, predictions, table.label


def few(labels: Array, scores: Array, above: float) -> Array:
    """The labels of the rows with a score from `above` on."""
    return np.where(scores >= above, labels, np.nan)


@pytest.mark.parametrize(
    ("xi", "without", "whole"), [(0.01, 0.553, 0.646), (0.005, 0.480, 0.562), (0.002, 0.383, 0.461)]
)
def test_without_labels_fashion_mnist_exits_nearly_as_often(
    images: tuple[Array, Array, Array], xi: float, without: float, whole: float
) -> None:
    scores, predictions, labels = images
    none = certify_cascade(scores, predictions, xi=xi, delta=0.01)
    full = certify_cascade(scores, predictions, labels, xi=xi, delta=0.01)
    assert none.exit_rates[0].round(3) == without
    assert full.exit_rates[0].round(3) == whole
    assert none.bounded == "loss"
    assert not none.settled
    assert (
        f"loses at most {xi:.1%} accuracy".replace("%", " %").replace(".0 ", " ") in none.summary()
    )
    exits = scores >= none.thresholds[0]
    differ = predictions[:, 0] != predictions[:, 1]
    assert none.unlabelled.exiting == (exits & differ).sum()
    assert none.unlabelled.in_all == differ.sum()
    assert none.best_possible.thresholds[0] <= full.thresholds[0] < none.thresholds[0]


def test_labels_from_the_top_of_the_walk_give_the_whole_claim_long_before_all_are_there(
    images: tuple[Array, Array, Array],
) -> None:
    scores, predictions, labels = images
    full = certify_cascade(scores, predictions, labels, xi=0.01, delta=0.01)
    last = np.inf
    for above in (0.95, 0.85, 0.75, 0.72):
        certificate = certify_cascade(
            scores, predictions, few(labels, scores, above), xi=0.01, delta=0.01
        )
        assert full.thresholds[0] <= certificate.thresholds[0] <= last
        last = certificate.thresholds[0]
    assert last == full.thresholds[0]
    assert certificate.settled
    assert "More labels cannot change the thresholds" in certificate.summary()
    assert certificate.unlabelled.exiting == 0
    assert certificate.unlabelled.in_all > 2000


def forged(certificate: Any, change: Any) -> Any:
    document = json.loads(json.dumps(certificate.to_dict()))
    change(document["claim"])
    document["claim_digest"] = documents.digest(document["claim"])
    return certificate_from_dict(document)


def unlabelled_as_gains(claim: dict[str, Any]) -> None:
    walk = claim["tables"][0]["walks"][0]
    walk["only_fast_added"], walk["unlabelled_added"] = (
        walk["unlabelled_added"],
        walk["only_fast_added"],
    )


def fewer_unlabelled(claim: dict[str, Any]) -> None:
    added = claim["tables"][0]["walks"][0]["unlabelled_added"][0]
    added[:] = [0] * len(added)


def fewer_in_all(claim: dict[str, Any]) -> None:
    claim["tables"][0]["labels"]["unlabelled"] = 1


def labels_where_there_were_none(claim: dict[str, Any]) -> None:
    walk = claim["tables"][0]["walks"][0]
    walk["only_slow_added"], walk["unlabelled_added"] = (
        walk["unlabelled_added"],
        walk["only_slow_added"],
    )


def another_procedure(claim: dict[str, Any]) -> None:
    claim["procedure"] = "cascade/paths-in-groups/own/1"


def worse_than_itself(claim: dict[str, Any]) -> None:
    claim["tables"][0]["best_possible"]["exits"] = [0]


def never(claim: dict[str, Any]) -> None:
    claim["tables"][0]["best_possible"]["thresholds"] = ["+inf"]


@pytest.mark.parametrize(
    "change",
    [
        unlabelled_as_gains,
        fewer_unlabelled,
        fewer_in_all,
        labels_where_there_were_none,
        another_procedure,
        worse_than_itself,
        never,
    ],
)
def test_forged_counts_of_missing_labels_are_found_although_the_digest_was_mended(
    change: Any,
) -> None:
    rng = np.random.default_rng(7)
    scores = rng.random(600)
    predictions = np.zeros((600, 2), dtype=int)
    predictions[rng.random(600) > scores, 0] = 1
    certificate = certify_cascade(scores, predictions, xi=0.05, delta=0.1)
    assert certificate.certified
    assert forged(certificate, lambda claim: None).verify()
    with contextlib.suppress(CertificateError):
        assert not forged(certificate, change).verify()

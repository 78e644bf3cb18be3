"""certify_cascade from arrays: what it refuses and says then, what it raises, and that it certifies
what is deployed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.products import standing_for

from pacbound import Tally, documents, load_certificate
from pacbound.claims.cascade import certify_cascade
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    PacboundError,
    RepeatedSourceError,
)
from pacbound.stats.paired import labels_needed_by_walk

Array = NDArray[Any]
Rows = tuple[Array, Array, Array]


def drawn(seed: int, n: int, models: int) -> Rows:
    """Models that get better, with scores that know when they are right; many scores are tied, some
    are exactly one."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(size=(n, 1))
    right = ease + 0.5 * rng.normal(size=(n, models)) > np.linspace(-0.8, -1.2, models)
    predictions = np.where(right, 0, rng.integers(1, 4, size=(n, models)))
    scores = 1 / (1 + np.exp(-2 * (ease + 1 + 0.5 * rng.normal(size=(n, models - 1)))))
    scores = np.where(rng.random(scores.shape) < 0.3, np.round(scores, 1), scores)
    return scores, predictions, np.zeros(n, dtype=np.int64)


# ---- what is certified is what is deployed


@pytest.mark.parametrize("models", [2, 3, 4])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_comparing_float64_scores_with_the_thresholds_gives_the_counted_exits_and_losses(
    models: int, dtype: type
) -> None:
    scores, predictions, labels = drawn(1, 3000, models)
    scores = scores.astype(dtype)
    certificate = certify_cascade(scores, predictions, labels, xi=0.05, delta=0.05)
    assert certificate.certified
    reached = scores.astype(np.float64) >= certificate.thresholds
    exits = np.where(reached.any(axis=1), reached.argmax(axis=1), models - 1)
    assert np.array_equal(
        np.bincount(exits, minlength=models)[:-1], np.round(certificate.exit_rates * 3000)
    )
    answers = predictions[np.arange(3000), exits]
    increase = (answers != labels).mean() - (predictions[:, -1] != labels).mean()
    assert certificate.observed_error_increase == pytest.approx(increase, abs=1e-12)
    assert 0 < certificate.exit_rates.sum() < 1


def test_scores_a_bit_below_a_threshold_stay_and_those_at_it_exit() -> None:
    # Whatever cell the walk ends in, the neighbours of its edge in float64 fall on the right sides.
    edges = np.arange(0, 2**10 + 1) / 2**10
    scores = np.concatenate([edges, np.nextafter(edges[1:], 0), np.nextafter(edges[:-1], 1)])
    n = len(scores)
    pair = np.column_stack([scores, scores[::-1]])
    agree = np.zeros((n, 3), dtype=int)
    for lossy in (scores < 0.5, scores <= 0.25, scores < 0.999):
        predictions = agree.copy()
        predictions[lossy, 0] = 1
        certificate = certify_cascade(pair, predictions, np.zeros(n), xi=0.03, delta=0.1)
        assert certificate.certified
        reached = pair >= certificate.thresholds
        exits = np.where(reached.any(axis=1), reached.argmax(axis=1), 2)
        assert (np.bincount(exits, minlength=3)[:2] / n).tolist() == certificate.exit_rates.tolist()


def test_float16_scores_are_counted_as_the_float64_numbers_that_they_are() -> None:
    for models in (2, 3):
        scores, predictions, labels = drawn(2, 1500, models)
        half = scores.astype(np.float16)
        one = certify_cascade(half, predictions, labels, xi=0.05, delta=0.05)
        other = certify_cascade(half.astype(np.float64), predictions, labels, xi=0.05, delta=0.05)
        assert one.claim_digest == other.claim_digest


@pytest.mark.parametrize("models", [2, 3, 4])
def test_parts_that_are_counted_apart_and_added_give_the_same_claim(models: int) -> None:
    scores, predictions, labels = drawn(3, 2400, models)
    whole = certify_cascade(scores, predictions, labels, xi=0.05, delta=0.05)
    shuffled = np.random.default_rng(4).permutation(2400)
    parts = [
        Tally.count(
            "cascade",
            confidence=scores[rows],
            prediction=predictions[rows],
            label=labels[rows],
        )
        for rows in np.array_split(shuffled, 7)
    ]
    added = certify_cascade(data=sum(parts[1:], parts[0]), xi=0.05, delta=0.05)
    again = certify_cascade(
        data=Tally.from_dict(json.loads(json.dumps(sum(parts[1:], parts[0]).to_dict()))),
        xi=0.05,
        delta=0.05,
    )
    assert whole.claim_digest == added.claim_digest == again.claim_digest
    with pytest.raises(RepeatedSourceError):
        parts[0] + parts[0]


# ---- refusals


@pytest.mark.parametrize("models", [2, 3])
def test_too_few_labels_are_refused_and_as_many_as_asked_for_pass(models: int) -> None:
    def certified(n: int) -> Any:
        scores = np.random.default_rng(9).random((n, models - 1))
        return certify_cascade(
            scores, np.zeros((n, models), dtype=int), np.zeros(n), xi=0.05, delta=0.05
        )

    few = certified(30)
    assert not few.certified
    assert np.isinf(few.thresholds).all()
    assert few.exit_rates.tolist() == [0] * (models - 1)
    assert few.refusal.needed > 30
    assert f"{few.refusal.needed:,} rows" in few.summary()
    enough = certified(few.refusal.needed)
    assert enough.certified
    assert enough.thresholds.tolist() == [0.0] * (models - 1)
    level = 0.05 if models == 2 else 0.05 / 7
    assert few.refusal.needed == labels_needed_by_walk(0.05, delta=level)
    assert not certified(few.refusal.needed - 1).certified


@pytest.mark.parametrize("models", [2, 3])
def test_saturated_scores_that_alone_break_xi_are_refused_with_a_remedy(models: int) -> None:
    predictions = np.zeros((1000, models), dtype=int)
    predictions[:100, 0] = 1
    scores = np.where(np.arange(1000)[:, None] < 500, 1.0, 0.5) * np.ones((1, models - 1))
    certificate = certify_cascade(scores, predictions, np.zeros(1000), xi=0.05, delta=0.05)
    assert not certificate.certified
    assert certificate.refusal is not None
    assert certificate.refusal.needed is None
    assert "100 lose and 0 gain" in certificate.summary()
    assert "More rows cannot help" in certificate.summary()
    assert "a score that separates them" in certificate.summary()
    assert certificate.verify()


def test_certified_but_of_no_use_is_said_so() -> None:
    predictions = np.zeros((1000, 3), dtype=int)
    predictions[:, 0] = 1
    certificate = certify_cascade(
        np.full((1000, 2), 0.5), predictions, np.zeros(1000), xi=0.05, delta=0.05
    )
    assert certificate.certified
    assert not certificate.exit_rates[0]
    flat = certify_cascade(
        np.full(1000, 0.5), predictions[:, [0, 2]], np.zeros(1000), xi=0.05, delta=0.05
    )
    assert "of no use" in flat.summary()


# ---- bad input


@pytest.mark.parametrize(
    ("missing", "prepare"),
    [
        ("None", lambda y: np.array([None if value < 0 else value for value in y], dtype=object)),
        ("NaN", lambda y: np.where(y < 0, np.nan, y)),
        ("a list with None", lambda y: [None if value < 0 else value for value in y.tolist()]),
        ("a mask", lambda y: np.ma.masked_array(y, mask=y < 0)),
        (
            "a mask that leaves NaN",
            lambda y: np.ma.masked_array(np.where(y < 0, np.nan, y), mask=y > 1000),
        ),
    ],
)
def test_a_label_missing_where_predictions_differ_counts_as_a_loss(
    missing: str, prepare: Callable[[Array], Any]
) -> None:
    predictions = np.zeros((200, 3), dtype=int)
    predictions[50:60, 1] = 1
    labels = np.zeros(200, dtype=int)
    labels[[0, 1, 52, 53, 57]] = -1
    scores = np.full((200, 2), 0.5)
    partial = certify_cascade(scores, predictions, prepare(labels), xi=0.2, delta=0.1)
    assert partial.unlabelled.in_all == 3
    labels[[52, 53, 57]] = 0
    full = certify_cascade(scores, predictions, prepare(labels), xi=0.2, delta=0.1)
    assert full.certified
    assert full.unlabelled.in_all == 0
    assert "labels-may-be-missing" in partial.claim()["assumes"]
    assert "labels-may-be-missing" not in full.claim()["assumes"]


@pytest.mark.parametrize(
    "labels",
    [
        [b"2"] * 100,
        np.array(["2020-01-01"] * 100, dtype="M8[D]"),
        [object()] * 100,
        np.full(100, 2 + 0j),
        ["2"] * 100,
        np.full(100, 2.5),
        np.full(100, 2.0**53),
        np.full(100, np.inf),
    ],
)
def test_labels_that_can_equal_no_prediction_are_refused_instead_of_counting_as_no_loss(
    labels: Any,
) -> None:
    with pytest.raises(PacboundError, match="label"):
        certify_cascade([0.9] * 100, [[1, 2]] * 100, labels, xi=0.1, delta=0.1)


GOOD: dict[str, Any] = {
    "confidence": np.full((100, 2), 0.5),
    "prediction": np.zeros((100, 3), dtype=int),
    "label": np.zeros(100),
    "xi": 0.1,
    "delta": 0.1,
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"costs": (1, 2)}, "2 values for 3 models"),
        ({"costs": (1, 2, 3, 4)}, "4 values for 3 models"),
        ({"costs": (3, 2, 1)}, "do not rise"),
        ({"costs": (1, 1, 2)}, "do not rise"),
        ({"costs": (-1, 1, 2)}, "do not rise"),
        ({"costs": (1, 2, np.inf)}, "do not rise"),
        ({"costs": (1, np.nan, 2)}, "NaN"),
        ({"costs": ("a", "b", "c")}, "cost"),
        ({"xi": 1.0}, "xi=1.0"),
        ({"xi": 1.5}, "xi=1.5"),
        ({"xi": -0.01}, "xi=-0.01"),
        ({"xi": np.nan}, "xi is NaN"),
        ({"xi": "0.1"}, "xi="),
        ({"xi": None}, "xi=None"),
        ({"delta": 0}, "delta=0"),
        ({"delta": 1}, "delta=1"),
        ({"delta": -0.5}, "delta=-0.5"),
        ({"delta": np.nan}, "delta is NaN"),
        ({"confidence": np.full(100, 0.5)}, "not a cascade"),
        ({"confidence": np.full((100, 3), 0.5)}, "not a cascade"),
        ({"confidence": np.full((99, 2), 0.5)}, "confidence has 99"),
        ({"confidence": np.full((100, 2), 1.5)}, "logits or percentages"),
        ({"confidence": np.full((100, 2), -0.5)}, "logits"),
        ({"confidence": np.full((100, 2), np.nan)}, r"confidence\[:, 0\]\[0\] is nan"),
        ({"confidence": np.full((100, 2), "x")}, "confidence"),
        ({"prediction": np.zeros(100)}, r"expected \(n, M\)"),
        ({"prediction": np.full((100, 3), np.nan)}, "prediction"),
        ({"prediction": [[0, 1, 2], [0, 1]]}, "prediction"),
        ({"label": np.zeros((100, 2))}, "one value per row"),
        ({"label": np.ma.masked_array(np.zeros((100, 1)))}, "one value per row"),
        ({"label": np.zeros(99)}, "label has 99"),
        ({"prediction": None}, "missing"),
        (
            {
                "confidence": np.zeros((0, 2)),
                "prediction": np.zeros((0, 3)),
                "label": np.zeros(0),
            },
            "no rows",
        ),
    ],
)
def test_wrong_arguments_raise_and_say_which(changed: dict[str, Any], message: str) -> None:
    assert certify_cascade(**GOOD).certified
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        certify_cascade(**{**GOOD, **changed})


def test_a_tally_whose_counts_are_not_of_its_rows_is_refused() -> None:
    tally = Tally.count(
        "cascade",
        confidence=GOOD["confidence"],
        prediction=GOOD["prediction"],
        label=GOOD["label"],
    )
    inflated = Tally(tally.kind, tally.grid, tally.outcomes, 10**6, tally.cells, tally.counts)
    with pytest.raises(InvalidValueError, match="does not add up"):
        certify_cascade(data=inflated, xi=0.1, delta=0.1)


# ---- documents


def forged(document: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The document with a changed claim and a digest that fits it, which hides the change."""
    changed = copy.deepcopy(document)
    change(changed["claim"])
    changed["claim_digest"] = documents.digest(changed["claim"])
    return changed


def without_steps(walk: dict[str, Any], steps: slice) -> None:
    for name, rows in walk.items():
        kept = [row[:] for row in rows]
        for row in kept:
            del row[steps]
        walk[name] = kept


def holds(document: dict[str, Any]) -> bool:
    try:
        return bool(certificate_from_dict(document).verify())
    except CertificateError:
        return False


@pytest.mark.parametrize("models", [2, 3])
def test_a_walk_that_does_not_begin_at_its_declared_beginning_does_not_hold(models: int) -> None:
    document = certify_cascade(*drawn(12, 3000, models), xi=0.05, delta=0.05).to_dict()
    document = json.loads(json.dumps(document))
    assert holds(forged(document, lambda claim: None))
    for place in range(len(document["claim"]["tables"][0]["walks"])):

        def without_the_first(claim: dict[str, Any], place: int = place) -> None:
            without_steps(claim["tables"][0]["walks"][place], slice(0, 1))

        assert not holds(forged(document, without_the_first))


@pytest.mark.parametrize("models", [2, 3])
def test_counts_that_no_rows_can_have_do_not_hold(models: int) -> None:
    document = json.loads(
        json.dumps(certify_cascade(*drawn(13, 3000, models), xi=0.05, delta=0.05).to_dict())
    )

    def fewer_exits(claim: dict[str, Any]) -> None:
        claim["tables"][0]["walks"][-1]["exits_added"][0][-1] = -1

    def more_than_all(claim: dict[str, Any]) -> None:
        claim["tables"][0]["walks"][-1]["exits_added"][-1][-1] = claim["n"] + 1

    for change in (fewer_exits, more_than_all):
        with pytest.raises(CertificateError, match=r"walks.*(exits|counts)"):
            certificate_from_dict(forged(document, change))


def test_steps_of_ones_own_choice_do_not_hold_where_no_loss_is_allowed() -> None:
    scores, predictions, labels = drawn(14, 2000, 3)
    document = certify_cascade(
        scores, predictions[:, [2, 2, 0]], labels, xi=0.0, delta=0.05
    ).to_dict()
    document = json.loads(json.dumps(document))
    assert document["claim"]["certified"]
    assert holds(forged(document, lambda claim: None))

    def without_the_first(claim: dict[str, Any]) -> None:
        for walk in claim["tables"][0]["walks"]:
            without_steps(walk, slice(0, 1))

    def moved(claim: dict[str, Any]) -> None:
        for name in claim["tables"][0]["walks"][2]:
            for row in claim["tables"][0]["walks"][2][name]:
                row[3] = row[2]

    for change in (without_the_first, moved):
        assert not holds(forged(document, change))


@pytest.mark.parametrize("models", [2, 3, 4])
@pytest.mark.parametrize("xi", [0.0, 0.05])
def test_a_certificate_survives_its_file_and_verifies(
    models: int, xi: float, tmp_path: Path
) -> None:
    certificate = certify_cascade(*drawn(15, 1500, models), xi=xi, delta=0.05)
    certificate.save(tmp_path / "c.json")
    again = load_certificate(tmp_path / "c.json")
    assert again.verify()
    assert again.claim_digest == certificate.claim_digest
    assert again.summary() == certificate.summary()


@pytest.mark.long
@pytest.mark.parametrize("models", standing_for([2, 3, 4], [2], rest="long"))
def test_very_many_rows_in_every_cell_make_a_certificate_under_two_megabytes(
    models: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Gains and losses take turns in every cell, so that the walk passes all the way down and every
    # step is a change.
    n = 10**6 if models < 4 else 3 * 10**5
    row = np.arange(n)
    every_cell, anywhere = (
        row[:, None] % (2**16 + 1) / 2**16,
        np.random.default_rng(16).random((n, models - 1)),
    )
    scores = every_cell if models == 2 else anywhere
    gains = (row // (2**16 + 1)) % 2 == 0
    fast, slow = np.where(gains, 0, 1)[:, None], np.where(gains, 1, 0)[:, None]
    started = perf_counter()
    certificate = certify_cascade(
        scores,
        np.concatenate([fast] * (models - 1) + [slow], axis=1),
        np.zeros(n, dtype=int),
        xi=0.02,
        delta=1e-3,
    )
    certified = perf_counter()
    assert certificate.thresholds.tolist() == [0.0] * (models - 1)
    certificate.save(tmp_path / "c.json")
    saved = perf_counter()
    assert (tmp_path / "c.json").stat().st_size < 2_000_000
    assert load_certificate(tmp_path / "c.json").verify()
    if models == 2:
        assert len(certificate.tables[0].walks[0]) == 2**16 + 1
    with capsys.disabled():
        size = (tmp_path / "c.json").stat().st_size / 1e6
        print(  # noqa: RUF100, T201
            f"\n{models} models, {n:,} rows: certified in {certified - started:.1f} s, "
            f"read and verified in {perf_counter() - saved:.1f} s, {size:.2f} MB"
        )

"""One row of an outcome is drawn from each cluster that has any, and all others are counted."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    Tally,
    certify_false_alarms,
    certify_precision,
    certify_recall,
    certify_shield,
    load_certificate,
)
from pacbound import exact_verifier as exact
from pacbound.documents import digest
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    RepeatedSourceError,
)
from pacbound.tally.coins import keyed_numbers

ROWS = 900
RNG = np.random.default_rng(3)
PATIENT = RNG.integers(0, 150, size=ROWS)
POSITIVE = RNG.random(ROWS) < 0.2
SCORE = np.where(POSITIVE, RNG.beta(4, 2, size=ROWS), RNG.beta(1, 5, size=ROWS))
COLUMNS: dict[str, Any] = {"score": SCORE, "positive": POSITIVE, "clusters": PATIENT, "seed": 0}
TARGET: dict[str, Any] = {"target": 0.7, "delta": 0.1}
XI: dict[str, Any] = {"xi": 0.3, "delta": 0.1}


def _drawn(trials: np.ndarray, seed: int = 0) -> list[int]:
    """The rows that the key draws, by the definition."""
    found = []
    for patient in dict.fromkeys(PATIENT.tolist()):
        rows = np.flatnonzero((patient == PATIENT) & trials).tolist()
        if rows:
            (number,) = keyed_numbers(seed, "cluster", [str(patient)], each=2)[:, 0].tolist()
            found.append(rows[number * len(rows) >> 64])
    return sorted(found)


@pytest.mark.parametrize(("among", "trials"), [("positive", POSITIVE), ("negative", ~POSITIVE)])
def test_one_row_of_the_outcome_is_drawn_by_the_key_and_all_others_are_counted(
    among: str, trials: np.ndarray
) -> None:
    tally = Tally.count(
        "recall",
        **COLUMNS | {"seed": 4},
        among=among,
    )
    kept = sorted([*_drawn(trials, 4), *np.flatnonzero(~trials).tolist()])
    plain = Tally.count("recall", score=SCORE[kept], positive=POSITIVE[kept])
    assert np.array_equal(tally.cells, plain.cells)
    assert np.array_equal(tally.counts, plain.counts)
    drawn = tally.drawn
    assert drawn is not None
    assert drawn.among == ((among, int(trials.sum())),)
    assert drawn.units == len(set(PATIENT.tolist()))
    assert drawn.others == int((~trials).sum())
    assert tally.totals[among] == len(set(PATIENT[trials].tolist()))


def test_verbs_draw_among_their_trials() -> None:
    made = {
        "positive": certify_recall(**COLUMNS, **TARGET),
        "negative": certify_false_alarms(**COLUMNS, **XI),
    }
    for what, certificate in made.items():
        assert f"one {what} row from each cluster that has any" in certificate.summary()
        assert certificate.verify()
    rollouts: dict[str, Any] = {"score": SCORE, "unsafe": POSITIVE, "clusters": PATIENT, **XI}
    unsafe = certify_shield(**rollouts, rate="among-unsafe")
    assert unsafe.draw is not None
    assert unsafe.draw.among == (("unsafe", int(POSITIVE.sum())),)
    for one in (
        certify_shield(**rollouts),
        certify_precision(**COLUMNS, target=0.3, delta=0.1),
    ):
        assert one.draw is not None
        assert one.draw.among == ()


def test_the_claim_names_its_law_and_its_stopping_rule() -> None:
    recall = certify_recall(**COLUMNS, **TARGET)
    assert "if each cluster that has any counts once" in recall.summary()
    assert "a random positive row of a random cluster that has one" in recall.summary()
    assumed = recall.claim()["assumes"]
    assert "stopped-by-clusters" in assumed
    assert "claim-per-cluster-with-trials" in assumed
    first = Tally.count("recall", **COLUMNS, among="all")
    assert "clusters-unseen" in certify_recall(data=first, **TARGET).claim()["assumes"]


def test_a_share_of_all_rows_weighs_drawn_rows_by_what_they_stand_for() -> None:
    made = certify_recall(**COLUMNS, **TARGET)
    flagged = made.threshold
    drawn, others = _drawn(POSITIVE), np.flatnonzero(~POSITIVE)
    of_positives = (SCORE[drawn] >= flagged).mean()
    expected = POSITIVE.sum() * of_positives + (SCORE[others] >= flagged).sum()
    assert made.flag_rate == pytest.approx(expected / ROWS)
    curve = made.recall_curve()
    at = np.searchsorted(-curve.thresholds, -flagged, side="right") - 1
    assert curve.flagged[at] == pytest.approx(made.flag_rate)
    assert made.observed_recall == pytest.approx(of_positives)


def test_a_claim_refuses_rows_that_were_drawn_among_those_of_another_outcome() -> None:
    positives = Tally.count("recall", **COLUMNS)
    with pytest.raises(InvalidValueError, match="count again, with among='negative'"):
        certify_false_alarms(data=positives, **XI)
    with pytest.raises(InvalidValueError, match="count again, with among='all'"):
        certify_precision(data=positives, target=0.3, delta=0.1)
    both = Tally.count("recall", **COLUMNS, among=["positive", "negative"])
    assert certify_recall(data=both, **TARGET).threshold == (
        certify_recall(data=positives, **TARGET).threshold
    )
    assert certify_false_alarms(data=both, **XI).threshold == (
        certify_false_alarms(**COLUMNS, **XI).threshold
    )


@pytest.mark.parametrize("among", ["ill", ["positive", "ill"], ["positive", "positive"], []])
def test_what_is_not_an_outcome_is_not_drawn_among(among: Any) -> None:
    with pytest.raises(InvalidValueError, match="expected 'negative' or 'positive'"):
        Tally.count("recall", **COLUMNS, among=among)


def test_outcomes_that_nothing_is_claimed_among_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="drawn before their outcome is looked at"):
        Tally.count("calibration", SCORE, POSITIVE, clusters=PATIENT, among="right", seed=0)
    with pytest.raises(InvalidValueError, match="expected 'safe' or 'unsafe', or 'all'"):
        Tally.count("shield", SCORE, POSITIVE, clusters=PATIENT, among=["safe", "unsafe"], seed=0)
    with pytest.raises(InvalidTypeError, match="is about clusters, and none are drawn from"):
        Tally.count("recall", SCORE, POSITIVE, among="positive")


def test_tallies_of_different_patients_add_and_others_do_not() -> None:
    def part(rows: Any, **more: Any) -> Tally:
        return Tally.count(
            "recall", **{k: v if k == "seed" else v[rows] for k, v in COLUMNS.items()}, **more
        )

    here, there = PATIENT < 70, PATIENT >= 70
    whole = Tally.count("recall", **COLUMNS)
    assert part(here) + part(there) == whole
    assert whole.zero() + whole == whole
    with pytest.raises(InvalidValueError, match="drawn in different ways"):
        part(here) + part(there, among="all")
    with pytest.raises(InvalidValueError, match="among the negative rows"):
        part(here) + part(there, among="negative")
    # A patient without a positive in one of them is the same patient.
    with pytest.raises(RepeatedSourceError, match="clusters are in both tallies"):
        part(~POSITIVE) + part(POSITIVE & here)


def test_a_tally_and_its_document_say_the_same(tmp_path: Path) -> None:
    for bound in (None, 20):
        tally = Tally.count("recall", **COLUMNS, cluster_bound=bound)
        tally.save(tmp_path / "t.json")
        again = Tally.load(tmp_path / "t.json")
        assert again == tally
        assert again.drawn == tally.drawn
        document = tally.to_dict()
        for wrong in ({}, {"positive": 10**6}, {"positive": 3}, {"positive": -1}):
            changed = copy.deepcopy(document)
            changed["drawn"]["among"] = wrong
            changed["digest"] = digest({k: v for k, v in changed.items() if k != "digest"})
            with pytest.raises(CertificateError):
                Tally.from_dict(changed)


def test_with_a_bound_the_positives_of_a_cluster_decide_and_not_its_size() -> None:
    largest = int(np.bincount(PATIENT[POSITIVE]).max())
    assert largest < np.bincount(PATIENT).max()
    made = certify_recall(**COLUMNS, **TARGET, cluster_bound=largest)
    expected = int(POSITIVE.sum()) / largest
    assert made.positives == pytest.approx(expected, abs=20)
    assert f"were kept, and {expected:.0f} were expected" in made.summary()
    assert "about a random positive row." in made.summary()
    with pytest.raises(InvalidValueError, match=f"has {largest} positive rows, more than"):
        certify_recall(**COLUMNS, **TARGET, cluster_bound=largest - 1)


def test_a_bound_that_keeps_no_positive_is_an_error_and_not_a_refusal() -> None:
    with pytest.raises(InvalidValueError, match="nothing to certify"):
        certify_recall(
            [0.5, 0.2], [True, False], **TARGET, clusters=[1, 1], cluster_bound=10**6, seed=0
        )


def test_without_a_positive_the_claim_is_refused() -> None:
    made = certify_recall([0.5, 0.2, 0.3], [False] * 3, **TARGET, clusters=[1, 1, 2], seed=0)
    assert not made.certified
    assert made.says_nothing() is not None
    assert made.verify()


@pytest.mark.parametrize("rows", [1, 2])
def test_small_samples_and_saturated_scores_are_drawn_too(rows: int) -> None:
    made = certify_recall([1.0] * rows, [True] * rows, **TARGET, clusters=["a"] * rows, seed=0)
    assert made.positives == 1
    assert made.flag_rate == 1.0


def test_row_ids_draw_the_same_rows_in_any_order() -> None:
    ids = np.arange(ROWS)
    order = RNG.permutation(ROWS)
    one = Tally.count("recall", **COLUMNS, row_ids=ids)
    shuffled = {
        name: column if name == "seed" else column[order] for name, column in COLUMNS.items()
    }
    assert Tally.count("recall", **shuffled, row_ids=ids[order]) == one


def test_overlapping_groups_and_own_thresholds_are_counted_from_the_drawn_rows() -> None:
    north = PATIENT % 2 == 0
    names = np.where(north, "north", "south")
    own = certify_recall(**COLUMNS, **TARGET, groups=names, group_thresholds="own")
    assert sum(search.trials for search in own.searches) == len(_drawn(POSITIVE))
    groups = {"north": north, "all": np.ones(ROWS, dtype=bool)}
    with pytest.raises(InvalidTypeError, match="or declare cluster_bound"):
        certify_recall(**COLUMNS, **TARGET, groups=groups)
    bound = int(np.bincount(PATIENT).max())
    overlapping = certify_recall(**COLUMNS, **TARGET, groups=groups, cluster_bound=bound)
    for made in (own, overlapping):
        assert made.verify()
        assert not exact.check_document(json.loads(json.dumps(made.to_dict()))).wrong


CHANGES: list[dict[str, Any]] = [
    {"among": {"negative": int(POSITIVE.sum())}},
    {"among": {"positive": int(POSITIVE.sum()) - 1}},
    {"among": {"positive": int(POSITIVE.sum()) + 1}},
    {"among": {"positive": 0}},
    {"among": {}},
    {"clusters": 10},
    {"rows": ROWS + 1},
    {"bound": 1},
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_draw_with_mended_digests_is_found_by_both_verifiers(
    change: dict[str, Any], tmp_path: Path
) -> None:
    document = json.loads(json.dumps(certify_recall(**COLUMNS, **TARGET).to_dict()))
    document["claim"]["drawn"] |= change
    claim = exact.Part(document["claim"], "claim")
    document["counts_digest"] = exact.counts_digest(claim)
    document["claim_digest"] = exact.digest(document["claim"])
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document))
    with pytest.raises(CertificateError):
        load_certificate(path)
    with suppress(exact.UnreadableError):
        assert exact.check_document(document).wrong

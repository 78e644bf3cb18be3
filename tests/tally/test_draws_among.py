"""One row of an outcome is drawn from each cluster that has any, and all others are counted."""

from __future__ import annotations

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
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    RepeatedSourceError,
)
from pacbound.tally.keyed_numbers import keyed_numbers

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
    assert made.coverage == pytest.approx(expected / ROWS)
    curve = made.curve()
    at = np.searchsorted(-curve.thresholds, -flagged, side="right") - 1
    assert curve.coverage[at] == pytest.approx(made.coverage)
    assert made.share("positive") == pytest.approx(of_positives)


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


def test_with_a_bound_the_positives_of_a_cluster_decide_and_not_its_size() -> None:
    largest = int(np.bincount(PATIENT[POSITIVE]).max())
    assert largest < np.bincount(PATIENT).max()
    made = certify_recall(**COLUMNS, **TARGET, cluster_bound=largest)
    expected = int(POSITIVE.sum()) / largest
    assert made.trials == pytest.approx(expected, abs=20)
    assert f"were kept, and {expected:.0f} were expected" in made.summary()
    assert "about a random positive row." in made.summary()
    with pytest.raises(InvalidValueError, match=f"has {largest} positive rows, more than"):
        certify_recall(**COLUMNS, **TARGET, cluster_bound=largest - 1)


@pytest.mark.parametrize("rows", [1, 2])
def test_small_samples_and_saturated_scores_are_drawn_too(rows: int) -> None:
    made = certify_recall([1.0] * rows, [True] * rows, **TARGET, clusters=["a"] * rows, seed=0)
    assert made.trials == 1
    assert made.coverage == 1.0


def test_overlapping_groups_and_own_thresholds_are_counted_from_the_drawn_rows() -> None:
    north = PATIENT % 2 == 0
    names = np.where(north, "north", "south")
    own = certify_recall(**COLUMNS, **TARGET, groups=names, group_thresholds="own")
    assert own.trials == len(_drawn(POSITIVE))
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

"""One row of each cluster is drawn for each group, and each bin, in which it has any."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import bdtr

from pacbound import (
    Tally,
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_recall,
    certify_replacement,
    load_certificate,
)
from pacbound import exact_verifier as exact
from pacbound.errors import CertificateError, RepeatedSourceError

RNG = np.random.default_rng(0)
ROWS = 1000
PATIENT = RNG.integers(0, 120, size=ROWS)
SCANNER = RNG.choice(["CT", "MRI", "US"], ROWS, p=[0.7, 0.1, 0.2])
SCORE = RNG.uniform(size=ROWS).round(2)
RIGHT = RNG.random(ROWS) < SCORE
LABEL = RNG.integers(0, 3, size=ROWS)
ANSWERS = np.column_stack([np.where(RNG.random(ROWS) < 0.95, LABEL, 0), LABEL])
BY: dict[str, Any] = {"clusters": PATIENT, "groups": SCANNER, "seed": 5}


def _pairs(*columns: Any, where: Any = slice(None)) -> int:
    """How many different combinations rows have."""
    return len({*zip(*(column[where].tolist() for column in columns), strict=True)})


def test_each_cluster_gives_a_row_to_each_group_that_it_is_in() -> None:
    tally = Tally.count("abstention", SCORE, RIGHT, **BY)
    assert tally.rows == _pairs(PATIENT, SCANNER)
    for place, name in enumerate(tally.groups):
        inside = int(tally.counts[tally.cells[:, 0] == place].sum())
        assert inside == len(set(PATIENT[name == SCANNER].tolist()))
    assert tally.drawn is not None
    in_several = [len(set(SCANNER[patient == PATIENT])) > 1 for patient in set(PATIENT.tolist())]
    assert tally.drawn.each == "cluster-and-group"
    assert tally.drawn.spanning == sum(in_several)
    assert tally.drawn.units == len(in_several)
    assert Tally.from_dict(tally.to_dict()) == tally


def test_among_the_trials_each_group_has_one_of_them() -> None:
    tally = Tally.count("recall", SCORE, RIGHT, **BY)
    assert tally.totals["positive"] == _pairs(PATIENT, SCANNER, where=RIGHT)
    assert tally.totals["negative"] == int((~RIGHT).sum())
    assert tally.drawn is not None
    several = [len(set(SCANNER[RIGHT & (patient == PATIENT)])) > 1 for patient in set(PATIENT)]
    assert tally.drawn.spanning == sum(several)


@pytest.mark.parametrize("groups", [None, SCANNER])
def test_each_bin_of_a_calibration_has_a_row_of_each_cluster(groups: Any) -> None:
    made: Any = calibrate(
        SCORE, RIGHT, delta=0.1, n_bins=4, clusters=PATIENT, groups=groups, seed=5
    )
    cell = np.maximum(np.ceil(SCORE * 4) - 1, 0)
    keys = (PATIENT, cell) if groups is None else (PATIENT, cell, SCANNER)
    assert made.n == _pairs(*keys)
    assert made.trials.max() <= len(set(PATIENT.tolist()))
    # Bins that depend on each other share delta by addition, empty ones among them.
    assert made.values["correction"] == "bonferroni"
    assert f"of {made.draw.units} clusters for each bin" in made.summary()


def test_a_single_bin_and_a_bound_are_drawn_from_as_a_whole() -> None:
    one: Any = calibrate(SCORE, RIGHT, delta=0.1, n_bins=1, clusters=PATIENT, seed=5)
    assert (one.draw.each, one.n) == ("cluster", len(set(PATIENT.tolist())))
    bound: Any = calibrate(SCORE, RIGHT, delta=0.1, n_bins=4, cluster_bound=30, **BY)
    assert (bound.draw.each, bound.values["correction"]) == ("cluster", "sidak")
    # Patients of two hospitals may have one number: both say how many do.
    assert bound.draw.spanning
    assert f"{bound.draw.spanning} of {bound.draw.units} clusters have rows in" in bound.summary()


def test_every_row_of_a_cluster_in_a_group_is_as_likely() -> None:
    clusters, place = np.repeat(np.arange(4000), 5), np.tile(np.arange(5), 4000)
    group = np.where(place < 2, "a", "b")
    for which, share in ((0, 1 / 2), (2, 1 / 3), (4, 1 / 3)):
        here = place == which
        score = np.full(20_000, 0.5)
        drawn = Tally.count("abstention", score, here, clusters=clusters, groups=group, seed=9)
        seen = drawn.totals["right"]
        assert min(bdtr(seen, 4000, share), 1 - bdtr(seen - 1, 4000, share)) > 1e-3


def test_tallies_of_other_clusters_add_and_of_the_same_do_not() -> None:
    low = PATIENT < 60
    parts = [
        Tally.count(
            "abstention", SCORE[one], RIGHT[one], clusters=PATIENT[one], groups=SCANNER[one], seed=5
        )
        for one in (low, ~low)
    ]
    assert sum(parts) == Tally.count("abstention", SCORE, RIGHT, **BY)
    again = Tally.count(
        "abstention", SCORE[:9] / 2, RIGHT[:9], clusters=PATIENT[:9], groups=SCANNER[:9], seed=5
    )
    with pytest.raises(RepeatedSourceError, match="clusters are in both tallies"):
        _ = parts[0] + parts[1] + again


MADE: dict[str, Any] = {
    "bins": lambda: calibrate(SCORE, RIGHT, delta=0.1, n_bins=4, clusters=PATIENT, seed=5),
    "bins of groups": lambda: calibrate(SCORE, RIGHT, delta=0.1, n_bins=4, **BY),
    "abstention": lambda: certify_abstention(SCORE, RIGHT, xi=0.4, delta=0.1, **BY),
    "recall": lambda: certify_recall(SCORE, RIGHT, target=0.5, delta=0.1, **BY),
    "own thresholds": lambda: certify_recall(
        SCORE, RIGHT, target=0.5, delta=0.1, group_thresholds="own", **BY
    ),
    "left out": lambda: certify_recall(
        SCORE, RIGHT, target=0.9, delta=0.1, small_groups="leave-out", **BY
    ),
    "cascade": lambda: certify_cascade(SCORE, ANSWERS, LABEL, xi=0.2, delta=0.1, **BY),
    "own cascades": lambda: certify_cascade(
        SCORE, ANSWERS, LABEL, xi=0.2, delta=0.1, group_thresholds="own", **BY
    ),
    "replacement": lambda: certify_replacement(
        ANSWERS, LABEL, xi=0.2, delta=0.1, group_verdicts="own", **BY
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_both_verifiers_hold_the_document_to_what_was_drawn(name: str, tmp_path: Path) -> None:
    made: Any = MADE[name]()
    path = tmp_path / "made.json"
    made.save(path)
    assert load_certificate(path).verify()
    assert not exact.check_document(json.loads(path.read_text())).wrong
    spanning = {} if made.draw.spanning is None else {"spanning": made.draw.units + 1}
    for change in ({"each": "cluster"}, {"clusters": 30}, spanning, {"each": "row"}):
        if not change:
            continue
        document = json.loads(path.read_text())
        document["claim"]["drawn"] |= change
        document["counts_digest"] = exact.counts_digest(exact.Part(document["claim"], "claim"))
        document["claim_digest"] = exact.digest(document["claim"])
        changed = tmp_path / "changed.json"
        changed.write_text(json.dumps(document))
        with pytest.raises(CertificateError):
            load_certificate(changed)
        with suppress(exact.UnreadableError):
            assert exact.check_document(document).wrong, change


def test_a_calibration_in_bins_of_clusters_is_not_at_the_level_of_independent_bins(
    tmp_path: Path,
) -> None:
    document: Any = MADE["bins"]().to_dict()
    document["claim"]["correction"] = "sidak"
    document["counts_digest"] = exact.counts_digest(exact.Part(document["claim"], "claim"))
    document["claim_digest"] = exact.digest(document["claim"])
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document))
    with pytest.raises(CertificateError, match="share delta by addition"):
        load_certificate(path)
    assert exact.check_document(json.loads(path.read_text())).wrong

"""Slips about what a row is, each by the command or the call that a user makes."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    calibrate,
    certify_abstention,
    certify_judge,
    certify_precision,
    certify_recall,
    load_certificate,
)
from pacbound.errors import InvalidTypeError, InvalidValueError

Run = Callable[..., Any]
RNG = np.random.default_rng(3)
SCORE, RIGHT = RNG.random(900), RNG.random(900) < 0.7
PATIENT, SCANNER = np.arange(900) // 3, np.where(np.arange(900) % 3, "CT", "MRI")
ASKED: Any = {"target": 0.5, "delta": 0.1}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    columns = zip(SCORE.round(3), RIGHT.astype(int), PATIENT, SCANNER, strict=True)
    lines = [f"{s},{100 * s:.1f},{ill},p{patient},{on}" for s, ill, patient, on in columns]
    (tmp_path / "rows.csv").write_text("\n".join(["s,pct,ill,patient,scanner", *lines]) + "\n")
    return tmp_path / "rows.csv"


RECALL = ("recall", "rows.csv", "--score", "s", "--positive", "ill", "--target", 0.5)
CLUSTERS = ("--clusters", "patient", "--groups", "scanner", "--delta", 0.1, "-o", "c.json")


def test_where_nothing_is_drawn_no_seed_is_asked_for_kept_or_printed() -> None:
    made = certify_recall(SCORE, RIGHT, **ASKED)
    assert "seed" not in (made.summary() + json.dumps(made.to_dict())).lower()
    with pytest.raises(InvalidTypeError, match="nothing says by what"):
        certify_recall(SCORE, RIGHT, **ASKED, seed=1)


@pytest.mark.parametrize("act", ["answered", "flagged"])
def test_a_claim_that_picks_rows_by_score_says_what_each_of_them_weighs(act: str) -> None:
    given: Any = {"delta": 0.1, "clusters": PATIENT}
    if act == "answered":
        made: Any = certify_abstention(SCORE, RIGHT, xi=0.5, **given)
    else:
        made = certify_precision(SCORE, RIGHT, target=0.5, **given)
    assert f"if each cluster counts once, {act} or not" in made.summary().splitlines()[1]
    assert f"the share among all rows that are {act} declare cluster_bound" in made.summary()


def test_all_claims_of_a_judge_are_about_one_draw() -> None:
    verdict = np.where(RIGHT, "good", "bad")
    given: Any = {"groups": SCANNER, "clusters": PATIENT, "delta": 0.1}
    made = certify_judge(verdict, verdict[::-1], **given)
    assert len({one.draw.seed for one in made.members.values() if one.draw is not None}) == 1


def test_each_scanner_has_a_row_of_each_patient_when_counted_again_and_watched(
    pacbound: Run, table: Path
) -> None:
    said = pacbound(*RECALL, *CLUSTERS).stdout
    found: Any = load_certificate(table.parent / "c.json")
    assert found.draw.each == "cluster-and-group"
    assert f"{found.draw.spanning} of 300 clusters have rows in several groups" in said
    assert "the same counts" in pacbound("verify", "c.json", "--data", table).stdout
    watched = json.loads(pacbound("monitor", "c.json", table, "--delta", 1e-3, "--json").stdout)
    assert watched["labels"] < RIGHT.sum()


def test_a_copy_of_the_old_model_is_no_candidate_and_files_are_named(
    pacbound: Run, tmp_path: Path
) -> None:
    lines = [f"{i},{'AB'[i % 2]},{'AB'[i % 2 * (i % 9 > 0)]}" for i in range(600)]
    for name in ("old.csv", "copy.csv"):
        (tmp_path / name).write_text("\n".join(["id,answer,truth", *lines]) + "\n")
    named = ("--prediction", "answer", "--label", "truth", "--id", "id", "--xi", 0.05)
    given = (*named, "--delta", 0.1)
    assert "the same bytes" in pacbound("compare", "old.csv", "copy.csv", *given, code=2).stderr
    for verb in (("compare",), ("cascade", "--confidence", "id", "--scale", 600)):
        twice = (*verb, "old.csv", "--prediction", "answer,answer", "--label", "truth", *given[-4:])
        assert "names 'answer' twice" in pacbound(*twice, code=2).stderr
    (tmp_path / "copy.csv").write_text("\n".join(["id,answer,truth", *lines[::-1]]) + "\n")
    said = pacbound("compare", "old.csv", "copy.csv", *given).stdout
    assert "gives the answer of the old model on all 600 rows" in said.splitlines()[1]
    for pattern in ("o*.csv", "."):
        said = pacbound("compare", pattern, "copy.csv", *given, code=2).stderr
        assert "name them one by one" in said


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        np.savez(tmp_path / "plain.npz", s=SCORE, ill=RIGHT)
        path = tmp_path / "rows.npz"
        with (
            zipfile.ZipFile(tmp_path / "plain.npz") as plain,
            zipfile.ZipFile(path, "w", method) as packed,
        ):
            for name in plain.namelist():
                packed.writestr(name, plain.read(name))
        data = bytearray(path.read_bytes())
        data[60:90] = bytes(255 - byte for byte in data[60:90])
        path.write_bytes(data)
        with pytest.raises(InvalidValueError, match=r"cannot be read as \.npz"):
            certify_recall("s", "ill", data=path, **ASKED)


def test_what_is_likely_a_slip_is_asked_about() -> None:
    ids = np.array(["7", "7 ", " 7", "8"])[np.arange(900) % 4]
    with pytest.warns(UserWarning, match="clusters holds .* which count as two"):
        certify_recall(SCORE, RIGHT, **ASKED, clusters=ids)
    ids = np.array([*ids[:3], *map(str, range(100, 997))])
    with pytest.warns(UserWarning, match="row_ids holds .* which count as two"):
        certify_recall(SCORE, RIGHT, **ASKED, row_ids=ids)
    with pytest.warns(UserWarning, match="score and positive are equal in every row"):
        certify_recall(RIGHT.astype(float), RIGHT, **ASKED)


def test_few_rows_of_many_classes_prove_nothing() -> None:
    label, other = RNG.integers(0, 1000, size=(2, 300))
    answers = np.where(RNG.random(300) < 0.7, label, other)
    assert calibrate(SCORE[:300], prediction=answers, label=label, n_bins=1, delta=0.1).n == 300


def test_an_option_is_typed_once_and_a_missing_outcome_is_called_missing(
    pacbound: Run, table: Path
) -> None:
    twice = (*RECALL, "--positive", "patient", *CLUSTERS)
    assert "--positive was typed 2 times" in pacbound(*twice, code=2).stderr
    table.write_text("s,ill\n0.1,0\n0.2,\n0.3,1\n")
    assert "ill[1] is missing" in pacbound(*RECALL, "--delta", 0.1, code=2).stderr

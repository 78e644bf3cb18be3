"""Calibration as a claim: its columns and bins, its document, its words and its figure."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from pacbound import Tally, calibrate
from pacbound.claims.calibration import CLAIM
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import PacboundError

RNG = np.random.default_rng(5)
SCORE = RNG.beta(5, 1, size=900)
RIGHT = RNG.random(900) < SCORE
MASS: dict[str, Any] = {"edges": "equal-mass", "n_bins": 4, "delta": 0.05}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tables")
    frame = polars.DataFrame({"c": SCORE, "ok": RIGHT, "p": [1] * 900, "y": RIGHT.astype(int)})
    frame.with_columns(site=polars.Series(["a", "b", "c"] * 300)).write_parquet(
        made / "rows.parquet"
    )
    return made


@pytest.mark.parametrize("asked", [{}, {"n_bins": 7}, {"edges": [0, 0.5, 0.9, 1]}, MASS])
def test_arrays_frames_files_and_tallies_give_the_same_certificate(
    folder: Path, asked: dict[str, Any]
) -> None:
    path, asked = folder / "rows.parquet", {"delta": 0.05, **asked}
    classes: dict[str, Any] = {"prediction": "p", "label": "y", "data": path}
    bins = {name: asked[name] for name in ("n_bins", "edges") if name in asked}
    found = [
        calibrate(SCORE, RIGHT, **asked),
        calibrate("c", "ok", data=polars.scan_parquet(path), **asked),
        calibrate("c", "ok", data=path, **asked),
        calibrate("c", **classes, unseen_labels=1.0, **asked),
        calibrate(
            data=Tally.count(CLAIM.question, confidence=SCORE, correct=RIGHT, **bins), delta=0.05
        ),
    ]
    assert len({certificate.counts_digest for certificate in found}) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": "quantiles"}, "are not edges: expected numbers from 0 to 1"),
        ({"edges": [0.2, 1]}, "some scores have no bin"),
        ({"n_bins": 2.5}, "is not a number of bins"),
        ({"n_bins": 2**21}, "is not a number of bins"),
        ({"side": "left"}, "expected 'both', 'lower' or 'upper'"),
        ({"correction": "holm"}, "expected 'sidak' or 'bonferroni'"),
        ({"delta": 0.9}, "for 95 % confidence pass delta=0.05"),
        ({"correct": None}, "or both prediction and label"),
        ({"confidence": "c"}, "there is no table"),
        ({"binz": 3}, "is not an option of this function"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PacboundError, match=message):
        calibrate(**{"confidence": SCORE, "correct": RIGHT, "delta": 0.05, **change})


def _broken(change: Any) -> str:
    """What is said of a document that was changed, and whose digests were mended."""
    groups = {"even": np.arange(900) % 2 == 0, "odd": np.arange(900) % 2 == 1}
    document = json.loads(json.dumps(calibrate(SCORE, RIGHT, delta=0.05, groups=groups).to_dict()))
    change(document["claim"])
    try:
        return str(certificate_from_dict(document).verify())
    except PacboundError as error:
        return str(error)


BROKEN: dict[str, tuple[Any, str]] = {
    "refused": (lambda claim: claim.update(certified=False), "claim.certified"),
    "assumed": (lambda claim: claim["assumes"].pop(), "claim.assumes"),
    "no table": (lambda claim: claim.update(tables=[]), "claim.tables is empty"),
    "names": (lambda claim: claim["tables"].reverse(), "do not fit the scope"),
    "scope": (lambda claim: claim.update(scope="all-labels"), "one for each class"),
    "alone": (lambda claim: claim.update(scope="top"), "do not fit the scope"),
    "bin": (lambda claim: claim["bins"].update(n_bins=3), "does not rise from 0 to at most 2"),
    "grid": (lambda claim: claim.update(bins={"rule": "dyadic", "bits": 4}), "claim.bins.rule"),
    "length": (lambda claim: claim["tables"][0]["lower"].pop(), "as many bounds as bins"),
    "ends": (lambda claim: claim["tables"][0]["lower"].__setitem__(0, 2.0), "are not 0 to 1"),
    "rows": (lambda claim: claim.update(n=3), "claim.n"),
    "draw": (
        lambda claim: claim.update(drawn={"by": "weights", "seed": 0, "bound": 2.0, "rows": 3}),
        "claim.drawn: cannot be",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_document_that_cannot_be_says_where(case: str) -> None:
    change, said = BROKEN[case]
    assert said in _broken(change)


def test_the_document_holds_no_sentence_and_says_what_is_assumed() -> None:
    certificate = calibrate(SCORE, RIGHT, delta=0.05, n_bins=3)
    assert " " not in "".join(certificate.claim()["assumes"])
    assert "The bins were fixed without these rows" in " ".join(certificate.assumed())
    assert copy.deepcopy(certificate).claim() == certificate.claim()
    assert pickle.loads(pickle.dumps(certificate)).claim() == certificate.claim()


@pytest.mark.parametrize(("side", "said"), [("lower", "lower ends only"), ("upper", "upper ends")])
def test_one_side_is_said_and_drawn(side: Any, said: str) -> None:
    certificate = calibrate(SCORE, RIGHT, delta=0.05, n_bins=80, side=side)
    assert said in certificate.summary()
    (figure,) = certificate.figures()
    assert f"certified {side} end" in [mark.name for mark in figure.legend]
    assert len(figure.columns[0].values) == (certificate.trials > 0).sum()

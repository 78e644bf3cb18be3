"""What the rows are called is kept in the provenance, shown, and no part of what is claimed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_false_alarms,
    certify_recall,
    certify_shield,
    certify_together,
    design_cascade,
    exact_verifier,
    load_certificate,
)
from pacbound.claims.certificate import Certificate, certificate_from_dict
from pacbound.errors import InvalidTypeError, InvalidValueError

NAME = "held-out, März"
ROWS = 400
SCORES = np.linspace(0.01, 0.99, ROWS)
RIGHT = SCORES > 0.1
TWO = np.ones((ROWS, 2), dtype=int)


def _design(**named: Any) -> Certificate:
    scores, costs = np.column_stack([SCORES, SCORES]), [1, 9]
    asked: dict[str, Any] = {"xi": 0.1, "delta": 0.1, "last": 1, "seed": 0}
    asked |= named
    return design_cascade(scores, TWO, TWO[:, 0], costs=costs, **asked).certificate


def _together(**named: Any) -> Certificate:
    claims = {"one": partial(calibrate, SCORES, RIGHT)}
    return certify_together(claims, delta=0.1, **named)


VERBS: dict[str, Callable[..., Certificate]] = {
    "calibrate": partial(calibrate, SCORES, RIGHT, delta=0.1),
    "certify_abstention": partial(certify_abstention, SCORES, RIGHT, xi=0.1, delta=0.1),
    "certify_recall": partial(certify_recall, SCORES, RIGHT, target=0.9, delta=0.1),
    "certify_false_alarms": partial(certify_false_alarms, SCORES, RIGHT, xi=0.1, delta=0.1),
    "certify_cascade": partial(certify_cascade, SCORES, TWO, TWO[:, 0], xi=0.1, delta=0.1),
    "certify_cascade, groups": partial(
        certify_cascade, SCORES, TWO, TWO[:, 0], groups=TWO[:, 0], xi=0.1, delta=0.1
    ),
    "design_cascade": _design,
    "certify_shield": partial(certify_shield, SCORES, RIGHT, xi=0.1, delta=0.1),
    "certify_together": _together,
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_keeps_what_the_rows_are_called(tmp_path: Path, verb: str) -> None:
    plain, named = VERBS[verb](), VERBS[verb](sample=f" {NAME} ")
    assert "sample" not in plain.to_dict()["provenance"]
    assert named.claim_digest == plain.claim_digest
    named.save(tmp_path / "c.json")
    loaded = load_certificate(tmp_path / "c.json")
    assert loaded.provenance.sample == NAME
    assert loaded.verify()
    assert f"Sample (as its maker calls it): {NAME}" in loaded.summary()
    code, found = exact_verifier.check_file(str(tmp_path / "c.json"))
    assert code in (0, 3), found
    with pytest.raises(InvalidValueError, match=r"sample=.* is empty"):
        VERBS[verb](sample=" ")


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ("", "is empty"),
        ("\t", "is empty"),
        ("a\nb", "cannot be printed"),
        ("half \ud800", "cannot be printed"),
        ("zero\u200bwidth", "cannot be printed"),
        ("x" * 201, "has 201 characters"),
        (7, "sample is a int"),
        (b"March", "sample is a bytes"),
        (["March"], "sample is a list"),
    ],
)
def test_what_is_no_name_is_refused(sample: Any, message: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        calibrate(SCORES, RIGHT, delta=0.1, sample=sample)


def test_a_name_that_was_changed_does_not_verify() -> None:
    document = calibrate(SCORES, RIGHT, delta=0.1, sample=NAME).to_dict()
    document["provenance"]["sample"] = "April"
    found = certificate_from_dict(document).verify()
    assert [line.partition(":")[0] for line in found.differences] == ["provenance_digest"]


@pytest.mark.parametrize(
    ("made", "used"),
    [
        (partial(VERBS["calibrate"], clusters=np.arange(ROWS) // 2), "rows"),
        (partial(VERBS["calibrate"], weights=SCORES, weight_bound=1.0), "rows"),
        (_design, "fold"),
    ],
    ids=["clusters", "weights", "fold"],
)
def test_what_was_drawn_is_shown_with_what_it_means_to_draw_again(
    made: Callable[..., Certificate], used: str
) -> None:
    certificate = made(seed=3)
    (line,) = (line for line in certificate.summary().splitlines() if "try several" in line)
    assert line.startswith(f"Seed 3: pass seed=3 to draw the same {used} again. It must have been")
    assert line in certificate._repr_html_()

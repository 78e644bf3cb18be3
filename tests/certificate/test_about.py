"""What a certificate is about is kept, shown as text, and no part of what it claims."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    answer_batch,
    answer_batch_async,
    batch_step,
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_recall,
    certify_shield,
    certify_together,
    design_cascade,
    documents,
    load_certificate,
)
from pacbound.claims.bundle import CertificateBundle
from pacbound.claims.certificate import Certificate, certificate_from_dict
from pacbound.claims.provenance import MOST_TEXTS
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError, PacboundError

NASTY = "<script>alert(1)</script> \x1b[31mred\x1b[0m\r\nverified \u202eright to left"
SHOWN = r"<script>alert(1)</script> \x1b[31mred\x1b[0m\r\nverified \u202eright to left"

ROWS = 400
SCORES = np.linspace(0.01, 0.99, ROWS)
RIGHT = np.ones(ROWS, dtype=bool)
TWO = np.ones((ROWS, 2), dtype=int)


BATCH: Any = {"xi": 0.1, "delta": 0.1, "answers": None}


def _batch(about: Any) -> Any:
    return answer_batch(
        SCORES, TWO[:, 0], lambda rows: TWO[rows, 1], about=about, **BATCH
    ).certificate


def _batch_async(about: Any) -> Any:
    async def slow(rows: Any) -> Any:
        return TWO[rows, 1]

    return asyncio.run(
        answer_batch_async(SCORES, TWO[:, 0], slow, about=about, **BATCH)
    ).certificate


def _batch_step(about: Any) -> Any:
    told = dict(enumerate(TWO[:, 1].tolist()))
    return batch_step(SCORES, TWO[:, 0], told=told, about=about, **BATCH).certificate


def _design(about: Any) -> Certificate:
    scores = np.column_stack([SCORES, SCORES])
    label = TWO[:, 0]
    return design_cascade(
        scores,
        TWO,
        label,
        costs=[1, 9],
        last=1,
        xi=0.1,
        delta=0.1,
        about=about,
        seed=0,
    ).certificate


VERBS: dict[str, Callable[[Any], Certificate]] = {
    "calibrate": lambda about: calibrate(SCORES, RIGHT, delta=0.1, about=about),
    "certify_abstention": lambda about: certify_abstention(
        SCORES, RIGHT, xi=0.1, delta=0.1, about=about
    ),
    "certify_recall": lambda about: certify_recall(
        SCORES, RIGHT, target=0.9, delta=0.1, about=about
    ),
    "certify_shield": lambda about: certify_shield(SCORES, ~RIGHT, xi=0.1, delta=0.1, about=about),
    "certify_cascade": lambda about: certify_cascade(
        SCORES, TWO, RIGHT, xi=0.1, delta=0.1, about=about
    ),
    "certify_cascade in groups": lambda about: certify_cascade(
        SCORES, TWO, RIGHT, xi=0.1, delta=0.1, groups=TWO[:, 0], about=about
    ),
    "design_cascade": _design,
    "answer_batch": _batch,
    "answer_batch_async": _batch_async,
    "batch_step": _batch_step,
    "certify_together": lambda about: certify_together(
        {"brake": partial(certify_shield, SCORES, ~RIGHT, xi=0.1)}, delta=0.1, about=about
    ),
}


@pytest.mark.parametrize("verb", VERBS)
def test_whatever_certifies_says_what_it_is_about(verb: str, tmp_path: Path) -> None:
    plain, told = VERBS[verb](None), VERBS[verb]({"model": "resnet", "note": "of 3 May"})
    assert told.provenance.about == {"model": "resnet", "note": "of 3 May"}
    assert told.counts_digest == plain.counts_digest or "atch" in verb  # each batch has its key
    assert "model  resnet" in told.summary()
    told.save(tmp_path / "c.json")
    assert load_certificate(tmp_path / "c.json").verify()


@pytest.mark.parametrize("verb", VERBS)
def test_what_cannot_be_said_is_refused_by_whatever_certifies(verb: str) -> None:
    with pytest.raises(InvalidValueError, match="letters, digits"):
        VERBS[verb]({"two words": "no"})


def test_it_changes_the_provenance_and_no_claim(certificate: Certificate, tmp_path: Path) -> None:
    before = certificate.to_dict()["provenance"].get("about")
    told = certificate.with_about({"model": "m", "owner": "Ada"})
    assert told.claim_digest == certificate.claim_digest
    assert told.counts_digest == certificate.counts_digest
    told.save(tmp_path / "c.json")
    again = load_certificate(tmp_path / "c.json")
    assert again.verify()
    assert again.summary() == told.summary() != certificate.summary()
    assert certificate.to_dict()["provenance"].get("about") == before


def test_a_text_that_was_changed_or_added_is_found(certificate: Certificate) -> None:
    document = certificate.with_about({"model": "m"}).to_dict()
    changed = json.loads(json.dumps(document))
    changed["provenance"]["about"]["model"] = "another"
    assert "provenance_digest" in certificate_from_dict(changed).verify().differences[0]
    added = certificate.to_dict()
    added["provenance"] = {**added["provenance"], "about": {}}
    added["provenance_digest"] = documents.digest(added["provenance"])
    with pytest.raises(CertificateError, match=r"provenance\.about"):
        certificate_from_dict(added)


def test_control_characters_never_reach_a_terminal_and_tags_never_a_page(
    certificate: Certificate,
) -> None:
    told = certificate.with_about({"note": NASTY})
    assert SHOWN in told.summary()
    assert all(letter.isprintable() or letter == "\n" for letter in told.summary())
    page = told._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\x1b" not in page
    assert certificate_from_dict(told.to_dict()).provenance.about["note"] == NASTY


def test_a_file_is_told_by_its_name_size_and_digest(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"x" * 1234)
    told = calibrate(SCORES, RIGHT, delta=0.1, about={"model": tmp_path / "model.pt"})
    digest = hashlib.sha256(b"x" * 1234).hexdigest()
    assert told.provenance.about == {"model": f"model.pt (1,234 bytes, sha256:{digest})"}
    assert str(tmp_path) not in json.dumps(told.to_dict())


def test_a_folder_is_told_by_the_names_and_bytes_of_all_its_files(tmp_path: Path) -> None:
    def told(folder: Path) -> str:
        return calibrate(SCORES, RIGHT, delta=0.1, about={"model": folder}).provenance.about[
            "model"
        ]

    for name in ("one", "two"):
        (tmp_path / name / "part").mkdir(parents=True)
        (tmp_path / name / "part" / "a.bin").write_bytes(b"a")
        (tmp_path / name / "b.bin").write_bytes(b"bb")
    one, two = told(tmp_path / "one"), told(tmp_path / "two")
    assert one.startswith("one/ (2 files, 3 bytes, sha256:")
    assert one.partition("/")[2] == two.partition("/")[2]
    files = {"b.bin": b"bb", "part/a.bin": b"a"}
    listed = [[name, "sha256:" + hashlib.sha256(data).hexdigest()] for name, data in files.items()]
    assert documents.digest(listed) in one
    (tmp_path / "two" / "b.bin").rename(tmp_path / "two" / "c.bin")
    assert told(tmp_path / "two").partition("/")[2] != two.partition("/")[2]


@pytest.mark.parametrize(
    ("about", "error", "message"),
    [
        ("resnet", InvalidTypeError, "about is a str: expected texts by names"),
        ({"model": 3}, InvalidTypeError, r"about\['model'\] is a int"),
        ({"model": " "}, InvalidValueError, "is empty"),
        ({"": "m"}, InvalidValueError, "letters, digits"),
        ({3: "m"}, InvalidValueError, "letters, digits"),
        ({"a.b": "m"}, InvalidValueError, "letters, digits"),
        ({"x" * 41: "m"}, InvalidValueError, "up to 40 letters"),
        ({"model": "m" * 1001}, InvalidValueError, "1001 characters: expected at most 1000"),
        ({"model": "\ud800"}, InvalidValueError, "half a character"),
        ({"model": Path("none.pt")}, InvalidValueError, "which is not there"),
        ({"model": Path("/dev/null")}, InvalidValueError, "which is not a file"),
        ({f"n{i}": "m" for i in range(MOST_TEXTS + 1)}, InvalidValueError, "at most 50"),
    ],
)
def test_what_is_no_short_text_is_refused_with_the_remedy(
    about: Any, error: type[PacboundError], message: str
) -> None:
    with pytest.raises(error, match=message):
        calibrate(SCORES, RIGHT, delta=0.1, about=about)


def test_a_bundle_keeps_what_each_claim_is_about_and_its_own(tmp_path: Path) -> None:
    bundle = certify_together(
        {
            "brake": partial(
                certify_shield, SCORES, ~RIGHT, xi=0.1, horizon=40, about={"model": "policy"}
            ),
            "confidence": partial(calibrate, SCORES, RIGHT, about={"model": "net"}),
        },
        delta=0.1,
        about={"owner": "Ada"},
    )
    bundle.save(tmp_path / "b.json")
    again = load_certificate(tmp_path / "b.json")
    assert isinstance(again, CertificateBundle)
    assert again.verify()
    assert again["brake"].provenance.about == {"model": "policy"}
    assert again["confidence"].provenance.about == {"model": "net"}
    assert again.own_about() == {"owner": "Ada"}
    assert again.summary().count("model") == 2
    assert "About this bundle" in again.summary()

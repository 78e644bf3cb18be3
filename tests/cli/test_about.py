"""What a certificate is about, on the command line: for every command that certifies, whether it
succeeds, refuses or fails.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run

from pacbound import Tally, load_certificate

TEXTS = ("model=@model.pt", "dataset=held out in May", "owner=Ada")
SAID = tuple(part for text in TEXTS for part in ("--about", text))
TOLD = {
    "model": f"model.pt (3 bytes, sha256:{hashlib.sha256(b'abc').hexdigest()})",
    "dataset": "held out in May",
    "owner": "Ada",
}

CERTIFY = {
    "calibrate": "calibrate rows.csv --confidence c --correct ok --delta 0.05",
    "abstain": "abstain rows.csv --confidence c --correct ok --xi 0.3 --delta 0.05",
    "cascade": "cascade rows.csv --confidence c --prediction fast,slow --label y --xi 0.2 "
    "--delta 0.05",
    "recall": "recall rows.csv --score c --positive ok --target 0.8 --delta 0.05",
    "shield": "shield rows.csv --score c --unsafe bad --xi 0.3 --delta 0.05",
    "design": "design rows.csv --confidence c,d --prediction fast,slow --label y --costs 1,9 "
    "--last slow --xi 0.3 --delta 0.05",
    "certify": "certify shield tally.json --xi 0.3 --delta 0.05",
}


@pytest.fixture(autouse=True)
def rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    c = rng.beta(6, 1, size=300).round(3)
    y = rng.integers(0, 3, size=300)
    fast = np.where(rng.random(300) < c, y, (y + 1) % 3)
    lines = [
        f"{c[i]},{c[i]},{int(fast[i] == y[i])},{int(i % 50 == 0)},{fast[i]},{y[i]},{y[i]}"
        for i in range(300)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["c,d,ok,bad,fast,slow,y", *lines]) + "\n")
    (tmp_path / "model.pt").write_bytes(b"abc")
    Tally.count("shield", score=c, unsafe=np.arange(300) % 50 == 0).save(tmp_path / "tally.json")
    return tmp_path / "rows.csv"


@pytest.mark.parametrize("verb", CERTIFY)
def test_a_certificate_keeps_what_was_said_and_shows_it(
    pacbound: Run, tmp_path: Path, verb: str
) -> None:
    done = pacbound(*CERTIFY[verb].split(), *SAID, "--about", "note=-", "-o", "c.json")
    certificate = load_certificate(tmp_path / "c.json")
    assert certificate.provenance.about == {**TOLD, "note": "-"}
    assert certificate.certified
    assert certificate.verify()
    assert "  dataset  held out in May\n" in done.stdout
    assert "  owner    Ada\n" in pacbound("show", "c.json").stdout


@pytest.mark.parametrize("verb", CERTIFY)
@pytest.mark.parametrize(
    ("said", "message"),
    [
        (["--about", "model=@none.pt"], "about['model'] names 'none.pt', which is not there"),
        (["--about", "licence"], "--about licence: expected NAME=TEXT"),
        (["--about", "two words=x"], "letters, digits, - and _"),
        (["--about", "owner="], "about['owner'] is empty"),
        (["--about", "note=" + "x" * 1001], "1001 characters"),
        (["--about", "model=m", "--about", "model=n"], "--about model is there twice"),
        (["--about", "model=@"], "model=@ names no file: expected model=@FILE"),
    ],
)
def test_what_cannot_be_said_is_bad_input_and_nothing_is_written(
    pacbound: Run, tmp_path: Path, verb: str, said: list[str], message: str
) -> None:
    before = {path.name for path in tmp_path.iterdir()}
    done = pacbound(*CERTIFY[verb].split(), *said, "-o", "c.json", code=2)
    assert message in done.stderr
    assert done.stdout == ""
    assert {path.name for path in tmp_path.iterdir()} == before


def test_two_at_signs_stand_for_one(pacbound: Run, tmp_path: Path) -> None:
    pacbound(*CERTIFY["calibrate"].split(), "--about", "owner=@@ada", "-o", "c.json")
    assert load_certificate(tmp_path / "c.json").provenance.about == {"owner": "@ada"}


def test_names_with_controls_are_shown_as_text_in_errors(pacbound: Run, tmp_path: Path) -> None:
    text = (tmp_path / "rows.csv").read_text().replace("c,d,", "c,\x1b[31md,", 1)
    (tmp_path / "odd.csv").write_text(text)
    done = pacbound(
        "calibrate", "odd.csv", "--confidence", "d", "--correct", "ok", "--delta", 0.1, code=2
    )
    assert "\x1b" not in done.stderr

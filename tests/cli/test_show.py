"""`pacbound show` says what every kind of certificate claims, and never more than it holds."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.certificate.conftest import LAYOUTS, MAKERS, made
from tests.cli.conftest import Run
from tests.products import standing_for

from pacbound import calibrate, certify_abstention, certify_shield, documents
from pacbound.claims.bundle import CertificateBundle

NASTY = "<script>alert(1)</script>\x1b[31m\r\u202e"


@pytest.mark.parametrize("name", standing_for(sorted(MAKERS), LAYOUTS))
def test_every_kind_is_shown_with_its_claim_and_what_it_assumes(
    pacbound: Run, tmp_path: Path, name: str
) -> None:
    certificate = made(name).with_about({"model": "resnet of 3 May"})
    certificate.save(tmp_path / "c.json")
    done = pacbound("show", "c.json", code=0 if certificate.certified else 3)
    first, second, *lines = done.stdout.splitlines()
    assert first == f"resnet of 3 May: {certificate.says.heading}"
    assert second == f"{'CERTIFIED' if certificate.certified else 'REFUSED'} (c.json)"
    for said in certificate.words().splitlines():
        about_a_claim = said.partition(": ")[2]
        assert f"  {said}".rstrip() in lines or f"  {about_a_claim}" in lines
    for assumption in certificate.assumed() + certificate.meanings():
        assert f"  - {assumption}" in lines
    assert "  model  resnet of 3 May" in lines
    assert f"  counts {certificate.counts_digest}" in lines
    assert done.stdout.isprintable() or all(x.isprintable() or x == "\n" for x in done.stdout)


@pytest.mark.parametrize("name", ["shield", "cascade-exact", "recall", "abstention"])
def test_what_is_shown_fits_on_one_screen(pacbound: Run, tmp_path: Path, name: str) -> None:
    made(name).save(tmp_path / "c.json")
    lines = pacbound("show", "c.json").stdout.splitlines()
    assert sum(max(1, -(-len(line) // 100)) for line in lines) <= 40


def test_what_does_not_verify_is_shown_with_what_differs(pacbound: Run, tmp_path: Path) -> None:
    document = made("shield").to_dict()
    document["claim"]["tables"][0]["threshold"] = 0.75
    document["claim_digest"] = documents.digest(document["claim"])
    (tmp_path / "forged.json").write_text(json.dumps(document))
    shown = pacbound("show", "forged.json", code=1).stdout
    assert shown.startswith("Not to be used\nNOT VERIFIED (forged.json)\n")
    assert "claim.tables[0].threshold: stored 0.75, recomputed" in shown
    assert shown.index("claim.tables[0].threshold") < shown.index("Claim, as the file has it")
    said = json.loads(pacbound("show", "forged.json", "--json", code=1).stdout)
    assert not said["ok"]
    assert not {"words", "threshold", "assumptions"} & set(said)


def test_programs_read_the_words_the_assumptions_and_where_it_comes_from(
    pacbound: Run, tmp_path: Path
) -> None:
    certificate = certify_shield([0.1] * 900, [False] * 900, xi=0.02, delta=0.01, about={"a": "b"})
    certificate.save(tmp_path / "c.json")
    said = json.loads(pacbound("show", "c.json", "--json").stdout)
    assert said["words"] == certificate.words()
    assert said["assumptions"] == certificate.assumed()
    assert said["meanings"] == certificate.meanings()
    assert said["provenance"]["about"] == {"a": "b"}
    assert said["threshold"] == "+inf"


@pytest.mark.parametrize("command", ["show", "verify"])
def test_no_name_in_a_file_reaches_the_terminal_as_a_control(
    pacbound: Run, tmp_path: Path, command: str
) -> None:
    plain = calibrate([0.5] * 90, [1] * 90, delta=0.1, groups=[NASTY] * 90, about={"note": NASTY})
    plain.save(tmp_path / "a.json")
    certify_abstention([0.5] * 9, [1] * 9, xi=0.2, delta=0.1, groups=[NASTY] * 9).save(
        tmp_path / "b.json"
    )
    document = plain.to_dict()
    document["provenance"]["columns"] = {NASTY: NASTY}
    document["provenance"]["version"] = NASTY
    document["provenance_digest"] = documents.digest(document["provenance"])
    (tmp_path / "c.json").write_text(json.dumps(document))
    bundle = CertificateBundle.of({NASTY: plain}, delta=0.2)
    bundle.save(tmp_path / "d.json")
    done = pacbound(command, "a.json", "b.json", "c.json", "d.json", code=3)
    for text in (done.stdout, done.stderr):
        assert all(letter.isprintable() or letter == "\n" for letter in text)
    if command == "show":
        assert done.stdout.count(r"<script>alert(1)</script>\x1b[31m\r\u202e") >= 8


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
def test_on_a_terminal_sentences_are_wrapped_at_words_and_the_verdict_has_a_colour(
    tmp_path: Path,
) -> None:
    calibrate([0.5] * 90, [1] * 90, delta=0.1, about={"note": "many words " * 30}).save(
        tmp_path / "c.json"
    )
    leader, follower = pty.openpty()
    program = "import sys; from pacbound.cli import main; sys.argv[1:] = ['show', 'c.json']; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "COLUMNS": "60", "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"},
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            data = os.read(leader, 2**16)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(leader)
    assert process.wait() == 0
    text = shown.decode()
    assert "\x1b[1;32mCERTIFIED" in text
    lines = re.sub(r"\x1b\[[\d;]*m", "", text).replace("\r", "").splitlines()
    assert max(len(line) for line in lines if "sha256" not in line) <= 60
    assert any(line.rstrip().endswith(("words many", "many words")) for line in lines)

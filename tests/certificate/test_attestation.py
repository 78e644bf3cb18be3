"""examples/attest_certificate.py, with the packages of in-toto and its signatures."""

from __future__ import annotations

import base64
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from pacbound import certify_shield

for name in ("securesystemslib", "in_toto_attestation", "cryptography"):
    pytest.importorskip(name, reason=f"{name} is missing: pip install {name}")
EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "attest_certificate.py"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    certify_shield([0.1] * 500, [False] * 500, xi=0.05, delta=0.01).save("shield.json")
    certify_shield([0.1] * 20, [False] * 20, xi=0.05, delta=0.01).save("refused.json")
    (tmp_path / "model.onnx").write_bytes(b"weights")
    assert run(monkeypatch, "key", "signing.pem", "public.pem") == 0
    assert run(monkeypatch, "key", "other.pem", "stranger.pem") == 0
    words = ["sign", "shield.json", "model.onnx", "--key", "signing.pem", "-o", "att.json"]
    assert run(monkeypatch, *words) == 0
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["attest_certificate.py", *words])
    return int(EXAMPLE["main"]())


def checked(monkeypatch: pytest.MonkeyPatch, *files: str, key: str = "public.pem") -> int:
    return run(monkeypatch, "check", "att.json", *files, "--key", key)


def test_what_was_signed_is_checked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checked(monkeypatch, "shield.json", "model.onnx") == 0
    # A model that is not named would not be checked.
    assert checked(monkeypatch, "shield.json") == 1
    assert "model.onnx was signed, too" in capsys.readouterr().err
    assert checked(monkeypatch, "model.onnx") == 1
    envelope = json.loads((folder / "att.json").read_text())
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    payload = json.loads(base64.b64decode(envelope["payload"]))
    assert payload["_type"] == "https://in-toto.io/Statement/v1"
    assert [each["name"] for each in payload["subject"]] == ["shield.json", "model.onnx"]
    assert payload["predicate"]["kind"] == "shield"
    assert (folder / "signing.pem").stat().st_mode & 0o077 == 0


def test_other_files_keys_and_payloads_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checked(monkeypatch, "shield.json", "model.onnx", key="stranger.pem") == 1
    (folder / "model.onnx").write_bytes(b"other weights")
    assert checked(monkeypatch, "shield.json", "model.onnx") == 1
    assert "model.onnx is not among the files that were signed" in capsys.readouterr().err
    assert checked(monkeypatch, "refused.json") == 1
    envelope = json.loads((folder / "att.json").read_text())
    payload = json.loads(base64.b64decode(envelope["payload"]))
    payload["subject"][1]["digest"]["sha256"] = EXAMPLE["digest"](folder / "model.onnx")
    envelope["payload"] = base64.b64encode(json.dumps(payload).encode()).decode()
    (folder / "att.json").write_text(json.dumps(envelope))
    assert checked(monkeypatch, "shield.json", "model.onnx") == 1
    assert "not of this key" in capsys.readouterr().err


def test_a_statement_of_another_kind_is_refused(folder: Path) -> None:
    payload: Any = json.loads(EXAMPLE["statement"](Path("shield.json"), []))
    payload["predicateType"] = "https://slsa.dev/provenance/v1"
    envelope = EXAMPLE["sign"](json.dumps(payload).encode(), Path("signing.pem"))
    wrong = EXAMPLE["check"](envelope, Path("shield.json"), [], Path("public.pem"))
    assert "slsa.dev" in wrong


def test_a_refusal_is_not_signed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="is not signed"):
        run(monkeypatch, "sign", "refused.json", "--key", "signing.pem", "-o", "no.json")

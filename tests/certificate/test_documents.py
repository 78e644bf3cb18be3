"""Certificates survive their files, and no change to a file goes unnoticed."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.certificate.conftest import FROZEN, LAYOUTS, MAKERS, ONE_OF_EACH_LAYOUT, made

from pacbound import calibrate, documents, load_certificate
from pacbound.claims.calibration_certificate import CalibrationCertificate
from pacbound.claims.certificate import Certificate, certificate_from_dict
from pacbound.errors import CertificateError, UnknownProcedureError


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, (dict, list)):
        # Long lists are alike in the middle: both ends and a few places between stand for all, and
        # both ends alone where each place is a list or a mapping itself.
        if len(value) > 3 and isinstance(value, list) and isinstance(value[0], (dict, list)):
            places = [0, len(value) - 1]
        elif len(value) > 12:
            places = [*range(3), len(value) // 3, len(value) // 2, len(value) - 2, len(value) - 1]
        else:
            places = list(range(len(value)))
        for key in value if isinstance(value, dict) else places:
            yield from leaves(value[key], (*path, key))
    else:
        yield path


def changes(value: Any) -> list[Any]:
    """Other values that could stand in the same place."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, str(value), None, value * 10**9]
    if isinstance(value, float):
        return [
            value * (1 + 1e-12) or 1e-12,
            value + 0.01,
            0.0 if value else 1.0,
            str(value),
            "+inf",
        ]
    if isinstance(value, str):
        return [value + "x", "", 0]
    return [0, "x"]


def with_change(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    place: Any = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


def test_a_certificate_survives_its_file(certificate: Certificate, tmp_path: Path) -> None:
    certificate.save(tmp_path / "c.json")
    again = load_certificate(tmp_path / "c.json")
    assert type(again) is type(certificate)
    assert again.claim() == certificate.claim()
    assert again.claim_digest == certificate.claim_digest
    assert again.summary() == certificate.summary()
    assert again.verify()
    again.save(tmp_path / "d.json")
    assert (tmp_path / "d.json").read_bytes() == (tmp_path / "c.json").read_bytes()


@pytest.mark.slow
def test_changing_any_one_value_makes_verification_fail_and_say_where(
    certificate: Certificate,
) -> None:
    document = json.loads(json.dumps(certificate.to_dict()))
    for number, path in enumerate(leaves(document)):
        place: Any = document
        for key in path:
            place = place[key]
        # Half of the changes in each place, the others in the next.
        for value in changes(place)[number % 2 :: 2] or changes(place):
            changed = with_change(document, path, value)
            if changed == document:
                continue
            try:
                found = certificate_from_dict(changed).verify()
            except CertificateError:
                continue
            assert not found, (path, value)
            assert any(path[0] in line for line in found.differences), (
                path,
                value,
                found.differences,
            )


@pytest.mark.slow
def test_a_changed_bound_is_found_by_recomputing_even_if_the_digest_was_mended(
    every_certificate: Certificate,
) -> None:
    """Whoever mends the digest must change counts and claim together, consistently."""
    document = json.loads(json.dumps(every_certificate.to_dict()))
    for path in leaves(document["claim"]):
        place: Any = document["claim"]
        for key in path:
            place = place[key]
        if not isinstance(place, float) or {"delta", "xi", "bins", "drawn"} & set(path):
            continue
        changed = with_change(document, ("claim", *path), place * 0.99 if place else 0.01)
        changed["claim_digest"] = documents.digest(changed["claim"])
        try:
            found = certificate_from_dict(changed).verify()
        except CertificateError:
            continue
        assert found.differences, path


def test_a_changed_certificate_is_not_used(tmp_path: Path) -> None:
    document = json.loads(json.dumps(calibrate([0.9, 0.2], [1, 0], delta=0.1).to_dict()))
    document["claim"]["tables"][0]["lower"][0] += 0.01
    certificate = certificate_from_dict(document)
    assert isinstance(certificate, CalibrationCertificate)
    with pytest.raises(CertificateError, match="changed after it was written"):
        certificate.interval([0.5])


@pytest.mark.parametrize("path", ONE_OF_EACH_LAYOUT, ids=lambda path: path.stem)
def test_certificates_of_earlier_versions_verify_forever(path: Path) -> None:
    certificate = load_certificate(path)
    assert certificate.verify().differences == ()


def test_a_certificate_of_every_kind_is_frozen() -> None:
    from pacbound.claims import KINDS, claim_of

    frozen = [json.loads(path.read_text())["claim"] for path in FROZEN]
    procedures = {name for kind in KINDS for name in claim_of(kind).procedures}
    assert {claim["kind"] for claim in frozen} == set(KINDS)
    assert {claim["procedure"] for claim in frozen} == procedures


def keys(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every key; the entries of a list are alike."""
    yield above
    if isinstance(value, dict):
        for key, part in value.items():
            yield from keys(part, (*above, key))
    elif isinstance(value, list):
        for part in value:
            yield from keys(part, above)


def layout(claim: dict[str, Any]) -> set[tuple[str, ...]]:
    """The keys of a claim, and those of the claims inside as those of their own kinds."""
    own = {key: part for key, part in claim.items() if key != "claims"}
    inside = [layout(part) for part in claim.get("claims", {}).values()]
    return {(claim["kind"], *path) for path in keys(own)}.union(*inside)


@pytest.mark.slow
def test_one_of_each_layout_has_every_key_that_any_certificate_has() -> None:
    frozen = {path.stem[:-2]: json.loads(path.read_text())["claim"] for path in FROZEN}
    for claims in ({name: made(name).claim() for name in MAKERS}, frozen):
        everything = set().union(*map(layout, claims.values()))
        assert everything - set().union(*(layout(claims[name]) for name in LAYOUTS)) == set()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"   \n", "is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "is not text"),
        (b"{", "not a pacbound certificate"),
        (b'{"format": "pacbound-certificate"', "cut short"),
        (b"[]", "expected a JSON object"),
        (b"{}", "its format is null"),
        (b'{"format": "pacbound-certificate", "schema": 2}', "has schema 2"),
        (b'{"format": "pacbound-certificate", "schema": 1}', "missing or unknown parts: claim"),
        (b'{"format": NaN}', "NaN is not strict JSON"),
        (b'{"a": 1, "a": 2}', "'a' stands there twice"),
        (b'{"a": ' + b"9" * 5000 + b"}", "out of range"),
        (b"[" * 100_000, "nested more than"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested more than"),
        (b" " * (100 * 2**20), "larger than 32 MB"),
        (b"__import__('os').system('echo ran')", "not a pacbound certificate"),
        (b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00", "is not text"),
    ],
)
def test_a_file_that_is_no_certificate_gives_a_clear_error(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "certificate.json"
    path.write_bytes(content)
    with pytest.raises(CertificateError, match=message) as caught:
        load_certificate(path)
    assert "certificate.json" in str(caught.value)


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_certificate_gives_a_clear_error(tmp_path: Path, cut: float) -> None:
    path = tmp_path / "certificate.json"
    made("shield").save(path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * cut)])
    with pytest.raises(CertificateError):
        load_certificate(path)


def test_an_unknown_procedure_asks_for_an_upgrade(certificate: Certificate) -> None:
    document = json.loads(json.dumps(certificate.to_dict()))
    document["claim"]["procedure"] += "000"
    with pytest.raises(UnknownProcedureError, match="Upgrade pacbound"):
        certificate_from_dict(document)


def test_what_could_not_be_read_again_does_not_replace_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    documents.write(path, {"a": 1})
    for value in (10**30, -0.0, float("nan"), "\ud800", {1: 2}):
        with pytest.raises(CertificateError):
            documents.write(path, {"a": value})
    with pytest.raises(CertificateError, match=r"could not be read again: it\.a is"):
        documents.write(path, {"b": 1}, read=lambda again: documents.Reader(again, "it").raw("a"))
    assert documents.read(path, "it") == {"a": 1}


def test_a_crash_while_saving_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "certificate.json"
    path.write_text("old")

    def crash(_: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="disk is full"):
        made("shield").save(path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["certificate.json"]


@pytest.mark.slow
def test_a_process_killed_while_saving_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    program = (
        "import sys; from pacbound import calibrate\na = calibrate([.9, .8], [1, 0], delta=.1); b "
        "= calibrate([.9, .8, .7], [1, 0, 1], delta=.1)\na.save(sys.argv[1]); print('ready', "
        "flush=True)\nwhile True:\n    b.save(sys.argv[1]); a.save(sys.argv[1])\n"
    )
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.kill()
        assert load_certificate(path).verify()

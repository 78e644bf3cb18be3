r"""Sign which certificate goes with which model: an in-toto statement in a DSSE envelope.

    pip install "securesystemslib[crypto]" in-toto-attestation
    python examples/attest_certificate.py key signing.pem public.pem
    python examples/attest_certificate.py sign router.json model.onnx --key signing.pem -o att.json
    python examples/attest_certificate.py check att.json router.json model.onnx --key public.pem

`check` ends with 0 if the signature is of this key, the statement is about these very files, all of
them and no others, and the certificate follows from its counts and is no refusal; else with 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey

from pacbound import __version__, load_certificate
from pacbound.atomic_files import refuse_overwriting

PAYLOAD = "application/vnd.in-toto+json"
PREDICATE = "https://github.com/pacbound/pacbound/certificate/v1"


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def statement(certificate: Path, models: list[Path]) -> bytes:
    """What is signed: the digests of the certificate and of the files that it is about, and what
    it claims. A certificate that is a refusal, or does not follow from its counts, is not signed.
    """
    loaded = load_certificate(certificate)
    verification = loaded.verify()
    if not verification or not loaded.certified:
        raise SystemExit(f"{certificate} is not signed: it is a refusal, or not verified.")
    document = loaded.to_dict()
    subjects = [
        ResourceDescriptor(name=path.name, digest={"sha256": digest(path)}).pb
        for path in (certificate, *models)
    ]
    predicate = {
        "kind": loaded.kind,
        "claim": str(loaded),
        "delta": loaded.delta,
        "claimDigest": document["claim_digest"],
        "verifiedBy": f"pacbound {__version__}",
    }
    made = Statement(subjects, PREDICATE, predicate)
    made.validate()
    return json.dumps(MessageToDict(made.pb), sort_keys=True).encode()


def sign(payload: bytes, key: Path) -> dict[str, Any]:
    """The envelope of a payload, signed with an ed25519 key in PEM."""
    private = load_pem_private_key(key.read_bytes(), password=None)
    envelope = Envelope(payload, PAYLOAD, {})
    envelope.sign(CryptoSigner(private))
    return dict(envelope.to_dict())


def check(envelope: dict[str, Any], certificate: Path, models: list[Path], key: Path) -> str:
    """Why the files are not those that were signed, or are not to be used; nothing if all is well.

    The signature comes first: nothing is read from a payload that nobody signed.
    """
    public = SSlibKey.from_crypto(load_pem_public_key(key.read_bytes()))
    read = Envelope.from_dict(envelope)
    try:
        read.verify([public], threshold=1)
    except Exception as error:
        return f"The signature is not of this key: {error}"
    if read.payload_type != PAYLOAD:
        return f"The envelope holds {read.payload_type!r}: expected {PAYLOAD!r}."
    parsed = ParseDict(json.loads(read.payload), statement_pb2.Statement())
    signed = Statement.copy_from_pb(parsed)
    signed.validate()
    if signed.pb.predicate_type != PREDICATE:
        return f"The statement is a {signed.pb.predicate_type!r}: expected {PREDICATE!r}."
    names = {each.digest["sha256"]: each.name for each in signed.pb.subject}
    given = {digest(path): path for path in (certificate, *models)}
    for other in given.keys() - names.keys():
        return f"{given[other]} is not among the files that were signed."
    for missing in names.keys() - given.keys():
        return f"{names[missing]} was signed, too: name all files of the statement."
    loaded = load_certificate(certificate)
    if not loaded.verify() or not loaded.certified:
        return f"{certificate} is a refusal, or does not follow from its counts."
    return ""


def new_key(private: Path, public: Path) -> None:
    """Write a new ed25519 key, for this user to read alone, and its public part."""
    signer = CryptoSigner.generate_ed25519()
    private.touch(mode=0o600, exist_ok=False)
    private.write_bytes(signer.private_bytes)
    own = load_pem_private_key(signer.private_bytes, password=None).public_key()
    public.write_bytes(own.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def main() -> int:
    """Do what the arguments ask."""
    parser = argparse.ArgumentParser(description="Sign a certificate beside its model.")
    parser.add_argument("what", choices=["key", "sign", "check"])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--key", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.what == "key":
        new_key(*options.files)
        return 0
    if options.key is None:
        parser.error("--key is missing.")
    if options.what == "sign":
        certificate, *models = options.files
        refuse_overwriting({"-o": options.output}, {"FILE": options.files, "--key": options.key})
        envelope = sign(statement(certificate, models), options.key)
        options.output.write_text(json.dumps(envelope, indent=2) + "\n", encoding="utf-8")
        return 0
    attestation, certificate, *models = options.files
    envelope = json.loads(attestation.read_text(encoding="utf-8"))
    wrong = check(envelope, certificate, models, options.key)
    sys.stderr.write(f"{wrong}\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

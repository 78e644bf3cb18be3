"""`pacbound verify`: recompute every claim from its counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.certificate import Certificate, Verification, load_certificate
from pacbound.cli.exit_codes import BAD_INPUT, REFUSED, VERIFICATION_FAILED, complain, ending_well
from pacbound.cli.terminal import print_json
from pacbound.documents import Json
from pacbound.errors import CertificateError

WORST_FIRST = (VERIFICATION_FAILED, BAD_INPUT, REFUSED)
"""Of several certificates the worst decides: one that does not follow from its counts, then one
that cannot be read, then one that verifies and is a refusal."""


@ending_well
def verify(
    certificates: Annotated[list[Path], typer.Argument(metavar="CERT...", help="Certificates.")],
    patient: Annotated[
        bool, typer.Option("--patient", help="Verify also what takes unusually long.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line for programs for each.")
    ] = False,
) -> int:
    """Recompute every claim from the counts in the certificate, without the data.

    Verified means that the claim follows from the counts. It cannot show that the counts are those
    of the data.

    Exit code 0: all are verified and certified. 3: all are verified, and one is a refusal. 2: one
    cannot be read. 1: one is not verified, whatever the others are.
    """
    codes = {_verified(path, patient=patient, as_json=as_json) for path in certificates}
    return next((code for code in WORST_FIRST if code in codes), 0)


def _verified(path: Path, *, patient: bool, as_json: bool) -> int:
    try:
        certificate = load_certificate(path)
    except (CertificateError, OSError) as error:
        message = str(error) if isinstance(error, CertificateError) else f"{path}: {error.strerror}"
        if as_json:
            print_json({"certificate": str(path), "ok": False, "error": message})
        complain(message)
        return BAD_INPUT
    verification = certificate.verify(patient=patient)
    if as_json:
        print_json({"certificate": str(path), **_for_programs(certificate, verification)})
    elif verification:
        verdict = "certified" if certificate.certified else "refused"
        typer.echo(
            f"{path}: verified ({certificate.kind}, {verdict}, counts {certificate.counts_digest})"
        )
    if not verification:
        complain(f"{path}: {verification}")
        return VERIFICATION_FAILED
    return 0 if certificate.certified else REFUSED


def _for_programs(certificate: Certificate, verification: Verification) -> dict[str, Json]:
    """What was found, and of the claim what a program acts on. Nothing of a claim that is not
    verified is repeated: whoever reads only `certified` or `thresholds` must not act on it.
    """
    found: dict[str, Json] = {
        "ok": verification.ok,
        "kind": certificate.kind,
        "certified": verification.ok and certificate.certified,
        "differences": list(verification.differences),
        "digests": {
            "claim": certificate.claim_digest,
            "counts": certificate.counts_digest,
        },
    }
    if verification:
        claim = certificate.claim()
        keys = ("procedure", "n", "xi", "delta", "thresholds", "threshold")
        found |= {key: claim[key] for key in keys if key in claim}
    return found

"""`pacbound verify`: recompute every claim from its counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.certificate import load_certificate
from pacbound.cli.exits import BAD_INPUT, VERIFICATION_FAILED, complain, ending_well
from pacbound.cli.terminal import print_json
from pacbound.errors import CertificateError


@ending_well
def verify(
    certificates: Annotated[list[Path], typer.Argument(metavar="CERT...", help="Certificates.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line for programs for each.")
    ] = False,
) -> int:
    """Recompute every claim from the counts in the certificate, without the data.

    Verified means that the claim follows from the counts. It cannot show that the counts are those
    of the data.
    """
    return max(_verified(path, as_json=as_json) for path in certificates)


def _verified(path: Path, *, as_json: bool) -> int:
    try:
        certificate = load_certificate(path)
    except (CertificateError, OSError) as error:
        message = str(error) if isinstance(error, CertificateError) else f"{path}: {error.strerror}"
        if as_json:
            print_json({"certificate": str(path), "ok": False, "error": message})
        complain(message)
        return BAD_INPUT
    verification = certificate.verify()
    if as_json:
        print_json(
            {
                "certificate": str(path),
                "ok": verification.ok,
                "differences": list(verification.differences),
            }
        )
    elif verification:
        verdict = "certified" if certificate.certified else "refused"
        typer.echo(
            f"{path}: verified ({certificate.kind}, {verdict}, claim {certificate.claim_digest})"
        )
    if not verification:
        complain(f"{path}: {verification}")
    return 0 if verification else VERIFICATION_FAILED

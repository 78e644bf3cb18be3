"""`pacbound verify`: recompute every claim from its counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from pacbound import exact_verifier
from pacbound.claims.certificate import Certificate, Verification, load_certificate
from pacbound.cli.columns import ColumnOption, named_columns
from pacbound.cli.exit_codes import BAD_INPUT, REFUSED, VERIFICATION_FAILED, complain, ending_well
from pacbound.cli.file_options import CertificatesArgument
from pacbound.cli.gates import CertifiedOption, DeltaOption, Gates, KindOption, XiOption
from pacbound.cli.recount import DataOption, Recount
from pacbound.cli.table_options import Classes, Counter, LabelsOption, WrittenOrPiped
from pacbound.cli.terminal import print_json
from pacbound.documents import Json
from pacbound.errors import CertificateError, InvalidTypeError

WORST_FIRST = (VERIFICATION_FAILED, BAD_INPUT, REFUSED)
"""Of several certificates the worst decides: one that does not follow from its counts, then one
that cannot be read, then one that verifies and is a refusal."""


@ending_well
def verify(
    certificates: CertificatesArgument,
    require_certified: CertifiedOption = False,
    kind: KindOption = None,
    max_xi: XiOption = None,
    max_delta: DeltaOption = None,
    data: DataOption = None,
    column: ColumnOption = None,
    *,
    classes: Classes,
    labels: LabelsOption = None,
    written: WrittenOrPiped,
    counter: Counter,
    patient: Annotated[
        bool, typer.Option("--patient", help="Verify also what takes unusually long.")
    ] = False,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Check it again in exact arithmetic, by code that shares nothing."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line for programs for each.")
    ] = False,
) -> int:
    """Recompute every claim from the counts in the certificate, without the data.

    Verified means that the claim follows from the counts. It cannot show that the counts are those
    of the data: --data counts them again and compares.

    Exit code 0: all are verified and certified. 3: all are verified, and one is a refusal. 2: one
    cannot be read. 1: one is not verified, is not let through by --require-certified, --kind,
    --max-xi or --max-delta, or has other counts than --data, whatever the others are.
    """
    gates = Gates.of(certified=require_certified, kinds=kind, xi=max_xi, delta=max_delta)
    counting = {
        **classes.options(),
        **counter.options(),
        "answers": labels,
        **written.options(),
    }
    named = named_columns(column)
    recount = None if not data else Recount(written.tables(data), named, counting)
    _check_recount(recount, certificates, named)
    codes = {
        _verified(path, gates, recount, patient=patient, as_json=as_json) for path in certificates
    }
    if exact:
        codes |= {_exact(path, patient=patient, as_json=as_json) for path in certificates}
    return next((code for code in WORST_FIRST if code in codes), 0)


def _check_recount(
    recount: Recount | None, certificates: list[Path], named: Mapping[str, str]
) -> None:
    if recount is None and named:
        raise InvalidTypeError("--column names a column of --data: pass the file, too.")
    if recount is not None and len(certificates) != 1:
        raise InvalidTypeError(
            f"--data is for one certificate, and {len(certificates)} were named: do it for each."
        )


def _verified(
    path: Path, gates: Gates, recount: Recount | None, *, patient: bool, as_json: bool
) -> int:
    try:
        certificate = load_certificate(path)
    except (CertificateError, OSError) as error:
        message = str(error) if isinstance(error, CertificateError) else f"{path}: {error.strerror}"
        if as_json:
            print_json({"certificate": str(path), "ok": False, "error": message})
        complain(message)
        return BAD_INPUT
    verification = certificate.verify(patient=patient)
    closed = gates.closed(certificate) if verification else []
    found = recount.of(certificate) if recount is not None and verification else None
    passed = bool(verification) and not closed and (found is None or found.same)
    if as_json:
        beside: dict[str, Json] = {} if not closed else {"not_let_through": closed}
        if found is not None:
            beside["data"] = {
                "same_counts": found.same,
                "same_files": found.same_files,
                "same_columns": found.same_columns,
                "differences": found.lines,
            }
        told = for_programs(certificate, verification, passed=passed)
        print_json({"certificate": str(path), **told, **beside})
    elif passed:
        verdict = "certified" if certificate.certified else "refused"
        data = "" if found is None else f"; {found}"
        typer.echo(
            f"{path}: verified ({certificate.kind}, {verdict}, counts "
            f"{certificate.counts_digest}){data}"
        )
    if not verification:
        complain(f"{path}: {verification}")
    for line in closed:
        complain(f"{path}: verified, but not let through: {line}")
    if found is not None and not found.same:
        listed = "\n".join(f"  {line}" for line in found.lines)
        complain(f"{path}: verified, but the data have other counts\n{listed}")
    if not passed:
        return VERIFICATION_FAILED
    return 0 if certificate.certified else REFUSED


def _exact(path: Path, *, patient: bool, as_json: bool) -> int:
    """What the verifier finds that shares nothing with the package; its exit codes are ours."""
    code, found = exact_verifier.check_file(str(path), patient=patient)
    said = "exact: " + "\n".join(exact_verifier.described(found))
    if as_json:
        print_json({"exact": True, **found})
    elif not code:
        typer.echo(said)
    if code:
        complain(said)
    return code


def for_programs(
    certificate: Certificate, verification: Verification, *, passed: bool
) -> dict[str, Json]:
    """What was found, and of the claim what a program acts on. Nothing of a claim that has not
    passed is repeated: whoever reads only `certified` or `thresholds` must not act on it.
    """
    found: dict[str, Json] = {
        "ok": passed,
        "kind": certificate.kind,
        "certified": passed and certificate.certified,
        "differences": list(verification.differences),
        "digests": {
            "claim": certificate.claim_digest,
            "counts": certificate.counts_digest,
        },
    }
    if passed:
        claim = certificate.claim()
        keys = (
            *("procedure", "n", "xi", "claim", "bounded", "target", "delta"),
            *("thresholds", "threshold", "lowest", "highest"),
        )
        found |= {key: claim[key] for key in keys if key in claim}
        found |= certificate.by.thresholds(certificate)
    return found

"""`pacbound apply`: add the certified interval to every row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.calibration.rows import ADDED, apply_to_file
from pacbound.certificate import CalibrationCertificate, load_certificate
from pacbound.cli.exits import VERIFICATION_FAILED, complain, ending_well
from pacbound.cli.terminal import print_json, progress_bar
from pacbound.errors import InvalidValueError


@ending_well
def apply(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="A certificate.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The rows, CSV, TSV or .npz.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the rows go, with their intervals added.")],
    confidence: Annotated[str | None, typer.Option(help="Column with the confidence, if not named as in calibration.")] = None,
    group: Annotated[str | None, typer.Option(help="Column with the group, if not named as in calibration.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Add pac_lower, pac_upper and pac_estimate to every row, in order.

    The certificate is verified first: one that does not follow from its own counts is not applied.
    """
    loaded = load_certificate(certificate)
    verification = loaded.verify()
    if not verification:
        complain(f"{certificate} is {verification}\nIt is not applied.")
        return VERIFICATION_FAILED
    if not isinstance(loaded, CalibrationCertificate):
        raise InvalidValueError(f"{certificate} is a {loaded.kind} certificate; rows of a table take a calibration certificate.")
    columns = loaded.provenance.columns
    with progress_bar("applying") as progress:
        rows = apply_to_file(
            loaded,
            file,
            output,
            confidence=confidence or columns.get("confidence", "confidence"),
            group=group or columns.get("group") if loaded.groups else group,
            progress=progress,
        )
    if as_json:
        print_json({"rows": rows, "output": str(output), "columns": list(ADDED)})
    else:
        typer.echo(f"{rows:,} rows written to {output} with {', '.join(ADDED)}.")
    return 0

"""`pacbound cost`: an upper bound on what a certified cascade costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.cascade.cost import certified_cost
from pacbound.claims.cascade import CascadeCertificate
from pacbound.claims.certificate import load_certificate
from pacbound.cli.delivery import progress_bar, verified_or_complain
from pacbound.cli.exit_codes import VERIFICATION_FAILED, ending_well
from pacbound.cli.options import JsonOption, Reads, names, option
from pacbound.cli.rows import PipedRows
from pacbound.cli.streams import print_json
from pacbound.errors import InvalidTypeError, InvalidValueError


@ending_well
def cost(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERT", help="A cascade certificate with costs."), Reads()
    ],
    delta: Annotated[float, option("Chance that the bound is wrong.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="Fresh rows, without labels; if left out, the counts in the certificate are used.",
        ),
        Reads(),
    ] = None,
    confidence: Annotated[
        str | None, option("Confidence columns, if not named as in the certificate.")
    ] = None,
    *,
    rows: PipedRows,
    as_json: JsonOption = False,
) -> int:
    """Bound what a row costs on average, from fresh scores or from the certificate's own counts.

    Fresh rows had no part in the certificate. Ask once: the better of two bounds has two chances to
    be wrong.
    """
    loaded = load_certificate(certificate)
    if not isinstance(loaded, CascadeCertificate):
        raise InvalidValueError(f"A {loaded.kind} certificate has no costs: pass one of a cascade.")
    if not verified_or_complain(loaded, certificate, "used"):
        return VERIFICATION_FAILED
    if not files and confidence is not None:
        raise InvalidTypeError("--confidence names columns of a file: pass the file, too.")
    named = confidence or loaded.provenance.columns.get("confidence", "confidence")
    with progress_bar("reading") as progress:
        bound = certified_cost(
            loaded,
            names(named) if files else None,
            delta=delta,
            data=rows.tables(files) if files else None,
            progress=progress if files else None,
            **rows.options(),
        )
    if as_json:
        print_json({"certificate": str(certificate), **vars(bound)})
    else:
        typer.echo(str(bound))
    return 0

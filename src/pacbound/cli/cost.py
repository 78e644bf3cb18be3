"""`pacbound cost`: an upper bound on what a certified cascade costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Fresh rows; they need no labels."),
        Reads(),
    ] = None,
    *,
    delta: Annotated[float, option("Chance that the bound is wrong: 0.01")],
    confidence: Annotated[
        str | None, option("Confidence columns, if not named as in the certificate.")
    ] = None,
    rows: PipedRows,
    as_json: JsonOption = False,
) -> int:
    """Bound what a row costs on average, from the scores of fresh rows.

    Fresh rows had no part in the certificate. Ask once: the better of two bounds has two chances to
    be wrong.
    """
    loaded = load_certificate(certificate)
    if not isinstance(loaded, CascadeCertificate):
        raise InvalidValueError(f"A {loaded.kind} certificate has no costs: pass one of a cascade.")
    if not verified_or_complain(loaded, certificate, "used"):
        return VERIFICATION_FAILED
    columns = confidence or loaded.provenance.columns.get("confidence", "confidence")
    if not files:
        raise InvalidTypeError(
            f"Pass a file of fresh rows with {columns}, rows like those in use that had no part in "
            f"the certificate; they need no labels: pacbound cost {certificate} FILE "
            f"--delta {delta:g}"
        )
    with progress_bar("reading") as progress:
        options: Any = {**rows.options(), "data": rows.tables(files), "progress": progress}
        bound = certified_cost(loaded, names(columns), delta=delta, **options)
    if as_json:
        print_json({"certificate": str(certificate), **vars(bound)})
    else:
        typer.echo(str(bound))
    return 0

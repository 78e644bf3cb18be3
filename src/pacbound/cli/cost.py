"""`pacbound cost`: an upper bound on what a certified cascade costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pacbound.cascade.cost import CascadeCost, CostBound, certified_cost, estimated_cost
from pacbound.claims.cascade import CascadeCertificate
from pacbound.claims.certificate import load_certificate
from pacbound.cli.delivery import progress_bar, verified_or_complain
from pacbound.cli.exit_codes import VERIFICATION_FAILED, ending_well
from pacbound.cli.options import JsonOption, Reads, names, numbers, option
from pacbound.cli.rows import PipedRows
from pacbound.cli.streams import print_json
from pacbound.documents import Json
from pacbound.errors import InvalidTypeError, InvalidValueError


@ending_well
def cost(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERT", help="A cascade certificate with costs."), Reads()
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="Fresh rows, without labels; if left out, the counts in the certificate are used.",
        ),
        Reads(),
    ] = None,
    delta: Annotated[
        float | None, option("Chance that the bound is wrong; without it, an estimate alone.")
    ] = None,
    confidence: Annotated[
        str | None, option("Confidence columns, if not named as in the certificate.")
    ] = None,
    cost: Annotated[
        str | None, option("Columns with what each model costs on a request: small,large.")
    ] = None,
    tokens: Annotated[
        str | None, option("Columns with tokens in and out of each model: in_1,out_1,in_2,out_2.")
    ] = None,
    price: Annotated[
        str | None, option("With --tokens, what a million of each cost: 0.15,0.6,2.5,10.")
    ] = None,
    currency: Annotated[str, option("What costs are in, such as EUR.")] = "",
    requests: Annotated[int | None, option("Requests in a month, to say what is saved.")] = None,
    *,
    rows: PipedRows,
    as_json: JsonOption = False,
) -> int:
    """Bound what a row costs on average, from fresh scores or from the certificate's own counts.

    Fresh rows had no part in the certificate. Ask once: the better of two bounds has two chances to
    be wrong. With --cost or --tokens, or with --currency or --requests, what is saved is estimated,
    too: an estimate is no part of the guarantee.
    """
    loaded = load_certificate(certificate)
    if not isinstance(loaded, CascadeCertificate):
        raise InvalidValueError(f"A {loaded.kind} certificate has no costs: pass one of a cascade.")
    if not verified_or_complain(loaded, certificate, "used"):
        return VERIFICATION_FAILED
    paid = {"cost": cost, "tokens": tokens, "price": price}
    per_request = {role: text for role, text in paid.items() if text is not None}
    _require_fitting(files, confidence, delta, per_request)
    named = names(confidence or loaded.provenance.columns.get("confidence", "confidence"))
    money: Any = {"currency": currency, "requests": requests}
    bound = estimate = None
    with progress_bar("reading") as progress:
        options: Any = rows.options()
        if files:
            options |= {"data": rows.tables(files), "progress": progress}
        if delta is not None:
            bound = certified_cost(loaded, named if files else None, delta=delta, **options)
        if per_request:
            estimate = estimated_cost(loaded, named, **_listed(per_request), **money, **options)
        elif bound is not None and any(money.values()):
            estimate = CascadeCost(bound.observed, bound.slow, bound.rows, **money)
    if as_json:
        print_json({"certificate": str(certificate), **_for_programs(bound, estimate)})
    else:
        typer.echo("\n".join(str(each) for each in (bound, estimate) if each is not None))
    return 0


def _require_fitting(
    files: list[str] | None,
    confidence: str | None,
    delta: float | None,
    per_request: dict[str, str],
) -> None:
    """Raise if there is nothing to do, or columns are named and no file."""
    if not files and confidence is not None:
        raise InvalidTypeError("--confidence names columns of a file: pass the file, too.")
    if not files and per_request:
        raise InvalidTypeError("--cost and --tokens name columns of a file: pass the file, too.")
    if delta is None and not per_request:
        raise InvalidTypeError("Pass --delta for a bound, or --cost for an estimate.")


def _listed(per_request: dict[str, str]) -> dict[str, Any]:
    """Columns by their names, and prices as numbers."""
    return {
        role: numbers(text, "--price") if role == "price" else names(text)
        for role, text in per_request.items()
    }


def _for_programs(bound: CostBound | None, estimate: CascadeCost | None) -> dict[str, Json]:
    said: dict[str, Json] = {} if bound is None else dict(vars(bound))
    if estimate is not None:
        saved = {"saved": estimate.saved, "saved_a_month": estimate.saved_a_month}
        said["estimate"] = {**vars(estimate), **saved}
    return said

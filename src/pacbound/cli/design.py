"""`pacbound design`: choose a cascade among many models, and certify it; `pacbound cost`: an upper
bound on what a certified cascade costs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from pacbound.cascade.cost import certified_cost
from pacbound.cascade.design import CascadeDesign, design_cascade
from pacbound.claims.cascade import CLAIM, CascadeCertificate
from pacbound.cli.delivery import (
    AboutOption,
    OutputOption,
    about_of,
    deliver,
    progress_bar,
    say,
    verified_certificate,
)
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.lent_seeds import seed_for
from pacbound.cli.options import ROWS, JsonOption, Reads, names, numbers, option
from pacbound.cli.rows import GRADED, PIPED, RELATED, FilesArgument, PipedRows, RowChoices
from pacbound.documents import Json, encode_float, printable
from pacbound.errors import InvalidTypeError, InvalidValueError

# How many of the cascades that were tried are printed.
SHOWN = 8


@ending_well
def design(
    files: FilesArgument,
    confidence: Annotated[str, option("Columns with the confidence of every model: c1,c2,c3")],
    costs: Annotated[
        str, option("What each model costs a row by itself, in the same order: 1,4,20")
    ],
    xi: Annotated[float, option("The accuracy that may be lost, for example 0.02.")],
    delta: Annotated[float, option("Chance that more is lost, for example 1e-3.")],
    prediction: Annotated[
        str | None, option("Columns with the prediction of every model, in the same order.")
    ] = None,
    label: Annotated[
        str | None, option("Column with the true class; may be empty where predictions agree.")
    ] = None,
    quality: Annotated[
        str | None,
        option(
            "Columns with the quality of every model's answer, in place of label: q1,q2,q3",
            rich_help_panel=ROWS,
        ),
    ] = None,
    last: Annotated[
        str | None,
        option("Prediction column of the slow model; the most accurate of the fold if left out."),
    ] = None,
    most: Annotated[int, option("The largest number of models, the slow one too.")] = 4,
    fold: Annotated[
        float, option("Share of the rows that chooses; the others certify.", rich_help_panel=ROWS)
    ] = 0.2,
    seed: Annotated[
        int | None, option("Draws the same fold again. Try only one.", rich_help_panel=ROWS)
    ] = None,
    contain: Annotated[
        str | None, option("Prediction columns of models that must be there: p2,p5")
    ] = None,
    first: Annotated[str | None, option("Prediction column of the model to ask first.")] = None,
    *,
    rows: Annotated[RowChoices, (*RELATED, *GRADED, *PIPED, "sample")],
    output: OutputOption = None,
    about: AboutOption = None,
    as_json: JsonOption = False,
) -> int:
    """Choose a cascade among many models on a fold of the rows, and certify it on all others.

    The certificate holds for the chosen models in the chosen order; it keeps the names of their
    columns, so that `pacbound apply` finds them.
    """
    tables, options = rows.tables(files), {"fold": fold, "seed": seed, **rows.options()}
    seed = seed_for(output, CLAIM.kind, tables, options)
    with progress_bar("choosing") as progress:
        found = design_cascade(
            names(confidence),
            None if prediction is None else names(prediction),
            label,
            quality=None if quality is None else names(quality),
            costs=numbers(costs, "--costs"),
            xi=xi,
            delta=delta,
            last=last,
            most=most,
            fold=fold,
            seed=seed,
            contain=[] if contain is None else names(contain),
            first=first,
            data=tables,
            progress=progress,
            about=about_of(about),
            **rows.options(),
        )
    columns = names(prediction or quality or "")
    if not as_json:
        _print_tried(found, columns)
    tried: list[Json] = [
        {
            "models": [columns[m] for m in each.models],
            "cost": encode_float(each.cost),
            "loss": encode_float(each.loss),
        }
        for each in found.tried
    ]
    beside = {
        "models": list(found.names or ()),
        "places": list(found.models),
        "saved": found.saved,
        "searched": found.searched,
        "tried": tried,
    }
    return deliver(found.certificate, output, as_json=as_json, beside=beside)


def _print_tried(found: CascadeDesign, columns: list[str]) -> None:
    shown = found.tried[:SHOWN]
    typer.echo(
        f"Estimates on the fold, cheapest of {len(found.tried)} that were looked at closely, of "
        f"{found.searched:,} sets in all:"
    )
    typer.echo("   saved     loss  models")
    for each in shown:
        saved = f"{1 - each.cost / found.slow_cost:.1%}" if each.cost < float("inf") else "none"
        typer.echo(f"{saved:>8} {each.loss:+8.4f}  {_chain(columns[m] for m in each.models)}")
    typer.echo(
        f"\nChosen: {_chain(found.names or ())}. On the rows that certify it saved "
        f"{found.saved:.1%} of {found.slow_cost:g} (descriptive).\n"
    )


def _chain(columns: Iterable[str]) -> str:
    return " > ".join(map(printable, columns))


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
    loaded = verified_certificate(certificate, "used")
    if not isinstance(loaded, CascadeCertificate):
        raise InvalidValueError(f"A {loaded.kind} certificate has no costs: pass one of a cascade.")
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
    say(str(bound), {"certificate": str(certificate), **vars(bound)}, as_json=as_json)
    return 0
